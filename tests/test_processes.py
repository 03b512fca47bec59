"""Whether the process that holds a lease is gone, as far as that can be told."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from memchat.processes import has_ended, new_owner

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of processes in files")


def owner_of(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}:0a1b2c3d"


def test_each_worker_has_a_name_of_its_own_that_tells_its_process() -> None:
    names = {new_owner() for _ in range(100)}
    assert len(names) == 100
    assert {name.rsplit(":", 1)[0] for name in names} == {f"{socket.gethostname()}:{os.getpid()}"}


def test_this_process_is_here() -> None:
    assert not has_ended(new_owner())


def test_an_earlier_process_that_had_the_number_of_this_one_is_gone() -> None:
    assert has_ended(owner_of(os.getpid()))


def test_another_living_process_is_here_and_gone_once_it_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not has_ended(owner_of(child.pid))
    child.communicate(b"\n")
    assert has_ended(owner_of(child.pid))


def test_a_killed_process_is_gone_as_soon_as_its_parent_knows() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    child.kill()
    child.communicate()
    assert has_ended(owner_of(child.pid))


@LINUX
def test_a_killed_process_is_gone_although_its_parent_never_asks() -> None:
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert child.stdout is not None and child.stdout.readline()
    assert not has_ended(owner_of(child.pid))
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # looks, and leaves it unasked about
    try:
        assert has_ended(owner_of(child.pid))
    finally:
        child.communicate()


@LINUX
def test_a_process_that_was_given_the_number_of_an_earlier_one_is_not_that_one() -> None:
    name = "from memchat.processes import new_owner; print(new_owner(), flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", name],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert child.stdout is not None
    owner = child.stdout.readline().strip()
    host, pid, token = owner.split(":")
    started, random = token.split(".")
    assert not has_ended(owner)
    assert has_ended(f"{host}:{pid}:{int(started) - 1}.{random}")
    child.communicate("\n")
    assert has_ended(owner)


def test_the_process_of_another_machine_is_never_called_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    assert has_ended(owner_of(child.pid))
    assert not has_ended(f"not-{owner_of(child.pid)}")


@LINUX
def test_a_process_from_before_this_machine_was_restarted_is_gone_whoever_has_its_number_now() -> (
    None
):
    living = new_owner()
    boot = living.split("-")[-2]
    before = living.replace(f"-{boot}-", "-0123456789ab-")
    assert not has_ended(living) and has_ended(before)
    assert not has_ended(f"not-{before}"), "another machine, which may be running"


@LINUX
def test_a_machine_whose_name_changed_still_knows_its_processes() -> None:
    name = "from memchat.processes import new_owner; print(new_owner(), flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", name],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert child.stdout is not None
    owner = f"not-{child.stdout.readline().strip()}"
    assert not has_ended(owner)
    child.kill()
    child.communicate()
    assert has_ended(owner) and has_ended(f"{owner}:0a1b2c3d"), "and so does a claim of jobs"


@LINUX
def test_a_process_of_another_container_is_left_to_its_lease() -> None:
    boot = new_owner().split("-")[-2]
    assert not has_ended(f"container:1:17.{'0a1b2c3d' * 2}-{boot}-1")


@pytest.mark.parametrize(
    "owner", [None, "", ":", "somebody", f"{socket.gethostname()}:", f"{socket.gethostname()}:x:y"]
)
def test_what_names_no_process_is_left_to_its_lease(owner: str | None) -> None:
    assert not has_ended(owner)
