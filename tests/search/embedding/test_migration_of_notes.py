"""Another service may read less: notes are cut anew, and the old one answers until the change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from memchat import MemChat
from memchat.errors import InputError, ProviderError
from memchat.search.switch import EmbeddingServices
from memchat.types import NoteHit
from tests.support import notes, private
from tests.support.service_change import NEW, Between, cosine_in, migrate

MOST = 60
LONG = " ".join(f"The parcel number {n} went to shelf {n} of the hall." for n in range(150))


class Short(Between):
    """A new service that reads few words, and counts them itself."""

    def __init__(self, does: Callable[[int], None] = lambda _: None) -> None:
        super().__init__(NEW, does)
        self._service = replace(self._service, max_tokens=MOST, chunking_max_tokens=0)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    @property
    def longest(self) -> int:
        return max((len(t.split()) for texts in self.batches for t in texts), default=0)


def search(mc: MemChat) -> Sequence[NoteHit]:
    return mc.user("ana").notes.search("parcel shelf hall", limit=5, include_text=True).hits


def is_of(model: str, hits: Sequence[NoteHit]) -> bool:
    """Whether every one has the cosine of this service."""
    return bool(hits) and all(
        hit.cosine == pytest.approx(cosine_in(model, "parcel shelf hall", hit.text or ""), abs=1e-5)
        for hit in hits
    )


@pytest.fixture
def mc(open_store) -> Any:
    return open_store(embedder=None, embed_model="hash/words")


def test_the_old_service_answers_by_meaning_until_the_new_one_has_every_part(mc) -> None:
    note = notes.add(mc, LONG, profile="document")
    small = notes.add(mc, "A parcel for the shelf in the hall.")
    before = {row[0] for row in notes.chunks(mc)}
    answers: list[bool] = []
    embedder = Short(lambda _: answers.append(is_of("hash/words", search(mc))))
    assert migrate(mc, embedder).switched
    assert answers and all(answers), "at every call of the new service"
    assert embedder.longest <= MOST
    assert mc.user("ana").notes.get(note.id).chunks >= 1_650 // MOST
    assert mc.user("ana").notes.get(note.id).text == LONG
    assert len({row[0] for row in notes.chunks(mc)} & before) == 1, "the short one is as it was"
    assert mc.user("ana").notes.get(small.id).chunks == 1


def test_after_the_change_the_new_service_answers_and_reads_every_chunk_whole(open_store) -> None:
    mc = open_store(embedder=None, embed_model="hash/words")
    notes.add(mc, LONG, profile="document")
    assert migrate(mc, Short()).switched
    mc.close()
    again = open_store(embedder=Short())
    hits = search(again)
    assert is_of(NEW, hits) and all(len((hit.text or "").split()) <= MOST for hit in hits)
    assert again.user("ana").notes.report().chunks_without_vector == 0


def test_a_service_that_reads_as_much_leaves_every_chunk_as_it_is(mc) -> None:
    notes.add(mc, LONG)
    before = notes.chunks(mc)
    assert mc.services.migrate(NEW).switched
    assert notes.chunks(mc) == before and is_of(NEW, search(mc))


def test_a_note_that_comes_in_meanwhile_is_cut_for_the_new_service_too(mc) -> None:
    notes.add(mc, LONG, profile="document")

    def comes(times: int) -> None:
        if times == 1:
            notes.add(mc, LONG.replace("parcel", "letter"), profile="document")

    assert migrate(mc, Short(comes)).switched
    assert notes.count(mc, "sources") == 2
    assert all(len(row[3].split()) <= MOST for row in notes.chunks(mc))


def test_a_migration_that_breaks_off_leaves_notes_that_are_found_and_goes_on_later(mc) -> None:
    notes.add(mc, LONG, profile="document")

    def fails(_times: int) -> None:
        raise ProviderError("no more", status=401)

    with pytest.raises(ProviderError):
        migrate(mc, Short(fails))
    assert is_of("hash/words", search(mc))
    cut = notes.chunks(mc)
    assert migrate(mc, Short()).switched
    assert notes.chunks(mc) == cut


def test_without_the_old_service_the_new_parts_are_found_by_words_until_the_change(
    mc, monkeypatch
) -> None:
    notes.add(mc, LONG, profile="document")
    monkeypatch.setattr(EmbeddingServices, "_embedder_in_use", lambda self: None)
    seen: list[Sequence[NoteHit]] = []
    assert migrate(mc, Short(lambda _: seen.append(search(mc)))).switched
    assert seen and all(hits and hits[0].cosine is None for hits in seen)


def test_a_change_that_is_forced_cuts_notes_before_their_vectors_are_made(open_store) -> None:
    mc = open_store(embedder=None, embed_model="hash/words")
    notes.add(mc, "A parcel for the shelf in the hall.")
    assert migrate(mc, Short()).switched
    assert mc.services.use("hash/words").count == 0
    mc.close()
    mc = open_store(embedder=None, embed_model="hash/words")
    notes.add(mc, LONG, profile="document")
    with pytest.raises(InputError, match="force it"):
        mc.services.use(NEW)
    assert mc.services.use(NEW, force=True).count
    mc.close()
    short = Short()
    mc = open_store(embedder=short)
    mc.jobs.run()
    assert 0 < short.longest <= MOST
    assert private.meaning(mc)[0].service_id == 2 and is_of(NEW, search(mc))


def test_both_services_have_their_vectors_until_the_old_one_is_removed(mc) -> None:
    notes.add(mc, "A parcel for the shelf in the hall.")
    assert mc.services.migrate(NEW).switched
    assert notes.count(mc, "embeddings") == 2
    assert is_of(NEW, search(mc)), "and no vector of the old one"
    assert mc.services.use("hash/words").count == 0
    assert is_of("hash/words", search(mc)), "the old one still answers"
    mc.services.use(NEW)
    with pytest.raises(InputError, match="in use"):
        mc.services.remove(NEW)
    assert mc.services.remove("hash/words").count == 1
    assert notes.count(mc, "embeddings") == notes.count(mc, "chunks") == 1
    assert notes.count(mc, "pragma_foreign_key_check") == 0
    assert is_of(NEW, search(mc))


def test_a_chunk_is_lean_and_goes_with_its_note(mc) -> None:
    notes.add(mc, "A parcel for the shelf in the hall.", title="Hall")
    with private.database(mc).write() as tx:
        columns = {row[1] for row in tx.connection.exec_driver_sql("PRAGMA table_info(chunks)")}
        assert {"hash", "source_type", "source_id", "pair_id", "parent_id", "offset"} <= columns
        assert not columns & {"title", "content", "metadata"}, "title and date are the note's"
        vector = tx.connection.exec_driver_sql("SELECT embedding FROM embeddings").scalar_one()
        assert len(vector) == 4 * 64, "float32"
        tx.connection.exec_driver_sql("DELETE FROM sources")
        assert tx.connection.exec_driver_sql("SELECT count(*) FROM chunks").scalar_one() == 0
