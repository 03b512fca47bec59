"""Errors of memchat as a model reads them: one line, without the commands of a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError

from memchat.errors import MemChatError, NotFound

_COMMAND = "; see memchat "


@contextmanager
def tool_errors() -> Iterator[None]:
    """What goes wrong in a tool as the error of its call."""
    try:
        yield
    except MemChatError as error:
        raise ToolError(_line(error)) from error


@contextmanager
def resource_errors() -> Iterator[None]:
    """What is not there as the error of a resource."""
    try:
        yield
    except NotFound as error:
        raise ResourceNotFoundError(_line(error)) from error


def _line(error: MemChatError) -> str:
    return str(error).partition(_COMMAND)[0]
