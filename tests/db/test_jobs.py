"""The queue: due times, leases, fences, retries and what is left when a worker dies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from memchat.db import apps, jobs
from memchat.db.database import Database
from memchat.db.jobs import Claim, ClaimRequest
from memchat.errors import ProviderError
from memchat.testing import FakeClock, HashEmbedder
from memchat.types import Job, Scope
from tests.support import private
from tests.support.slow import slow_but
from tests.support.store import NOON

LEASE = 600.0
ANA, BO = Scope("ana"), Scope("bo")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[Database]:
    opened = Database(tmp_path_factory.mktemp("queue"))
    yield opened
    opened.close()


@pytest.fixture
def tx(store: Database) -> Iterator:
    """A writer's transaction, undone at the end."""
    with store.write() as connection:
        yield connection
        connection.connection.get_transaction().rollback()


def ask(tx, clock, target: int = 1, *, scope: Scope = ANA, kind: str = "extract") -> None:
    own = apps.ensure(tx, scope).own
    jobs.enqueue(tx, kind, own, target, clock())


def take(tx, clock, owner: str = "one", **more) -> list[Claim]:
    return jobs.claim(
        tx, ClaimRequest([more.pop("kind", "extract")], owner, LEASE, **more), clock()
    )


def look(tx, clock) -> Job:
    (job,) = jobs.listed(tx, user=None, status=None, now=clock(), limit=10)
    (same,) = jobs.listed(tx, user=None, status=job.status, now=clock(), limit=10)
    assert same == job
    return job


def test_a_failing_job_is_tried_after_1_2_4_8_and_16_minutes_and_then_given_up(tx, clock) -> None:
    ask(tx, clock)
    tried_at = []
    for minute in range(60):
        clock.now = NOON + timedelta(minutes=minute)
        for claim in take(tx, clock):
            tried_at.append(minute)
            jobs.fail(tx, claim, clock(), f"failure {len(tried_at)}", code=503)
            expected = "failed" if len(tried_at) == 6 else "pending"
            assert look(tx, clock).status == expected
    assert tried_at == [0, 1, 3, 7, 15, 31]
    job = look(tx, clock)
    assert (job.status, job.attempts, job.error_message) == ("failed", 6, "failure 6")
    assert job.processed_at == NOON + timedelta(minutes=31)


def test_a_second_before_its_time_a_job_is_not_tried(tx, clock) -> None:
    ask(tx, clock)
    jobs.fail(tx, take(tx, clock)[0], clock(), "down")
    clock.advance(seconds=59)
    assert take(tx, clock) == []
    clock.advance(seconds=1)
    assert len(take(tx, clock)) == 1


def test_a_provider_that_asks_for_more_patience_gets_it_and_never_less(tx, clock) -> None:
    ask(tx, clock)
    jobs.fail(tx, take(tx, clock)[0], clock(), "busy", retry_after=300)
    assert look(tx, clock).run_at == NOON + timedelta(seconds=300)
    clock.advance(seconds=300)
    jobs.fail(tx, take(tx, clock)[0], clock(), "busy", retry_after=5)
    assert look(tx, clock).run_at == clock() + timedelta(minutes=2)


def test_a_finished_job_is_done_and_its_error_gone(tx, clock) -> None:
    ask(tx, clock)
    jobs.fail(tx, take(tx, clock)[0], clock(), "down")
    clock.advance(seconds=60)
    (claim,) = take(tx, clock)
    assert look(tx, clock).status == "running" and jobs.still_held(tx, [claim])
    assert jobs.finish(tx, [claim], clock())
    job = look(tx, clock)
    assert (job.status, job.error_message, job.processed_at) == ("completed", None, clock())
    assert not jobs.still_held(tx, [claim]) and not jobs.finish(tx, [claim], clock())
    assert take(tx, clock) == []


