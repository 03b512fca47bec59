"""Backups of a whole store: made while it is used, listed, deleted, and restored."""

from __future__ import annotations

import re
import sqlite3
import stat
import tracemalloc
import unicodedata
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from memchat import Backups, MemChat
from memchat.db import encryption, schema
from memchat.db.database import FILE
from memchat.errors import InputError, MemChatError, NotFound, SchemaError, StoreError
from memchat.search.embeddings import FOLDER
from memchat.testing import ScriptedModel
from tests.support.answers import answer
from tests.support.kills import Victim, child_store, wait_for_the_kill
from tests.support.later_version import HEAD, Become
from tests.support.store import Opener

PADDING = 8_000_000
"""Bytes: more than SQLite keeps in memory before it writes to the file."""


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def pad(path: Path) -> None:
    """Make a closed store larger than one step of a copy."""
    change(path, f"INSERT INTO meta VALUES ('padding', hex(zeroblob({PADDING // 2})))")


def names(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()}


def held(mc: MemChat) -> set[str]:
    return {memory.value for memory in mc.user("ana").memories.list(status="all")}


def holds(path: Path) -> set[str]:
    """The values in a file that is not opened as a store."""
    with closing(sqlite3.connect(path)) as db:
        return {value for (value,) in db.execute("SELECT value FROM memories")}


@pytest.fixture
def closed(open_store: Opener) -> Path:
    """The folder of a closed store that holds Lisbon."""
    mc = open_store()
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    mc.close()
    return mc.settings.home


@pytest.fixture
def later(closed: Path, open_store: Opener) -> Path:
    """A backup that holds Lisbon, of a store that by now holds Porto and bees instead."""
    backup = Backups(closed).create()
    mc = open_store()
    ana = mc.user("ana")
    ana.memories.delete(1)
    mc.jobs.run()
    ana.memories.add("profile", "city", "Porto")
    ana.memories.add("profile", "hobby", "bees")
    mc.close()
    return backup.file


def test_a_backup_is_whole_while_others_write(closed: Path, open_store: Opener) -> None:
    pad(closed / FILE)
    mc = open_store()
    reported = []

    def write_in_between(progress) -> None:
        reported.append((progress.done, progress.total))
        mc.user("ana").memories.add("fact", f"number {len(reported)}", f"value {len(reported)}")

    made = mc.backups.create(progress=write_in_between)
    assert len(reported) > 2 and reported[-1][0] == reported[-1][1]
    assert (made.schema, made.problem, made.holds_forgotten) == (schema.HEAD, None, False)
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    assert holds(made.file) == {"Lisbon"}
    assert len(held(mc)) == 1 + len(reported)
    assert {name for name in names(closed) if name.endswith((".tmp", "-journal"))} == set()


