"""A program that uses the store for a person over MCP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from memchat.types.hit import Hit
from memchat.types.memory import Memory

ClientMode = Literal["ask", "trust"]
CLIENT_MODES: tuple[ClientMode, ...] = ("ask", "trust")
CLIENT_NAME_LIMIT = 60
"""Characters of the name of a program."""
WriteKind = Literal["memory", "inbox", "note", "forget"]


@dataclass(frozen=True, slots=True)
class Client:
    """A program by the name that the person gave it, and how much it wrote."""

    name: str
    mode: ClientMode
    """trust: what it remembers is stored; ask: it waits in the inbox."""
    calls: int
    first_call_at: datetime
    last_call_at: datetime
    session_id: int | None
    """The conversation that holds what it said; None where it said nothing."""
    memories: int = 0
    """How many memories it stored or changed."""
    waiting: int = 0
    """How many proposals of it wait in the inbox."""
    notes: int = 0
    forgotten: int = 0
    """How many memories it asked to forget."""


@dataclass(frozen=True, slots=True)
class ClientWrite:
    """One thing that a program wrote."""

    kind: WriteKind
    target_id: int
    """The id of the memory, inbox item or note."""
    at: datetime


def note_prefix(name: str) -> str:
    """What the external ids of a program's notes begin with, and those of no other program's."""
    return f"{name.replace('%', '%25').replace('/', '%2F')}/"


@dataclass(frozen=True, slots=True)
class SessionQuote:
    """Words of the person in one of their conversations that prove a fact."""

    session_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a request to remember, change or forget."""

    status: Literal["stored", "known", "waiting", "hidden", "refused"]
    """known: it was stored before; hidden: it is out of use until the person decides."""
    memory: Memory | None = None
    inbox_id: int | None = None
    reason: str = ""
    """Why it waits or was refused, in plain words."""
    replaced: str | None = None
    """The value that it replaced, where it replaced one."""
    last_day_gone: date | None = None
    """The last day that it had before, where it has none any more."""
    similar: tuple[Hit, ...] = ()
    """Other memories in use that may be about the same, the nearest first."""
