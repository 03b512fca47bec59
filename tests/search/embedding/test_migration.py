"""Changing the embedding service of a store that goes on answering."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from memchat import MemChat
from memchat.db import apps
from memchat.db.database import FILE
from memchat.errors import InputError, SchemaError
from memchat.providers.embedders import HashEmbedder
from memchat.search import embeddings, passages, vector_index
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import Scope
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.service_change import (
    NEW,
    OLD,
    RIVERS,
    Between,
    cosine_in,
    found,
    migrate,
    spaces,
)
from tests.support.store import Opener

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
    recall = private.parts(rivers).recall
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
    with private.database(rivers).read() as tx:
        assert passages.count_lacking(tx, embeddings.in_use(tx) or 0) == 0


def test_a_worker_that_was_at_it_with_the_old_service_leaves_no_fact_without_a_vector(
    open_store: Opener,
) -> None:
    other = open_store()
    mc = open_store(embedder=Between(OLD, lambda batch: change(batch)))
    mc.user("ana")

    def change(batch: int) -> None:
        if batch == 2:
            with pytest.raises(InputError):
                other.services.use(NEW)
            other.services.use(NEW, force=True)

    mc.user("ana").memories.add("fact", "river", "Tejo in flood")
    mc.jobs.embed()
    other.services.migrate(NEW)
    other.services.use(OLD)
    late = mc.user("ana").memories.add("fact", "river", "Douro in flood")
    mc.jobs.run(user="ana", kinds=("embed",))  # while it embeds, the other changes the service
    mc.jobs.run(user="ana")
    with private.database(mc).read() as tx:
        assert embeddings.in_use(tx) == 2 and passages.count_lacking(tx, 2) == 0
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
        assert chat.send("I live in Porto. The boiler hums at night.").read()
    mc.jobs.run(user="ana")
    mc.jobs.run(user="ana")
    with private.database(mc).read() as tx:
        in_use = embeddings.in_use(tx) or 0
        assert (
            in_use == 2
            and passages.count_lacking(tx, in_use) == 0
            and passages.count_wanting(tx) > 3
        )
    hits = ana.search("Porto").hits
    assert {"memory", "message"} == {hit.kind for hit in hits if hit.cosine is not None}


def nowhere_queued(mc: MemChat) -> int:
    """A fact without a vector, and without a job that would make it; the index has heard of it."""
    late = mc.user("ana").memories.add("fact", "river", "Guadiana in flood").id
    with closing(sqlite3.connect(mc.settings.home / FILE)) as raw, raw:
        raw.execute("UPDATE passages SET status = NULL WHERE status < 0")
    raw.close()
    meaning, _ = private.meaning(mc)
    with private.database(mc).read() as tx:
        assert meaning is not None
        assert meaning.index.waiting(tx, apps.find(tx, Scope("ana")).ids) == {late}
    return late


def in_the_index(mc: MemChat, memory_id: int) -> float | None:
    """The cosine that the index itself has for a fact, which no search made a vector for."""
    meaning, _ = private.meaning(mc)
    assert meaning is not None
    vector, _ = meaning.embedder.embed_query("Guadiana flood")
    with private.database(mc).read() as tx:
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
    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)
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
    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)
    late = nowhere_queued(rivers)
    with open_store() as other:
        assert other.services.migrate(NEW).switched
        assert other.services.migrate(OLD).switched
    rivers.close()
    assert in_the_index(open_store(), late) is not None


def text_of(mc: MemChat, memory_id: int) -> str:
    with private.database(mc).read() as tx:
        query = "SELECT text FROM passages WHERE kind = 'fact' AND owner_id = ?"
        return str(tx.connection.exec_driver_sql(query, (memory_id,)).scalar_one())


def test_conversations_with_their_summaries_and_notes_are_taken_along(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    mc = open_store()
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(fact("I live in Porto", "city", "Porto"), title="Home", summary="About Porto.")
    )
    with ana.chat() as chat:
        assert chat.send("I live in Porto. The boiler hums at night.").read()
    mc.jobs.run(user="ana")
    assert ana.notes.add("The tide is high at noon.") is not None
    with private.database(mc).read() as tx:
        old = embeddings.in_use(tx) or 0
        assert embeddings.exist_for(tx, old)
    done = mc.services.migrate(NEW)
    assert done.switched
    with private.database(mc).read() as tx:
        new = embeddings.in_use(tx) or 0
        assert new != old and passages.count_lacking(tx, new) == 0
        kinds = {gap.kind for gap in passages.next_lacking(tx, 10_000, 0, 100)}
    assert kinds == set(passages.KINDS)  # there was one of each to take along
    moments = [h for h in ana.search("boiler hums night").hits if h.kind == "message"]
    assert moments and moments[0].cosine is not None


def test_a_summary_embedded_in_another_time_zone_is_found_in_its_words(
    open_store: Opener, extract_model: ScriptedModel, clock: FakeClock
) -> None:
    clock.advance(seconds=11 * 3600)  # another day in Tokyo already
    mc = open_store(timezone="America/Los_Angeles")
    extract_model.replies.append(answer(summary="About Porto."))
    with mc.user("ana").chat() as chat:
        assert chat.send("I live in Porto.").read()
    mc.jobs.run(user="ana")
    mc.close()
    done = open_store(timezone="Asia/Tokyo").services.migrate(NEW)
    assert done.switched and done.refused == {}
