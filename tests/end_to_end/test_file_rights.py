"""Nobody else on the machine may look into the data folder, whatever the umask says."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memchat import disk
from memchat.db import migrate
from memchat.db.database import Database
from memchat.db.schema import HEAD
from memchat.providers import local
from memchat.search import vector_index
from tests.support.store import Opener

ANA = {"user": "ana", "app": "default"}


@pytest.fixture
def umask() -> Iterator[None]:
    """Everybody may do everything with new files, as far as the umask goes."""
    before = os.umask(0)
    yield
    os.umask(before)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o100])
def test_a_new_data_folder_is_its_owner_s_alone_whatever_the_umask(
    tmp_path: Path, umask: None, mask: int
) -> None:
    os.umask(mask)
    Database(tmp_path / "store").close()
    assert rights(tmp_path / "store") == 0o700


def test_every_file_that_memchat_makes_is_its_owner_s_alone(
    open_store: Opener, umask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)
    mc = open_store()
    ana = mc.user(**ANA)
    home = mc.settings.home
    with ana.chat() as chat:
        chat.send("I live in Lisbon.").read()
    ana.memories.add("profile", "job", "nurse")
    mc.jobs.embed()
    ana.search("nurse")
    migrate.back_up(home / "memchat.db", HEAD)
    disk.write_text(home / local.MEMO, "{}")  # as the check of the weights does
    during = {path: rights(path) for path in home.rglob("*")}
    mc.close()
    found = during | {path: rights(path) for path in home.rglob("*")}
    names = {path.name for path in found}
    assert {"memchat.db", "memchat.db-wal", f"memchat.db.{HEAD}.bak", local.MEMO} <= names
    assert any(path.suffix == ".faiss" for path in found)
    wide = {path.name: oct(mode) for path, mode in found.items() if mode & 0o077}
    assert wide == {}


def test_an_older_folder_that_others_may_look_into_is_named_with_what_closes_it(
    open_store: Opener,
) -> None:
    home = open_store().settings.home
    assert next(c for c in open_store().doctor() if c.name == "data folder").state == "ok"
    home.chmod(0o755)
    (home / "memchat.db").chmod(0o644)
    check = next(c for c in open_store().doctor() if c.name == "data folder")
    assert check.state == "note" and "other accounts" in check.detail
    subprocess.run(check.remedy.removeprefix("run "), shell=True, check=True)
    assert rights(home) == 0o700 and rights(home / "memchat.db") == 0o600
    assert next(c for c in open_store().doctor() if c.name == "data folder").state == "ok"


def test_a_folder_that_is_there_keeps_its_rights(tmp_path: Path, umask: None) -> None:
    home = tmp_path / "shared"
    home.mkdir(mode=0o750)
    Database(home).close()
    assert rights(home) == 0o750


@pytest.mark.parametrize("what", ["link", "file"])
def test_a_temporary_file_never_writes_through_what_lies_in_its_place(
    tmp_path: Path, what: str
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours.tmp"
    theirs.write_text("theirs")
    if what == "link":
        ours.symlink_to(theirs)
    else:
        shutil.copy(theirs, ours)
        ours.chmod(0o666)
    with open(disk.new_file(ours), "w") as file:
        file.write("ours")
    assert (theirs.read_text(), ours.read_text()) == ("theirs", "ours")
    assert not ours.is_symlink() and rights(ours) == 0o600


def test_a_backup_never_writes_through_a_link_in_its_place(tmp_path: Path) -> None:
    home = tmp_path / "store"
    Database(home).close()
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (home / f"memchat.db.{HEAD}.bak.{os.getpid()}.tmp").symlink_to(theirs)
    migrate.back_up(home / "memchat.db", HEAD)
    assert theirs.read_text() == "theirs"
