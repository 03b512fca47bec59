from __future__ import annotations

from collections.abc import Iterator

import pytest

from memchat import MemChat, User
from tests.support.workflows import ToolServer, name_server, serving_tools


@pytest.fixture(scope="module")
def tool_server() -> Iterator[ToolServer]:
    with serving_tools() as server:
        yield server


@pytest.fixture
def tools(tool_server: ToolServer, mc: MemChat) -> ToolServer:
    """The tools of a server that the store knows; nothing of them was called yet."""
    tool_server.calls.clear()
    name_server(mc, "tools", url=tool_server.url)
    return tool_server


@pytest.fixture
def ana(mc: MemChat) -> User:
    return mc.user("ana")
