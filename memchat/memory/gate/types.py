"""What the gate takes and gives: turns, known facts, the case of a candidate, a verdict."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Literal
from zoneinfo import ZoneInfo

from memchat.language.sentences import Span, sentence_around
from memchat.memory.extraction.candidate import Candidate
from memchat.memory.gate.quoted_text import own_words
from memchat.types import MemoryType, Role

Outcome = Literal["accept", "doubt", "review", "refuse"]
"""Store it; ask the model for a second look; ask the user; do not keep it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation."""

    id: str
    role: Role
    text: str
    said_at: datetime
    message_id: int


@dataclass(frozen=True, slots=True)
class KnownFact:
    """One stored fact that the model was shown."""

    id: str
    memory_id: int
    memory_type: MemoryType
    key: str
    value: str
    many: bool
    starts: date | None = None
    """The first day it holds, where that lies ahead."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A span that proves a candidate. Offsets count characters of the stored message."""

    message_id: int
    turn_id: str
    role: Role
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a candidate, and its reasons."""

    outcome: Outcome
    reasons: tuple[str, ...]
    spans: tuple[Proof, ...]
    candidate: Candidate
    """As corrected; masked where it was refused for a secret."""
    until: date | None = None
    """The last day it holds."""
    starts: date | None = None
    """The first day it holds, where that lies ahead."""
    signals: tuple[str, ...] = ()
    """What may change the meaning of the quote, which only a reader can tell."""
    beside: bool = False
    """Whether a word near the quote may change its meaning."""
    wordless: bool = False
    """Whether only the reason may be kept: for secrets, and what the user asked not to keep."""
    bare: bool = False
    """Whether the sentence around its words may not be kept: a secret stands in it."""
    detail: dict[str, str] | None = None
    """What a second look said: ``verdict``, ``reason`` and ``model``."""


@dataclass
class Case:
    """One candidate while it is judged. A check reads it, may correct ``candidate``, and adds to
    one of four lists: ``refusals``; ``reviews``, which the user must decide; ``signals``, which
    need a second look; and ``notes``."""

    candidate: Candidate
    turns: Sequence[Turn]
    known: Sequence[KnownFact]
    prompt_text: str
    injected: Collection[str]
    zone: ZoneInfo
    languages: tuple[str, ...]
    """The languages of the session, likeliest first."""
    refusals: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proofs: list[tuple[Turn, Span]] = field(default_factory=list)
    ref: tuple[Turn, Span] | None = None
    until: date | None = None
    starts: date | None = None
    wordless: bool = False

    @property
    def target(self) -> KnownFact | None:
        """The known fact that the candidate points at."""
        return next((fact for fact in self.known if fact.id == self.candidate.to), None)

    def quoted_turns(self) -> list[Turn]:
        """The quoted messages, each once."""
        return list({turn.id: turn for turn, _ in self.proofs}.values())

    def quoted_words(self) -> str:
        """The words of all quotes together."""
        return " \n".join(turn.text[a:b] for turn, span in self.proofs for a, b in span.pieces)

    def sentences(self) -> list[str]:
        """The sentence around each quote."""
        return [sentence_around(turn.text, span.start, span.end).text for turn, span in self.proofs]

    def own_message_words(self) -> str:
        """The user's own words in the quoted messages."""
        return " \n".join(own_words(turn.text) for turn in self.quoted_turns())

    def cited_words(self) -> str:
        """The assistant's words that the user took up; empty for none."""
        return self.ref[1].text if self.ref else ""

    @cached_property
    def user_text(self) -> str:
        """All the user's own words of the session."""
        return " \n".join(own_words(turn.text) for turn in self.turns if turn.role == "user")

    def change(self, **fields: object) -> None:
        """Correct the candidate."""
        self.candidate = self.candidate.model_copy(update=fields)
