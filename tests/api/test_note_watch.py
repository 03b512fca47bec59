"""A folder that is watched: its files are notes, and stay in step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Event, Thread

import pytest

from memchat import FileChange, InputError, MemChat, User
from memchat.notes import files
from tests.support.store import WAIT

pytest.importorskip("watchfiles", reason="the extra memchat[files] is not installed")


class Watching:
    """A watch in a thread of its own; ``next`` waits for what it tells."""

    def __init__(self, ana: User, place: Path) -> None:
        self._told: Queue[FileChange] = Queue()
        self._stop = Event()
        self._thread = Thread(target=self._run, args=(ana, place), daemon=True)
        self._thread.start()

    def _run(self, ana: User, place: Path) -> None:
        ana.notes.watch(place, on_change=self._told.put, stop=self._stop)

    def next(self) -> tuple[str, str]:
        found = self._told.get(timeout=WAIT)
        self.last = found
        return found.what, found.path.name

    def end(self) -> int:
        """How much it told that was not asked for."""
        self._stop.set()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()
        return self._told.qsize()


@pytest.fixture
def ana(mc: MemChat, monkeypatch: pytest.MonkeyPatch) -> User:
    monkeypatch.setattr(files, "REST", 0.1)
    return mc.user("ana")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "notes"
    place.mkdir()
    return place


@pytest.fixture
def watching(ana: User, place: Path) -> Iterator[Watching]:
    (place / "a.md").write_text("# Apollo\n\nThe budget is 5,000 euros.")
    watching = Watching(ana, place)
    yield watching
    watching.end()


def test_the_notes_follow_their_files(ana: User, place: Path, watching: Watching) -> None:
    assert watching.next() == ("added", "a.md")
    apollo = watching.last.note
    assert apollo is not None

    (place / "a.md").write_text("# Apollo\n\nThe budget is 6,000 euros.")
    assert watching.next() == ("changed", "a.md")
    (place / "deep").mkdir()
    (place / "a.md").rename(place / "deep" / "b.md")
    assert watching.next() == ("moved", "b.md")
    (place / "deep" / "b.md").unlink()
    assert watching.next() == ("missing", "b.md")

    (note,) = ana.notes.list()
    assert (note.id, note.external_id) == (apollo.id, str(place / "deep" / "b.md"))
    assert note.missing
    assert ana.notes.update(note.id, title="Apollo 11").missing  # an edit brings no file back
    assert ana.notes.search("6,000 euros").hits[0].note_id == note.id
    (place / "deep" / "b.md").write_text("# Apollo\n\nIt is back.")
    assert watching.next() == ("changed", "b.md")
    assert not ana.notes.get(note.id).missing
    assert watching.end() == 0


def test_a_bad_file_is_told_and_tried_again_when_it_changes(
    place: Path, watching: Watching
) -> None:
    watching.next()
    (place / "bad.txt").write_bytes(bytes(100))
    assert watching.next() == ("failed", "bad.txt")
    assert watching.last.reason == "it holds no text that can be read"

    (place / "bad.txt").write_text("Now it is text.")
    assert watching.next() == ("added", "bad.txt")
    assert watching.end() == 0


def test_hidden_files_and_links_that_come_later_are_left_out(
    place: Path, tmp_path: Path, watching: Watching
) -> None:
    watching.next()
    secret = tmp_path / "secret.txt"
    secret.write_text("Nobody reads this.")
    (place / "link.txt").symlink_to(secret)
    (place / "linked").symlink_to(tmp_path, target_is_directory=True)
    (place / ".hidden.txt").write_text("Nor this.")
    (place / "last.txt").write_text("This one is read.")

    assert watching.next() == ("added", "last.txt")
    assert watching.end() == 0


def test_what_happened_while_nobody_watched_is_caught_up(ana: User, place: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (place / name).write_text(f"The words of {name}.")
    ana.notes.add_files([place])
    (place / "a.txt").unlink()
    (place / "b.txt").write_text("Other words.")
    os.utime(place / "b.txt", (1, 1))

    watching = Watching(ana, place)

    assert [watching.next(), watching.next()] == [("missing", "a.txt"), ("changed", "b.txt")]
    assert watching.last.note is not None and watching.end() == 0

    (place / "d.txt").write_text("Not what is known to be missing, but this is news.")
    again = Watching(ana, place)
    assert again.next() == ("added", "d.txt")
    assert again.end() == 0


def test_a_file_that_is_renamed_gives_its_note_its_name(
    ana: User, place: Path, watching: Watching
) -> None:
    watching.next()
    (place / "call.txt").write_text("John wants the invoice.")
    watching.next()

    (place / "call.txt").rename(place / "call with John.txt")
    assert watching.next() == ("moved", "call with John.txt")
    (place / "a.md").rename(place / "call with John.txt")
    told = sorted([watching.next(), watching.next()])

    assert told == [("changed", "call with John.txt"), ("missing", "a.md")]
    assert {(note.title, note.missing) for note in ana.notes.list()} == {
        ("Apollo", True),
        ("call with John", False),
    }


def test_what_is_no_folder_cannot_be_watched(ana: User, place: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        ana.notes.watch(place / "none", on_change=print)