def test_a_backup_overwrites_nothing(closed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    for target in (other, tmp_path):
        with pytest.raises(InputError, match="exists and was not changed"):
            Backups(closed).create(target)
    with pytest.raises(StoreError, match="No such file or directory"):
        Backups(closed).create(tmp_path / "no" / "folder")
    assert other.read_text() == "mine"


def test_two_backups_that_are_made_at_once_are_both_made(closed: Path) -> None:
    pad(closed / FILE)
    inner = []

    def make_another(_progress) -> None:
        if not inner:
            inner.append(Backups(closed).create())

    outer = Backups(closed).create(progress=make_another)
    assert {one.file for one in Backups(closed).list()} == {outer.file, inner[0].file}
    assert outer.file != inner[0].file and (outer.problem, inner[0].problem) == (None, None)
    assert not list(closed.glob("*.tmp"))


def test_a_file_that_gets_the_name_meanwhile_is_not_overwritten(closed: Path, tmp_path) -> None:
    pad(closed / FILE)
    target = tmp_path / "mine.bak"
    with pytest.raises(InputError, match="exists and was not changed"):
        Backups(closed).create(target, progress=lambda _: target.write_text("mine"))
    assert target.read_text() == "mine" and not list(tmp_path.glob("*.tmp"))


def test_without_a_store_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no store in"):
        Backups(tmp_path).create()
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_store_gives_no_backup(closed: Path) -> None:
    with closing(sqlite3.connect(closed / FILE)) as db:
        (page,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'memories'"
        ).fetchone()
    with open(closed / FILE, "r+b") as file:
        file.seek((page - 1) * 8192)
        file.write(b"\xff" * 8192)
    before = names(closed)
    with pytest.raises(StoreError, match=r"damaged.*memchat restore"):
        Backups(closed).create()
    assert names(closed) == before


def test_backups_of_upgrades_and_own_ones_are_listed_the_newest_first(
    closed: Path, next_version: Become
) -> None:
    next_version()
    with MemChat(closed) as mc:
        upgrade = mc.backup
        own = mc.backups.create()
        (closed / f"{FILE}.broken.bak").write_text("no database")
        broken, *found = mc.backups.list()
    assert [(backup.file, backup.schema) for backup in found] == [
        (own.file, schema.HEAD),
        (upgrade, HEAD),
    ]
    assert [backup.problem for backup in found] == [None, None]
    assert broken.schema is None and "damaged or no backup" in str(broken.problem)
    assert broken.holds_forgotten is None


def test_pruning_keeps_the_newest_that_can_be_restored(closed: Path, tmp_path: Path) -> None:
    backups = Backups(closed)
    older, newer = backups.create().file, backups.create().file
    elsewhere = backups.create(tmp_path / "elsewhere.db").file
    (broken := closed / f"{FILE}.broken.bak").write_text("no database")
    assert set(backups.prune(keep=1)) == {older, broken}
    assert [backup.file for backup in backups.list()] == [newer]
    assert backups.prune() == []  # the newest is kept, unless it is said otherwise
    assert backups.prune(keep=0) == [newer]
    assert names(closed) == {FILE} and elsewhere.exists()
    with pytest.raises(InputError, match="-1"):
        backups.prune(keep=-1)


def test_single_backups_are_deleted_and_nothing_that_is_no_backup(closed: Path) -> None:
    backups = Backups(closed)
    kept = backups.create().file
    (closed / "memchat.db.old.bak").write_bytes(b"")
    for wrong in (FILE, closed / FILE, kept.parent.parent / kept.name):
        with pytest.raises(NotFound, match="is no backup in"):
            backups.delete([kept, wrong])
    assert backups.delete(["memchat.db.old.bak"]) == [closed / "memchat.db.old.bak"]
    assert [each.file for each in backups.list()] == [kept] and (closed / FILE).exists()


def test_a_backup_that_holds_a_forgotten_memory_or_message_is_known(
    closed: Path, open_store: Opener, extract_model: ScriptedModel
) -> None:
    extract_model.replies.append(answer())
    mc = open_store()
    assert mc.backups.perhaps_forgotten() == []
    before = mc.backups.create()
    mc.user("ana").memories.update(1, value="Porto")
    assert mc.backups.perhaps_forgotten() == []  # an edit is kept in the history
    with mc.user("ana").chat() as chat:
        assert chat.send("I live in Lisbon").read()
    between = mc.backups.create()
    assert mc.backups.perhaps_forgotten() == []
    mc.user("ana").sessions.delete(1)
    mc.jobs.run()
    assert mc.backups.perhaps_forgotten() == [between.file]
    mc.user("ana").memories.delete(1)
    assert set(mc.backups.perhaps_forgotten()) == {between.file, before.file}
    mc.jobs.run()
    assert set(mc.backups.perhaps_forgotten()) == {between.file, before.file}
    after = mc.backups.create()
    assert {b.file: b.holds_forgotten for b in mc.backups.list()} == {
        after.file: False,
        between.file: True,
        before.file: True,
    }


def test_a_backup_that_holds_a_deleted_note_is_known(open_store: Opener) -> None:
    mc = open_store()
    ana = mc.user("ana")
    note = ana.notes.add("The marketing budget is forty.")
    made = mc.backups.create()
    ana.notes.update(note.id, text="The marketing budget is fifty.")
    assert mc.backups.perhaps_forgotten() == []  # an edit deletes no note
    ana.notes.delete(note.id)
    assert mc.backups.perhaps_forgotten() == [made.file]
    ana.notes.add("Another.")
    assert mc.backups.perhaps_forgotten() == [made.file]
    assert mc.backups.plan_restore(made.file).notes == 1


def test_notes_come_back_with_a_backup(open_store: Opener) -> None:
    mc = open_store()
    note = mc.user("ana").notes.add("The marketing budget is forty.")
    made = mc.backups.create()
    mc.user("ana").notes.delete(note.id)
    mc.close()
    Backups(mc.settings.home).restore(made.file, keep_present=False)
    ana = open_store().user("ana")
    assert ana.notes.search("budget").hits[0].note_id == note.id


def test_forgetting_in_a_chat_says_that_a_backup_holds_the_words(
    closed: Path, open_store: Opener
) -> None:
    mc = open_store()
    mc.user("ana").memories.add("fact", "boat", "the Saudade")
    with mc.user("ana").chat() as chat:
        assert "Forget it for good?" in chat.send("Forget my boat").read()
        assert "backup" not in chat.send("yes").read()
        mc.backups.create()
        assert "Forget it for good?" in chat.send("Forget my city").read()
        said = chat.send("yes").read()
    assert "Its words are still in 1 backup; `memchat backup prune NAME` deletes one." in said
    assert held(mc) == set()


def test_blanked_words_and_a_cleared_title_count_as_forgotten(
    open_store: Opener, closed: Path, extract_model: ScriptedModel
) -> None:
    extract_model.replies.append(answer())
    mc = open_store()
    with mc.user("ana").chat() as chat:
        assert chat.send("I live in Lisbon").read()
    mc.close()
    change(closed / FILE, "UPDATE sessions SET title = 'Lisbon'")
    backups = Backups(closed)
    made = backups.create()
    change(closed / FILE, "UPDATE sessions SET title = NULL")
    assert backups.perhaps_forgotten() == [made.file]
    backups.prune(keep=0)
    made = backups.create()
    change(closed / FILE, "UPDATE messages SET content = 'I live in ······' WHERE role = 'user'")
    assert backups.perhaps_forgotten() == [made.file]


def test_restoring_says_what_is_lost_and_replaces_everything(
    closed: Path, later: Path, open_store: Opener
) -> None:
    (closed / FOLDER).mkdir(exist_ok=True)
    (closed / FOLDER / "x.faiss").write_bytes(b"vectors of Porto")
    backups = Backups(closed)
    plan = backups.plan_restore(later.name)
    assert (plan.memories, plan.sessions, plan.inbox_items) == (2, 0, 0)
    assert plan.backup.file == later and plan.backup.holds_forgotten
    kept = backups.restore(later)
    assert kept is not None and holds(kept) == {"Porto", "bees"}
    assert not (closed / FOLDER).exists()
    mc = open_store()
    assert held(mc) == {"Lisbon"}
    assert mc.user("ana").search("Lisbon").hits
    assert stat.S_IMODE((closed / FILE).stat().st_mode) == 0o600
    mc.close()
    assert backups.restore(kept, keep_present=False) is None
    assert held(open_store()) == {"Porto", "bees"}


def test_a_backup_of_an_older_schema_is_upgraded_at_the_next_opening(
    closed: Path, later: Path, open_store: Opener, next_version: Become
) -> None:
    next_version()
    Backups(closed).restore(later)
    mc = open_store()
    assert mc.backup is not None and "Lisbon" in held(mc)


def test_a_backup_moves_a_store_to_a_new_folder(later: Path, tmp_path: Path) -> None:
    new = Backups(tmp_path / "new")
    plan = new.plan_restore(later)
    assert (plan.memories, plan.store_problem) == (0, None)
    assert new.restore(later) is None
    assert holds(tmp_path / "new" / FILE) == {"Lisbon"}


def _newer(path: Path) -> None:
    change(path, "UPDATE alembic_version SET version_num = '9999'")


def _junk(path: Path) -> None:
    path.write_text("I am no database, and long enough to be looked at as one" * 100)


def _other(path: Path) -> None:
    path.unlink()
    change(path, "CREATE TABLE songs (name)")


def _bare(path: Path) -> None:
    path.unlink()
    revision = f"INSERT INTO alembic_version VALUES ('{schema.HEAD}')"
    change(path, "CREATE TABLE alembic_version (version_num)", revision)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("spoil", "error", "says"),
    [
        (_newer, SchemaError, "newer memchat.*9999.*update memchat"),
        (_junk, StoreError, "damaged or no backup"),
        (_other, SchemaError, "something else.*songs"),
        (_cut, StoreError, "damaged"),
        (_bare, SchemaError, "no backup of memchat"),
        (lambda path: path.write_bytes(b""), SchemaError, "no backup of memchat: it is empty"),
        (lambda path: path.unlink(), NotFound, "memchat backup list"),
    ],
)
def test_what_cannot_be_restored_is_refused_and_nothing_is_lost(
    later: Path, closed: Path, spoil: Callable, error: type[MemChatError], says: str
) -> None:
    before = (closed / FILE).read_bytes()
    spoil(later)
    for attempt in (Backups(closed).plan_restore, Backups(closed).restore):
        with pytest.raises(error, match=says) as refused:
            attempt(later)
        assert "\n" not in str(refused.value)
    assert (closed / FILE).read_bytes() == before
    assert names(closed) <= {FILE, later.name, FOLDER}


