"""Changing the embedding service of a store that goes on answering."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks import switch as bench
from memchat import MemChat
from memchat.cli.progress import line
from memchat.config import Settings
from memchat.errors import ConfigError, InputError, ProviderError, SchemaError, StoreError
from memchat.memory.embedding import batch_split, migration
from memchat.memory.embedding.services import EmbeddingServices
from memchat.providers.hashing import HashEmbedder
from memchat.store import apps, embeddings, services, unembedded
from memchat.store.database import FILE
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import Hit, Progress, Scope, Usage
from memchat.vectors import index
from tests.conftest import NOON, Opener, answer, fact

OLD, NEW, THIRD = "hash/words", "hash/other-96", "hash/third-128"


def cosine_in(model: str, question: str, text: str) -> float:
    """What a question has in common with a text in one service's space."""
    embedder = HashEmbedder(model.removeprefix("hash/"))
    vectors, _ = embedder.embed_documents([question, text])
    return float(vectors[0] @ vectors[1])


def spaces(mc: MemChat, question: str, hits: Sequence[Hit]) -> set[str]:
    """The services in whose space every one of these facts has the cosine it was found with."""
    with mc._assembly.database.read() as tx:
        rows = tx.exec_driver_sql("SELECT id, search_text FROM memories").all()
    texts = {row[0]: row[1] for row in rows}
    return {
        model
        for model in (OLD, NEW, THIRD)
        if all(
            hit.cosine == pytest.approx(cosine_in(model, question, texts[hit.id]), abs=1e-5)
            for hit in hits
            if hit.kind == "memory" and hit.cosine is not None
        )
    }


class Between(HashEmbedder):
    """Does something each time before it answers, as others would meanwhile."""

    def __init__(self, model: str, does: Callable[[int], None]) -> None:
        super().__init__(model.removeprefix("hash/"))
        self.does = does
        self.batches: list[list[str]] = []

    def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        self.batches.append(list(texts))
        self.does(len(self.batches))
        return super().embed_documents(texts)


def migrate(mc: MemChat, embedder: HashEmbedder, **how: Any) -> migration.Reembedded:
    """As ``mc.migrate``, with an embedder of the test's own."""
    how.setdefault("tell", lambda progress: None)
    switch = EmbeddingServices(mc._assembly.database, mc.settings, mc._assembly.clock, embedder)
    return switch.migrate(None, dimensions=None, max_tokens=None, **how)


RIVERS = ("Tejo", "Douro", "Mondego", "Minho", "Sado", "Lima", "Vouga")


@pytest.fixture
def rivers(open_store: Opener, monkeypatch: pytest.MonkeyPatch) -> MemChat:
    """A store of seven facts, embedded with the old service, and small batches."""
    monkeypatch.setattr(migration, "BATCH", 2)
    mc = open_store()
    for river in RIVERS:
        mc.user("ana").memories.add("fact", "river", f"{river} in flood")
    mc.jobs.embed()
    return mc


def found(mc: MemChat, river: str) -> Sequence[Hit]:
    hits = mc.user("ana").search(f"{river} flood").hits
    assert hits and river in hits[0].text
    return hits


# At open


@pytest.mark.parametrize("name", [NEW, "hash/words-128"])
def test_another_model_is_named_at_open_with_the_command_that_mends_it_and_nothing_is_touched(
    rivers: MemChat, open_store: Opener, name: str
) -> None:
    rivers.close()
    home = rivers.settings.home
    before = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    why = {"embed_model": "MEMCHAT_EMBED_MODEL"}
    mc = open_store(embedder=None, embed_model=name, why=why)
    with pytest.raises(SchemaError) as error:
        mc.user("ana").search("Tejo")
    assert OLD in str(error.value) and f"memchat services migrate {name}" in str(error.value)
    dimensions = HashEmbedder(name.removeprefix("hash/")).service.dimensions
    assert "64" in str(error.value) and str(dimensions) in str(error.value)
    mc.close()
    assert {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()} == before
    with open_store(embedder=None, embed_model=name, why=why) as mc:
        mc.services.migrate()
        found(mc, "Tejo")


