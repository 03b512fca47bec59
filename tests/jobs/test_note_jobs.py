"""Notes get vectors through the queue: together, each once, and one bad text costs no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

import pytest

from memchat.errors import ConfigError, NotFound
from memchat.jobs.embedding import BATCH
from memchat.providers.embedders import HashEmbedder
from memchat.providers.local import available
from memchat.types import NewNote
from tests.support import notes, private
from tests.support.embedding_queue import BAD, Service, refusing

needs_minilm = pytest.mark.skipif(not available(), reason="MiniLM is not on this machine")


def words(count: int) -> str:
    return ". ".join(f"The parcel number {n} went to shelf {n}" for n in range(count)) + "."


class Reads(Service):
    """Reads so many words of a text, and counts them itself."""

    def __init__(self, most: int, model: str = "words") -> None:
        super().__init__()
        self._service = replace(HashEmbedder(model).service, max_tokens=most, chunking_max_tokens=0)
        self.meanwhile: Callable[[], object] | None = None
        """Done once while a text is cut, as others would."""

    def count_tokens(self, text: str) -> int:
        if self.meanwhile is not None:
            does, self.meanwhile = self.meanwhile, None
            does()
        return len(text.split())


def test_notes_without_vectors_are_indexed_once_and_one_without_words_never(open_store) -> None:
    service = Service()
    mc = open_store(embedder=service)
    notes.add(mc, "done before")
    for n in range(3):
        notes.add(mc, f"pending number {n}", wait=False)
    assert mc.user("ana").notes.add(" ", wait=False) is None
    assert mc.user("ana").notes.report().waiting == 3
    service.asked.clear()
    assert mc.jobs.run().done == 3
    assert sorted(t for texts in service.asked for t in texts) == [
        f"pending number {n}" for n in range(3)
    ]
    assert mc.jobs.run().done == 0 and len(service.asked) == 1


def test_one_failure_is_logged_and_skipped_and_what_was_made_of_it_is_kept(
    open_store, caplog
) -> None:
    caplog.set_level(logging.INFO)
    service = Service(refusing(400))
    mc = open_store(embedder=service)
    bad = notes.essay(2).replace(" 7 crates of attic apples", f" {BAD} things")
    done = mc.user("ana").notes.add_many(
        [NewNote("the first"), NewNote(bad, title="Diary"), NewNote("the third")]
    )
    report = mc.user("ana").notes.report()
    at_fault = [row for row in notes.chunks(mc) if BAD in row[3]]
    assert 1 <= len(at_fault) < mc.user("ana").notes.get(done.ids[1]).chunks
    assert report.chunks_without_vector == len(at_fault) and report.waiting == 1
    lines = [record.getMessage() for record in caplog.records]
    assert f"Indexed memo {done.ids[0]}: 9 characters" in lines
    assert f"Indexed memo {done.ids[2]}: 9 characters" in lines
    assert f"Failed to index memo {done.ids[1]}: refused" in lines
    assert "crates" not in caplog.text and "Diary" not in caplog.text
    (job,) = [job for job in mc.jobs.list() if job.status == "pending"]
    assert (job.kind, job.target_id, job.error_message) == ("note", done.ids[1], "refused")
    service.answer = None
    service.asked.clear()
    mc.jobs.retry(user="ana")
    mc.jobs.run()
    assert len([t for texts in service.asked for t in texts]) == len(at_fault), "only these"
    assert mc.user("ana").notes.report().chunks_without_vector == 0


def test_a_text_that_a_model_refuses_for_good_is_found_by_its_words(open_store) -> None:
    mc = open_store(embedder=Service(refusing(400)), retry_minutes=())
    note = notes.add(mc, f"{BAD} things")
    assert mc.user("ana").notes.report().failed == 1
    (hit,) = mc.user("ana").notes.search("things").hits
    assert hit.note_id == note.id and hit.cosine is None


def test_a_note_that_is_deleted_while_it_is_embedded_leaves_nothing(open_store) -> None:
    service = Service()
    mc = open_store(embedder=service)
    note = notes.add(mc, "soon gone", wait=False)

    def delete(_texts) -> None:
        service.answer = None
        mc.user("ana").notes.delete(note.id)

    service.answer = delete
    mc.jobs.run()
    assert notes.count(mc, "embeddings") == notes.count(mc, "chunks") == 0
    assert [job for job in mc.jobs.list() if job.kind == "note"] == []


def test_a_note_that_is_changed_while_it_is_embedded_gets_the_vectors_of_its_new_text(
    open_store,
) -> None:
    service = Service()
    mc = open_store(embedder=service)
    note = notes.add(mc, "the old words", wait=False)

    def change(_texts) -> None:
        service.answer = None
        mc.user("ana").notes.update(note.id, text="quite new words")

    service.answer = change
    mc.jobs.run()
    mc.jobs.run()
    assert notes.count(mc, "embeddings") == 1
    assert mc.user("ana").notes.search("quite new").hits[0].cosine is not None


def test_two_edits_at_once_both_stay_and_one_of_a_deleted_note_is_told(open_store) -> None:
    service = Reads(60)
    mc = open_store(embedder=service)
    ana = mc.user("ana").notes
    note = notes.add(mc, "The old words.", title="Old")
    service.meanwhile = lambda: ana.update(note.id, text="The new words.")
    edited = ana.update(note.id, title="New")
    assert (edited.title, edited.text) == ("New", "The new words.")
    service.meanwhile = lambda: ana.delete(note.id)
    with pytest.raises(NotFound):
        ana.update(note.id, text="Too late.")
    assert ana.list() == [] and notes.count(mc, "chunks") == 0


def test_every_chunk_is_one_that_the_model_reads_whole(open_store) -> None:
    service = Reads(60)
    mc = open_store(embedder=service)
    notes.add(mc, words(200), profile="document")
    assert max(len(t.split()) for texts in service.asked for t in texts) <= 60
    assert len(notes.chunks(mc)) >= 1400 // 60


def test_the_chunks_of_a_note_are_sent_together_as_many_as_fit_a_call(open_store) -> None:
    service = Reads(20)
    mc = open_store(embedder=service)
    note = notes.add(mc, words(400), profile="document")
    sent = [text for texts in service.asked for text in texts]
    assert note.chunks > 200 and len(sent) == len(set(sent)) == note.chunks
    assert len(service.asked) == -(-note.chunks // BATCH)
    assert max(len(texts) for texts in service.asked) <= BATCH


def test_what_was_cut_without_a_model_is_cut_anew_for_the_first_one(open_store) -> None:
    without = open_store(embedder=None, embed_model="")
    note = notes.add(without, words(200), profile="document")
    before = note.chunks
    without.close()
    service = Reads(60)
    mc = open_store(embedder=service)
    mc.jobs.backfill()
    assert max(len(t.split()) for texts in service.asked for t in texts) <= 60
    assert mc.user("ana").notes.get(note.id).chunks > before
    assert mc.user("ana").notes.report().chunks_without_vector == 0


def test_a_model_that_cannot_be_used_costs_no_note_and_the_job_tells_why(open_store) -> None:
    mc = open_store(embedder=None, embed_model="hash/words")
    notes.add(mc, "the tide")
    mc.close()
    mc = open_store(embedder=HashEmbedder("other-96"))
    note = notes.add(mc, words(200), profile="document")
    assert mc.user("ana").notes.get(note.id).text == words(200)
    (job,) = mc.jobs.list(status="pending")
    assert job.target_id == note.id and "services migrate" in (job.error_message or "")


def test_the_jobs_of_some_notes_are_listed_however_many_others_wait(mc) -> None:
    old, *_, new = (
        mc.user("ana").notes.add_many([NewNote(words(n + 1)) for n in range(4)], wait=False).ids
    )
    listed = mc.jobs.list(user="ana", status="pending", note_ids=[old], limit=1)
    assert [job.target_id for job in listed] == [old]
    both = mc.jobs.list(note_ids=[old, new])
    assert [job.target_id for job in both] == [new, old]
    assert mc.jobs.list(note_ids=[]) == []
    assert len(mc.jobs.list(note_ids=range(100_000))) == 4


def test_a_tokenizer_that_cannot_be_read_fails_the_job_and_not_the_worker(open_store) -> None:
    class Damaged(Reads):
        def count_tokens(self, text: str) -> int:
            raise ConfigError("the tokenizer is damaged")

        def embed_documents(self, texts: Sequence[str]) -> NoReturn:
            raise ConfigError("the tokenizer is damaged")

    mc = open_store(embedder=Damaged(60))
    note = notes.add(mc, "the tide")
    (job,) = mc.jobs.list()
    assert (job.target_id, job.error_message) == (note.id, "the tokenizer is damaged")


def test_equal_chunks_of_one_note_are_embedded_once(open_store) -> None:
    service = Service()
    mc = open_store(embedder=service)
    sentence = "We counted the crates and wrote the labels. " * 30
    note = notes.add(mc, "\n\n".join([sentence.strip()] * 5))
    texts = [t for some in service.asked for t in some]
    assert note.chunks > 1 and len(texts) == len(set(texts)) < note.chunks


@pytest.mark.parametrize(
    "model", ["hash/words", pytest.param("minilm/all-MiniLM-L6-v2", marks=needs_minilm)]
)
@pytest.mark.parametrize(
    "text",
    ["🎉" * 400, "\u200b" * 3_000 + " end", "x" * 20_000, "a\n\n" + "\u00ad" * 2_000 + "\n\nb"],
    ids=["emoji", "invisible, then a word", "one long word", "invisible between words"],
)
def test_odd_texts_are_kept_and_indexed_without_an_error(open_store, model, text) -> None:
    mc = open_store(embedder=None, embed_model=model)
    note = notes.add(mc, text)
    report = mc.user("ana").notes.report()
    assert note.chunks >= 1 and report.failed == report.waiting == 0
    assert report.chunks_without_vector == 0
    for row in notes.chunks(mc):
        assert row[3].strip("\u200b\u00ad \n")


def test_a_secret_reaches_no_model_even_where_a_chunk_ends_within_it(open_store) -> None:
    service = Reads(30)
    mc = open_store(embedder=service)
    key = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
    phrase = "my recovery phrase is zebra lemon canyon violet rocket puzzle anchor meadow"
    filler = "The parcel went to the shelf in the hall today."
    for n in range(6):
        notes.add(mc, f"{filler * n} The key is {key} and {phrase}. {filler * 3}", external_id=n)
    sent = " ".join(t for texts in service.asked for t in texts)
    assert key not in sent
    for word in phrase.split()[4:]:
        assert word not in sent
    assert all(row[4] is None or key not in row[4] for row in notes.chunks(mc))
    (hit, *_) = mc.user("ana").notes.search("recovery phrase", include_text=True).hits
    assert "recovery" in (hit.text or ""), "the person still reads their own words"
    with private.database(mc).read() as tx:
        assert tx.connection.exec_driver_sql(
            "SELECT count(*) FROM chunks WHERE masked != ''"
        ).scalar_one()


def test_an_outage_is_logged_once_however_many_notes_wait_and_again_after_its_end(
    open_store, caplog, clock
) -> None:
    service = Service(refusing(None, "parcel"))
    mc = open_store(embedder=service)
    ana = mc.user("ana").notes

    def told() -> int:
        return sum(r.levelno == logging.WARNING for r in caplog.records)

    with caplog.at_level(logging.WARNING, logger="memchat"):
        ana.add_many([NewNote(f"parcel {n}") for n in range(30)])
        for _ in range(3):
            clock.advance(days=1)
            mc.jobs.run()
        assert told() == 1
        assert "Failed to index memo 1 and 29 more: refused" in caplog.text
        service.answer = None
        clock.advance(days=1)
        mc.jobs.run()
        assert ana.report().waiting == 0
        service.answer = refusing(None, "parcel")
        ana.add("another parcel")
        assert told() == 2


def test_a_model_that_cannot_be_used_is_logged_once_for_many_notes(open_store, caplog) -> None:
    class Damaged(Service):
        def count_tokens(self, text: str) -> NoReturn:
            raise ConfigError("the tokenizer is damaged")

    mc = open_store(embedder=Damaged())
    with caplog.at_level(logging.WARNING, logger="memchat"):
        added = mc.user("ana").notes.add_many([NewNote(f"parcel {n}") for n in range(30)])
        mc.user("ana").notes.add("another parcel")
    assert len(added.ids) == 30
    assert caplog.text.count("the tokenizer is damaged") == 2, "after vectors were made, anew"