def test_a_job_in_hand_is_nobody_else_s_until_its_lease_is_over(tx, clock) -> None:
    ask(tx, clock)
    (first,) = take(tx, clock, "one")
    clock.advance(seconds=LEASE)
    assert take(tx, clock, "two") == []
    clock.advance(seconds=1)
    assert look(tx, clock).status == "pending"
    (second,) = take(tx, clock, "two")
    assert second.attempt == first.attempt + 1


def test_a_late_worker_neither_finishes_nor_fails_what_another_has_taken(tx, clock) -> None:
    ask(tx, clock)
    (late,) = take(tx, clock, "one")
    clock.advance(seconds=LEASE + 1)
    (current,) = take(tx, clock, "two")
    assert not jobs.still_held(tx, [late]) and not jobs.finish(tx, [late], clock())
    jobs.fail(tx, late, clock(), "too late to matter")
    assert look(tx, clock).status == "running" and look(tx, clock).error_message is None
    assert jobs.finish(tx, [current], clock())
    jobs.fail(tx, late, clock(), "much too late")
    assert look(tx, clock).status == "completed"


@pytest.mark.parametrize("owner", ["one", "two"])
def test_a_late_worker_is_late_also_when_the_work_was_asked_for_anew(tx, clock, owner: str) -> None:
    ask(tx, clock)
    (late,) = take(tx, clock, "one")
    clock.advance(seconds=LEASE + 1)
    ask(tx, clock)  # attempts begin anew: the two claims have the same number
    (current,) = take(tx, clock, owner)
    assert current.attempt == late.attempt == 1
    assert not jobs.finish(tx, [late], clock())
    jobs.fail(tx, late, clock(), "too late to matter")
    assert jobs.finish(tx, [current], clock())


def test_a_late_worker_that_nobody_replaced_may_still_finish(tx, clock) -> None:
    ask(tx, clock)
    (claim,) = take(tx, clock)
    clock.advance(seconds=LEASE * 10)
    assert jobs.finish(tx, [claim], clock())


def test_a_job_that_kills_every_worker_ends(tx, clock) -> None:
    ask(tx, clock)
    killed = 0
    for _ in range(20):
        jobs.fail_crashing_jobs(tx, clock())
        killed += len(take(tx, clock, f"worker {killed}"))
        clock.advance(seconds=LEASE + 1)
    job = look(tx, clock)
    assert killed == 6 and job.status == "failed"
    assert "every worker" in (job.error_message or "")


def test_a_job_in_its_last_try_is_not_given_up_while_its_worker_lives(tx, clock) -> None:
    ask(tx, clock)
    for _ in range(6):
        (claim,) = take(tx, clock)
        clock.advance(seconds=LEASE + 1)
    clock.advance(seconds=-2)
    jobs.fail_crashing_jobs(tx, clock())
    assert jobs.finish(tx, [claim], clock())


def test_what_a_stopping_worker_gives_back_is_not_counted_as_a_try(tx, clock) -> None:
    ask(tx, clock)
    (stopped,) = take(tx, clock, "one")
    jobs.release(tx, [stopped])
    jobs.release(tx, [stopped])
    assert (look(tx, clock).status, look(tx, clock).attempts) == ("pending", 0)
    (claim,) = take(tx, clock, "one")
    jobs.release(tx, [stopped])
    assert claim.attempt == 1 and not jobs.finish(tx, [stopped], clock())
    assert jobs.still_held(tx, [claim])


def test_a_renewed_job_is_held_longer_by_the_same_claim(tx, clock) -> None:
    ask(tx, clock)
    (claim,) = take(tx, clock, "one")
    clock.advance(seconds=LEASE - 1)
    assert jobs.renew(tx, [claim], clock() + timedelta(seconds=LEASE))
    clock.advance(seconds=LEASE)
    assert take(tx, clock, "two") == [] and jobs.still_held(tx, [claim])
    assert jobs.renew(tx, [claim], clock() + timedelta(seconds=LEASE))
    assert jobs.finish(tx, [claim], clock())
    assert not jobs.renew(tx, [claim], clock())


