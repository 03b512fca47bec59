"""``memchat backup``, ``restore`` and ``wipe``, and what commands that forget say of backups."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.db import schema
from memchat.db.database import FILE
from memchat.testing import ScriptedModel
from tests.support.cli import Run, add
from tests.support.terminal import Env, Terminal


@pytest.fixture
def backup(run: Run) -> Path:
    """A backup of a store that holds Lisbon."""
    add(run, "profile", "city", "Lisbon")
    done = run("backup", "create")
    assert (done.code, done.err) == (0, "")
    return Path(done.out.strip())


def values(run: Run) -> set[object]:
    return {row["value"] for row in run("memories", "list", "--json").json}


def test_backups_are_made_listed_and_deleted(run: Run, backup: Path, home: Path, typed) -> None:
    (row,) = run("backup", "list", "--json").json
    assert (row["file"], row["schema"], row["problem"]) == (str(backup), schema.HEAD, None)
    assert row["holds_forgotten"] is False and row["size"] == backup.stat().st_size
    assert backup.name in run("backup", "list").out
    asked = run("backup", "prune", backup.name)
    assert asked.code == 2 and backup.name in asked.err and "--yes" in asked.err
    typed("n\n")
    assert run("backup", "prune", backup.name).code == 2 and backup.exists()
    assert "no backups to delete" in run("backup", "prune", "--keep", "1").err
    typed("y\n")
    assert "deleted 1 backup" in run("backup", "prune", "--keep", "0").err
    assert {path.name for path in home.iterdir()} == {FILE, "memchat.log"}
    assert "memchat backup create" in run("backup", "list").err


def test_prune_needs_names_or_a_number_and_keeps_the_newest(run: Run, backup: Path) -> None:
    for both_or_none in ([], [backup.name, "--keep", "1"]):
        refused = run("backup", "prune", *both_or_none, "--yes")
        assert refused.code == 2 and "--keep 1" in refused.err and backup.exists()
    unknown = run("backup", "prune", backup.name, "memchat.db.other.bak", "--yes")
    assert unknown.code == 1 and "is no backup in" in unknown.err and backup.exists()
    newer = Path(run("backup", "create").out.strip())
    assert "deleted 1 backup" in run("backup", "prune", "--keep", "1", "--yes").err
    assert newer.exists() and not backup.exists()
    assert "deleted 1 backup" in run("backup", "prune", newer.name, "--yes").err
    assert not newer.exists()


def test_a_backup_under_a_name_of_one_s_own_is_said_to_be_one_s_own_to_delete(
    run: Run, backup: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.db"
    done = run("backup", "create", str(mine))
    assert done.out.strip() == str(mine) and "delete them yourself" in done.err
    again = run("backup", "create", str(mine))
    assert again.code == 1 and "exists and was not changed" in again.err


def test_restoring_shows_what_is_lost_and_asks(run: Run, backup: Path, typed) -> None:
    run("memories", "delete", "1", "--yes")
    add(run, "profile", "city", "Porto")
    add(run, "profile", "hobby", "bees")
    asked = run("restore", backup.name)
    assert (asked.code, asked.out) == (2, "") and "--yes" in asked.err
    typed("no\n")
    refused = run("restore", str(backup))
    assert refused.code == 2 and values(run) == {"Porto", "bees"}
    assert "2 memories, 0 sessions, 0 messages, 0 open inbox items, 0 notes" in refused.err
    assert "forgotten or deleted since the backup was made comes back" in refused.err
    typed("y\n")
    done = run("restore", str(backup))
    assert done.code == 0 and f"restored {backup}" in done.err
    assert values(run) == {"Lisbon"}
    (kept,) = (Path(str(row["file"])) for row in run("backup", "list", "--json").json[:1])
    assert str(kept) in done.err and kept != backup
    assert run("restore", kept.name, "--yes", "--no-backup").code == 0
    assert values(run) == {"Porto", "bees"}
    assert len(run("backup", "list", "--json").json) == 2


def test_an_encrypted_backup_takes_its_passphrase_from_standard_input(
    run: Run, backup: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_passphrase(words: str, *args: str):
        monkeypatch.setattr(sys, "stdin", io.StringIO(words + "\nmore"))
        return run(*args)

    assert run("backup", "prune", backup.name, "--yes").code == 0
    made = with_passphrase("open sesame", "backup", "create", "--encrypt")
    assert made.code == 0 and "without the passphrase" in made.err
    sealed = Path(made.out.strip())
    assert b"Lisbon" not in sealed.read_bytes()
    listed = run("backup", "list")
    assert "encrypted" in listed.out and run("backup", "list", "--json").json[0]["encrypted"]
    assert with_passphrase("", "backup", "create", "--encrypt").code == 1
    gone = run("memories", "delete", "1", "--yes")
    assert sealed.name in gone.err and "still in 1 backup" in gone.err
    for wrong in ("open barley", "open sesame "):
        refused = with_passphrase(wrong, "restore", sealed.name, "--yes")
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
        assert "passphrase is another one" in refused.err and values(run) == set()
    unsure = with_passphrase("open sesame", "restore", sealed.name)
    assert unsure.code == 2 and "comes back" in unsure.err and values(run) == set()
    done = with_passphrase("open sesame", "restore", sealed.name, "--yes")
    assert done.code == 0 and values(run) == {"Lisbon"}
    assert not [*home.glob("*.tmp")]


def test_a_passphrase_is_typed_twice_and_not_shown(env: Env) -> None:
    pytest.importorskip("termios")
    add(env.memchat, "profile", "city", "Lisbon")
    for second, code in (("open barley", 1), ("open sesame", 0)):
        terminal = Terminal(env, "backup", "create", "my.bak", "--encrypt")
        terminal.until("passphrase: ")
        terminal.type("open sesame\r")
        terminal.until("passphrase again: ")
        terminal.type(f"{second}\r")
        said = terminal.leave()
        assert terminal.exit_code == code and "open" not in terminal.seen.replace("can open it", "")
        assert code == 0 or "not the same passphrase; nothing was done" in said
    assert "invalid" not in terminal.seen
    terminal = Terminal(env, "restore", "my.bak")
    terminal.until("passphrase: ")
    terminal.type("open sesame\r")
    terminal.until("[y/N]")
    terminal.type("y\r")
    assert "restored my.bak" in terminal.leave() and terminal.exit_code == 0
    named = env.memchat("restore", "my.bak", "--passphrase", "open sesame", "--yes")
    assert named.code == 2


def test_a_file_that_is_no_backup_is_one_line(run: Run, backup: Path) -> None:
    backup.write_text("no database")
    done = run("restore", str(backup), "--yes")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "damaged or no backup" in done.err
    listed = run("backup", "list")
    assert "unusable" in listed.out and "damaged or no backup" in listed.err


def test_wiping_shows_the_files_and_asks_for_the_word(
    run: Run, backup: Path, home: Path, typed
) -> None:
    (home / "notes.txt").write_text("mine")
    asked = run("wipe")
    assert asked.code == 2 and "--yes" in asked.err
    typed("yes\n")
    refused = run("wipe")
    assert refused.code == 2 and "nothing was done" in refused.err and backup.exists()
    assert str(home / FILE) in refused.err and str(backup) in refused.err
    typed("wipe\n")
    done = run("wipe")
    listed = [line for line in done.err.splitlines() if line.startswith(str(home))]
    assert done.code == 0 and f"deleted {len(listed)} items" in done.err
    assert [path.name for path in home.iterdir()] == ["notes.txt"]
    assert "nothing of memchat to delete" in run("wipe", "--yes").err


@pytest.fixture
def talk(run: Run, home: Path) -> None:
    """Memory 1 and session 1."""
    add(run, "profile", "city", "Lisbon")
    settings = Settings(home=home, embed_model="none")
    with MemChat(settings=settings, chat_model=ScriptedModel(["Fine."])) as mc:
        mc.user("ana").chat().send("I live in Lisbon")


@pytest.mark.parametrize(
    "command", ["memories delete 1", "memories clear", "sessions delete 1", "apps delete default"]
)
def test_a_command_that_forgets_names_the_backups_that_hold_the_words(
    run: Run, talk, command: str
) -> None:
    made = Path(run("backup", "create").out.strip())
    done = run(*command.split(), "--yes")
    assert done.code == 0
    assert done.err.splitlines()[-1] == (
        f"forgotten words are still in 1 backup ({made.name}); "
        "memchat backup prune NAME deletes one"
    )


def test_a_command_that_forgets_says_nothing_where_there_are_no_backups(run: Run, talk) -> None:
    done = run("memories", "delete", "1", "--yes")
    assert "forgot memory 1" in done.err and "memchat backup" not in done.err


def test_doctor_names_the_backups_that_hold_forgotten_words(run: Run, backup: Path) -> None:
    assert "backup:" not in run("doctor").out
    add(run, "profile", "hobby", "bees")
    run("memories", "delete", "2", "--yes")
    assert "backup:" not in run("doctor").out  # it was made before bees came
    run("memories", "delete", "1", "--yes")
    said = run("doctor")
    assert f"note     backup: {backup.name} still holds words that were forgotten" in said.out
    assert "memchat backup prune" in said.out and said.code == 0
    backup.write_text("no database")
    assert f"{backup.name} cannot be compared with the store" in run("doctor").out


def test_a_passphrase_in_another_encoding_is_refused_and_not_read_as_one_of_others(
    run: Run, talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    latin = io.TextIOWrapper(io.BytesIO("päss\n".encode("latin-1")), "utf-8", errors="replace")
    monkeypatch.setattr(sys, "stdin", latin)
    refused = run("backup", "create", "--encrypt")
    assert refused.code == 1 and "not in UTF-8" in refused.err and not refused.out
