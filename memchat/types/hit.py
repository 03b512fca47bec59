"""Search results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memchat.types.memory import Memory


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result, with the parts of its score.

    ``cosine`` and ``bm25`` are None if that search gave no score (no vector, no common word).
    ``bm25`` is 1 if it holds all words of the query that any text holds; rarer words count more.
    ``prior`` is the part of the score that comes from the summary of a message's conversation.

    ``channel`` says how it was found: pinned, both, meaning, words, time, conversation, newest
    (nothing in the query matches it; in a prompt there was room for more) or listed (by a command).
    In a prompt it is also all (every fact fits).
    """

    kind: Literal["memory", "message", "note"]
    id: int
    text: str
    score: float
    cosine: float | None
    bm25: float | None
    channel: str
    tokens: int
    memory: Memory | None = None
    said_at: datetime | None = None
    session_id: int | None = None
    """The conversation of a message."""
    session_title: str | None = None
    since_changed: tuple[str, ...] = ()
    """For a message, the keys of facts learned from it that no longer hold as they were said."""
    prior: float | None = None
    dated: float | None = None
    """The part of the score for lying on the days that the query asks about."""
    tells: tuple[tuple[int, str, str], ...] = ()
    """Id, key and value of other memories whose words it shows: replaced values in the line of a
    memory, or facts learned from a message."""
    confident: bool = True
    """Whether it passes the floor: similar enough in meaning, or with enough common words. Others
    only fill up the list of a search."""
    chunk_id: int | None = None
    """For a passage of a note, the chunk that it is from."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The results of a search. ``degraded`` is why no vectors were searched, or None."""

    hits: tuple[Hit, ...] = ()
    degraded: str | None = None
    dropped: int = 0
    """How many hits above the floor the token budget left out."""
    tokens: int = 0
    matched: tuple[int, ...] = ()
    """For a prompt, the ids of the memories found for the message, pinned ones included."""
    listed: tuple[Hit, ...] = ()
    """For a prompt in which all facts fit, every fact in the order of their ids, whatever the
    message. ``hits`` then has only those found for the message."""
    notes: tuple[Hit, ...] = ()
    """For a prompt, the passages of notes that fit the message."""

    @property
    def lines(self) -> int:
        """How many different memories, messages and notes there are."""
        ids = {(hit.kind, hit.id) for hit in (*self.listed, *self.hits, *self.notes)}
        return len(ids)

    @property
    def confident(self) -> tuple[Hit, ...]:
        """The hits that pass the floor."""
        return tuple(hit for hit in self.hits if hit.confident)