def test_a_late_worker_cannot_renew_what_another_has_taken(tx, clock) -> None:
    ask(tx, clock)
    (late,) = take(tx, clock, "one")
    clock.advance(seconds=LEASE + 1)
    (current,) = take(tx, clock, "one")
    assert not jobs.renew(tx, [late], clock() + timedelta(days=1))
    assert jobs.still_held(tx, [current])


def test_what_a_dead_worker_held_is_free_at_once_and_counts_as_a_try(tx, clock) -> None:
    ask(tx, clock)
    (claim,) = take(tx, clock, "host:7:x")
    (owner,) = jobs.holders(tx)
    assert owner == claim.holder and owner.startswith("host:7:x"), "so its process can be told"
    jobs.release_owner(tx, owner)
    assert not jobs.holders(tx)
    (claim,) = take(tx, clock, "living")
    assert claim.attempt == 2


def test_asking_twice_is_asking_once(tx, clock) -> None:
    ask(tx, clock)
    ask(tx, clock)
    assert len(take(tx, clock, limit=10)) == 1


def test_asking_for_what_is_under_way_lets_it_go_on(tx, clock) -> None:
    ask(tx, clock)
    (claim,) = take(tx, clock)
    clock.advance(seconds=5)
    ask(tx, clock)
    assert jobs.still_held(tx, [claim]) and take(tx, clock, "two") == []
    assert jobs.finish(tx, [claim], clock())


@pytest.mark.parametrize("end", ["completed", "failed", "waiting for its next try"])
def test_asking_again_starts_anew(tx, clock, end: str) -> None:
    ask(tx, clock)
    for _ in range(6 if end == "failed" else 1):
        (claim,) = take(tx, clock)
        if end == "completed":
            jobs.finish(tx, [claim], clock())
        else:
            jobs.fail(tx, claim, clock(), "down", code=500)
        if end == "failed":
            clock.advance(seconds=16 * 60)
    ask(tx, clock)
    job = look(tx, clock)
    assert (job.status, job.attempts, job.error_message, job.processed_at) == (
        "pending",
        0,
        None,
        None,
    )
    assert len(take(tx, clock)) == 1


def test_a_person_s_retry_puts_failed_and_waiting_jobs_of_theirs_first(tx, clock) -> None:
    for target in (1, 2, 3, 4):
        ask(tx, clock, target)
    ask(tx, clock, 5, scope=BO)
    for claim in take(tx, clock, limit=10):
        if claim.target_id != 3:
            code = 404 if claim.target_id == 1 else 500
            jobs.fail(tx, claim, clock(), "down", code=code)
        else:
            jobs.finish(tx, [claim], clock())
    assert jobs.retry(tx, clock(), user="ana") == 3
    assert sorted(c.target_id for c in take(tx, clock, limit=10)) == [1, 2, 4]
    assert jobs.retry(tx, clock(), user="ana", job_id=10**9) == 0


def test_a_retry_leaves_a_job_to_the_worker_that_is_at_it(tx, clock) -> None:
    ask(tx, clock)
    (claim,) = take(tx, clock)
    assert jobs.retry(tx, clock(), user="ana") == 0
    assert take(tx, clock, "two") == [] and jobs.finish(tx, [claim], clock())
    assert jobs.retry(tx, clock(), user="ana") == 0, "what is done is not done again"


def test_the_longest_due_come_first_and_no_more_than_asked_for(tx, clock) -> None:
    for target in (3, 1, 2):
        ask(tx, clock, target)
        clock.advance(seconds=1)
    assert [c.target_id for c in take(tx, clock, limit=2)] == [3, 1]
    assert [c.target_id for c in take(tx, clock, limit=2)] == [2]