CHANGED_TABLES = {
    "a table is missing": (["DROP TABLE memory_sources"], "table memory_sources is missing"),
    "a view is in a table's place": (
        [
            "ALTER TABLE proposals RENAME TO elsewhere",
            "CREATE VIEW proposals AS SELECT * FROM elsewhere",
        ],
        "table proposals is missing|'table elsewhere' is none of memchat's",
    ),
    "a trigger": (
        [
            "CREATE TRIGGER spy AFTER INSERT ON messages"
            " BEGIN DELETE FROM memories; UPDATE meta SET value = new.content; END"
        ],
        "'trigger spy' is none of memchat's",
    ),
    "a table of something else": (["CREATE TABLE loot (words)"], "'table loot' is none"),
    "a column more": (["ALTER TABLE memories ADD COLUMN loot TEXT"], "table memories is not as"),
    "a column of another name": (
        ["ALTER TABLE proposals RENAME COLUMN reason TO loot"],
        "table proposals is not as",
    ),
    "an index is missing": (
        ["DROP INDEX ix_memory_events_memory_id_id"],
        "memory_id_id is missing",
    ),
    "another view": (
        ["DROP VIEW app_memories", "CREATE VIEW app_memories AS SELECT * FROM memories"],
        "view app_memories is not as memchat makes it",
    ),
}


