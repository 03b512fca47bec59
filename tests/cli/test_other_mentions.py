"""Forgetting by command tells what else speaks of it; ``delete`` blanks that where asked to."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from memchat import MemChat
from tests.support.cli import Run, add
from tests.support.terminal import Env, Terminal


def say(*lines: str) -> None:
    """Hold a conversation that teaches nothing and is not called after any of these lines."""
    with MemChat() as mc, mc.user("ana").chat() as chat:
        for line in ("Good morning.", *lines):
            chat.send(line).read()


def said(session: int = 1) -> list[str]:
    with MemChat() as mc:
        turns = [t.content for t in mc.user("ana").sessions.messages(session) if t.role == "user"]
        return turns[1:]


LINES = ("The party of Quokkaland was loud.", "Do quokkalands sleep?")


@pytest.fixture
def number(run: Run) -> str:
    say(*LINES)
    return add(run, "profile", "employer", "Quokkaland Ltd")


def test_without_a_terminal_what_stays_is_listed_and_the_way_to_blank_it_named(
    run: Run, number: str
) -> None:
    done = run("memories", "delete", number, "--yes")
    assert done.code == 0
    assert "still spoken of elsewhere: 2 messages" in done.err
    assert "message in session 1: “The party of ·········· was loud.”" in done.err
    assert "--everywhere" in done.err
    assert said() == [*LINES]


def test_everywhere_blanks_all_of_it(run: Run, number: str) -> None:
    done = run("memories", "delete", number, "--everywhere", "--yes")
    assert done.code == 0
    assert "blanked with it: 2 messages" in done.err
    assert "still spoken of" not in done.err
    assert said() == ["The party of ·········· was loud.", "Do ··········· sleep?"]


def test_what_stays_is_listed_up_to_ten_places_and_counted_beyond(run: Run) -> None:
    say(*(f"Party {n} of Quokkaland" for n in range(13)))
    number = add(run, "profile", "employer", "Quokkaland Ltd")
    told = run("memories", "delete", number, "--yes").err
    assert told.count("in session 1") == 10
    assert "and 3 more" in told


def test_nothing_is_said_where_nothing_else_speaks_of_it(run: Run) -> None:
    number = add(run, "profile", "city", "Lisbon")
    assert run("memories", "delete", number, "--yes").err == f"forgot memory {number}\n"


def test_clearing_an_app_tells_what_still_speaks_of_its_memories(run: Run, number: str) -> None:
    add(run, "fact", "old_badge", "Quokkaland badge", "--all-apps")
    done = run("memories", "clear", "--yes")
    assert (done.code, done.out) == (0, "1\n")
    assert "they are still spoken of elsewhere: 2 messages and 1 other memory" in done.err
    assert "message in session 1: “The party of ·········· was loud.”" in done.err
    assert "to forget these as well: memchat memories delete, memchat sessions delete" in done.err
    assert said() == [*LINES]


def test_deleting_an_app_tells_of_the_memories_for_every_app_alone(run: Run, number: str) -> None:
    add(run, "fact", "old_badge", "Quokkaland badge", "--all-apps")
    done = run("apps", "delete", "default", "--yes")
    assert (done.code, done.out) == (0, "1\n")
    assert "they are still spoken of elsewhere: 1 other memory" in done.err
    assert "old badge: ·········· badge" in done.err
    assert "message" not in done.err
    assert [m["key"] for m in run("memories", "list", "--json").json] == ["old_badge"]


@pytest.mark.parametrize("command", ["memories clear", "apps delete default"])
def test_where_nothing_else_speaks_of_an_apps_memories_nothing_is_said(
    run: Run, command: str
) -> None:
    add(run, "profile", "city", "Lisbon")
    assert run(*command.split(), "--yes").err == ""


def test_the_words_cannot_be_both_kept_and_blanked(run: Run, number: str) -> None:
    done = run("memories", "delete", number, "--keep-transcript", "--everywhere", "--yes")
    assert done.code == 2
    assert "either --keep-transcript or --everywhere" in done.err


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        (["y"], ["The party of ·········· was loud.", "Do ··········· sleep?"]),
        ([""], [*LINES]),
        (["show", "none"], [*LINES]),
        (["show", "2"], ["The party of ·········· was loud.", LINES[1]]),
        (["show", "2, 9"], [*LINES]),
    ],
)
def test_on_a_terminal_the_person_chooses(
    env: Env, monkeypatch: pytest.MonkeyPatch, keys: list[str], left: list[str]
) -> None:
    for name in ("MEMCHAT_HOME", "MEMCHAT_EMBED_MODEL"):
        monkeypatch.setenv(name, env[name])
    say(*LINES)
    env.memchat("memories", "add", "profile", "employer", "Quokkaland Ltd")
    terminal = Terminal(env, "memories", "delete", "1")
    for words, answer in zip(["[y/N]", "[y/N/show]", "numbers]"], ["y", *keys], strict=False):
        terminal.until(words)
        terminal.type(f"{answer}\r")
    terminal.leave()
    assert terminal.exit_code == 0
    assert said() == left


def with_note(run: Run) -> str:
    with MemChat() as mc:
        mc.user("ana").notes.add("Quokkaland wants the boxes earlier.", title="Minutes")
    return add(run, "profile", "employer", "Quokkaland Ltd")


def notes() -> list[str | None]:
    with MemChat() as mc:
        return [note.title for note in mc.user("ana").notes.list()]


def test_a_note_is_named_and_stays_even_everywhere(run: Run) -> None:
    done = run("memories", "delete", with_note(run), "--everywhere", "--yes")
    assert "still spoken of elsewhere: 1 note" in done.err and "blanked with it" not in done.err
    assert "note 1: “Minutes: ··········" in done.err and "notes delete ID" in done.err
    assert notes() == ["Minutes"]


@pytest.mark.parametrize("answer, blanked", [("y\n", False), ("show\n1\n", True)])
def test_on_a_terminal_a_note_is_blanked_only_by_its_number(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, blanked: bool
) -> None:
    (tmp_path / "minutes.md").write_text("Quokkaland wants the boxes earlier.")
    with MemChat() as mc:
        mc.user("ana").notes.add_files([tmp_path / "minutes.md"])
    number = add(run, "profile", "employer", "Quokkaland Ltd")
    typed = io.StringIO(f"y\n{answer}")
    typed.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", typed)
    done = run("memories", "delete", number)
    assert "A note stays as it is, unless you choose its number" in done.err
    with MemChat() as mc:
        assert ("Quokkaland" in mc.user("ana").notes.get(1).text) != blanked
    assert ("the file of note 1 still has the words" in done.err) == blanked