def test_the_model_that_a_store_is_changing_to_may_be_named_already(
    rivers: MemChat, open_store: Opener
) -> None:
    why = {"embed_model": "MEMCHAT_EMBED_MODEL"}

    def look(batch: int) -> None:
        other = open_store(embedder=None, embed_model=NEW, why=why)
        assert OLD in spaces(other, "Tejo flood", found(other, "Tejo"))

    assert migrate(rivers, Between(NEW, look)).switched


# While it goes on


def test_the_old_service_answers_until_the_new_one_has_everything(rivers: MemChat) -> None:
    seen: list[set[str]] = []

    def look(batch: int) -> None:
        seen.append(spaces(rivers, "Tejo flood", found(rivers, "Tejo")))

    done = migrate(rivers, Between(NEW, look))
    assert (done.switched, done.embedded, done.before, done.service) == (True, 7, OLD, NEW)
    assert len(seen) == 4 and all(OLD in one and NEW not in one for one in seen)
    now = spaces(rivers, "Tejo flood", found(rivers, "Tejo"))
    assert NEW in now and OLD not in now


def test_another_process_goes_along_at_its_next_search(rivers: MemChat, open_store: Opener) -> None:
    other = open_store()
    found(other, "Tejo")
    assert rivers.services.migrate(NEW).switched
    for river in RIVERS:
        assert NEW in spaces(other, f"{river} flood", found(other, river))
    rivers.services.use(OLD)
    assert OLD in spaces(other, "Tejo flood", found(other, "Tejo"))


def test_a_question_asked_before_the_change_is_searched_in_its_own_space(rivers: MemChat) -> None:
    recall = rivers._assembly.parts().recall
    question = recall.question("Tejo flood")
    rivers.services.migrate(NEW)
    hits = recall.find(Scope("ana"), question, 5).hits
    assert "Tejo" in hits[0].text and OLD in spaces(rivers, "Tejo flood", hits)
    rivers.services.remove(OLD)
    late = recall.find(Scope("ana"), question, 5)
    assert "Tejo" in late.hits[0].text and {hit.cosine for hit in late.hits} == {None}
    assert "changed just now" in str(late.degraded)
    found(rivers, "Tejo")


def test_what_is_written_meanwhile_has_its_new_vector_at_the_change(rivers: MemChat) -> None:
    names = iter(("Guadiana", "Ave", "Tua"))

    def write(batch: int) -> None:
        if (name := next(names, None)) is not None:
            rivers.user("ana").memories.add("fact", "river", f"{name} in flood")
            rivers.jobs.embed()

    done = migrate(rivers, Between(NEW, write))
    assert done.switched
    for name in ("Guadiana", "Ave", "Tua"):
        assert NEW in spaces(rivers, f"{name} flood", found(rivers, name))
        assert found(rivers, name)[0].cosine is not None
    assert rivers.jobs.list(user="ana", status="pending") == []


def test_a_fact_forgotten_while_it_is_embedded_leaves_no_vector(rivers: MemChat) -> None:
    def forget(batch: int) -> None:
        if batch == 1:
            rivers.user("ana").memories.delete(1)

    done = migrate(rivers, Between(NEW, forget))
    assert done.switched
    assert {info.vectors for info in rivers.services.list()} == {len(RIVERS) - 1}
    assert rivers.repair() == []


def test_a_store_that_is_written_to_without_end_is_changed_all_the_same(rivers: MemChat) -> None:
    count = iter(range(10_000))

    def write(batch: int) -> None:
        for word in ("one", "two", "three", "four", "five", "six"):
            name = f"{word} {'x' * next(count)}" if batch < 40 else word
            rivers.user("ana").memories.add("fact", "river", f"{name} in flood")

    embedder = Between(NEW, lambda batch: write(batch) if batch % 3 == 0 else None)
    assert migrate(rivers, embedder).switched
    rivers.jobs.run(user="ana")
    with rivers._assembly.database.read() as tx:
        assert unembedded.count(tx, services.in_use(tx) or 0) == 0


