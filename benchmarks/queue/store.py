"""A store full of facts that wait for their vectors, put in without a model."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps
from memchat.db.database import Database
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory
from memchat.providers import Embedder
from memchat.types import Scope

USER = "ana"
SUBJECTS = ("the bicycle", "our garden", "the choir", "my thesis", "the old piano", "next summer")
VERBS = ("needs", "was about", "reminds me of", "comes before", "costs more than", "ends with")
OBJECTS = ("a new chain", "three apple trees", "a quiet room", "the tenth chapter", "rainy days")


def text(number: int) -> str:
    """A sentence of its own for each number."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    verb = VERBS[number // 6 % len(VERBS)]
    return f"{subject} {verb} {OBJECTS[number // 36 % len(OBJECTS)]}, as note {number} says"


def fill(database: Database, texts: Iterable[str], now: datetime) -> list[int]:
    """Facts of one user with these values, by id; they wait where something embeds."""
    ids = []
    with database.write() as tx:
        tx.now, own = now, apps.ensure(tx, Scope(USER)).own
        for value in texts:
            new = NewMemory("fact", "note", value, True, f"note: {value}", now, "manual")
            ids.append(changes.add(tx, own, new, Cause("user")))
    return ids


def words_only(home: Path, count: int) -> None:
    """A store of so many facts that never saw an embedding service."""
    with MemChat(settings=Settings(home=home, embed_model="none", timezone="UTC")) as mc:
        fill(mc._assembly.database, map(text, range(count)), datetime.now(UTC))


def with_service(home: Path, embedder: Embedder) -> MemChat:
    """The same store, now with a service."""
    return MemChat(settings=Settings(home=home, timezone="UTC"), embedder=embedder)
