"""What checks of whole routes share: the values that are kept, and tests that need the weights."""

from __future__ import annotations

from typing import Any

import pytest

from memchat import MemChat
from memchat.providers import local


def values(mc: MemChat, app: str = "default", **how: Any) -> set[str]:
    return {memory.value for memory in mc.user("ana", app=app).memories.list(**how)}


needs_weights = pytest.mark.skipif(
    not local.available(), reason="the MiniLM weights are missing (memchat services fetch minilm)"
)