def test_a_worker_takes_only_the_kind_the_user_and_the_target_it_asks_for(tx, clock) -> None:
    ask(tx, clock, 1)
    ask(tx, clock, 2)
    ask(tx, clock, 3, scope=BO)
    ask(tx, clock, 4, kind="verify")
    assert [c.target_id for c in take(tx, clock, user="bo", limit=9)] == [3]
    assert [c.target_id for c in take(tx, clock, target_id=2, limit=9)] == [2]
    assert [c.target_id for c in take(tx, clock, kind="verify", limit=9)] == [4]
    assert jobs.due_kinds(tx, "ana", clock()) and not jobs.due_kinds(tx, "bo", clock())
    assert [c.target_id for c in take(tx, clock, limit=9)] == [1]
    assert not jobs.due_kinds(tx, "ana", clock()), "what is in hand is not due"


def test_work_on_what_is_gone_is_dropped(tx, clock) -> None:
    ask(tx, clock, 1)
    ask(tx, clock, 2)
    (claim,) = take(tx, clock, target_id=1)
    jobs.cancel(tx, "extract", [1])
    jobs.cancel(tx, "verify", [2])
    assert not jobs.still_held(tx, [claim]) and not jobs.finish(tx, [claim], clock())
    assert [c.target_id for c in take(tx, clock, limit=9)] == [2]


