"""A very long message in the terminal: what of it is read is said, and all of it can be had."""

from __future__ import annotations

import io
import sys

import pytest

from tests.support.cli import Run
from tests.support.long_text import WINDOW, long_text

READ_ALL = "To have all of it read (23 calls, free): memchat sessions read-all 1\n"


@pytest.fixture
def told(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A chat in which a very long line was sent."""
    monkeypatch.setenv("MEMCHAT_CONTEXT", str(WINDOW))
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"Hello.\n{long_text()}\n"))
    return run


def test_a_chat_says_what_is_read_and_how_to_have_all_read(told: Run) -> None:
    done = told("chat")
    (line,) = [line for line in done.err.splitlines(True) if "very long" in line]
    size = f"{len(long_text()):,}"
    assert line.startswith(f"The message is very long ({size} characters): for memories only its ")
    assert line.endswith(READ_ALL.replace("read-all 1", "read-all 3"))
    assert [m["value"] for m in told("memories", "list", "--json").json] == ["Otto", "Lisbon"]


def test_a_chat_says_once_that_its_first_turns_no_longer_fit(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_CONTEXT", str(WINDOW))
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{'Some word of the day. ' * 80}\n" * 6))
    told = run("chat").err
    assert told.count("the first turns no longer fit the model's window") == 1


def test_read_all_has_all_of_it_read(told: Run) -> None:
    told("chat")
    done = told("sessions", "read-all", "3")
    assert done.out == "all of message 3 is read next (23 calls, free)\n"
    assert done.err == "`memchat jobs run` reads it now\n"
    assert "Zanzibar" in told("jobs", "run").out
    assert told("sessions", "read-all", "3").out == "all of message 3 was read already\n"
    short = told("sessions", "read-all", "1")
    assert short.out == "message 1 is not so long: it is read whole in any case\n"
    assert told("sessions", "read-all", "99").code == 1
