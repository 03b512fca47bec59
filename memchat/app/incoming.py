"""Messages of a caller's own chat loop, in the form of OpenAI's chat API, as turns to store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memchat.errors import InputError
from memchat.types import Role, clean_text

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
OTHER_ROLES = ("system", "developer", "tool", "function")
TEXT_PARTS = ("text", "input_text", "output_text")
Messages = str | Sequence[Mapping[str, Any]]
"""One user message as a string, or messages with ``role`` and ``content``."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """What of the messages is to be stored."""

    turns: tuple[tuple[Role, str], ...]
    ignored: int
    """Messages and parts of messages that are not stored: of another role, or without text."""

    @classmethod
    def of(cls, messages: Messages) -> Incoming:
        """Read the messages. Raises InputError where they are malformed or hold no text."""
        if not isinstance(messages, str | Sequence):
            raise InputError("give a string, or a list of messages with role and content")
        given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        turns: list[tuple[Role, str]] = []
        ignored = 0
        for number, message in enumerate(given):
            role = _role(message, number)
            text, left_out = _text(message.get("content"), number)
            if role is None or not text.strip():
                ignored += 1
                continue
            turns.append((role, clean_text(text)))
            ignored += left_out
        if not turns:
            raise InputError("there is nothing to add; give a message of the user with some text")
        return cls(tuple(turns), ignored)


def _role(message: object, number: int) -> Role | None:
    """Who said it; None for a role whose messages are not stored."""
    role = message.get("role") if isinstance(message, Mapping) else None
    if not isinstance(role, str) or role not in (*ROLES, *OTHER_ROLES):
        raise InputError(
            f"message {number} has no known role; give a mapping with role "
            f"({', '.join((*ROLES, *OTHER_ROLES))}) and content"
        )
    return ROLES.get(role)


def _text(content: object, number: int) -> tuple[str, int]:
    """The text of a message's content, and how many of its parts are not text."""
    if content is None or isinstance(content, str):
        return content or "", 0
    if not isinstance(content, Sequence):
        raise InputError(f"message {number}: content is neither a string nor a list of parts")
    texts = [
        part if isinstance(part, str) else part["text"]
        for part in content
        if isinstance(part, str)
        or (
            isinstance(part, Mapping)
            and part.get("type") in TEXT_PARTS
            and isinstance(part.get("text"), str)
        )
    ]
    return "\n".join(texts), len(content) - len(texts)
