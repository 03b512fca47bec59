"""Records of conversations: replies, what was learned, long messages, deletions and receipts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memchat.types.fact import Hit, Memory
from memchat.types.scope import ChatMessage, Message, Usage, effort


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. ``extracted_to`` is the id of the last message that an extraction read."""

    id: int
    user: str
    app: str
    title: str | None
    summary: str | None
    started_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    extracted_to: int
    message_count: int
    status: str
    """open, pending (ended, waits for its extraction), extracted, failed, or off (nothing to
    learn)."""
    copied_from: int | None = None
    """The conversation whose beginning this one was made with, while that is there."""


@dataclass(frozen=True, slots=True)
class ReplyParts:
    """A reply that lists memories, asks a question, or does neither: then all is in ``before``."""

    before: str
    """What stands before the list, with the line that says how many there are."""
    listed: tuple[int, ...] = ()
    """The ids of the memories that were listed."""
    after: str = ""
    """What stands after the list."""
    question: str = ""
    """The question at its end."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the person is asked to agree to before it is done. A yes, a no, or the number of one of
    several is an answer."""

    about: Literal["forget", "blank"]
    """Forgetting what was found, or blanking what else mentions what was forgotten."""
    count: int
    """How many things can be chosen from; those of ``blank`` are one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a session taught, or that was refused: which memory it changed, and its
    proof."""

    kind: str
    """added, repeated, merged, superseded, ended, revived, forgotten, review or refused."""
    memory: Memory | None
    quotes: tuple[str, ...] = ()
    before: str | None = None
    """The replaced value, if there is one."""
    reason: str | None = None
    """Why it went to the inbox or was refused."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What reading a conversation taught; of ``User.add`` also what was stored of it."""

    session_id: int | None
    """None where nothing was stored."""
    changes: tuple[Change, ...] = ()
    title: str | None = None
    summary: str | None = None
    skipped: str | None = None
    """Why nothing was read (memory is off, nothing new), or None."""
    queued: str | None = None
    """Why it is not read yet but waits in the queue, or None."""
    stored: int = 0
    """How many turns ``User.add`` stored."""
    known: int = 0
    """How many turns it skipped, as they were added before."""
    ignored: int = 0
    """How many messages and parts it left out: of another role, or without text."""
    shortened: int = 0
    """How many very long messages were read only at their beginning and end; ``read_all`` has all
    of one read."""

    def count(self, *kinds: str) -> int:
        """How many changes are of one of these kinds."""
        return sum(change.kind in kinds for change in self.changes)

    @property
    def headline(self) -> str:
        """``Saved N (merged/updated M)``."""
        saved = self.count("added", "revived", "superseded")
        changed = self.count("merged", "repeated", "superseded", "ended")
        return f"Saved {saved} (merged/updated {changed})"


PASTE_LENGTH = 2_000
"""Characters from which a message is offered to be kept as a note."""


@dataclass(frozen=True, slots=True)
class LongMessage:
    """A very long message, and what it takes to read all of it. Calls, tokens and cost are those of
    the extraction model, and rough."""

    message_id: int
    characters: int
    read_all: bool
    """Whether all of it is read, as was asked for; else its beginning and its end."""
    calls: int
    """Calls that read its beginning and its end."""
    calls_for_all: int
    tokens_for_all: int
    cost_for_all: float | None
    """US dollars; 0 for a model of this machine, None if the price is not known."""
    model: str

    @property
    def effort(self) -> str:
        """What reading all of it takes, in words: "62 calls, about $0.12"."""
        return effort(self.calls_for_all, self.tokens_for_all, self.cost_for_all)


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """The calls of a model that an answer takes, with their tokens and cost; all are rough."""

    calls: int
    """0 where no model is asked."""
    tokens: int
    cost_usd: float | None
    """US dollars; 0 for a model of this machine, None if the price is not known."""
    model: str

    @property
    def effort(self) -> str:
        """What it takes, in words: "12 calls, about $0.08"."""
        return effort(self.calls, self.tokens, self.cost_usd)


@dataclass(frozen=True, slots=True)
class Undone:
    """What deleting a conversation or a message does to the memories."""

    gone: tuple[Memory, ...] = ()
    """They are deleted, since nothing else proves them."""
    back: tuple[Memory, ...] = ()
    """They had been replaced or ended by it, and are in use again."""
    kept: tuple[Memory, ...] = ()
    """They stay, since other messages prove them or the user entered or edited them."""

    def then(self, later: Undone) -> Undone:
        """What this and a later deletion do together."""
        gone = {memory.id for memory in later.gone}
        told = gone | {memory.id for memory in (*later.back, *later.kept)}
        return Undone(
            self.gone + later.gone,
            tuple(m for m in self.back if m.id not in gone) + later.back,
            tuple(m for m in self.kept if m.id not in told) + later.kept,
        )


@dataclass(frozen=True, slots=True)
class Given:
    """One line of a reply's prompt, and what became of it since."""

    hit: Hit
    """As it was sent; without its words while it is being forgotten."""
    said_at: datetime | None = None
    session_id: int | None = None
    """The conversation in which it was said; None if it was entered by hand, or for a note."""
    since: str | None = None
    """What happened to it after the reply, in words; None if nothing did."""
    muted: bool = False
    """Whether it is left out of the rest of the conversation."""
    client: str | None = None
    """The program that stored it over MCP."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a reply is as it is: what its model was sent, and the cost of the calls."""

    reply: Message
    question: str | None
    """The message it answers."""
    lines: tuple[Given, ...]
    """What was found for the message, or chosen because not all facts fit."""
    forgotten: int
    """How many lines were deleted since, with their words."""
    dropped: int
    """How many memories the token budget left out."""
    degraded: str | None
    by_model: bool
    """False if the reply was made by code alone."""
    tools: tuple[str, ...]
    """The tools that the model was offered."""
    prompt: tuple[ChatMessage, ...] | None
    """What the model was sent, without what was blanked or deleted since. None if it held something
    that was forgotten, or if the reply was made by code alone."""
    deleted: int
    """How many of the messages sent were deleted since."""
    calls: tuple[Usage, ...]
    """The calls made for the reply, each with its tokens and cost."""
    also: tuple[Given, ...] = ()
    """The other facts that were sent because all of them fit, in the order of their ids."""
