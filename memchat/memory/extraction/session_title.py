"""The title and summary of a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from memchat.language import numbers, secrets, text
from memchat.types import Message

FALLBACK_LIMIT = 60


def grounded_description(words: str | None, said: Sequence[str]) -> str | None:
    """A title or summary with secrets masked; None where it has a number or name nobody said."""
    if not words:
        return None
    secret_words = {
        said[number][s.start : s.end] for number, s in secrets.find_in_conversation(said)
    }
    if any(secrets.reveals(words, secret) for secret in secret_words):
        return None  # without the word beside it, it is not recognised as a secret
    transcript = " ".join(said)
    unsaid = numbers.numbers(words) - numbers.numbers(transcript)
    plain = text.fold(transcript).text
    unsaid |= {name for name in text.names(words) if text.fold(name).text not in plain}
    return None if unsaid else secrets.mask(words)


def fallback_title(turns: Sequence[Message]) -> str | None:
    """The first words a person said, where the model gave no title."""
    first = next((n for n, turn in enumerate(turns) if turn.role == "user"), None)
    if first is None:
        return None
    question = turns[first - 1].content if first else ""
    words = secrets.mask(" ".join(turns[first].content.split()), question)
    return (
        words if len(words) <= FALLBACK_LIMIT else words[: FALLBACK_LIMIT - 1].rstrip() + "…"
    ) or None