class Queue(RuleBasedStateMachine):
    """Random workers, deaths and waits: each piece of work is done once per asking, or given up."""

    store: Database
    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock(NOON)
        self.context = self.store.write()
        self.tx = self.context.__enter__()
        self.done: list[int] = []
        self.asked: dict[int, int] = {}

    def teardown(self) -> None:
        self.tx.connection.get_transaction().rollback()
        self.context.__exit__(None, None, None)

    @rule(target_id=st.integers(1, 3))
    def ask(self, target_id: int) -> None:
        ask(self.tx, self.clock, target_id)
        self.asked[target_id] = self.asked.get(target_id, 0) + 1

    @rule(target=held, owner=st.sampled_from(["a", "b"]), limit=st.integers(1, 3))
    def take(self, owner: str, limit: int):
        jobs.fail_crashing_jobs(self.tx, self.clock())
        claims = take(self.tx, self.clock, owner, limit=limit)
        assert len({c.id for c in claims}) == len(claims) <= limit
        self.clock.advance(seconds=0.001)
        return multiple(*claims)

    @rule(claim=consumes(held))
    def finish(self, claim: Claim) -> None:
        stood = bool(jobs.still_held(self.tx, [claim]))
        assert bool(jobs.finish(self.tx, [claim], self.clock())) == stood
        if stood:
            self.done.append(claim.target_id)

    @rule(claim=consumes(held), code=st.sampled_from([1, 429, 500]))
    def fail(self, claim: Claim, code: int) -> None:
        jobs.fail(self.tx, claim, self.clock(), "down", code=code)

    @rule(claim=consumes(held))
    def give_back(self, claim: Claim) -> None:
        jobs.release(self.tx, [claim])
        assert not jobs.still_held(self.tx, [claim])

    @rule(owner=st.sampled_from(["a", "b"]))
    def die(self, owner: str) -> None:
        for holder in jobs.holders(self.tx):
            if holder.startswith(owner):
                jobs.release_owner(self.tx, holder)

    @rule(claim=held)
    def renew(self, claim: Claim) -> None:
        stood = bool(jobs.still_held(self.tx, [claim]))
        until = self.clock() + timedelta(seconds=LEASE)
        assert bool(jobs.renew(self.tx, [claim], until)) == stood
        assert bool(jobs.still_held(self.tx, [claim])) == stood

    @rule(seconds=st.sampled_from([1, 60, 601, 4000]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @invariant()
    def each_job_stands_in_one_place(self) -> None:
        found = jobs.listed(self.tx, user=None, status=None, now=self.clock(), limit=99)
        for status in ("pending", "running", "completed", "failed"):
            some = jobs.listed(self.tx, user=None, status=status, now=self.clock(), limit=99)
            assert some == [job for job in found if job.status == status]
        assert {job.target_id for job in found} == set(self.asked)
        assert all(0 <= job.attempts <= 6 for job in found)
        for target, times in self.asked.items():
            assert self.done.count(target) <= times


@pytest.mark.parametrize("examples", slow_but([5], [5, 25]))
def test_in_any_order_of_events_work_is_done_once_per_asking(
    store: Database, examples: int
) -> None:
    Queue.store = store
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Queue,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# The worker over it


class Moody(HashEmbedder):
    """Fails as told, else embeds."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.calls = 0

    def embed_documents(self, texts):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return super().embed_documents(texts)


def test_a_failing_service_is_asked_once_a_try_and_the_rows_wait(open_store, clock) -> None:
    service = Moody()
    service.errors = [ProviderError("the service is busy", status=429, retry_after=90)] * 2
    mc = open_store(embedder=service)
    ana = mc.user("ana")
    for value in ("tea", "jazz", "chess"):
        ana.memories.add("preference", "like", value)
    done = mc.jobs.run()
    assert service.calls == 1 and {j.status for j in done.failed} == {"pending"}
    assert done.errors == ["the service is busy"] * 3
    assert len(ana.memories.list()) == 3
    clock.advance(seconds=89)
    assert mc.jobs.run().failed == [] and service.calls == 1
    clock.advance(seconds=1)
    assert len(mc.jobs.run().failed) == 3
    clock.advance(seconds=120)
    assert mc.jobs.run().done == 3 and service.calls == 3
    assert {j.status for j in mc.jobs.list(user="ana")} == {"completed"}


def test_a_service_that_stays_down_ends_as_failed_with_its_status_and_can_be_retried(
    open_store, clock
) -> None:
    service = Moody()
    service.errors = [ProviderError("no", status=503)] * 6
    mc = open_store(embedder=service)
    mc.user("ana").memories.add("preference", "like", "tea")
    for _ in range(60):
        mc.jobs.run()
        clock.advance(seconds=60)
    (job,) = mc.jobs.list(user="ana", status="failed")
    assert service.calls == 6 and job.error_message == "no"
    assert mc.jobs.retry(user="bo").count == 0 and mc.jobs.retry(user="ana").count == 1
    assert mc.jobs.run().done == 1 and mc.jobs.list(user="ana", status="failed") == []


def test_250_memories_are_embedded_in_batches_of_100_and_no_second_time(open_store) -> None:
    service = Moody()
    mc = open_store(embedder=service)
    for i in range(250):
        mc.user("ana").memories.add("preference", "like", f"thing {i}")
    assert mc.jobs.embed().count == 250 and service.calls == 3
    assert mc.jobs.embed().count == 0 and service.calls == 3


def test_words_that_changed_while_their_vector_was_made_are_embedded_anew(open_store) -> None:
    service = Moody()
    mc = open_store(embedder=service)
    ana = mc.user("ana")
    memory = ana.memories.add("preference", "like", "green tea")
    embed = service.embed_documents

    def slowly(texts):
        service.embed_documents = embed
        ana.memories.update(memory.id, value="black coffee")
        return embed(texts)

    service.embed_documents = slowly
    mc.jobs.run()
    (hit,) = ana.search("black coffee").hits
    assert hit.cosine is not None and hit.cosine > 0.2
    assert mc.jobs.list(user="ana", status="pending") == []


def test_a_memory_deleted_while_its_vector_was_made_leaves_no_vector(open_store) -> None:
    service = Moody()
    mc = open_store(embedder=service)
    ana = mc.user("ana")
    memory = ana.memories.add("preference", "like", "green tea")
    embed = service.embed_documents

    def slowly(texts):
        service.embed_documents = embed
        ana.memories.delete(memory.id)
        return embed(texts)

    service.embed_documents = slowly
    mc.jobs.run()
    with private.database(mc).read() as tx:
        assert tx.connection.exec_driver_sql("SELECT count(*) FROM embeddings").scalar() == 0
