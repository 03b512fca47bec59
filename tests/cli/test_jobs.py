"""The queue on the command line: how each vector stands, why, and trying again."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.errors import ProviderError
from memchat.testing import FakeClock
from tests.support.cli import Run
from tests.support.embedding_queue import Service, add


@pytest.fixture
def failed(run: Run, tmp_path: Path) -> list[int]:
    """A store with one vector made, one given up, and one that waits; their memories."""
    clock = FakeClock()
    service = Service()
    folder = Path(str(run("config", "--json").json[0]["value"]))
    with MemChat(settings=Settings(home=folder), embedder=service, clock=clock) as mc:
        ids = add(mc, "made")
        mc.jobs.run()

        def down(texts: object) -> None:
            raise ProviderError("the service is down", status=503)

        service.answer = down
        ids += add(mc, "given up")
        for _ in range(40):
            mc.jobs.run()
            clock.advance(seconds=60)
        ids += add(mc, "waits")
    return ids


def test_lists_by_status_with_model_and_reason(run: Run, failed: list[int]) -> None:
    by_status = {
        status: run("memories", "list", "--status", status, "--json").json
        for status in ("completed", "failed", "pending")
    }
    assert {k: [row["id"] for row in rows] for k, rows in by_status.items()} == {
        "completed": [failed[0]],
        "failed": [failed[1]],
        "pending": [failed[2]],
    }
    told = {
        (row["embedding_status"], row["embedding_model"], row["embedding_error"])
        for row in run("memories", "list", "--json").json
    }
    assert told == {
        ("completed", "hash/words", None),
        ("failed", None, "the service is down"),
        ("pending", None, None),
    }
    table = run("memories", "list", "--status", "failed").out
    assert "failed after 6 tries: the service is down" in table
    shown = run("memories", "show", str(failed[1])).out
    assert "vector    failed after 6 tries: the service is down" in shown
    assert run("memories", "show", str(failed[0]), "--json").out.count('"completed"') == 1


def test_one_command_does_what_waits_for_a_retry_and_what_was_given_up(
    run: Run, failed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "hash/words")
    done = run("jobs", "run")
    assert (done.code, done.out, done.err) == (0, "2 done, 0 failed\n", "2 waiting …\n")


def test_the_list_of_work_has_counts_and_reasons(run: Run, failed: list[int]) -> None:
    lines = run("jobs", "status").out.splitlines()
    assert lines[0] == "1 pending, 0 running, 1 completed, 1 failed"
    assert len(lines) == 5 and "the service is down" in lines[3]
    (job,) = run("jobs", "status", "--status", "failed", "--json").json
    assert (job["target_id"], job["attempts"]) == (failed[1], 6)
    assert "no work" in run("jobs", "status", "--status", "running").err


def test_what_failed_is_tried_again_on_demand(run: Run, failed: list[int]) -> None:
    assert run("jobs", "retry", "--failed").out == "1\n"
    assert run("jobs", "retry", "--failed").out == "0\n"
    assert run("jobs", "status", "--status", "failed", "--json").json == []
    assert run("jobs", "clear").out == "1\n"
    assert run("jobs", "status").out.startswith("2 pending, 0 running, 0 completed, 0 failed\n")
