"""Rows of a store, written without the façade."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from memchat.db import apps, messages, sessions
from memchat.db.database import Database
from memchat.facts import changes, memories
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory, ValuesInForce
from memchat.search import keywords
from memchat.search.keywords import Kind, passage_id
from memchat.types import Scope, Wanted
from tests.support.store import NOON

TODAY = NOON.date()
ANA, BO = Scope("ana", "home"), Scope("bo", "home")
BY_HAND = Cause("user", "added by hand")

BACKENDS: dict[str, Callable[[Path], Database]] = {"sqlite": partial(Database, clock=lambda: NOON)}


def new(value: str, key: str = "city", **more) -> NewMemory:
    fields = {
        "memory_type": "profile",
        "key": key,
        "value": value,
        "many": False,
        "search_text": f"profile | {key} | {value}",
        "said_at": NOON,
        "created_by": "manual",
    }
    return NewMemory(**{**fields, **more})


def count(tx, app_ids: Sequence[int], wanted: Wanted, now: ValuesInForce, **by) -> int:
    """How many memories match."""
    return len(memories.ids(tx, app_ids, wanted, now, **by))


def keep(tx, scope: Scope, value: str, **more) -> int:
    own = apps.ensure(tx, scope).own
    return changes.add(tx, own, new(value, **more), BY_HAND)


def talk(tx, scope: Scope, *said: str) -> tuple[int, list[int]]:
    """A session of the scope with these words; its id and theirs."""
    own = apps.ensure(tx, scope).own
    session_id = sessions.start(tx, own, "host:1:x", NOON + timedelta(minutes=1), NOON)
    return session_id, [messages.add(tx, session_id, "user", words, NOON) for words in said]


def write_words(
    tx, kind: Kind, owner_id: int, app_id: int, text: str, context: str = "", *, reply: bool = False
) -> None:
    """The keyword row of a passage that is not there."""
    remove_words(tx, kind, [owner_id])
    keywords.write(tx, passage_id(kind, owner_id), app_id, text, context, reply=reply)


def remove_words(tx, kind: Kind, owner_ids: Iterable[int]) -> None:
    keywords.remove(tx, [passage_id(kind, i) for i in owner_ids])