def test_a_worker_that_was_at_it_with_the_old_service_leaves_no_fact_without_a_vector(
    open_store: Opener,
) -> None:
    other = open_store()
    mc = open_store(embedder=Between(OLD, lambda batch: change(batch)))
    ana = mc.user("ana")

    def change(batch: int) -> None:
        if batch == 2:
            with pytest.raises(InputError):
                other.services.use(NEW)
            other.services.use(NEW, force=True)

    ana.memories.add("fact", "river", "Tejo in flood")
    mc.jobs.embed()
    other.services.migrate(NEW)
    other.services.use(OLD)
    late = ana.memories.add("fact", "river", "Douro in flood")
    mc.jobs.run(user="ana", kinds=("embed",))  # while it embeds, the other changes the service
    mc.jobs.run(user="ana")
    with mc._assembly.database.read() as tx:
        assert services.in_use(tx) == 2 and unembedded.count(tx, 2) == 0
    (hit,) = [hit for hit in found(mc, "Douro") if hit.id == late.id]
    assert hit.cosine == pytest.approx(cosine_in(NEW, "Douro flood", text_of(mc, late.id)))


@pytest.mark.parametrize("when", ["the model reads", "its facts are embedded"])
def test_what_is_learnt_while_the_service_changes_has_the_new_one_s_vectors(
    open_store: Opener, extract_model: ScriptedModel, when: str
) -> None:
    other = open_store()
    other.user("ana").memories.add("fact", "river", "Tejo in flood")
    other.jobs.embed()
    learnt = answer(fact("I live in Porto", "city", "Porto"), summary="About Porto.")

    def change(batch: int) -> None:
        if when == "its facts are embedded" and batch == 2:  # the first is the question
            assert other.services.migrate(NEW).switched

    def read(messages: object) -> str:
        if when == "the model reads":
            assert other.services.migrate(NEW).switched
        return learnt

    extract_model.replies.append(read)
    mc = open_store(embedder=Between(OLD, change))
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.send("I live in Porto. The boiler hums at night.").text
    mc.jobs.run(user="ana")
    mc.jobs.run(user="ana")
    with mc._assembly.database.read() as tx:
        in_use = services.in_use(tx) or 0
        assert in_use == 2 and unembedded.count(tx, in_use) == 0 and unembedded.total(tx) > 3
    hits = ana.search("Porto").hits
    assert {"memory", "message"} == {hit.kind for hit in hits if hit.cosine is not None}


def nowhere_queued(mc: MemChat) -> int:
    """A fact without a vector, and without a job that would make it; the index has heard of it."""
    late = mc.user("ana").memories.add("fact", "river", "Guadiana in flood").id
    with sqlite3.connect(mc.settings.home / FILE) as raw:
        raw.execute("DELETE FROM jobs")
    raw.close()
    meaning, _ = mc._assembly.meaning()
    with mc._assembly.database.read() as tx:
        assert meaning is not None
        assert meaning.index.waiting(tx, apps.find(tx, Scope("ana")).ids) == {late}
    return late


def in_the_index(mc: MemChat, memory_id: int) -> float | None:
    """The cosine that the index itself has for a fact, which no search made a vector for."""
    meaning, _ = mc._assembly.meaning()
    assert meaning is not None
    vector, _ = meaning.embedder.embed_query("Guadiana flood")
    with mc._assembly.database.read() as tx:
        ids = apps.find(tx, Scope("ana")).ids
        return meaning.index.scores(tx, ids, vector, [memory_id]).get(memory_id)


def test_a_process_that_slept_through_two_changes_finds_what_was_made_in_them(
    rivers: MemChat, open_store: Opener
) -> None:
    late = nowhere_queued(rivers)
    other = open_store()
    assert other.services.migrate(NEW).switched
    assert other.services.migrate(OLD).switched
    cosine = cosine_in(OLD, "Guadiana flood", text_of(rivers, late))
    assert in_the_index(rivers, late) == pytest.approx(cosine)


