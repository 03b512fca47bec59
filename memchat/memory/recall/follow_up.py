"""What is searched for a message of a conversation: alone, or with the message before it."""

from __future__ import annotations

from collections.abc import Sequence

from memchat.language.text import content_words
from memchat.memory.embedding.space import QUESTION_LIMIT
from memchat.types import Message

SHORT_WORDS = 3
"""Words up to which a message may be one that goes on from the message before it."""
SHORT_CONTENT = 2
"""And of these, words that carry meaning."""


def searched(said: str, turns: Sequence[Message]) -> str:
    """The message, behind the user's message before it where it says too little by itself, as
    "why?" and "and for Friday?" do. ``turns`` are the conversation so far, maybe with this one."""
    if len(said.split()) > SHORT_WORDS or len(content_words(said)) > SHORT_CONTENT:
        return said
    theirs = [turn.content for turn in turns if turn.role == "user"]
    while theirs and theirs[-1] == said:
        theirs.pop()  # this message, or the same asked again
    if not theirs:
        return said
    # Both are to be within what a search looks at: the long one is cut, not the one asked now.
    return f"{theirs[-1][: QUESTION_LIMIT - len(said) - 1]}\n{said}"
