"""``memchat worker``: it works as things become due, waits quietly, and ends when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.queue import kills, pace
from memchat import MemChat
from memchat.config import Settings
from memchat.db import jobs
from memchat.db.jobs import ClaimRequest
from memchat.errors import ProviderError
from memchat.jobs import worker
from memchat.testing import ScriptedModel
from tests.support import private
from tests.support.answers import answer
from tests.support.embedding_queue import Service, add, many, statuses
from tests.support.forks import MEMCHAT, Piped
from tests.support.store import Opener

PATIENCE = 60.0
LOOK = 0.01


def until(true: Callable[[], Any]) -> None:
    """Wait for another thread or process to get there."""
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < PATIENCE, "it never came to that"
        time.sleep(0.02)


@contextmanager
def working(mc: MemChat) -> Iterator[None]:
    thread = threading.Thread(target=mc.jobs.work, kwargs={"look": LOOK})
    thread.start()
    try:
        yield
    finally:
        mc.jobs.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_it_does_what_comes_and_what_becomes_due(open_store: Opener, clock: Any) -> None:
    service = Service()
    service.answer = lambda texts: (_ for _ in ()).throw(ProviderError("down", status=503))
    mc = open_store(embedder=service)
    with working(open_store(embedder=service)):
        (memory_id,) = add(mc, "tea")
        until(lambda: mc.user("ana").memories.embedding_states([memory_id])[0].error == "down")
        service.answer = None
        assert len(service.asked) == 1
        clock.advance(seconds=60)
        until(lambda: statuses(mc, "completed") == [memory_id])
    assert len(service.asked) == 2


def test_it_ends_sessions_that_were_left_and_reads_them(
    open_store: Opener, extract_model: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mc = open_store()
    ana = mc.user("ana")
    chat = ana.chat()
    assert chat.send("My city is Lisbon.").read()
    chat.abandon()
    extract_model.replies.append(answer())
    clock.advance(days=1)
    with working(open_store()):
        until(lambda: ana.sessions.list()[0].status == "extracted")


def test_while_there_is_nothing_to_do_it_only_looks(open_store: Opener) -> None:
    mc = open_store()
    worker = private.parts(mc).worker
    looks = []
    runs = []
    has_work, run = worker.has_work, worker.run

    def look() -> bool:
        looks.append(1)
        if len(looks) == 20:
            mc.jobs.stop()
        return has_work()

    worker.has_work = look  # type: ignore[method-assign]
    worker.run = lambda **how: runs.append(1) or run(**how)  # type: ignore[method-assign,func-returns-value]
    mc.jobs.work(look=LOOK)
    assert (len(looks), len(runs)) == (20, 1), "one round of upkeep at the start"


def test_a_job_in_the_hands_of_a_dead_process_is_work(open_store: Opener) -> None:
    mc = open_store()
    add(mc, "tea")
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    import socket

    with private.database(mc).write() as tx:
        owner = f"{socket.gethostname()}:{gone.pid}:x"
        (claim,) = jobs.claim(tx, ClaimRequest(["embed"], owner, 600), mc.now)
    worker = private.parts(mc).worker
    assert worker.has_work()
    assert worker.run().done == 1
    assert not worker.has_work() and claim.attempt == 1


def test_vectors_that_nothing_can_make_are_no_work(open_store: Opener) -> None:
    with open_store() as mc:
        mc.user("ana").memories.add("fact", "drink", "tea")
    mc = open_store(embedder=None, embed_model="none")
    assert not private.parts(mc).worker.has_work()
    mc.user("ana").memories.delete(1, hold=-1)
    assert private.parts(mc).worker.has_work()


def test_a_store_that_fails_for_a_while_does_not_end_it(
    open_store: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    from memchat.errors import StoreError

    mc = open_store()
    worker = private.parts(mc).worker
    run = worker.run
    failures = [StoreError("the disk is full")] * 2

    def failing(**how: Any) -> Any:
        if failures:
            raise failures.pop()
        return run(**how)

    worker.run = failing  # type: ignore[method-assign]
    (memory_id,) = add(mc, "tea")
    with working(mc):
        until(lambda: statuses(mc, "completed") == [memory_id])
    assert caplog.text.count("the disk is full") == 2


def test_its_log_has_numbers_and_no_words(
    open_store: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "memchat")
    mc = open_store()
    add(mc, "a red kayak", "green tea")
    worker.log_result(mc.jobs.run())
    assert "embed: jobs done 1–2 (2); failed none; texts 2" in caplog.text
    assert "2 jobs done, 0 failed" in caplog.text
    assert "kayak" not in caplog.text and "tea" not in caplog.text


def test_a_fault_of_ours_is_logged_by_its_place_and_without_the_words_it_names(
    open_store: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel([ValueError("a red kayak")])
    mc = open_store(chat_model=ScriptedModel(["Fine."]), extract_model=model)
    with mc.user("ana").chat() as chat:
        chat.send("I have a red kayak").read()
    assert chat.failure is not None
    assert "ValueError at testing.py:" in caplog.text and "model_calls.py:" in caplog.text
    assert "kayak" not in caplog.text


# As a process


def process(home: Path, *args: str) -> Piped:
    given = {
        "MEMCHAT_HOME": str(home),
        "MEMCHAT_USER": "ana",
        "MEMCHAT_EMBED_MODEL": "hash",
        "MEMCHAT_TIMEZONE": "UTC",
    }
    return Piped(MEMCHAT, args, env=os.environ | given, cwd=home.parent)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    home = tmp_path / "store"
    with MemChat(settings=Settings(home=home, embed_model="hash")) as mc:
        child = process(home, "worker")
        assert "waiting for work" in child.stderr.readline()
        (memory_id,) = add(mc, "tea")
        until(lambda: statuses(mc, "completed") == [memory_id])
        child.send_signal(number)
        out, err = child.communicate(timeout=PATIENCE)
        assert (child.returncode, out) == (0, "")
        assert "embed: jobs done 1; failed none; texts 1" in err and "tea" not in err
        assert "Traceback" not in err and err.endswith("what waits is kept in the queue\n")
        assert mc.jobs.list(status="running") == []


def test_once_does_what_is_due_and_ends(tmp_path: Path) -> None:
    home = tmp_path / "store"
    with MemChat(settings=Settings(home=home, embed_model="hash")) as mc:
        many(mc, 120)
        child = process(home, "worker", "--once")
        out, _ = child.communicate(timeout=PATIENCE)
        assert (child.returncode, out) == (0, "120 done, 0 failed\n")
        assert len(statuses(mc, "completed")) == 120


# The figures, small


def test_kills_over_a_flaky_service_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    outcome = kills.Kills(tmp_path, seed=3).run(jobs=90, kills=4)
    assert outcome.faults == []
    assert outcome.kills == 4 and outcome.calls >= 4
    assert sum(outcome.statuses.values()) == 90 and outcome.statuses["completed"] >= 60


def test_the_pace_of_a_backfill_is_measured_beside_the_service_s_own() -> None:
    found = pace.measure("a double", pace.Sleeper(), rows=150, sample=2)
    assert found.rows == 150 and 0 < found.alone <= 100 / pace.WAIT
    assert found.ratio > 0
