"""What was written just now is found: by a vector the search itself makes, or by words, as told."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import beside_writers
from memchat import MemChat
from memchat.db import jobs
from memchat.db.database import Database
from memchat.db.jobs import ClaimRequest
from memchat.errors import ProviderError
from memchat.providers.embedders import HashEmbedder
from memchat.search import embeddings
from memchat.search.ranking import MOST
from memchat.testing import ScriptedModel
from memchat.types import Recalled, Service, Usage
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.store import WAIT, Opener

COMING = "their vectors are still to come"
ONE_COMING = "1 fact is searched by its words only: its vector is still to come"


class Counting(HashEmbedder):
    """Keeps the texts that it was asked for; ``before`` is called ahead of each call."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.before = before

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        self.before()
        self.texts += texts
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> tuple[Any, Usage]:
        return HashEmbedder(self.service.model).embed_query(text)


class Remote(Counting):
    """The same on the network, where it knows meaning better than words."""

    @property
    def service(self) -> Service:
        return replace(super().service, local=False, cosine_weight=0.7)


def add(mc: MemChat, *values: str, embed: bool = False) -> list[int]:
    ids = [mc.user("ana").memories.add("fact", "note", value).id for value in values]
    if embed:
        assert mc.jobs.embed(remote=True).count == len(ids)
    return ids


def ask(mc: MemChat, question: str, limit: int = 10) -> Recalled:
    return mc.user("ana").search(question, limit=limit)


def values(found: Recalled) -> list[str]:
    return [hit.memory.value for hit in found.hits if hit.memory is not None]


def held_by(mc: MemChat, owner: str, kind: str = "embed", count: int = 100) -> None:
    """Somebody took the work and has not done it."""
    with private.database(mc).write() as tx:
        assert jobs.claim(tx, ClaimRequest([kind], owner, 600, limit=count), mc.now)


def stored(mc: MemChat) -> int:
    with private.database(mc).read() as tx:
        return tx.connection.exec_driver_sql("SELECT count(*) FROM embeddings").scalar_one()


