"""The contract of a store: the functions of the queue, run once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memchat.db import apps, jobs
from memchat.db.jobs import ClaimRequest
from tests.support.rows import ANA
from tests.support.store import NOON

LATER = NOON + timedelta(hours=1)


@pytest.fixture
def own(tx) -> int:
    return apps.ensure(tx, ANA).own


def test_jobs_are_claimed_renewed_and_finished(tx, own) -> None:
    for target in (1, 2, 3, 4):
        jobs.enqueue(tx, "verify", own, target, NOON, how="fast" if target == 1 else None)
    assert jobs.due_kinds(tx, "ana", NOON) == {"verify"}
    assert jobs.instructions(tx, "verify", 1) == "fast" and jobs.due_at(tx, "verify", 1)
    assert jobs.unfinished_targets(tx, "verify", own) == {1, 2, 3, 4}
    first, second, third, last = jobs.claim(tx, ClaimRequest(["verify"], "w", 60, limit=9), NOON)
    assert jobs.still_held(tx, [first]) and jobs.still_held(tx, [first, second]) == [first, second]
    assert jobs.renew(tx, [first], LATER) and jobs.renew(tx, [second], LATER) == [second]
    assert jobs.finish(tx, [first], NOON) and jobs.finish(tx, [second], NOON) == [second]
    jobs.fail(tx, third, NOON, "no answer", code=500, retry_minutes=())
    jobs.release(tx, [last])
    jobs.fail_crashing_jobs(tx, NOON)
    counts = {"pending": 1, "running": 0, "completed": 2, "failed": 1}
    assert jobs.counted(tx, user="ana", now=NOON) == counts
    listed = jobs.listed(tx, user="ana", status="failed", now=NOON, limit=9)
    assert jobs.by_claims(tx, [third], NOON) == listed
    assert jobs.retry(tx, NOON, user="ana", failed_only=True) == 1
    jobs.cancel(tx, "verify", [3])
    assert jobs.remove_completed(tx, user="ana") == 2
    assert jobs.dead_holders(tx) == []
    assert not jobs.release_dead(tx)
