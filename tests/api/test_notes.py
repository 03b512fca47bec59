"""Notes are kept, listed, changed and deleted by explicit verbs, in the app that they belong to."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memchat.errors import InputError, NotFound, ProviderError, StoreFull
from memchat.providers.embedders import HashEmbedder
from memchat.types import NewNote
from tests.support import notes, private
from tests.support.embedding_queue import Service
from tests.support.store import NOON

BUDGET = "We spend the marketing budget on posters."


def test_a_note_is_kept_whole_with_its_title_date_and_ids(mc) -> None:
    said_at = datetime(2024, 2, 29, 23, 59, 59, 999000, tzinfo=UTC)
    note = notes.add(
        mc,
        BUDGET,
        title=" The  budget ",
        type="talk",
        external_id=7,
        created_at=said_at,
        profile="document",
        pair_id=3,
        parent_id=4,
    )
    assert mc.user("ana").notes.get(note.id) == note
    assert (note.text, note.title, note.type) == (BUDGET, "The budget", "talk")
    assert (note.external_id, note.created_at, note.profile) == (7, said_at, "document")
    assert note.updated_at is None and note.chunks == 1 and note.app == "default"
    (hit,) = mc.user("ana").notes.search("budget", include_text=True).hits
    assert (hit.pair_id, hit.parent_id, hit.source_id, hit.source_type) == (3, 4, 7, "talk")
    assert (hit.title, hit.created_at, hit.text) == ("The budget", said_at, BUDGET)
    assert hit.hash == hashlib.sha256(BUDGET.encode()).hexdigest()
    assert BUDGET[hit.offset : hit.offset + hit.size] == hit.text


@pytest.mark.parametrize("text", ["", " \n\t ", "\u200b\ufeff\u00ad", "…!?—", "\0\0"])
def test_a_text_without_words_makes_no_note_and_writes_nothing(mc, text: str) -> None:
    assert mc.user("ana").notes.add(text) is None
    assert mc.user("ana").notes.list() == [] and notes.count(mc, "apps") == 0
    done = mc.user("ana").notes.add_many([NewNote(text)])
    assert done.ids == () and "no words" in done.failed[0]
    kept = notes.add(mc, BUDGET)
    with pytest.raises(InputError, match="no words"):
        mc.user("ana").notes.update(kept.id, text=text)
    assert mc.user("ana").notes.get(kept.id).text == BUDGET


@pytest.mark.parametrize(
    "bad",
    [
        {"profile": "poem"},
        {"title": " "},
        {"title": "x" * 201},
        {"type": ""},
        {"type": "x" * 41},
        {"created_at": datetime(2026, 5, 1)},
        {"created_at": datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo"))},
        {"created_at": datetime.max.replace(tzinfo=UTC)},
        {"created_at": datetime(960, 2, 3, tzinfo=UTC)},
        {"external_id": ""},
        {"external_id": "x" * 5_000},
        {"external_id": 2**70},
        {"external_id": True},
        {"external_id": 1.5},
        {"pair_id": 2**40},
        {"parent_id": "3"},
    ],
    ids=lambda bad: next(iter(bad)),
)
def test_what_cannot_be_kept_is_refused_and_leaves_nothing(mc, bad) -> None:
    with pytest.raises(InputError):
        mc.user("ana").notes.add(BUDGET, **bad)
    assert notes.count(mc, "sources") == 0


def test_the_earliest_and_the_latest_day_are_kept_and_sorted_and_found(mc) -> None:
    days = [datetime(8999, 12, 31, tzinfo=UTC), NOON, datetime(1000, 1, 1, tzinfo=UTC)]
    for day in days:
        notes.add(mc, BUDGET, created_at=day)
    ana = mc.user("ana").notes

    assert [note.created_at for note in ana.list()] == days
    every = {"since": datetime.min, "until": datetime.max}
    for zone in (UTC, ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")):
        period = {name: at.replace(tzinfo=zone) for name, at in every.items()}
        assert len(ana.list(**period)) == len(ana.search("budget", **period).hits) == 3
        assert all(note.created_at.astimezone(zone) for note in ana.list())


def test_numbers_and_texts_are_different_external_ids(mc) -> None:
    first, second = notes.add(mc, "one", external_id=7), notes.add(mc, "two", external_id="7")
    assert first.id != second.id
    assert [n.external_id for n in mc.user("ana").notes.list()] == ["7", 7]


def test_the_same_external_id_again_replaces_the_note_in_its_app_alone(mc, clock) -> None:
    first = notes.add(mc, "The boat is blue.", external_id="b", pair_id=1, title="Boat")
    other = notes.add(mc, "The boat is blue.", external_id="b", app="work")
    clock.advance(seconds=60)
    again = notes.add(mc, "The boat is red.", external_id="b")
    assert (again.id, again.text, again.title) == (first.id, "The boat is red.", None)
    assert again.created_at == first.created_at and again.updated_at == NOON + timedelta(seconds=60)
    ana = mc.user("ana").notes
    assert not any("blue" in (h.text or "") for h in ana.search("blue", include_text=True).hits)
    assert ana.search("red").hits[0].pair_id == 1, "what is not given stays"
    assert mc.user("ana", app="work").notes.get(other.id).text == "The boat is blue."
    dated = notes.add(mc, "The boat is red.", external_id="b", created_at=NOON - timedelta(days=9))
    assert dated.created_at == NOON - timedelta(days=9)


def test_the_list_has_pages_the_newest_first(mc) -> None:
    ids = [
        notes.add(mc, f"note {n}", created_at=NOON - timedelta(days=n // 2)).id for n in range(5)
    ]
    ana, seen, cursor = mc.user("ana").notes, [], None
    while True:
        page = ana.list(limit=2, cursor=cursor)
        seen += [note.id for note in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [ids[1], ids[0], ids[3], ids[2], ids[4]]
    assert all(note.text == "" and note.chunks == 1 for note in page)
    notes.add(mc, "another kind", type="file")
    assert [note.type for note in ana.list(type="file")] == ["file"]


def test_an_edit_embeds_only_what_changed_and_keeps_the_counts_of_the_rest(open_store) -> None:
    service = Service()
    mc = open_store(embedder=service)
    text = notes.essay()
    note = notes.add(mc, text)
    assert note.chunks >= 10
    before = {row[0] for row in notes.chunks(mc)}
    mc.user("ana").notes.search("attic apples", limit=1)
    asked = len(service.asked)
    edited = text.replace(" 7 crates of garden", " 7 baskets of garden")
    mc.user("ana").notes.update(note.id, text=edited)
    new = [t for texts in service.asked[asked:] for t in texts]
    assert 1 <= len(new) <= 2
    assert {row[0] for row in notes.chunks(mc)} - before == {
        hashlib.sha256(t.encode()).hexdigest() for t in new
    }
    (hit,) = mc.user("ana").notes.search("attic apples", limit=1).hits
    assert hit.match_count == 1, "found once before the edit"


def test_an_edit_of_the_title_embeds_nothing_and_finds_it_by_the_new_one(open_store) -> None:
    service = Service()
    mc = open_store(embedder=service)
    note = notes.add(mc, BUDGET, title="Plans")
    asked = len(service.asked)
    changed = mc.user("ana").notes.update(note.id, title="Zeppelin")
    assert changed.title == "Zeppelin" and changed.created_at == note.created_at
    assert len(service.asked) == asked
    assert [h.note_id for h in mc.user("ana").notes.search("zeppelin").hits] == [note.id]


def test_a_service_that_fails_leaves_the_unchanged_chunks_and_finds_the_new_by_words(
    open_store,
) -> None:
    service = Service()
    mc = open_store(embedder=service)
    text = notes.essay(3)
    note = notes.add(mc, text)
    vectors = notes.count(mc, "embeddings")

    def down(texts) -> None:
        raise ProviderError("the service is down", status=503, retryable=True)

    service.answer = down
    ana = mc.user("ana").notes
    ana.update(note.id, text=text.replace(" 7 crates of attic", " 7 zebras of attic"))
    assert 1 <= vectors - notes.count(mc, "embeddings") <= 2
    service.answer = None
    found = ana.search("zebras")
    assert found.hits[0].cosine is None and found.hits[0].confident
    assert "words only" in found.degraded and "of notes" in found.degraded
    assert ana.report().waiting == 1
    mc.jobs.retry(user="ana")
    mc.jobs.run()
    found = ana.search("zebras")
    assert found.hits[0].cosine is not None and found.degraded is None


def test_a_full_disk_leaves_the_note_as_it_was(mc, monkeypatch) -> None:
    from memchat.search import passages

    note = notes.add(mc, notes.essay(2))
    before = notes.chunks(mc)

    def full(*_args, **_more) -> None:
        raise StoreFull("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(passages.keywords, "write", full)
        with pytest.raises(StoreFull):
            mc.user("ana").notes.update(note.id, text="Quite another text.")
    assert notes.chunks(mc) == before
    assert mc.user("ana").notes.get(note.id) == note


def test_notes_work_while_memory_is_off(mc) -> None:
    mc.user("ana").set_memory(False, all_apps=True)
    note = notes.add(mc, BUDGET)
    ana = mc.user("ana").notes
    assert [h.note_id for h in ana.search("budget").hits] == [note.id]
    ana.update(note.id, title="New")
    assert ana.delete(note.id).count == 1


def test_an_update_that_does_not_wait_leaves_the_vectors_to_a_worker(mc) -> None:
    ana = mc.user("ana").notes
    note = notes.add(mc, BUDGET)
    assert ana.update(note.id, text="The river rose.", wait=False).text == "The river rose."
    assert ana.report().chunks_without_vector == 1
    mc.jobs.run()
    assert ana.report().chunks_without_vector == 0


def test_a_note_never_becomes_a_fact(mc, extract_model) -> None:
    notes.add(mc, "I live in Lisbon. My name is Ana.")
    mc.jobs.run()
    assert mc.user("ana").memories.list() == [] and extract_model.requests == []


@pytest.mark.parametrize("where", [{"user": "bo"}, {"user": "ana", "app": "other"}])
def test_a_foreign_note_is_never_seen_and_never_changed(mc, where) -> None:
    note = notes.add(mc, BUDGET, external_id="b")
    mine = notes.add(mc, "Something else entirely.", **where)
    other = mc.user(**where).notes
    (chunk,) = [h.chunk_id for h in mc.user("ana").notes.search("budget").hits]
    for verb in (other.get, other.delete, lambda i: other.update(i, text="stolen")):
        with pytest.raises(NotFound):
            verb(note.id)
    assert other.mark_as_read([chunk, 10**9]).count == 0
    assert [n.id for n in other.list()] == [mine.id]
    assert not any(h.note_id == note.id for h in other.search("marketing budget").hits)
    assert sum(c.notes for c in other.report().types.values()) == 1
    assert other.reindex().count == 0
    notes.add(mc, "Mine alone.", external_id="b", **where)
    assert mc.user("ana").notes.get(note.id).text == BUDGET
    (hit,) = mc.user("ana").notes.search("budget").hits
    assert (hit.match_count, hit.read_count) == (1, 0)


def test_an_incognito_chat_leaves_notes_alone(mc) -> None:
    notes.add(mc, BUDGET)
    before = notes.chunks(mc), notes.count(mc, "sources")
    with mc.user("ana").chat(incognito=True) as chat:
        chat.send("What about the marketing budget?").read()
    assert (notes.chunks(mc), notes.count(mc, "sources")) == before
    with private.database(mc).read() as tx:
        counts = tx.connection.exec_driver_sql("SELECT sum(match_count + read_count) FROM chunks")
        assert counts.scalar_one() == 0


def test_many_notes_are_kept_and_embedded_in_few_calls_and_a_bad_one_is_named(open_store) -> None:
    service = Service()
    mc = open_store(embedder=service)
    told = []
    given = [NewNote(f"thing number {n}", external_id=n) for n in range(250)]
    given[7] = NewNote("a bad one", profile="poem")
    given[9] = NewNote("  ")
    done = mc.user("ana").notes.add_many(given, on_progress=told.append)
    assert len(done.ids) == 248 and sorted(done.failed) == [7, 9]
    assert "poem" in done.failed[7] and "words" in done.failed[9]
    assert notes.count(mc, "embeddings") == 248 and len(service.asked) == 3
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert (told[-1].done, told[-1].total, told[-1].unit) == (250, 250, "notes")
    before = mc.user("ana").notes.list(limit=300), notes.chunks(mc), notes.count(mc, "changes")
    again = mc.user("ana").notes.add_many(given)
    assert again.ids == done.ids and len(service.asked) == 3, "nothing is embedded again"
    now = mc.user("ana").notes.list(limit=300), notes.chunks(mc), notes.count(mc, "changes")
    assert now == before


def test_the_same_text_in_two_notes_is_embedded_once_and_outlives_one_of_them(open_store) -> None:
    service = Service()
    mc = open_store(embedder=service)
    first, second = notes.add(mc, BUDGET), notes.add(mc, BUDGET, app="work")
    assert notes.count(mc, "embeddings") == 1 and notes.count(mc, "chunks") == 2
    assert [t for texts in service.asked for t in texts] == [BUDGET]
    mc.user("ana").notes.delete(first.id)
    (hit,) = mc.user("ana", app="work").notes.search("budget").hits
    assert hit.note_id == second.id and hit.cosine is not None


def test_indexing_anew_cuts_every_note_for_the_service_and_embeds_what_lacks(open_store) -> None:
    with_none = open_store(embedder=None, embed_model="")
    ids = [notes.add(with_none, notes.essay(2, 20 + n)).id for n in range(3)]
    with private.database(with_none).write() as tx:
        tx.connection.exec_driver_sql("DELETE FROM chunks WHERE source_id = ?", (ids[0],))
    mc = open_store(embedder=HashEmbedder())
    told = []
    assert mc.user("ana").notes.reindex(on_progress=told.append).count == 1
    assert [n.chunks > 1 for n in mc.user("ana").notes.list()] == [True] * 3
    assert (told[-1].done, told[-1].total) == (3, 3)
    report = mc.user("ana").notes.report()
    assert report.chunks_without_vector == report.waiting == report.failed == 0
    before = notes.chunks(mc)
    assert mc.user("ana").notes.reindex().count == 0 and notes.chunks(mc) == before


def test_the_report_tells_what_is_found_and_never_read(mc) -> None:
    noise = notes.add(mc, "standup standup standup", title="Daily")
    read = notes.add(mc, "the standup of the year", type="file")
    ana = mc.user("ana").notes
    for _ in range(3):
        hits = ana.search("standup").hits
    ana.mark_as_read([h.chunk_id for h in hits if h.note_id == read.id])
    report = ana.report()
    assert [(use.note_id, use.title, use.matches) for use in report.unread] == [
        (noise.id, "Daily", 3)
    ]
    memo, file = report.types["memo"], report.types["file"]
    assert (memo.notes, memo.chunks, memo.matches, memo.reads) == (1, 1, 3, 0)
    assert (file.notes, file.chunks, file.matches, file.reads) == (1, 1, 3, 1)
    assert ana.report(top=0).unread == ()
