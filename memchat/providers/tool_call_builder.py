"""Putting streamed tool calls together."""

from __future__ import annotations

from typing import Any

from memchat.providers import ToolCall


class ToolCallBuilder:
    """Tool calls, built from the parts in which they are streamed."""

    def __init__(self) -> None:
        self._parts: list[tuple[object, object, list[str], list[str]]] = []
        self.size = 0
        """Characters of all arguments."""

    def add(self, part: Any) -> None:
        """Add a part to the call with the same index, or begin the next call."""
        called = part.function
        at, key = part.index, part.id
        known = next((p for p in reversed(self._parts) if p[0] == at), None)
        # Some endpoints give every call index 0: a new name and id then begin a new call.
        if known is None or (called.name and key and known[1] and key != known[1]):
            known = (at, key, [], [])
            self._parts.append(known)
        known[2].append(called.name or "")
        known[3].append(called.arguments or "")
        self.size += len(called.arguments or "")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in their order."""
        return tuple(
            ToolCall("".join(name), "".join(arguments)) for _, _, name, arguments in self._parts
        )
