"""The contract of a store: what the export and import of notes call, run once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memchat.db import apps
from memchat.notes import rows
from memchat.notes.rows import NewChunk
from memchat.search import passages, repair
from memchat.search.ranking import ScoreParts
from memchat.types import NewNote, Scope
from tests.support.notes import chunk_ids
from tests.support.rows import ANA
from tests.support.store import NOON

LATER = NOON + timedelta(days=1)


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA).own


def put(tx, own: int, external_id: int | str, text: str = "forty") -> int:
    new = NewNote(text, external_id=external_id, created_at=NOON)
    note_id, _ = rows.put(tx, own, new, NOON, sized_for=None)
    rows.replace_chunks(tx, note_id, [NewChunk(0, len(text), 1)])
    return note_id


def test_a_deleted_note_is_known_by_type_and_id_until_it_is_put_again(tx, own) -> None:
    note = rows.get(tx, [own], put(tx, own, 7))
    assert note is not None and rows.by_external_id(tx, own, "memo", 7) == note
    tx.now = LATER
    rows.remove(tx, own, note)
    assert rows.by_external_id(tx, own, "memo", 7) is None
    assert rows.deleted_at(tx, own, "memo", 7) == LATER
    assert rows.deleted_at(tx, own, "memo", "7") is None
    assert rows.deleted_at(tx, own, "file", 7) is None
    assert rows.deleted_at(tx, apps.ensure(tx, Scope("bo")).own, "memo", 7) is None
    put(tx, own, 7)
    assert rows.deleted_at(tx, own, "memo", 7) is None


def test_a_note_is_changed_and_its_file_is_missing_or_not(tx, own) -> None:
    note_id = put(tx, own, "a.md")
    rows.change(tx, [note_id], missing=1)
    found = rows.get(tx, [own], note_id)
    assert found is not None and found.missing
    new = NewNote("fifty", "Budget", "memo", "a.md", profile="document")
    assert rows.put(tx, own, new, LATER, sized_for="a model") == (note_id, True)
    found = rows.get(tx, [own], note_id)
    assert found is not None and found.missing  # other words bring no file back
    rows.change(tx, [note_id], missing=0)
    found = rows.get(tx, [own], note_id)
    assert found is not None and not found.missing
    assert (found.text, found.title, found.updated_at) == ("fifty", "Budget", LATER)


def test_the_counts_of_chunks_are_stored_by_their_hash(tx, own) -> None:
    note_id = put(tx, own, 7)
    rows.set_counts(tx, note_id, {passages.text_hash("forty"): (3, 2), "unknown": (9, 9)})
    (hit,) = rows.hits(
        tx, dict.fromkeys(chunk_ids(tx, note_id), ScoreParts(1.0, None, None)), with_text=False
    )
    assert (hit.match_count, hit.read_count) == (3, 2)


def test_all_notes_of_an_app_go_with_their_chunks_and_keywords(tx, own) -> None:
    other = apps.ensure(tx, Scope("bo")).own
    for app_id, external_id in ((own, 7), (own, 8), (other, 7)):
        put(tx, app_id, external_id)
    passages.drop_app(tx, own)
    apps.remove(tx, own)
    assert rows.ids(tx, [own]) == [] and len(rows.ids(tx, [other])) == 1
    assert repair.keyword_counts(tx)[3] == ("chunk", 1, 1)
    assert rows.deleted_at(tx, own, "memo", 7) is None
    assert [app.notes for app in apps.of_user(tx, "bo")] == [1]


def test_chunks_that_do_not_fit_their_note_are_found_and_strays_removed(tx, own) -> None:
    right, wrong = put(tx, own, 7), put(tx, own, 8, "fifty")
    assert rows.total(tx) == 2
    assert repair.notes_with_wrong_chunks(tx) == repair.chunks_without_note(tx) == []
    tx.connection.exec_driver_sql("UPDATE chunks SET size = 3 WHERE source_id = ?", (wrong,))
    assert repair.notes_with_wrong_chunks(tx) == [wrong]
    passages.drop(tx, "chunk", chunk_ids(tx, right)[:1])
    assert repair.notes_with_wrong_chunks(tx) == [right, wrong]
    assert repair.keyword_counts(tx)[3] == ("chunk", 1, 2)
    rows.change(tx, [right], sized_for="a model")
    assert rows.sized_for(tx, right) == "a model"
