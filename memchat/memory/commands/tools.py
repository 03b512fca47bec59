"""The tools of memory that a chat model may call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memchat.providers import ToolCall
from memchat.types import MEMORY_TYPES


def _tool(name: str, does: str, required: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name, "description": does}
    if fields:  # Gemini refuses an object without properties
        shape = {"type": "object", "properties": fields, "required": list(required)}
        function["parameters"] = shape
    return {"type": "function", "function": function}


def _text(does: str) -> dict[str, Any]:
    return {"type": "string", "description": does}


TOOLS = (
    _tool(
        "remember",
        "Save one fact the user asks you to remember.",
        ("quote", "type", "key", "value"),
        quote=_text("the user's words, copied"),
        type={"type": "string", "enum": list(MEMORY_TYPES)},
        key=_text("English snake_case slot, e.g. city"),
        value=_text("short, in the user's language"),
        until_said=_text("their words for how long, copied"),
        until=_text("as +3d, weekday:fri, end:month, MM-DD or YYYY-MM-DD"),
    ),
    _tool(
        "forget",
        "Show the user what is saved on something they ask you to forget, and let them confirm.",
        ("what",),
        what=_text("what to forget"),
    ),
    _tool("list_memories", "Show the user all that is saved about them."),
)


def arguments(call: ToolCall) -> dict[str, Any]:
    """What the model passed; nothing where that cannot be read."""
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}
