"""The turns of a conversation as a model is sent them."""

from __future__ import annotations

from collections.abc import Sequence

from memchat.types import ChatMessage, Message, Role


def alternating(turns: Sequence[Message]) -> list[ChatMessage]:
    """The turns as providers want them: beginning with the user, never two of one role in a row."""
    merged: list[tuple[Role, str]] = []
    for turn in turns:
        if merged and merged[-1][0] == turn.role:
            merged[-1] = (turn.role, f"{merged[-1][1]}\n\n{turn.content}")
        elif merged or turn.role == "user":
            merged.append((turn.role, turn.content))
    return [ChatMessage(role, content) for role, content in merged]
