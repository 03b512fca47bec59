"""The jobs of a process that has ended: named as that, and taken over by whoever works next."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.db import jobs
from memchat.db.jobs import ClaimRequest
from memchat.providers.embedders import HashEmbedder
from memchat.types import Usage
from tests.support import private
from tests.support.cli import Run
from tests.support.store import Opener


class Gone:
    """A process that has ended, and what it took before."""

    def __init__(self) -> None:
        process = subprocess.Popen([sys.executable, "-c", "pass"])
        process.wait()
        self.process = process.pid
        self.owner = f"{socket.gethostname()}:{process.pid}:0a1b2c3d"

    def takes(self, mc: MemChat, count: int) -> None:
        for n in range(count):
            mc.user("ana").memories.add("fact", f"note {n}", f"thing {n}")
        with private.database(mc).write() as tx:
            assert (
                len(jobs.claim(tx, ClaimRequest(["embed"], self.owner, 600, limit=count), mc.now))
                == count
            )


@pytest.fixture
def gone() -> Gone:
    return Gone()


def checks(mc: MemChat) -> list[tuple[str, str]]:
    return [(one.detail, one.remedy) for one in mc.doctor() if one.name == "queue"]


def test_doctor_names_a_process_that_is_gone_and_still_holds_jobs(mc: MemChat, gone: Gone) -> None:
    gone.takes(mc, 3)
    told = f"process {gone.process} is gone; its 3 jobs are taken over at the next run"
    assert checks(mc) == [(told, "memchat jobs run does them now")]
    mc.jobs.run()
    assert checks(mc) == [("nothing waits", "")]


def test_the_list_of_work_names_it_too(run: Run, home: Path, gone: Gone) -> None:
    with MemChat(home, embedder=HashEmbedder()) as mc:
        mc.user("ana").memories.add("fact", "note", "a thing")
        with private.database(mc).write() as tx:
            assert jobs.claim(tx, ClaimRequest(["embed"], gone.owner, 600), mc.now)
    told = f"process {gone.process} is gone; its job is taken over at the next run"
    assert told in run("jobs", "status").out.splitlines()
    assert "is gone" not in run("jobs", "status", "--user", "bo").out


def test_a_living_holder_and_one_on_another_machine_are_not_named(mc: MemChat) -> None:
    mc.user("ana").memories.add("fact", "note", "a thing")
    with private.database(mc).write() as tx:
        assert jobs.claim(tx, ClaimRequest(["embed"], "another-machine:1:0a1b2c3d", 600), mc.now)
    assert mc.jobs.dead_holders() == [] and checks(mc) == [("nothing waits", "")]
    assert mc.jobs.run().done == 0, "its lease still holds"


def test_work_that_a_process_left_is_due(mc: MemChat, gone: Gone) -> None:
    gone.takes(mc, 2)
    assert mc.jobs.due(user="ana") and not mc.jobs.due(user="bo")


def test_what_a_process_leaves_while_a_worker_runs_is_taken_over_in_that_run(
    open_store: Opener, gone: Gone
) -> None:
    class Meanwhile(HashEmbedder):
        """Another process takes two jobs while this one embeds, and is killed."""

        def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
            if not taken:
                taken.append(1)
                gone.takes(open_store(), 2)
            return super().embed_documents(texts)

    taken: list[int] = []
    mc = open_store(embedder=Meanwhile())
    mc.user("ana").memories.add("fact", "boat", "a red kayak")
    assert mc.jobs.run().done == 3
