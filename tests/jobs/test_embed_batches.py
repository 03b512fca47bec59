"""Batches of the embedding queue: bad texts, several workers, pauses and several calls at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memchat import MemChat
from memchat.db import apps, jobs
from memchat.db.jobs import ClaimRequest
from memchat.errors import ConfigError, InputError, ProviderError
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory
from memchat.jobs.embedding import BATCH
from memchat.providers.embedders import SERVICE, HashEmbedder
from memchat.providers.litellm_calls import PauseRequested
from memchat.search import embeddings
from memchat.search.embed import (
    CALLS,
    FAILURES_BEFORE_PROBE,
    BatchSplitter,
    EmbeddingAnswer,
    embed_documents,
)
from memchat.search.passages import text_hash
from memchat.types import Scope, Usage
from tests.support import private
from tests.support.embedding_queue import (
    BAD,
    SPENT,
    Service,
    add,
    many,
    refusing,
    statuses,
    vectors,
)
from tests.support.store import NOON, Opener

# One bad text


def ask(service: Service, texts: dict[str, str]) -> EmbeddingAnswer:
    return BatchSplitter(partial(embed_documents, service), BATCH).ask(texts)


@given(st.sets(st.integers(0, 99), min_size=1, max_size=3), st.sampled_from([400, 413, 422, None]))
@settings(max_examples=25, deadline=None)
def test_bad_texts_in_a_batch_of_100_fail_alone(bad: set[int], status: int | None) -> None:
    service = Service(refusing(status))
    texts = {str(i): f"{BAD} {i}" if i in bad else f"thing {i}" for i in range(100)}
    answer = ask(service, texts)
    assert answer.faults.keys() == {str(i) for i in bad}
    assert answer.vectors.keys() == texts.keys() - answer.faults.keys()
    assert answer.down is None and len(service.asked) <= 1 + 14 * len(bad)


def test_the_other_99_are_done_in_the_same_run(open_store: Opener) -> None:
    service = Service(refusing(400))
    mc = open_store(embedder=service)
    ids = many(mc, 100, bad=[42])
    done = mc.jobs.run()
    assert done.done == 99 and [job.target_id for job in done.failed] == [ids[42]]
    assert statuses(mc, "completed") == [i for i in ids if i != ids[42]]
    assert mc.user("ana").memories.embedding_states([ids[42]])[0].error == "refused"
    before = len(service.asked)
    mc.jobs.run()
    assert len(service.asked) == before, "it waits for its minute"


def test_a_service_that_refuses_everything_is_asked_only_so_often() -> None:
    service = Service(refusing(400, ""))
    texts = {str(i): f"thing {i}" for i in range(100)}
    answer = ask(service, texts)
    assert len(answer.faults) == 100
    assert len(service.asked) < 2 * FAILURES_BEFORE_PROBE


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_a_failing_service_is_not_asked_for_halves(open_store: Opener, status: int) -> None:
    service = Service(refusing(status, ""))
    mc = open_store(embedder=service)
    ana = mc.user("ana")
    many(mc, 230)
    done = mc.jobs.run()
    assert len(service.asked) == 1 and len(done.failed) == 100
    states = ana.memories.embedding_states([m.id for m in ana.memories.list(limit=500)])
    assert sum(state.attempts for state in states) == 100, "what was not tried is not counted"


def test_a_text_that_breaks_the_service_each_time_ends_alone(open_store: Opener, clock) -> None:
    """A status 500 does not say whose fault it is: what was tried often is tried in small parts."""
    service = Service(refusing(500))
    mc = open_store(embedder=service)
    ids = many(mc, 100, bad=[42])
    for _ in range(60):
        for _ in range(40):
            if not mc.jobs.run().done:
                break
        clock.advance(seconds=60)
    assert statuses(mc, "failed") == [ids[42]]
    assert len(statuses(mc, "completed")) == 99


def test_a_text_that_takes_its_worker_down_ends_alone(open_store: Opener) -> None:
    """As if each worker that embeds it were killed: nothing of its batch is written."""
    mc = open_store()
    ids = many(mc, 230)
    killer = ids[142]
    with private.database(mc).write() as tx:
        for worker in range(100):
            jobs.fail_crashing_jobs(tx, mc.now)
            claims = jobs.claim(
                tx, ClaimRequest(["embed"], f"w{worker}", 600, limit=100, batch=100), mc.now
            )
            if not claims:
                break
            if killer in [claimed.target_id for claimed in claims]:
                jobs.release_owner(tx, claims[0].holder)
            else:
                jobs.finish(tx, claims, mc.now)
    failed = mc.jobs.list(status="failed", limit=500)
    assert [job.target_id for job in failed] == [killer]
    assert "every worker" in (failed[0].error_message or "")
    assert len(mc.jobs.list(status="completed", limit=500)) == 229


def test_a_fault_of_ours_is_a_failed_job_and_no_dead_worker(open_store: Opener, caplog) -> None:
    def answer(texts: Sequence[str]) -> None:
        if any(BAD in text for text in texts):
            raise ValueError("people's words")

    mc = open_store(embedder=Service(answer))
    ids = many(mc, 10, bad=[3])
    done = mc.jobs.run()
    told = (
        "hash/words failed (ValueError); look at what makes its vectors, or name another model "
        "with MEMCHAT_EMBED_MODEL"
    )
    assert done.done == 9 and done.errors == [told]
    assert mc.user("ana").memories.embedding_states([ids[3]])[0].error == told
    assert "people's words" not in caplog.text


# Vectors that cannot be


def altered(change: Callable[[Any], Any]) -> Callable[[Sequence[str]], Any]:
    """The answer, with the vectors of bad texts changed; ``change`` gets one row."""

    def answer(texts: Sequence[str]) -> Any:
        good, _ = HashEmbedder().embed_documents(texts)
        return [change(row) if BAD in text else row for row, text in zip(good, texts, strict=True)]

    return answer


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: row * np.nan, "not finite"),
        (lambda row: row + np.inf, "not finite"),
        (lambda row: row * 0, "zero"),
        (lambda row: row[:-1], "numbers"),
    ],
    ids=["NaN", "Inf", "zero", "short"],
)
def test_whatever_an_embedder_lets_pass_no_such_vector_is_stored(
    open_store: Opener, change: Callable[[Any], Any], reason: str
) -> None:
    mc = open_store(embedder=Service(altered(change)))
    ids = many(mc, 5, bad=[2])
    mc.jobs.run()
    assert vectors(mc) == 4 and statuses(mc, "completed") == [i for i in ids if i != ids[2]]
    assert reason in (mc.user("ana").memories.embedding_states([ids[2]])[0].error or "")


def test_vectors_of_another_count_are_given_to_nobody(open_store: Opener) -> None:
    mc = open_store(
        embedder=Service(lambda texts: HashEmbedder().embed_documents([*texts, "x"])[0])
    )
    many(mc, 3)
    mc.jobs.run()
    assert vectors(mc) == 0 and statuses(mc, "completed") == []


def test_a_question_with_such_a_vector_is_searched_by_words(open_store: Opener) -> None:
    class Broken(HashEmbedder):
        def embed_query(self, text: str) -> tuple[Any, Usage]:
            return np.full(SERVICE.dimensions, np.nan, np.float32), SPENT

    mc = open_store(embedder=Broken())
    add(mc, "a red kayak")
    mc.jobs.embed()
    found = mc.user("ana").search("kayak")
    assert found.hits and "not finite" in (found.degraded or "")
    assert vectors(mc) == 1, "the fact's own"


# Round by round


def test_texts_come_to_the_service_once_in_batches_of_100(open_store: Opener) -> None:
    service = Service()
    mc = open_store(embedder=service)
    many(mc, 250)
    assert mc.jobs.run().done == 250
    assert [len(texts) for texts in service.asked] == [100, 100, 50]
    sent = [text for texts in service.asked for text in texts]
    assert len(set(sent)) == 250


def test_the_same_words_cost_one_text_wherever_they_occur(open_store: Opener) -> None:
    service = Service()
    mc = open_store(embedder=service)
    for app in ("one", "two", "three"):
        mc.user("ana", app=app).memories.add("fact", "note", "tea")
    assert mc.jobs.run().done == 3
    assert [len(texts) for texts in service.asked] == [1]


def test_two_workers_at_the_same_queue_do_nothing_twice(open_store: Opener) -> None:
    services = [Service(), Service()]
    stores = [open_store(embedder=service) for service in services]
    many(stores[0], 400)
    together = threading.Barrier(2)

    def work(mc: MemChat) -> None:
        together.wait(30)
        mc.jobs.run()

    threads = [threading.Thread(target=work, args=(mc,)) for mc in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    sent = [text for service in services for texts in service.asked for text in texts]
    assert len(sent) == len(set(sent)) == 400
    assert len(statuses(stores[0], "completed")) == 400
    with private.database(stores[0]).read() as tx:
        # One change when a fact is written, and one when it gets its vector.
        done = tx.connection.exec_driver_sql("SELECT count(*) / 2 FROM changes")
        assert done.scalar_one() == 400


def test_what_is_broken_off_is_given_back_and_not_counted(open_store: Opener) -> None:
    def answer(texts: Sequence[str]) -> None:
        if len(service.asked) == 2:
            raise KeyboardInterrupt

    service = Service(answer)
    mc = open_store(embedder=service)
    many(mc, 350)
    with pytest.raises(KeyboardInterrupt):
        mc.jobs.run()
    assert {job.attempts for job in mc.jobs.list(status="pending", limit=500)} == {0}
    assert mc.jobs.list(status="running", limit=500) == []
    service.answer = None
    mc.jobs.run()
    assert len(statuses(mc, "completed")) == 350


def test_a_machine_that_sleeps_for_an_hour_meanwhile_neither_loses_nor_repeats_anything(
    open_store: Opener, clock: Any
) -> None:
    def answer(texts: Sequence[str]) -> None:
        if len(service.asked) == 1:
            clock.advance(seconds=3600)

    service = Service(answer)
    mc = open_store(embedder=service)
    many(mc, 350)
    result = mc.jobs.backfill()
    assert (result.done, result.left, result.failed) == (350, 0, ())
    assert [len(texts) for texts in service.asked] == [100, 100, 100, 50]
    assert {job.attempts for job in mc.jobs.list(status="completed", limit=500)} == {1}


def test_a_service_removed_while_it_makes_vectors_completes_nothing(open_store: Opener) -> None:
    def answer(texts: Sequence[str]) -> None:
        if len(service.asked) == 1:
            other.services.remove("hash/words", force=True)

    service = Service(answer)
    mc, other = open_store(embedder=service), open_store(embedder=HashEmbedder())
    ids = many(mc, 5)
    mc.jobs.run()
    assert vectors(mc) == 0 and statuses(mc, "completed") == []
    assert statuses(mc, "pending") == ids, "until there is a service again"
    again = open_store(embedder=HashEmbedder())
    again.jobs.run()
    assert statuses(again, "completed") == ids


def test_an_embedding_made_by_the_worker_is_in_the_usage(open_store: Opener) -> None:
    mc = open_store()
    add(mc, "green tea", "black coffee")
    mc.user("ana", app="other").memories.add("fact", "note", "tea")
    mc.jobs.run()
    (total,) = mc.user("ana").usage()
    assert (total.purpose, total.model) == ("embed", SERVICE.name) and total.prompt_tokens > 0


def test_a_pause_that_is_not_over_costs_no_try(open_store: Opener) -> None:
    def answer(texts: Sequence[str]) -> None:
        raise PauseRequested("left alone", status=429, retryable=True, retry_after=30)

    service = Service(answer)
    mc = open_store(embedder=service)
    add(mc, "tea")
    mc.jobs.run()
    (job,) = mc.jobs.list(status="pending")
    assert job.attempts == 0 and job.error_message is None
    service.answer = None
    assert mc.jobs.run().done == 1


def test_completed_work_can_be_taken_off_the_list(open_store: Opener) -> None:
    mc = open_store(embedder=Service(refusing(400)))
    many(mc, 3, bad=[1])
    mc.jobs.run()
    assert mc.jobs.count(user="ana") == {"pending": 1, "running": 0, "completed": 2, "failed": 0}
    assert mc.jobs.clear(user="bo").count == 0 and mc.jobs.clear(user="ana").count == 2
    assert mc.jobs.count(user="ana")["completed"] == 0
    assert len(statuses(mc, "completed")) == 2, "what it did stays"


def test_a_backfill_of_nothing_to_embed_with_says_what_to_do(open_store: Opener) -> None:
    mc = open_store(embedder=None, embed_model="none")
    with pytest.raises(ConfigError, match="MEMCHAT_EMBED_MODEL"):
        mc.jobs.backfill()
    with pytest.raises(InputError, match="batch"):
        mc.jobs.backfill(batch=0)


# A service on the network


class Remote(Service):
    """Answers when it is told to, and is asked from several threads."""

    service = replace(SERVICE, local=False)  # type: ignore[assignment]

    def __init__(self, answer: Callable[[Sequence[str]], Any] | None = None) -> None:
        super().__init__(answer)
        self.together = threading.Condition()
        self.under_way = self.most = 0

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        with self.together:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.together.notify_all()
            first = len(self.asked) == 0
            self.asked.append(list(texts))
            if not first:  # the others wait for company, where there is some
                self.together.wait_for(lambda: self.under_way > 1, timeout=0.2)
        try:
            found = self.answer(texts) if self.answer is not None else None
            vectors, _ = HashEmbedder().embed_documents(texts)
            return (vectors if found is None else found), SPENT
        finally:
            with self.together:
                self.under_way -= 1


def test_a_service_on_the_network_is_asked_for_several_batches_at_once(open_store: Opener) -> None:
    service = Remote()
    mc = open_store(embedder=service)
    many(mc, 1000)
    assert mc.jobs.run().done == 1000
    assert 2 <= service.most <= CALLS
    assert sorted(map(len, service.asked)) == [100] * 10
    right, _ = HashEmbedder().embed_documents(["note: thing 7"])
    with private.database(mc).read() as tx:
        held = embeddings.get(tx, 1, [text_hash("note: thing 7")])
    assert (held[text_hash("note: thing 7")] == right[0]).all()


def test_until_it_has_answered_it_is_asked_once(open_store: Opener) -> None:
    service = Remote(refusing(401, ""))
    mc = open_store(embedder=service)
    many(mc, 1000)
    assert len(mc.jobs.run().failed) == 100 and len(service.asked) == 1
    assert sum(job.attempts for job in mc.jobs.list(limit=2000)) == 100


def test_calls_that_fall_into_one_pause_wait_once_and_lose_nothing(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def answer(texts: Sequence[str]) -> None:
        if len(service.asked) > 1 and not waited:
            refused.extend(texts)
            raise ProviderError("busy", status=429, retryable=True, retry_after=30)

    service, waited = Remote(answer), []
    mc = open_store(embedder=service)
    many(mc, 1000)
    stopping = private.parts(mc).worker.stopping
    monkeypatch.setattr(stopping, "wait", lambda seconds: bool(waited.append(seconds)))
    result = mc.jobs.backfill()
    assert (result.done, result.left, result.failed, result.stopped) == (1000, 0, (), None)
    assert waited == [30] and refused


def test_the_same_words_far_apart_in_the_queue_are_sent_once(open_store: Opener) -> None:
    service = Remote()
    mc = open_store(embedder=service)
    for app in range(6):
        with private.database(mc).write() as tx:
            own = apps.ensure(tx, Scope("ana", f"app{app}")).own
            for i in range(100):
                new = NewMemory("fact", "note", f"v{i}", True, f"note: v{i}", NOON, "manual")
                changes.add(tx, own, new, Cause("user"))
    assert mc.jobs.run().done == 600
    sent = [text for texts in service.asked for text in texts]
    assert len(sent) == len(set(sent)) == 100
    assert mc.jobs.count()["completed"] == 600 and vectors(mc) == 100


def test_what_may_take_its_worker_down_is_asked_with_nothing_beside_it(open_store: Opener) -> None:
    service = Remote()
    mc = open_store(embedder=service)
    many(mc, 60)
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE passages SET attempts = 3")
    assert mc.jobs.run().done == 60
    assert service.most == 1 and max(map(len, service.asked)) == 6


def test_a_text_that_fails_in_one_batch_is_done_in_none(open_store: Opener) -> None:
    service = Remote(refusing(400))
    mc = open_store(embedder=service)
    for app in range(4):
        for i in range(60):
            words = f"{BAD} {i}" if i == 7 else f"v{i}"
            mc.user("ana", app=f"app{app}").memories.add("fact", "note", words)
    assert mc.jobs.run().done == 4 * 59
    with private.database(mc).read() as tx:
        done = "SELECT count(*) FROM passages p WHERE status = 0 AND hash NOT IN"
        assert tx.driver.execute(f"{done} (SELECT hash FROM embeddings)").fetchall() == [(0,)]
    assert mc.jobs.count() == {"pending": 4, "running": 0, "completed": 4 * 59, "failed": 0}
