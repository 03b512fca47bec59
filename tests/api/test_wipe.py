"""Deleting a whole store with all that memchat made in its folder, and nothing else there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memchat import Backups
from memchat.api.store import wipe, wipe_files
from memchat.db.database import FILE
from memchat.errors import SchemaError, StoreError
from tests.support.store import Opener

OURS = {FILE, "mem.index", "models", "minilm-checked.json", "memchat.log", "memchat.log.1"}
PERSONAL = {"settings.toml", "keys.toml", "prompts"}
OTHERS = {"notes.txt", "memchat.db.txt", "photos"}


@pytest.fixture
def home(open_store: Opener) -> Path:
    """A closed store with a backup, an unfinished one, and all other kinds of files."""
    mc = open_store()
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    mc.close()
    folder = mc.settings.home
    for name in ("mem.index", "models", "prompts", "photos"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "file").write_text("x")
    for name in (OURS | PERSONAL | OTHERS) - {FILE}:
        if not (folder / name).exists():
            (folder / name).write_text("x")
    Backups(folder).create()
    (folder / f"{FILE}.0009.bak.17.tmp").write_text("x")
    (folder / f"{FILE}.0009.bak.17.tmp-journal").write_text("x")
    (folder / f"{FILE}-journal").write_bytes(b"")
    return folder


def names(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()}


def test_all_that_memchat_made_goes_and_the_rest_stays(home: Path) -> None:
    shown = wipe_files(home)
    assert {path.name for path in shown} >= OURS
    assert wipe(home) == shown
    assert names(home) == PERSONAL | OTHERS
    assert wipe(home) == []


def test_settings_keys_and_prompts_go_only_where_that_is_chosen(home: Path) -> None:
    wipe(home, with_settings=True)
    assert names(home) == OTHERS


def test_a_store_that_is_open_is_not_wiped(home: Path, open_store: Opener) -> None:
    before = names(home)
    mc = open_store()
    with pytest.raises(StoreError, match="is open, here or in another process"):
        wipe(home)
    assert [memory.value for memory in mc.user("ana").memories.list()] == ["Lisbon"]
    mc.close()
    assert names(home) >= before - {f"{FILE}-journal"}


def test_a_store_that_cannot_be_read_is_wiped_too(home: Path) -> None:
    (home / FILE).write_bytes(b"not a database any more" * 1000)
    wipe(home)
    assert names(home) == PERSONAL | OTHERS


def test_a_database_of_something_else_is_not_wiped(home: Path) -> None:
    (home / FILE).unlink()
    with closing(sqlite3.connect(home / FILE)) as db, db:
        db.execute("CREATE TABLE songs (name)")
    before = names(home)
    with pytest.raises(SchemaError, match="songs"):
        wipe(home)
    assert names(home) == before


def test_a_link_is_deleted_and_what_it_leads_to_stays(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "weights").write_text("x")
    (home / "models" / "file").unlink()
    (home / "models").rmdir()
    (home / "models").symlink_to(target)
    wipe(home)
    assert names(home) == PERSONAL | OTHERS and (target / "weights").exists()