def test_an_index_saved_before_a_change_back_is_not_read_after_it(
    rivers: MemChat, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SAVE_FROM", 1)
    late = nowhere_queued(rivers)
    rivers.close()  # which saves the index
    with open_store() as other:
        assert other.services.migrate(NEW).switched
        assert other.services.migrate(OLD).switched
    again = open_store()
    cosine = cosine_in(OLD, "Guadiana flood", text_of(again, late))
    assert in_the_index(again, late) == pytest.approx(cosine)


def test_a_process_that_slept_through_a_change_saves_no_index_of_before(
    rivers: MemChat, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SAVE_FROM", 1)
    late = nowhere_queued(rivers)
    with open_store() as other:
        assert other.services.migrate(NEW).switched
        assert other.services.migrate(OLD).switched
    rivers.close()
    assert in_the_index(open_store(), late) is not None


def text_of(mc: MemChat, memory_id: int) -> str:
    with mc._assembly.database.read() as tx:
        query = "SELECT search_text FROM memories WHERE id = ?"
        return str(tx.exec_driver_sql(query, (memory_id,)).scalar_one())


def test_conversations_their_summaries_and_what_is_unread_are_taken_along(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    mc = open_store()
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(fact("I live in Porto", "city", "Porto"), title="Home", summary="About Porto.")
    )
    with ana.chat() as chat:
        assert chat.send("I live in Porto. The boiler hums at night.").text
    mc.jobs.run(user="ana")
    open_one = ana.chat()
    assert open_one.send("My new kayak is red.").text
    with mc._assembly.database.read() as tx:
        old = services.in_use(tx) or 0
        assert embeddings.any_of(tx, old)
    done = mc.services.migrate(NEW)
    assert done.switched
    with mc._assembly.database.read() as tx:
        new = services.in_use(tx) or 0
        assert new != old and unembedded.count(tx, new) == 0
        asked = embeddings.query_hash("My new kayak is red.")
        assert set(embeddings.get(tx, new, [asked])) == {asked}
        hashes = tx.exec_driver_sql("SELECT summary_hash FROM sessions").scalars().all()
        assert set(embeddings.get(tx, new, [h for h in hashes if h])) == {h for h in hashes if h}
        kinds = {kind: len(unembedded.after(tx, 10_000, kind, 0, 100)) for kind in unembedded.KINDS}
    assert all(kinds.values())  # there were facts, turns and a summary to take along
    moments = [h for h in ana.search("boiler hums night").hits if h.kind == "message"]
    assert moments and moments[0].cosine is not None


def test_conversations_read_by_an_older_version_are_taken_along_too(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    """As the upgrade leaves them: read, without a text to embed or a hash."""
    mc = open_store()
    ana = mc.user("ana")
    extract_model.replies.append(answer(summary="About the boiler."))
    with ana.chat() as chat:
        assert chat.send("The boiler hums at night.").text
    mc.jobs.run(user="ana")
    with mc._assembly.database.write() as tx:
        tx.exec_driver_sql("UPDATE messages SET search_text = NULL, text_hash = NULL")
        tx.exec_driver_sql("UPDATE sessions SET summary_hash = NULL")
        tx.exec_driver_sql("DELETE FROM embeddings")
    (info,) = mc.services.list()
    assert info.lacking == 3
    done = mc.services.migrate(NEW)
    assert (done.switched, done.embedded) == (True, 3)
    assert {info.name: info.lacking for info in mc.services.list()} == {OLD: 3, NEW: 0}
    assert ana.search("boiler hums").hits[0].cosine is not None


def test_a_summary_embedded_in_another_time_zone_is_found_in_its_words(
    open_store: Opener, extract_model: ScriptedModel, clock: FakeClock
) -> None:
    clock.advance(seconds=11 * 3600)  # another day in Tokyo already
    mc = open_store(timezone="America/Los_Angeles")
    extract_model.replies.append(answer(summary="About Porto."))
    with mc.user("ana").chat() as chat:
        assert chat.send("I live in Porto.").text
    mc.jobs.run(user="ana")
    mc.close()
    done = open_store(timezone="Asia/Tokyo").services.migrate(NEW)
    assert done.switched and done.refused == {}


# What goes wrong


def test_one_text_that_the_new_service_refuses_stops_neither_the_rest_nor_a_search(
    rivers: MemChat,
) -> None:
    class Refusing(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            if any("Sado" in text for text in texts):
                raise ProviderError("refused the request (status 400)", status=400)
            return super().embed_documents(texts)

    done = migrate(rivers, Refusing("other-96"))
    assert (done.switched, done.embedded) == (False, 6)
    assert list(done.refused) == ["memory 5"]
    assert OLD in spaces(rivers, "Sado flood", found(rivers, "Sado"))
    assert rivers.services.use(NEW, force=True).count == 1
    (hit,) = [h for h in found(rivers, "Sado") if "Sado" in h.text]
    assert hit.id == 5


def test_a_busy_service_is_waited_for_as_long_as_it_asks(rivers: MemChat) -> None:
    waits: list[float] = []

    class Busy(HashEmbedder):
        left = 3

        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            if self.left:
                self.left -= 1
                asked = 7.0 if self.left == 1 else None
                raise ProviderError("busy", status=429, retryable=True, retry_after=asked)
            return super().embed_documents(texts)

    assert migrate(rivers, Busy("other-96"), sleep=waits.append).switched
    assert waits == [1, 7, 4]


def test_a_service_that_wants_an_hour_ends_the_run_at_once_and_says_so(rivers: MemChat) -> None:
    class Spent(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            raise ProviderError("again in 3600 s", status=429, retryable=True, retry_after=3600)

    with pytest.raises(ProviderError, match="3600 s"):
        migrate(rivers, Spent("other-96"), sleep=lambda seconds: pytest.fail(f"slept {seconds} s"))
    assert migrate(rivers, HashEmbedder("other-96")).switched


def test_a_service_that_stays_down_ends_the_run_and_the_old_one_goes_on(rivers: MemChat) -> None:
    class Down(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            raise ProviderError("is failing (status 500)", status=500, retryable=True)

    with pytest.raises(ProviderError):
        migrate(rivers, Down("other-96"), sleep=lambda seconds: None)
    assert OLD in spaces(rivers, "Tejo flood", found(rivers, "Tejo"))
    assert migrate(rivers, HashEmbedder("other-96")).switched


@pytest.mark.parametrize("status", [401, 404])
def test_a_service_that_refuses_everybody_is_asked_once(rivers: MemChat, status: int) -> None:
    calls: list[int] = []

    class Locked(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            calls.append(len(texts))
            raise ProviderError("refused", status=status)

    with pytest.raises(ProviderError):
        migrate(rivers, Locked("other-96"))
    assert calls == [2]


def test_a_service_that_refuses_every_text_is_not_asked_for_each(
    rivers: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_split, "IN_VAIN", 5)
    calls: list[int] = []

    class Picky(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            calls.append(len(texts))
            raise ProviderError("refused the request (status 400)", status=400)

    with pytest.raises(ProviderError):
        migrate(rivers, Picky("other-96"))
    assert len(calls) == 5 + 1, "the last is a plain word, to tell the texts from the service"


@pytest.mark.parametrize("how", ["nan", "zero", "long", "few"])
def test_a_vector_that_cannot_be_kept_is_refused_and_the_old_service_goes_on(
    rivers: MemChat, how: str
) -> None:
    class Broken(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            vectors, usage = super().embed_documents(texts)
            for n, text in enumerate(texts):
                if "Sado" in text and how in ("nan", "zero"):
                    vectors[n] = np.nan if how == "nan" else 0
                elif "Sado" in text and how == "few":
                    return vectors[:-1], usage
            if how == "long" and any("Sado" in text for text in texts):
                vectors = np.hstack([vectors, vectors])
            return vectors, usage

    done = migrate(rivers, Broken("other-96"))
    assert list(done.refused) == ["memory 5"] and not done.switched
    with rivers._assembly.database.read() as tx:
        rows = tx.exec_driver_sql("SELECT service_id, length(embedding) FROM embeddings").all()
    assert sorted(rows) == [(1, 4 * 64)] * 7 + [(2, 4 * 96)] * 6
    found(rivers, "Sado")


def test_a_change_that_cannot_begin_leaves_no_trace(
    rivers: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        rivers.services.migrate("openai/text-embedding-3-small")
    assert [(info.name, info.state) for info in rivers.services.list()] == [(OLD, "in use")]


def test_a_service_that_fails_half_way_is_gone_on_with(rivers: MemChat) -> None:
    def fail(batch: int) -> None:
        if batch == 3:
            raise ProviderError("the account has no credit left", status=402)

    with pytest.raises(ProviderError):
        migrate(rivers, Between(NEW, fail))
    assert {i.name: i.state for i in rivers.services.list()} == {OLD: "in use", NEW: "coming"}
    assert rivers.services.migrate().switched  # without a name: the one that was begun
    assert {i.name: i.state for i in rivers.services.list()} == {OLD: "kept", NEW: "in use"}


def test_a_change_that_was_called_off_is_told_and_ends(rivers: MemChat, open_store: Opener) -> None:
    def call_off(batch: int) -> None:
        if batch == 2:
            open_store().services.remove(NEW, force=True)

    with pytest.raises(StoreError, match="called this change off"):
        migrate(rivers, Between(NEW, call_off))
    assert [info.name for info in rivers.services.list()] == [OLD]
    found(rivers, "Tejo")


def test_two_runs_at_once_are_refused_and_a_dead_one_is_not_waited_for(
    rivers: MemChat, open_store: Opener
) -> None:
    def second(batch: int) -> None:
        if batch == 1:
            with pytest.raises(StoreError, match="another memchat is making these vectors"):
                open_store().services.migrate(NEW)

    assert migrate(rivers, Between(NEW, second)).switched


def test_changing_to_a_third_service_meanwhile_leaves_the_second_aside(rivers: MemChat) -> None:
    with rivers._assembly.database.write() as tx:
        half = services.register(tx, HashEmbedder("other-96").service, NOON)
        services.expect(tx, half)
    assert {i.name: i.state for i in rivers.services.list()} == {OLD: "in use", NEW: "coming"}
    assert rivers.services.migrate(THIRD).switched
    assert {i.name: i.state for i in rivers.services.list()} == {
        OLD: "kept",
        NEW: "kept",
        THIRD: "in use",
    }


def test_progress_tells_rate_and_time_left() -> None:
    progress = Progress(done=1_200, total=3_000, seconds=2.0, begun_at=200)
    assert progress.rate == 500.0 and progress.left == 3.6
    assert Progress(0, 10, 0.0).left is None
    assert line(progress) == "1,200 of 3,000 (40 %), 500 a second, 4 s left"
    assert line(Progress(10, 10, 4.0)) == "10 of 10 (100 %), 2.5 a second"


# kill -9

KILLED = """
import os, signal, sys
from pathlib import Path
from memchat import MemChat
from memchat.config import Settings
from memchat.memory.embedding import migration
from memchat.memory.embedding.services import EmbeddingServices
from memchat.providers.hashing import HashEmbedder

class Deadly(HashEmbedder):
    left = int(sys.argv[2])
    def embed_documents(self, texts):
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return super().embed_documents(texts)

migration.BATCH = 2
with MemChat(settings=Settings(Path(sys.argv[1]))) as mc:
    switch = EmbeddingServices(
        mc._assembly.database, mc.settings, mc._assembly.clock, Deadly("other-96")
    )
    switch.migrate(None, dimensions=None, max_tokens=None, tell=lambda progress: None)
"""


@pytest.mark.parametrize("batches", [0, 2])
def test_a_killed_change_is_gone_on_with_and_pays_one_batch_twice_at_most(
    rivers: MemChat, open_store: Opener, batches: int
) -> None:
    home = rivers.settings.home
    command = [sys.executable, "-c", KILLED, str(home), str(batches)]
    done = subprocess.run(command, env={**os.environ, "MEMCHAT_EMBED_MODEL": ""}, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert OLD in spaces(rivers, "Tejo flood", found(rivers, "Tejo"))
    states = {info.name: (info.state, info.vectors) for info in rivers.services.list()}
    state, written = states[NEW]
    assert state == "coming" and 2 * (batches - 1) <= written <= 2 * batches
    rest = Between(NEW, lambda batch: None)
    assert migrate(open_store(), rest).switched
    assert sum(map(len, rest.batches)) == len(RIVERS) - written
    assert NEW in spaces(rivers, "Tejo flood", found(rivers, "Tejo"))


# Clearing up


def test_removing_the_old_service_keeps_what_the_new_one_needs(rivers: MemChat) -> None:
    rivers.services.migrate(NEW)
    before = [found(rivers, river) for river in RIVERS]
    assert rivers.services.remove(OLD).count == len(RIVERS)
    assert [found(rivers, river) for river in RIVERS] == before
    with sqlite3.connect(rivers.settings.home / FILE) as raw:
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
        assert raw.execute("SELECT count(*) FROM embeddings").fetchone() == (len(RIVERS),)
        assert raw.execute("SELECT count(*) FROM memories").fetchone() == (len(RIVERS),)


def test_a_forgotten_fact_leaves_the_vectors_and_saved_index_of_every_service(
    rivers: MemChat, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SAVE_FROM", 2)
    home = rivers.settings.home
    found(rivers, "Tejo")
    rivers.close()
    mc = open_store()
    mc.services.migrate(NEW)
    found(mc, "Tejo")
    mc.close()
    assert len(list((home / index.FOLDER).iterdir())) == 2
    mc = open_store(embedder=HashEmbedder("other-96"))
    mc.user("ana").memories.delete(1)
    assert list((home / index.FOLDER).iterdir()) == []
    assert {info.vectors for info in mc.services.list()} == {len(RIVERS) - 1}


# Properties

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "edit", "delete", "embed", "search", "reopen", "chat"]),
        st.integers(0, 99),
    ),
    max_size=12,
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEPS, min_size=1, max_size=3))
def test_no_search_is_empty_and_no_cosine_foreign_whatever_happens_during_changes(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, int]]]
) -> None:
    home = tmp_path_factory.mktemp("switch")
    life = Life(home)
    target = [NEW, OLD]
    try:
        for steps in rounds:
            left = iter(steps)

            def does(batch: int, left: Any = left) -> None:
                for _ in range(2):
                    if (step := next(left, None)) is not None:
                        life.do(*step)
                        life.look()

            before = migration.BATCH
            migration.BATCH = 2
            try:
                assert migrate(life.writer, Between(target[0], does)).switched
            finally:
                migration.BATCH = before
            life.look()
            target.reverse()
        assert life.writer.repair() == []  # nothing is out of step, nothing left of what is gone
    finally:
        life.close()


class Life:
    """A writer and a reader on one store, and what they must find."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.writer, self.reader = self._open(), self._open()
        self.words: dict[int, str] = {}
        self.numbers = iter(range(10_000))
        for _ in range(5):
            self.do("add", 0)
        self.do("embed", 0)

    def _open(self) -> MemChat:
        model = ScriptedModel(["Fine."] * 500)
        extract = ScriptedModel([answer()] * 500)
        return MemChat(
            settings=Settings(self.home / "store", embed_model=OLD, embed_patience=30),
            chat_model=model,
            extract_model=extract,
            clock=FakeClock(NOON),
        )

    def close(self) -> None:
        self.writer.close()
        self.reader.close()

    def do(self, step: str, chance: int) -> None:
        mc = self.writer
        ana = mc.user("ana")
        known = sorted(self.words)
        one = known[chance % len(known)] if known else None
        if step == "add" or one is None:
            word = _letters(next(self.numbers))
            self.words[ana.memories.add("fact", "thing", f"{word} pebble").id] = word
        elif step == "edit":
            word = _letters(next(self.numbers))
            ana.memories.update(one, value=f"{word} pebble")
            self.words[one] = word
        elif step == "delete" and len(known) > 1:
            ana.memories.delete(one)
            del self.words[one]
        elif step == "embed":
            mc.jobs.embed()
        elif step == "search":
            assert ana.search(f"{self.words[one]} pebble").hits
        elif step == "reopen":
            self.reader.close()
            self.reader = self._open()
        elif step == "chat":
            with ana.chat() as chat:
                assert chat.send(f"the {self.words[one]} pebble").text

    def look(self) -> None:
        """Every fact is found by its words, in one space, by both processes."""
        for mc in (self.reader, self.writer):
            for memory_id, word in self.words.items():
                question = f"{word} pebble"
                hits = mc.user("ana").search(question).hits
                facts = {hit.id: hit for hit in hits if hit.kind == "memory"}
                assert facts[memory_id].cosine is not None
                assert spaces(mc, question, hits), hits


def _letters(number: int) -> str:
    return "pq" + "".join("bcdfghjklm"[int(digit)] for digit in str(number))


# The figure, smaller


def test_readers_in_other_processes_find_everything_while_the_service_changes(
    tmp_path: Path,
) -> None:
    figure = bench.run(tmp_path, rows=300, kills=2)
    assert figure.faults == []
    services_seen = {search.service for search in figure.searches}
    assert {"old", "new"} <= services_seen
    after = figure.between(figure.switched + 1, figure.searches[-1].at + 1)
    assert "old" not in {search.service for search in after}
