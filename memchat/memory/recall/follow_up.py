"""The text that is searched for a message: the message alone, or with the one before it."""

from __future__ import annotations

from collections.abc import Sequence

from memchat.language.text import content_words
from memchat.memory.embedding.space import QUESTION_LIMIT
from memchat.types import Message

SHORT_WORDS = 3
"""Words up to which a message may continue the one before it."""
SHORT_CONTENT = 2
"""The most content words among these."""


def searched(message: str, turns: Sequence[Message]) -> str:
    """The message; with the user's message before it where it is too short to be searched alone, as
    "why?" and "and for Friday?" are. ``turns`` are the conversation, with or without this one."""
    if len(message.split()) > SHORT_WORDS or len(content_words(message)) > SHORT_CONTENT:
        return message
    before = [turn.content for turn in turns if turn.role == "user"]
    while before and before[-1] == message:
        before.pop()  # this message, or the same asked again
    if not before:
        return message
    # Both have to be within what a search reads: the older one is cut, not this one.
    return f"{before[-1][: QUESTION_LIMIT - len(message) - 1]}\n{message}"