@pytest.fixture
def dead() -> str:
    """A worker of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    return f"{socket.gethostname()}:{process.pid}:0a1b2c3d"


# Made by the search


def test_what_a_dead_process_was_to_embed_is_found_by_meaning_at_once(
    mc: MemChat, dead: str
) -> None:
    add(mc, "the boat lies in Porto", "the boat lies in Faro", embed=True)
    (new,) = add(mc, "the boat lies in Braga")
    held_by(mc, dead)
    found = ask(mc, "boat lies Braga")
    assert (found.hits[0].id, found.hits[0].channel, found.degraded) == (new, "both", None)
    assert {job.status for job in mc.jobs.list(user="ana")} == {"completed"}


def test_what_a_living_process_is_slow_with_is_found_by_meaning_and_is_done(mc: MemChat) -> None:
    (new,) = add(mc, "the boat lies in Braga")
    held_by(mc, "another-machine:1:0a1b2c3d")
    found = ask(mc, "boat lies Braga")
    assert (found.hits[0].id, found.hits[0].channel, found.degraded) == (new, "both", None)
    assert [job.status for job in mc.jobs.list(user="ana")] == ["completed"]


def test_a_vector_that_a_search_made_is_kept_and_every_process_hears_of_it(
    open_store: Opener,
) -> None:
    service = Counting()
    mc, other = open_store(embedder=service), open_store(embedder=service)
    add(mc, "a red kayak")
    held_by(mc, "another-machine:1:0a1b2c3d")
    for store in (other, mc, open_store(embedder=service)):
        assert ask(store, "red kayak").hits[0].cosine is not None
    assert len(service.texts) == 1 and stored(mc) == 1


def test_a_search_embeds_a_few_texts_however_many_wait_and_says_what_is_left(
    open_store: Opener,
) -> None:
    service = Counting()
    mc = open_store(embedder=service)
    (asked,) = add(mc, "a red kayak")
    add(mc, *(f"thing {n}" for n in range(MOST + 3)))
    found = ask(mc, "red kayak")
    assert found.hits[0].id == asked and found.hits[0].cosine is not None, "its words come first"
    assert len(service.texts) == MOST
    assert found.degraded == f"4 facts are searched by their words only: {COMING}"
    assert ask(mc, "red kayak").degraded is None and len(service.texts) == MOST + 4


def test_a_service_on_the_network_is_not_asked_by_a_search(open_store: Opener) -> None:
    service = Remote()
    mc = open_store(embedder=service)
    add(mc, "a red kayak")
    found = ask(mc, "red kayak")
    assert values(found) == ["a red kayak"]
    assert service.texts == [] and found.degraded == ONE_COMING


def test_a_text_at_fault_keeps_no_other_from_its_vector(open_store: Opener) -> None:
    class Picky(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
            if any("unspeakable" in text for text in texts):
                raise ProviderError("refused", status=400)
            return super().embed_documents(texts)

    mc = open_store(embedder=Picky())
    add(mc, "an unspeakable kayak", "a red kayak")
    found = ask(mc, "kayak")
    assert {hit.memory.value: hit.cosine is not None for hit in found.hits if hit.memory} == {
        "an unspeakable kayak": False,
        "a red kayak": True,
    }
    assert found.degraded == ONE_COMING


@pytest.fixture
def go() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_service_that_hangs_holds_a_reply_up_for_its_patience_only(
    open_store: Opener, go: threading.Event
) -> None:
    service = Counting()
    mc = open_store(embedder=service, embed_patience=0.05)
    add(mc, "a red kayak")
    ask(mc, "kayak")  # the question's own vector is known from now on
    add(mc, "a blue kayak")
    service.before = lambda: check(go.wait(WAIT))
    shown = mc.user("ana").answer("kayak").shown
    assert not go.is_set(), "the service has not answered yet"
    assert set(values(shown)) == {"a red kayak", "a blue kayak"}


def check(true: bool) -> None:
    assert true


def test_what_is_forgotten_while_a_search_embeds_it_leaves_no_vector(open_store: Opener) -> None:
    service = Counting()
    mc, other = open_store(embedder=service), open_store()
    (memory,) = add(mc, "a red kayak")
    service.before = lambda: other.user("ana").memories.delete(memory, hold=-1)
    ask(mc, "kayak")
    other.jobs.run()
    assert service.texts and stored(mc) == 0
    assert ask(mc, "kayak").hits == ()


def test_what_is_reworded_while_a_search_embeds_it_gets_the_vector_of_its_new_words(
    open_store: Opener,
) -> None:
    service = Counting()
    mc, other = open_store(embedder=service), open_store()
    (memory,) = add(mc, "a red kayak")

    def reword() -> None:
        service.before = lambda: None
        other.user("ana").memories.update(memory, value="a green canoe")

    service.before = reword
    ask(mc, "kayak")
    assert stored(mc) == 0
    assert ask(mc, "green canoe").hits[0].cosine == pytest.approx(1.0, abs=0.5)
    assert stored(mc) == 1


# A search waits for nobody


def test_a_search_beside_a_writer_waits_for_nothing(mc: MemChat, open_store: Opener) -> None:
    add(mc, "the boat lies in Porto", embed=True)
    add(mc, "a red kayak")
    with Database(mc.settings.home).write():
        # Another process is in the middle of writing, for as long as it likes.
        found = ask(mc, "red kayak")
    assert found.hits[0].cosine is not None and found.degraded is None
    assert stored(mc) == 1, "there was no place to write"
    assert ask(mc, "red kayak").hits[0].cosine is not None and stored(mc) == 2


def test_on_a_full_disk_a_search_finds_what_was_written_last(mc: MemChat) -> None:
    add(mc, "a red kayak")
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE INSERT ON embeddings"
            " BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
        )
    found = ask(mc, "red kayak")
    assert found.hits[0].cosine is not None and found.degraded is None


def test_facts_that_are_added_all_the_time_do_not_keep_a_search_from_its_end(
    open_store: Opener,
) -> None:
    other = open_store()
    more = iter(range(200))

    def write() -> None:
        if (n := next(more, None)) is not None:
            add(other, f"thing {n}")

    mc = open_store(embedder=Counting(write))
    add(mc, "a red kayak")
    assert ask(mc, "red kayak").hits[0].cosine is not None
    assert next(more) <= MOST


def test_an_answer_outside_of_any_conversation_writes_nothing(mc: MemChat) -> None:
    add(mc, "a red kayak")
    shown = mc.user("ana").answer("where is my red kayak?").shown
    assert shown.hits[0].cosine is not None and stored(mc) == 0


@pytest.mark.slow
def test_the_figures_beside_a_writer_can_be_taken(tmp_path: Path) -> None:
    found = beside_writers.measure(tmp_path / "store", "hash", facts=20, a_second=20, searches=5)
    assert [len(searched.seconds) for searched in found.values()] == [5, 5, 5]


# By words on an equal footing


def test_a_fact_without_its_vector_stands_where_its_words_put_it(open_store: Opener) -> None:
    mc = open_store(embedder=Remote())
    add(mc, "the kayak is red", "the kayak lies in the harbour of Porto", embed=True)
    add(mc, "the kayak lies in Braga")
    found = ask(mc, "kayak lies Braga")
    assert values(found)[0] == "the kayak lies in Braga"
    assert (found.hits[0].channel, found.degraded) == ("words", ONE_COMING)


def test_a_fact_without_its_vector_is_looked_at_however_many_hold_the_same_words(
    open_store: Opener,
) -> None:
    mc = open_store(embedder=Remote())
    (waits,) = add(mc, "the red kayak")
    held_by(mc, "another-machine:1:0a1b2c3d")
    for n in range(40):
        mc.user("ana").memories.add("fact", f"note {n}", "the red kayak")
    assert mc.jobs.embed(remote=True).count == 40
    with private.database(mc).write() as tx:
        of_fact = f"SELECT hash FROM passages WHERE kind = 'fact' AND owner_id = {waits}"
        tx.driver.execute(f"DELETE FROM embeddings WHERE hash = ({of_fact})")
    assert waits in {hit.id for hit in ask(mc, "red kayak").hits}


def test_by_reciprocal_ranks_too_a_fact_without_its_vector_may_come_first(
    open_store: Opener,
) -> None:
    mc = open_store(embedder=Remote(), ranking="rrf")
    add(mc, "the kayak is red", "the kayak lies in the harbour of Porto", embed=True)
    add(mc, "the kayak lies in Braga")
    assert values(ask(mc, "kayak lies Braga"))[0] == "the kayak lies in Braga"


def test_turns_without_a_vector_are_counted_too_and_get_theirs_from_a_local_service(
    open_store: Opener, extract_model: ScriptedModel
) -> None:
    class Away(HashEmbedder):
        away = True

        def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
            if self.away:
                raise ProviderError("down")
            return super().embed_documents(texts)

        def embed_query(self, text: str) -> tuple[Any, Usage]:
            return HashEmbedder().embed_query(text)

    service = Away()
    mc = open_store(embedder=service)
    said = "My boat is a red kayak that lies in Braga."
    extract_model.replies.append(answer(fact("My boat is a red kayak", "boat", "a red kayak")))
    with mc.user("ana").chat() as chat:
        assert chat.send(said).read()
    found = ask(mc, "where lies Braga?")
    assert found.degraded == (
        f"1 fact and 1 turn of past conversations are searched by their words only: {COMING}"
    )
    service.away = False
    found = ask(mc, "where lies Braga?")
    (turn,) = (hit for hit in found.hits if hit.kind == "message")
    assert turn.cosine is not None and found.degraded is None


def test_a_saved_index_knows_what_had_no_vector(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memchat.search.vector_index.SAVE_FROM", 2)
    with open_store(embedder=Remote()) as mc:
        add(mc, "a red kayak", "a blue kayak", embed=True)
        add(mc, "a green kayak")
        ask(mc, "kayak")
    read = embeddings.of_kind
    monkeypatch.setattr(
        embeddings, "of_kind", lambda tx, *args: read(tx, *args) if args[3] else check(False)
    )
    found = ask(open_store(embedder=Remote()), "kayak")
    assert found.degraded == ONE_COMING, "without reading all rows"
