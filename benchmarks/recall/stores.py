"""A store in a temporary folder for one person, and what its hits stand for."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.recall.data import Person
from benchmarks.recall.feed import Fed
from memchat import MemChat
from memchat.config import Settings
from memchat.providers import Embedder
from memchat.testing import FakeClock
from memchat.types import Hit


@contextmanager
def store(embedder: Embedder, now: datetime, **given: Any) -> Iterator[MemChat]:
    """An empty store that is gone afterwards; its clock stands still."""
    with tempfile.TemporaryDirectory(prefix="memchat-recall-") as home:
        settings = Settings(home=Path(home), timezone="UTC")
        with MemChat(settings=settings, embedder=embedder, clock=FakeClock(now), **given) as mc:
            yield mc


def asked_at(person: Person) -> datetime:
    """The day after the last conversation: when all is asked."""
    return max((talk.at for talk in person.talks), default=datetime.now(UTC)) + timedelta(days=1)


def covers(mc: MemChat, person: Person, fed: Fed, hit: Hit) -> frozenset[str]:
    """The turns that a hit stands for."""
    if hit.kind == "message":
        return frozenset({fed.ids[hit.id]})
    if hit.id not in fed.proofs:
        proofs = mc.user(person.name).memories.evidence(hit.id)
        fed.proofs[hit.id] = frozenset(fed.ids[proof.message_id] for proof in proofs)
    return fed.proofs[hit.id]
