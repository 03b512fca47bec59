"""A person's facts put into a store, and the prompt that a model would get for a request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from benchmarks.recall.everyday.lives import Life, Stated
from benchmarks.recall.stores import store
from memchat import MemChat
from memchat.facts import keys
from memchat.facts.changes import Cause
from memchat.facts.consolidation import ingest
from memchat.facts.memories import Fact, search_text
from memchat.providers import Embedder
from memchat.search import render
from memchat.testing import ScriptedModel
from memchat.types import ChatMessage, Hit, Memory, Scope

Cues = Literal["table", "file", "none"]
"""Where the cues of the facts come from: what an addition by hand gives them, the file, nowhere."""
NOON = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Kept:
    """One person's store."""

    mc: MemChat
    model: ScriptedModel
    user: str
    memories: dict[str, Memory]
    """The facts' ids in the file, and their rows."""
    late: list[bool] = field(default_factory=list)
    """For each prompt whether words alone were searched for it."""

    def prompt(self, text: str) -> tuple[ChatMessage, ...]:
        """What a model is sent for the first message of a conversation; nothing is written."""
        self.model.replies.append("-")
        answer = self.mc.user(self.user).answer(text)
        self.late.append(answer.shown.degraded is not None)
        return self.model.requests.pop().messages

    def given(self, text: str) -> str:
        """All that this prompt holds beside the message itself."""
        return "\n".join(sent.content for sent in self.prompt(text)).replace(text, "")

    def hits(self, text: str, limit: int) -> list[Hit]:
        """What a search finds."""
        return list(self.mc.user(self.user).search(text, limit=limit).hits)

    def line(self, fact_id: str) -> str:
        """A fact as every form of its line holds it."""
        memory = self.memories[fact_id]
        return render.escaped(f"{memory.key}: {memory.value}")


@contextmanager
def kept(
    embedder: Embedder, life: Life, *, cues: Cues = "table", more: Sequence[str] = ()
) -> Iterator[Kept]:
    """A store with a person's facts, ``more`` notes between them, and vectors of all."""
    model = ScriptedModel(name="scripted/reader", window=1_000_000)
    with store(embedder, NOON, chat_model=model) as mc:
        person = mc.user(life.name)
        memories = {}
        every = len(more) // len(life.facts)
        for number, stated in enumerate(life.facts):
            last = number + 1 == len(life.facts)
            for text in more[number * every : None if last else (number + 1) * every]:
                person.memories.add("fact", "note", text, keep_secret=True)
            memories[stated.id] = _add(mc, life.name, stated, cues)
        mc.jobs.backfill()
        # What they say now: a later fact may have taken an earlier one's place.
        now = {i: person.memories.get(memory.id) for i, memory in memories.items()}
        yield Kept(mc, model, life.name, now)


def _add(mc: MemChat, user: str, stated: Stated, cues: Cues) -> Memory:
    """By hand, through the library; or as a session's end writes facts: with the quote that the
    file has, and its cues or none."""
    if cues == "table":
        return mc.user(user).memories.add(
            stated.memory_type, stated.key, stated.value, keep_secret=True
        )
    key, zone = keys.canonical(keys.normalise_key(stated.key)), mc.settings.zone
    given = stated.cues if cues == "file" else ()
    words = search_text(key, stated.value, NOON, zone, stated.quote, given)
    fact = Fact(
        memory_type=stated.memory_type,
        key=key,
        value=stated.value,
        said_at=NOON,
        search_text=words,
        created_by="auto",
        many=keys.cardinality(key) != "one",
        cues=given,
    )
    with mc._assembly.database.write(Scope(user), ensure=True) as tx:
        tx.now = NOON
        memory = ingest(tx, Cause("model", "extracted"), [fact])[0].memory
    assert memory is not None
    return memory
