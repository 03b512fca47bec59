"""What is different in a folder that is watched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memchat.errors import InputError
from memchat.notes.files import Changes, FolderWatch


def names(changes: Changes) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    moved = [(before.name, path.name) for before, path in changes.moved]
    return [p.name for p in changes.changed], [p.name for p in changes.gone], moved


NOTHING: tuple[list[str], list[str], list[tuple[str, str]]] = ([], [], [])


def test_a_file_is_told_once_when_it_rests(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one")
    watched = FolderWatch(tmp_path)

    looks = [names(watched.look())]
    file.write_text("one and two")  # it grows
    looks += [names(watched.look()) for _ in range(3)]

    assert looks == [NOTHING, NOTHING, (["a.txt"], [], []), NOTHING]
    assert not watched.waiting


def test_a_file_that_is_replaced_is_changed_and_not_gone(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one")
    watched = FolderWatch(tmp_path)
    watched.look(), watched.look()

    file.unlink()
    between = names(watched.look())
    (tmp_path / ".a.swp").write_text("two")
    os.replace(tmp_path / ".a.swp", file)
    after = [names(watched.look()) for _ in range(2)]

    assert (between, after) == (NOTHING, [NOTHING, (["a.txt"], [], [])])


def test_files_that_move_are_told_with_both_paths(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "old" / name).write_text(name)
    watched = FolderWatch(tmp_path)
    watched.look(), watched.look()

    (tmp_path / "old").rename(tmp_path / "new")
    (tmp_path / "new" / "b.txt").rename(tmp_path / "c.txt")
    watched.look()
    changes = watched.look()

    new = {(tmp_path / "old" / "a.txt", tmp_path / "new" / "a.txt")}
    assert {*changes.moved} == {*new, (tmp_path / "old" / "b.txt", tmp_path / "c.txt")}
    assert (changes.changed, changes.gone) == ((), ())


def test_what_is_hidden_a_link_or_leaves_is_not_in_the_folder(tmp_path: Path) -> None:
    place, outside = tmp_path / "notes", tmp_path / "outside.txt"
    place.mkdir()
    (place / "a.txt").write_text("a")
    (place / "b.txt").write_text("b")
    watched = FolderWatch(place, [place / "c.txt"])
    watched.look()
    first = names(watched.look())

    (place / "a.txt").rename(outside)
    (place / "a.txt").symlink_to(outside)
    (place / "b.txt").rename(place / ".b.txt")
    os.mkfifo(place / "pipe.txt")
    watched.look()

    assert first == (["a.txt", "b.txt"], ["c.txt"], [])
    assert names(watched.look()) == ([], ["a.txt", "b.txt"], [])


def test_a_folder_that_goes_takes_no_file_with_it(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    watched = FolderWatch(place, [place / "a.txt"])
    place.rmdir()

    with pytest.raises(InputError, match="not there any more"):
        watched.look()
