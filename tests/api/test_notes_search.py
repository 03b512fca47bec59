"""Search in notes: every filter before the limit, scores as computed by hand, counts of use."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from memchat.errors import InputError, StoreFull
from memchat.providers.embedders import HashEmbedder
from memchat.types import NewNote, Note, NoteHit
from tests.support import notes, private
from tests.support.store import NOON

WORDS = ("boat", "sail", "anchor", "tide", "harbour", "rope", "deck", "mast", "oar", "keel")


class ByMeaning(HashEmbedder):
    """Scores are cosines alone, and every positive one passes."""

    def __init__(self) -> None:
        super().__init__()
        parts = {"cosine_weight": 1.0, "floor": 0.0, "message_floor": 0.0}
        self._service = replace(self._service, **parts)


@pytest.fixture
def many(open_store) -> tuple[Any, list[Note], np.ndarray]:
    """Sixty short notes with random words, types, ids and days, and their vectors."""
    mc, draw = open_store(embedder=ByMeaning()), random.Random(18)
    given = [
        NewNote(
            " ".join(draw.choices(WORDS, k=4)),
            type=draw.choice(["memo", "file"]),
            pair_id=draw.choice([None, 1, 2]),
            parent_id=draw.choice([None, 1, 2]),
            created_at=NOON - timedelta(days=draw.randrange(10)),
        )
        for _ in range(60)
    ]
    done = mc.user("ana").notes.add_many(given)
    kept = [mc.user("ana").notes.get(i) for i in done.ids]
    return mc, kept, ByMeaning().embed_documents([note.text for note in kept])[0]


def ids_of(kept: list[Note], hits: tuple[NoteHit, ...]) -> list[tuple[int, float]]:
    return [(hit.note_id, round(hit.score, 5)) for hit in hits]


def test_filters_alone_and_together_give_what_brute_force_gives(many) -> None:
    mc, kept, vectors = many
    draw = random.Random(7)
    with private.database(mc).read() as tx:
        rows = tx.connection.exec_driver_sql(
            "SELECT source_id, pair_id, parent_id, id FROM chunks"
        ).all()
    linked = {row[0]: (row[1], row[2], row[3]) for row in rows}
    for _ in range(80):
        some = {
            "type": draw.choice([None, "memo", "file", "none"]),
            "pair_id": draw.choice([None, None, 1, 2]),
            "parent_id": draw.choice([None, None, 1, 2]),
            "since": draw.choice([None, NOON - timedelta(days=draw.randrange(10))]),
            "until": draw.choice([None, NOON - timedelta(days=draw.randrange(10))]),
        }
        limit = draw.choice([1, 3, 10, 100])
        question = " ".join(draw.choices(WORDS, k=2))
        scores = vectors @ ByMeaning().embed_query(question)[0]
        expected = sorted(
            (-round(float(score), 6), linked[note.id][2], note.id)
            for note, score in zip(kept, scores, strict=True)
            if score > 0
            and some["type"] in (None, note.type)
            and some["pair_id"] in (None, linked[note.id][0])
            and some["parent_id"] in (None, linked[note.id][1])
            and (some["since"] is None or note.created_at >= some["since"])
            and (some["until"] is None or note.created_at <= some["until"])
        )
        hits = mc.user("ana").notes.search(question, limit=limit, **some).hits
        assert [hit.note_id for hit in hits] == [row[2] for row in expected][:limit], some
        for hit, row in zip(hits, expected, strict=False):
            assert hit.score == pytest.approx(-row[0], abs=1e-5)


def test_a_period_includes_both_of_its_ends_to_the_millisecond(mc) -> None:
    day, little = timedelta(days=1), timedelta(milliseconds=1)
    ids = {
        at: notes.add(mc, "the tide", created_at=NOON + at).id
        for at in (-day - little, -day, day, day + little)
    }
    found = mc.user("ana").notes.search("tide", since=NOON - day, until=NOON + day).hits
    assert {hit.note_id for hit in found} == {ids[-day], ids[day]}
    with pytest.raises(InputError, match="zone"):
        mc.user("ana").notes.search("tide", since=NOON.replace(tzinfo=None))


def test_only_what_is_returned_counts_as_found_and_only_what_is_given_as_read(mc) -> None:
    for n in range(10):
        notes.add(mc, f"tide number {n}")
    ana = mc.user("ana").notes
    returned = {hit.chunk_id for hit in ana.search("tide", limit=3).hits}
    assert len(returned) == 3
    assert ana.mark_as_read([*returned, 10**9]).count == 3
    for hit in ana.search("tide", limit=10).hits:
        assert (hit.match_count, hit.read_count) == ((1, 1) if hit.chunk_id in returned else (0, 0))


def test_texts_are_given_only_where_they_are_asked_for(mc) -> None:
    text = "\U0001f30a Über dem Meer: 潮汐 tide."
    notes.add(mc, f"  {text}  ")
    ana = mc.user("ana").notes
    assert ana.search("tide").hits[0].text is None
    assert ana.search("tide", include_text=True).hits[0].text == text


@pytest.mark.parametrize(
    "bad", [{"query": "  "}, {"limit": -1}, {"limit": 1.5}, {"mode": "best"}, {"limit": 2**40}]
)
def test_a_search_that_cannot_be_is_refused(mc, bad) -> None:
    notes.add(mc, "the tide")
    with pytest.raises(InputError):
        mc.user("ana").notes.search(**{"query": "tide", **bad})


def test_nothing_is_found_in_an_empty_store_and_nothing_with_a_limit_of_0(mc) -> None:
    assert mc.user("ana").notes.search("tide").hits == ()
    notes.add(mc, "the tide")
    assert mc.user("ana").notes.search("tide", limit=0).hits == ()
    assert len(mc.user("ana").notes.search("tide").hits) == 1


def test_a_least_score_leaves_out_what_is_below_it(mc) -> None:
    notes.add(mc, "tide and boat"), notes.add(mc, "boat")
    ana = mc.user("ana").notes
    best, other = ana.search("tide boat").hits
    assert best.score > other.score
    assert ana.search("tide boat", min_score=best.score).hits[0].chunk_id == best.chunk_id
    assert len(ana.search("tide boat", min_score=best.score).hits) == 1


def test_ranks_of_both_lists_can_make_the_score(open_store) -> None:
    mc = open_store(embedder=ByMeaning())
    both = notes.add(mc, "tide tide harbour")
    notes.add(mc, "harbour rope deck")
    ana = mc.user("ana").notes
    hits = ana.search("tide harbour", mode="rrf").hits
    assert hits[0].note_id == both.id and hits[0].score == pytest.approx(1.0)
    assert hits[1].score == pytest.approx(61 / 62, abs=1e-5)
    assert hits[0].title is None and hits[0].cosine is not None and hits[0].bm25 is not None
    by_default = open_store(embedder=ByMeaning(), ranking="rrf").user("ana").notes
    assert [h.score for h in by_default.search("tide harbour").hits] == [h.score for h in hits]


def test_another_service_is_never_asked_for_the_vectors_of_the_one_before(open_store) -> None:
    mc = open_store(embedder=None, embed_model="hash/words")
    note = notes.add(mc, "the tide")
    mc.services.migrate("hash/other-96")
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("DELETE FROM embeddings WHERE service_id = 2")
    mc = open_store(embedder=None, embed_model="")
    (hit,) = mc.user("ana").notes.search("tide").hits
    assert hit.note_id == note.id and hit.cosine is None, "found by its words alone"


def test_a_full_disk_costs_the_counts_and_not_the_answer(mc, monkeypatch) -> None:
    from memchat.notes import rows

    def full(*_args) -> None:
        raise StoreFull("the disk is full")

    note = notes.add(mc, "the tide")
    monkeypatch.setattr(rows, "count_matches", full)
    assert [h.note_id for h in mc.user("ana").notes.search("tide").hits] == [note.id]


def test_a_note_that_waits_for_its_vectors_is_not_sure_to_fit_by_one_common_word(mc) -> None:
    said = [f"The boat number {n} went to the harbour." for n in range(6)]
    for text in (*said, "The kiln is hot."):
        mc.user("ana").notes.add(text, wait=False)
    hits = mc.user("ana").notes.search("Who painted the kitchen of the boat last summer?").hits
    assert len(hits) == 6 and not any(hit.confident for hit in hits)
    (kiln, *_) = mc.user("ana").notes.search("Is the kiln hot?").hits
    assert kiln.confident and kiln.cosine is None