@pytest.mark.parametrize("older", [False, True], ids=["of today", "of an older schema"])
@pytest.mark.parametrize("what", CHANGED_TABLES)
def test_a_file_with_other_tables_than_a_store_s_is_not_restored(
    closed: Path, later: Path, what: str, older: bool, next_version: Become
) -> None:
    statements, says = CHANGED_TABLES[what]
    before = (closed / FILE).read_bytes()
    if older:
        next_version()
        says += "|cannot be brought up to date"
    change(later, *statements)
    with pytest.raises(SchemaError, match=f"no store as memchat makes it: .*({says})") as refused:
        Backups(closed).restore(later)
    assert "\n" not in str(refused.value)
    assert (closed / FILE).read_bytes() == before
    assert [one.problem for one in Backups(closed).list()] == [str(refused.value)]


@pytest.mark.parametrize("what", CHANGED_TABLES)
def test_doctor_says_where_the_tables_are_not_those_of_a_store(
    closed: Path, open_store: Opener, what: str
) -> None:
    statements, says = CHANGED_TABLES[what]
    change(closed / FILE, *statements)
    (problem,) = [check for check in open_store().doctor() if check.state == "problem"]
    assert problem.name == "database" and re.search(says, problem.detail)
    assert "memchat restore" in problem.remedy


def test_the_store_itself_is_no_backup(closed: Path) -> None:
    with pytest.raises(InputError, match="is the store itself"):
        Backups(closed).restore(closed / FILE)


def has_it_open(home: Path, reached: Connection) -> None:
    mc = child_store(home)
    assert mc
    wait_for_the_kill(reached)


def test_a_store_that_is_open_is_not_replaced(
    closed: Path, later: Path, open_store: Opener
) -> None:
    mc = open_store()
    with pytest.raises(StoreError, match="is open, here or in another process"):
        mc.backups.restore(later)
    assert held(mc) == {"Porto", "bees"}
    mc.close()
    victim = Victim(has_it_open, closed)
    with pytest.raises(StoreError, match="is open, here or in another process"):
        Backups(closed).restore(later)
    assert [backup.file for backup in Backups(closed).list()] == [later]
    victim.kill()
    Backups(closed).restore(later)
    assert holds(closed / FILE) == {"Lisbon"}


def test_a_store_that_cannot_be_read_is_replaced_and_kept(
    closed: Path, later: Path, open_store: Opener
) -> None:
    (closed / FILE).write_bytes(b"not a database any more" * 1000)
    backups = Backups(closed)
    plan = backups.plan_restore(later)
    assert plan.store_problem is not None and "not a database" in plan.store_problem
    kept = backups.restore(later)
    assert kept is not None and kept.read_bytes().startswith(b"not a database any more")
    mc = open_store()
    assert held(mc) == {"Lisbon"}
    mc.close()
    assert set(backups.prune(keep=0)) == {kept, later}
    assert names(closed) <= {FILE, FOLDER}


