"""Search results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memchat.types.memory import Memory


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result, with the parts its score was made of.

    ``cosine`` and ``bm25`` are None where that list could not score it (no vector, no word in
    common); ``bm25`` is 1 where it holds all words of the question that anything holds, the rarer
    counting for more; ``prior`` is the share that the summary of a message's conversation has in
    its score.
    ``channel`` is pinned, both, meaning, words, time, conversation, newest where nothing of the
    question speaks for it (in a prompt: where there was room for more than was found), or listed by
    a command; in a prompt also all (all facts fit).
    """

    kind: Literal["memory", "message"]
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
    """For a message, the conversation it was said in."""
    session_title: str | None = None
    since_changed: tuple[str, ...] = ()
    """For a message, the keys of facts drawn from it that hold no more as they were said."""
    prior: float | None = None
    dated: float | None = None
    """The share in its score for lying on the days that the question asks about."""
    tells: tuple[tuple[int, str, str], ...] = ()
    """Id, key and value of the memories whose words stand in it beside its own: those that a memory
    replaced and its line names, those that were learnt from a message."""
    confident: bool = True
    """Whether it passes the floor: near enough in meaning, or with enough of the words. Others only
    fill a search's list."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a search found. ``degraded`` says in words why meaning did not take part, or is None."""

    hits: tuple[Hit, ...] = ()
    degraded: str | None = None
    dropped: int = 0
    """Hits above the floor that the token budget left out."""
    tokens: int = 0
    matched: tuple[int, ...] = ()
    """For a prompt, the memories that search found for the message, pinned ones among them."""
    listed: tuple[Hit, ...] = ()
    """For a prompt, every fact, where all of them fit: sent whatever the message, by their ids.
    Then ``hits`` are only what was found for it."""

    @property
    def lines(self) -> int:
        """How many memories and turns it is, each counted once."""
        ids = {(hit.kind, hit.id) for hit in (*self.listed, *self.hits)}
        return len(ids)

    @property
    def confident(self) -> tuple[Hit, ...]:
        """The hits that pass the floor."""
        return tuple(hit for hit in self.hits if hit.confident)
