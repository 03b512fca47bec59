"""Models that call the memory tools."""

from __future__ import annotations

from typing import Any

from memchat import MemChat
from memchat.testing import Calls, ScriptedModel


def caller(*replies: Any) -> ScriptedModel:
    """A chat model that can call tools."""
    return ScriptedModel(replies, name="scripted/chat", tools=True)


def kept(
    quote: str, key: str, value: str, memory_type: str = "profile", **more: str
) -> tuple[str, dict[str, Any] | str]:
    given = {"quote": quote, "type": memory_type, "key": key, "value": value, **more}
    return "remember", given


def keep(quote: str, key: str, value: str, memory_type: str = "profile", **more: str) -> Calls:
    return Calls(kept(quote, key, value, memory_type, **more))


LIST = Calls(("list_memories", {}))


def values(mc: MemChat, **where: str) -> list[str]:
    return [memory.value for memory in mc.user("ana", **where).memories.list()]


def said(mc: MemChat, session_id: int = 1) -> list[str]:
    return [turn.content for turn in mc.user("ana").sessions.messages(session_id)]