def test_a_database_of_something_else_is_not_replaced(closed: Path, later: Path) -> None:
    _other(closed / FILE)
    with pytest.raises(SchemaError, match="songs"):
        Backups(closed).restore(later)
    with closing(sqlite3.connect(closed / FILE)) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]


def restores_half(home: Path, reached: Connection) -> None:
    (backup,) = Backups(home).list()

    def stop_halfway(progress) -> None:
        if progress.done * 2 > progress.total:
            wait_for_the_kill(reached)

    Backups(home).restore(backup.file, keep_present=False, progress=stop_halfway)


def test_a_restore_that_is_killed_leaves_the_old_store_and_can_be_done_again(
    closed: Path, open_store: Opener
) -> None:
    pad(closed / FILE)
    backup = Backups(closed).create().file
    change(closed / FILE, "UPDATE memories SET value = 'Porto'")
    before = (closed / FILE).read_bytes()
    victim = Victim(restores_half, closed)
    assert (closed / FILE).read_bytes() != before  # it was in the middle of writing
    victim.kill()
    mc = open_store()
    assert held(mc) == {"Porto"}
    assert [check for check in mc.doctor() if check.state == "problem"] == []
    mc.close()
    Backups(closed).restore(backup)
    assert held(open_store()) == {"Lisbon"}


def makes_half(home: Path, reached: Connection) -> None:
    Backups(home).create(progress=lambda _: wait_for_the_kill(reached))


def test_a_backup_that_was_killed_is_listed_as_unfinished_and_deleted_by_pruning(
    closed: Path,
) -> None:
    pad(closed / FILE)
    Victim(makes_half, closed).kill()
    (unfinished,) = Backups(closed).list()
    assert "is unfinished" in str(unfinished.problem)
    with pytest.raises(StoreError, match="is unfinished"):
        Backups(closed).restore(unfinished.file)
    Backups(closed).prune(keep=0)
    assert not any(name.endswith((".tmp", ".bak")) for name in names(closed))


# --- encrypted

