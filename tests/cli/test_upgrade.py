"""A command that meets a store of an earlier version says where the copy from before is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memchat.db.database import FILE
from tests.support.cli import Run
from tests.support.later_version import Become


@pytest.fixture
def old(home: Path, run: Run, next_version: Become) -> Path:
    """The store of the commands, as the version before made it."""
    assert run("memories", "add", "profile", "city", "Lisbon").code == 0
    next_version()
    return home


def test_the_command_that_upgrades_says_where_the_copy_is_and_the_next_does_not(
    old: Path, run: Run
) -> None:
    first = run("memories", "list", "--json")
    (copy,) = old.glob("*.bak")
    assert first.err.count("\n") == 1 and str(copy) in first.err
    assert [memory["value"] for memory in first.json] == ["Lisbon"]
    assert run("memories", "list", "--json").err == ""


def test_an_upgrade_that_fails_says_in_one_line_what_to_do(old: Path, run: Run) -> None:
    with closing(sqlite3.connect(old / FILE)) as db:
        db.execute("DROP TABLE memories")
        db.commit()
    done = run("memories", "list")
    (copy,) = old.glob("*.bak")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("memchat: ") and done.err.count("\n") == 1
    assert f"with the version of memchat that you had; {copy} is a copy of the store" in done.err
    assert f"memchat restore {copy.name}" in done.err


def test_a_store_that_cannot_be_upgraded_can_be_replaced_by_a_backup(
    old: Path, run: Run, tmp_path: Path
) -> None:
    good = tmp_path / "good.bak"
    assert run("backup", "create", str(good)).code == 0
    with closing(sqlite3.connect(old / FILE)) as db:
        db.execute("DROP TABLE memories")
        db.commit()
    assert run("memories", "list").code == 1
    restored = run("restore", str(good), "--yes")
    assert restored.code == 0 and "the present store cannot be read" in restored.err
    assert [memory["value"] for memory in run("memories", "list", "--json").json] == ["Lisbon"]
