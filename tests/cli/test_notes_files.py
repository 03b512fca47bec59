"""``memchat notes add FILE…`` and ``watch``: what fails is named."""

from __future__ import annotations

import io
import json
import signal
import sys
from pathlib import Path

import pytest

from memchat.cli import output
from tests.support.cli import Run
from tests.support.slow import slow_but

WILD = "\x1b[31mred\u202e"
"""What would drive a terminal."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files that can be read, and two that cannot."""
    made = tmp_path / "papers"
    (made / "more").mkdir(parents=True)
    (made / "trip.md").write_text("# Trip to Porto\n\nThe train leaves at nine.\n")
    (made / "more" / f"{WILD}.txt").write_text("The boiler is old.\n")
    (made / "empty.txt").write_text("")
    (made / "picture.txt").write_bytes(b"\x89PNG\0\0\x01")
    return made


def test_files_are_kept_and_those_that_fail_are_named_with_the_reason(
    run: Run, folder: Path
) -> None:
    done = run("notes", "add", str(folder), "nowhere.txt")
    assert done.code == 1
    assert sorted(line.partition("  ")[2] for line in done.out.splitlines()) == [
        "Trip to Porto",
        "\ufffd[31mred\ufffd",
    ]
    told = done.err.splitlines()
    for name in ("empty.txt", "picture.txt", "nowhere.txt"):
        (line,) = [line for line in told if f"{name}: " in line]
        assert line.startswith("memchat: /") and line.partition(f"{name}: ")[2]
    assert told[-1] == "2 notes added, 3 failed"
    assert "\x1b" not in done.err + run("notes", "list").out
    assert len(run("notes", "list", "--json").json) == 2


def test_the_same_files_again_are_unchanged_and_a_changed_one_replaces_its_note(
    run: Run, folder: Path
) -> None:
    run("notes", "add", str(folder))
    trip = folder / "trip.md"
    assert run("notes", "add", str(trip)).err.splitlines()[-1] == "0 notes added, 1 unchanged"
    trip.write_text("# Trip to Faro\n\nThe train leaves at ten, from the other station.\n")
    done = run("notes", "add", str(trip))
    assert done.code == 0 and done.out.endswith("  Trip to Faro\n")
    assert len(run("notes", "list", "--json").json) == 2
    shown = run("notes", "show", done.out.split()[0]).out
    assert "at ten" in shown and f"source    {trip}" in shown


def test_adding_files_makes_the_vectors_that_an_earlier_addition_left_out(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("notes", "add", "--text", "Written where there was no embedding model.")
    assert "words only so far" in run("notes", "list").out
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "hash/words")
    run("notes", "add", str(folder / "trip.md"))
    assert "words only so far" not in run("notes", "list").out


def test_what_became_of_files_is_told_as_json(run: Run, folder: Path) -> None:
    done = run("notes", "add", str(folder), "--json")
    assert done.code == 1
    told = json.loads(done.out)
    assert {note["title"] for note in told["added"]} == {"Trip to Porto", WILD}
    assert {Path(one["path"]).name for one in told["failed"]} == {"empty.txt", "picture.txt"}
    assert all(one["reason"] for one in told["failed"]) and told["unchanged"] == 0


class Interrupted(io.StringIO):
    """A terminal whose person presses Ctrl-C when the progress shows up for the 20th time."""

    shown = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.shown += " of 60 files" in text
        if self.shown == 20:
            self.shown += 1
            raise KeyboardInterrupt
        return super().write(text)


def test_ctrl_c_keeps_what_was_added_and_the_rest_is_added_the_next_time(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "memos"
    made.mkdir()
    for number in range(60):
        (made / f"memo {number}.txt").write_text(f"Memo {number} speaks of the boiler.")
    terminal = Interrupted()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        patch.setattr(output, "EVERY_SECONDS", 0.0)
        done = run("notes", "add", str(made))
    assert (done.code, done.out) == (130, "")
    assert "stopped; what was added is kept" in terminal.getvalue()
    kept = len(run("notes", "list", "--limit", "100", "--json").json)
    assert kept == 19
    again = run("notes", "add", str(made))
    assert again.err.splitlines()[-1] == "41 notes added, 19 unchanged"


class Watcher(io.StringIO):
    """Standard output of a watch: files change when it tells of others, then Ctrl-C is pressed."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def write(self, text: str) -> int:
        if "added" in text and "Trip to Porto" in text:
            (self.folder / "late.md").write_text("# Late\n\nThis came later.\n")
        if "Late" in text:
            (self.folder / "trip.md").unlink()
        if text.startswith("missing") or '"what": "missing"' in text:
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


@pytest.mark.parametrize("options", slow_but([()], [(), ("--json",)]))
def test_a_watched_folder_s_files_are_notes_until_ctrl_c(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    pytest.importorskip("watchfiles", reason="needs the extra files")
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "trip.md").write_text("# Trip to Porto\n\nThe train leaves at nine.\n")
    (folder / "empty.txt").write_text("")
    told = Watcher(folder)
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", told)
        done = run("notes", "watch", str(folder), *options)
    assert done.code == 0 and signal.getsignal(signal.SIGINT) is before
    lines = told.getvalue().splitlines()
    if options:
        changes = [json.loads(line) for line in lines]
        assert [c["what"] for c in changes if c["note"]] == ["added", "added", "missing"]
        assert [Path(c["path"]).name for c in changes if not c["note"]] == ["empty.txt"]
    else:
        assert lines == [
            "added    1  Trip to Porto",
            "added    2  Late",
            "missing  1  Trip to Porto",
        ]
        assert done.err.startswith(f"watching {folder}; Ctrl-C ends it\n")
        assert f"memchat: {folder / 'empty.txt'}: " in done.err
    assert "its file is gone" in run("notes", "list").out


def test_a_folder_that_is_not_there_is_one_line(run: Run) -> None:
    done = run("notes", "watch", "nowhere")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("memchat: ") and "nowhere" in done.err