PASSPHRASE = "pfüt\N{COMBINING DIAERESIS}ze im Mai"


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the key in a moment."""
    monkeypatch.setitem(encryption._SCRYPT, "n", 1 << 14)


@pytest.fixture
def sealed(closed: Path) -> Path:
    """An encrypted backup of the closed store that holds Lisbon."""
    made = Backups(closed).create(passphrase=PASSPHRASE)
    assert (made.encrypted, made.schema, made.problem) == (True, schema.HEAD, None)
    return made.file


def test_an_encrypted_backup_holds_no_readable_word_and_comes_back(
    closed: Path, sealed: Path, open_store: Opener, tmp_path: Path
) -> None:
    content = sealed.read_bytes()
    assert b"Lisbon" not in content and b"SQLite" not in content
    assert stat.S_IMODE(sealed.stat().st_mode) == 0o600
    assert names(closed) == {FILE, sealed.name}  # nothing that is not encrypted was left
    with open_store() as mc:
        mc.user("ana").memories.add("profile", "city", "Porto")
    backups = Backups(closed)
    for file in (sealed, sealed.name):
        assert backups.is_encrypted(file)
    plan = backups.plan_restore(sealed, passphrase=PASSPHRASE)
    assert (plan.memories, plan.backup.file, plan.backup.holds_forgotten) == (1, sealed, False)
    # The same words, typed on a machine that writes their accents in another way.
    kept = backups.restore(sealed, passphrase=unicodedata.normalize("NFC", PASSPHRASE))
    assert kept is not None and not backups.is_encrypted(kept) and holds(kept) > {"Porto"}
    with open_store() as mc:
        assert held(mc) == {"Lisbon"}
    moved = Backups(tmp_path / "elsewhere")
    moved.restore(sealed, passphrase=PASSPHRASE)
    with MemChat(tmp_path / "elsewhere") as mc:
        assert held(mc) == {"Lisbon"}


def test_an_encrypted_backup_is_opened_by_its_own_passphrase_alone(
    cheap: None, closed: Path, sealed: Path
) -> None:
    backups, before = Backups(closed), (closed / FILE).read_bytes()
    there = names(closed)
    for given, why in (
        (None, "is encrypted; give its passphrase"),
        ("", "is empty"),
        (PASSPHRASE + "!", "the passphrase is another one"),
    ):
        for do in (backups.plan_restore, backups.restore):
            with pytest.raises(InputError, match=why):
                do(sealed, passphrase=given)
    assert (closed / FILE).read_bytes() == before and names(closed) == there
    with pytest.raises(InputError, match="is empty"):
        backups.create(passphrase="")
    with pytest.raises(NotFound):
        backups.is_encrypted("memchat.db.none.bak")


def _flip(place: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


LARGE = 1 << 20
"""Bytes of one sealed part."""


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(_flip(60), id="a changed byte in the first line"),
        pytest.param(_flip(400), id="a changed byte in the first part"),
        pytest.param(_flip(LARGE + 400), id="a changed byte in a later part"),
        pytest.param(_flip(-1), id="a changed last byte"),
        pytest.param(lambda data: data[:-1], id="its last byte is missing"),
        pytest.param(lambda data: data[: data.index(b"\n") + 1 + LARGE + 16], id="only one part"),
        pytest.param(lambda data: data[: data.index(b"\n") + 1], id="only the first line"),
        pytest.param(lambda data: data[:40], id="half of the first line"),
        pytest.param(lambda data: data + b"\0", id="a byte more"),
        pytest.param(lambda data: data.replace(b"16384", b"32768"), id="another cost"),
        pytest.param(lambda data: data.replace(b"16384", b"9" * 9), id="a cost out of bounds"),
        pytest.param(lambda data: data.replace(b"16384", b"-1"), id="a cost below zero"),
        pytest.param(lambda data: data.replace(b'"version": 1', b'"version": 9'), id="newer"),
    ],
)
def test_a_changed_or_cut_encrypted_backup_is_refused_and_the_store_is_as_it_was(
    cheap: None, closed: Path, broken: Callable[[bytes], bytes]
) -> None:
    pad(closed / FILE)
    backups, before = Backups(closed), (closed / FILE).read_bytes()
    sealed = backups.create(passphrase=PASSPHRASE).file
    content = sealed.read_bytes()
    sealed.write_bytes(broken(content))
    assert sealed.read_bytes() != content
    for do in (backups.plan_restore, backups.restore):
        with pytest.raises(MemChatError) as refused:
            do(sealed, passphrase=PASSPHRASE)
        assert str(sealed) in str(refused.value)
    assert (closed / FILE).read_bytes() == before and len(names(closed)) == 2
    sealed.write_bytes(content)
    assert backups.plan_restore(sealed, passphrase=PASSPHRASE).memories == 0


def test_an_encrypted_backup_counts_as_holding_what_was_forgotten_since(
    cheap: None, closed: Path, open_store: Opener
) -> None:
    backups = Backups(closed)

    def named() -> list[bool | None]:
        """Whether each backup counts, the newest first."""
        found = backups.list()
        counted = [one.file for one in found if one.holds_forgotten]
        assert backups.perhaps_forgotten() == counted
        return [one.holds_forgotten for one in found]

    with open_store() as mc:
        ana = mc.user("ana")
        note = ana.notes.add("Bees", title="Garden")
        memory = ana.memories.add("profile", "hobby", "bees")
        backups.create(passphrase=PASSPHRASE)
        ana.memories.add("profile", "job", "nurse")
        ana.memories.update(memory.id, value="wasps")
        assert named() == [False]
        ana.memories.delete(memory.id)
        assert named() == [True]
        mc.jobs.run()
        assert named() == [True]
        backups.create(passphrase=PASSPHRASE)
        assert named() == [False, True]
        ana.notes.delete(note.id)
        mc.jobs.run()
        assert named() == [True, True]
        checks = [one.detail for one in mc.doctor() if one.name == "backup"]
    assert len(checks) == 2 and all("still holds words" in one for one in checks)
    assert backups.prune(keep=1) and named() == [True]
    assert backups.list()[0].encrypted


def test_encrypting_takes_no_more_memory_for_a_larger_store(cheap: None, tmp_path: Path) -> None:
    peaks = []
    for size in (4_000_000, 60_000_000):
        plain, sealed, back = (tmp_path / f"{size}.{name}" for name in ("plain", "sealed", "back"))
        with open(plain, "wb") as file:
            file.truncate(size)
        tracemalloc.start()
        with open(plain, "rb") as source, open(sealed, "wb") as out:
            encryption.encrypt(source, out, PASSPHRASE)
        with open(back, "wb") as out:
            encryption.decrypt(sealed, out, PASSPHRASE)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert back.stat().st_size == size
    assert peaks[1] < 1.5 * peaks[0]
