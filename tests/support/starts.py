"""Facts that hold from a later day."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memchat import MemChat
from memchat.config import Settings
from memchat.facts.changes import Cause
from memchat.facts.consolidation import ingest
from memchat.facts.memories import Fact, search_text
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import Change, Memory, Scope
from tests.support import empty_store, private
from tests.support.answers import answer
from tests.support.store import NOON

ANA = Scope("ana")


def tell(
    mc: MemChat,
    value: str,
    where: tuple[int | None, int | None] = (None, None),
    *,
    key: str = "city",
    **more: Any,
) -> Change:
    """Put in a fact as a conversation does; ``where`` is its session and message."""
    zone, now = mc.settings.zone, mc.now
    with private.database(mc).write(ANA, ensure=True) as tx:
        made: dict[str, Any] = {"memory_type": "profile", "created_by": "auto", "said_at": now}
        made |= {"many": False, "search_text": search_text(key, value, now, zone)}
        fact = Fact(key=key, value=value, **{**made, **more})
        source = Cause("model", "extracted", *where)
        return ingest(tx, source, [fact])[0]


def known(change: Change) -> Memory:
    assert change.memory is not None
    return change.memory


def in_force(mc: MemChat, key: str = "city") -> list[str]:
    """The values that hold today."""
    today = mc.now.astimezone(mc.settings.zone).date()
    found = [m for m in mc.user("ana").memories.list() if m.key == key]
    return [m.value for m in found if m.starts_at is None or m.starts_at <= today]


def coming(mc: MemChat) -> list[str]:
    today = mc.now.astimezone(mc.settings.zone).date()
    return [m.value for m in mc.user("ana").memories.list() if m.starts_at and m.starts_at > today]


@contextmanager
def store(home: Path) -> Iterator[tuple[MemChat, FakeClock]]:
    clock = FakeClock(NOON)
    with MemChat(
        settings=Settings(home=empty_store.place(home), timezone="Europe/Berlin"),
        chat_model=ScriptedModel(["Fine."] * 100, name="scripted/chat"),
        extract_model=ScriptedModel([answer()] * 100, name="scripted/extract"),
        embedder=HashEmbedder(),
        clock=clock,
    ) as mc:
        yield mc, clock


class Rule:
    """The rule in plain words: of what has begun, that which was said last."""

    def __init__(self) -> None:
        self.said: dict[str, tuple[int, int]] = {}
        """Value → when it was said last, and the day on which it begins."""

    def holds(self, day: int) -> str | None:
        begun = [(at, value) for value, (at, start) in self.said.items() if start <= day]
        return max(begun)[1] if begun else None

    def says(self, at: int, value: str, day: int, start: int | None) -> None:
        later = start is not None and start > 0
        if later and self.holds(day) == value:
            self.said[value] = at, self.said[value][1]  # it holds already
        else:
            self.said[value] = at, day + (start or 0) if later else day
