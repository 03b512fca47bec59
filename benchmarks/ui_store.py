"""The store that the app is timed with: many memories, and one long conversation."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory
from memchat.testing import ScriptedModel
from memchat.types import Scope

USER = "ana"
TURNS = 500
THINGS = ("book", "lamp", "chair", "plate", "print", "seed", "stone", "cable", "photo", "letter")
PLACES = ("shelf", "drawer", "box", "cellar", "garden", "study", "attic", "hall", "kitchen", "shed")
TYPES = ("fact", "fact", "fact", "other", "preference", "profile")


def fill(home: Path, count: int) -> None:
    """A store with so many memories, and one conversation of a thousand messages."""
    now = datetime.now(UTC)
    settings = Settings(home=home, timezone="Europe/Lisbon", embed_model="none")
    model = ScriptedModel(["Fine."] * TURNS, name="scripted/chat", window=100_000)
    with MemChat(settings=settings, chat_model=model, extract_model=ScriptedModel()) as mc:
        talk = mc.user(USER).chat()
        for n in range(TURNS):
            for _ in talk.send(f"Turn {n}"):
                pass
        talk.abandon()
        with mc._assembly.database.write() as tx:
            own = apps.ensure(tx, Scope(USER)).own
            for n in range(count):
                thing, place = THINGS[n % 10], PLACES[n // 10 % 10]
                words = f"number {n:05} stands in the {place}, behind the others"
                said = tx.now = now - timedelta(minutes=30 * (count - n))
                kind: Any = TYPES[n % len(TYPES)]
                new = NewMemory(kind, thing, words, True, f"{thing}: {words}", said, "manual")
                changes.add(tx, own, new, Cause("user"))


if __name__ == "__main__":
    fill(Path(sys.argv[1]), int(sys.argv[2]))
