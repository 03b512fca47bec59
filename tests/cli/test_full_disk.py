"""A full disk is named as such by every command, and what was acknowledged is there afterwards."""

from __future__ import annotations

import errno
import io
import logging
import os
import resource
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from memchat import Backups, MemChat
from memchat.db import migrate
from memchat.db.database import FILE, Database
from memchat.db.schema import HEAD
from memchat.errors import StoreError, StoreFull
from memchat.providers import litellm_calls
from tests.support.cli import Done, Run, commands
from tests.support.full_disk import Tiny
from tests.support.histories import talk, write
from tests.support.slow import slow_but
from tests.support.store import Opener

ANA = {"user": "ana", "app": "default"}
FULL = "is full. Nothing that was kept is lost. Free some space and try again"
LINES = "My name is Ana and I live in Lisbon.\nI love tea.\n"
WRITERS = {
    "chat": "",
    "worker": "--once",
    "backfill": "",
    "audit": "--fix",
    "doctor": "--repair",
    "memories add": "profile street Elm",
    "memories edit": "1 --value Faro",
    "memories delete": "1 --yes",
    "memories restore": "1",
    "memories pin": "1",
    "memories clear": "--yes",
    "notes add": "--text 'The boiler is old.'",
    "notes edit": "1 --title Home",
    "notes delete": "1 --yes",
    "notes reindex": "",
    "sessions keep": "1",
    "sessions end": "1",
    "sessions read-all": "1",
    "sessions read-again": "1",
    "sessions rename": "1 Home",
    "sessions copy": "1 --before 2",
    "sessions delete": "1 --yes",
    "apps on": "",
    "apps off": "",
    "apps delete": "default --yes",
    "users delete": "ana --yes",
    "workflow add": "weekly-review",
    "workflow delete": "weekly-review",
    "workflow share": "weekly-review Web",
    "workflow run": "ask-memory train",
    "workflow resume": "1",
    "workflow stop": "1",
    "inbox accept": "1",
    "inbox reject": "1",
    "jobs run": "",
    "jobs retry": "",
    "jobs clear": "",
    "services use": "1 --force",
    "services migrate": "hash/words",
    "services rm": "1 --force",
}
"""Every command that writes to the store, with what it is told."""
READERS = {
    "recall": "Lisbon",
    "why": "",
    "memories list": "",
    "memories show": "1",
    "memories history": "1",
    "notes list": "",
    "notes show": "1",
    "notes search": "train",
    "notes ask": "train",
    "notes report": "",
    "notes topics": "",
    "workflow list": "",
    "workflow show": "ask-memory",
    "workflow runs": "",
    "sessions list": "",
    "sessions show": "1",
    "apps list": "",
    "users list": "",
    "inbox list": "",
    "jobs status": "",
    "services list": "",
    "db status": "",
}
OTHERS = {"demo", "ui", "config", "completion", "services fetch", "notes watch"}
OTHERS |= {"keys set", "keys list", "keys remove"}
OTHERS |= {
    "mcp",
    "mcp config",
    "tokens add",
    "tokens list",
    "tokens remove",
    "mcp clients",
    "mcp call",
}
OTHERS |= {"backup create", "backup list", "backup prune", "restore", "wipe", "export", "import"}
OTHERS |= {"users export", "serve", "workflow validate", "db copy"}
"""The first two have a store or a process of their own, the others none or a test of their own."""
ROOM = [0, 8_192, 40_960, 131_072]
"""What is left on the disk: none, less than SQLite needs to open a store, just that, and some."""


@pytest.fixture
def told(tiny: Tiny, run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a command on the store of the small disk, with lines to chat with."""
    litellm_calls.litellm()  # else threads of several chats import it at once
    monkeypatch.setenv("MEMCHAT_HOME", str(tiny.home))
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "hash/words")

    def one(*args: str) -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(LINES))
        return run(*args)

    log = logging.getLogger("memchat")
    before, level, propagates = [*log.handlers], log.level, log.propagate
    yield one
    log.handlers[:], log.propagate = before, propagates  # `memchat worker` writes its log itself
    log.setLevel(level)


def kept(told: Run) -> list[tuple[object, object]]:
    done = told("memories", "list", "--json")
    assert done.code == 0, done.err
    shown = told("notes", "list", "--json")
    assert shown.code == 0, shown.err
    return [(memory["key"], memory["value"]) for memory in done.json] + [
        (note["id"], note["title"]) for note in shown.json
    ]


def test_every_command_is_walked_here() -> None:
    assert {name for name, _ in commands()} == WRITERS.keys() | READERS.keys() | OTHERS


@pytest.mark.parametrize("left", slow_but((0,), ROOM))
def test_every_command_names_a_full_disk_and_loses_nothing(
    tiny: Tiny, told: Run, tmp_path: Path, left: int
) -> None:
    assert told("memories", "add", "profile", "city", "Porto").code == 0
    assert told("memories", "add", "fact", "deadline", "22 May").code == 0
    assert told("notes", "add", "--text", "The train leaves at nine.").code == 0
    before = kept(told)
    copy = tmp_path / "copy"
    shutil.copytree(tiny.home, copy)
    refused = 0
    for name, rest in (WRITERS | READERS).items():
        shutil.rmtree(tiny.home)
        shutil.copytree(copy, tiny.home)
        tiny.fill(left)
        done = told(*name.split(), *shlex.split(rest))
        tiny.free()
        assert "disk I/O" not in done.err and "unexpected" not in done.err, (name, done.err)
        if left < 32_768:  # what opening a store takes
            assert (done.code, done.out) == (1, ""), name
            assert done.err.startswith("memchat: ") and FULL in done.err, (name, done.err)
            assert str(tiny.home) in done.err
        if FULL in done.err:
            refused += 1
            assert done.code == 1, name
            assert kept(told) == before, name
    assert refused >= (20 if left < 32_768 else 4)


def test_deleting_on_a_full_disk_says_what_to_delete_first_and_then_works(
    tiny: Tiny, told: Run
) -> None:
    assert told("notes", "add", "--text", "The train leaves at nine.").code == 0
    assert told("backup", "create").code == 0
    tiny.fill()

    refused = told("notes", "delete", "1", "--yes")
    assert refused.code == 1 and "backups with memchat backup prune --keep 1" in refused.err
    assert told("backup", "prune", "--keep", "0", "--yes").code == 0
    assert told("notes", "delete", "1", "--yes").code == 0


@pytest.mark.parametrize("model", ["none", "hash/words"])
def test_a_store_in_a_folder_that_can_only_be_read_is_read_and_refuses_to_be_changed(
    tiny: Tiny, told: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", model)
    assert told("memories", "add", "profile", "city", "Porto").code == 0
    assert told("notes", "add", "--text", "The train leaves at nine.").code == 0
    tiny.make_read_only()

    for name, given in READERS.items():
        done = told(*name.split(), *given.split())
        found = name not in ("why", "sessions show")  # no conversation was held
        assert done.code == 1 - found and "written" not in done.err, (name, done.err)
    assert "Porto" in told("recall", "Porto").out
    assert "train" in told("notes", "search", "train").out
    assert "Porto" in told("memories", "list").out
    assert told("export", str(tmp_path / "out.jsonl")).code == 0
    refused = told("memories", "add", "profile", "street", "Elm")
    assert refused.code == 1 and "cannot be written; make its folder writable" in refused.err


def test_a_key_that_finds_no_room_is_refused_and_those_that_are_kept_stay(
    tiny: Tiny, told: Run, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_key(name: str, key: str) -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
        return run("keys", "set", name)

    assert set_key("openai", "first-key").code == 0
    before = (tiny.home / "keys.toml").read_bytes()
    tiny.fill()
    done = set_key("openai", "second-key" * 500)
    assert done.code == 1 and FULL in done.err
    assert (tiny.home / "keys.toml").read_bytes() == before
    assert [file.name for file in tiny.home.iterdir()] == ["keys.toml"]


@pytest.mark.parametrize("left", ROOM)
def test_a_new_store_on_a_full_disk_is_refused_and_made_when_there_is_room(
    tiny: Tiny, told: Run, left: int
) -> None:
    tiny.fill(left)
    done = told("memories", "add", "profile", "city", "Lisbon")
    assert (done.code, done.out) == (1, "")
    assert FULL in done.err
    tiny.free()
    assert told("memories", "add", "profile", "city", "Lisbon").code == 0
    assert kept(told) == [("city", "Lisbon")]


def test_every_addition_that_was_acknowledged_before_the_disk_filled_is_there(
    tiny: Tiny, open_store: Opener
) -> None:
    mc = open_store(home=tiny.home)
    tiny.fill(400_000)
    acknowledged = []
    with pytest.raises(StoreFull):
        for n in range(10_000):
            acknowledged.append(
                mc.user(**ANA).memories.add("fact", f"note {n}", "long words " * 20).id
            )
    mc.close()
    tiny.free()
    again = open_store(home=tiny.home)
    ana = again.user(**ANA)
    assert acknowledged
    found = {memory.id for memory in ana.memories.list(limit=10_000)}
    assert found == set(acknowledged)
    assert ana.memories.add("fact", "more", "room").id > max(acknowledged)


def test_a_conversation_goes_on_when_there_is_room_again(tiny: Tiny, open_store: Opener) -> None:
    mc = open_store(home=tiny.home)
    ana = mc.user(**ANA)
    chat = ana.chat()
    assert chat.send("I live in Lisbon.").read() == "Fine."
    tiny.fill()
    with pytest.raises(StoreFull):
        for _ in range(50):  # until the room that the files have is used up
            assert chat.send("long words " * 1_000).read() == "Fine."
    tiny.free()
    assert chat.send("And I am a nurse.").read() == "Fine."
    said = [m.content for m in ana.sessions.messages(ana.sessions.list()[0].id)]
    assert said[:2] == ["I live in Lisbon.", "Fine."]
    assert said[-2:] == ["And I am a nurse.", "Fine."]


def test_a_first_message_that_found_no_room_leaves_no_trace_of_its_conversation(
    tiny: Tiny, open_store: Opener
) -> None:
    mc = open_store(home=tiny.home)
    ana = mc.user(**ANA)
    tiny.fill()
    chat = ana.chat()
    with pytest.raises(StoreFull):
        chat.send("long words " * 50_000)
    assert chat.session_id is None
    assert chat.end() is None  # and it raises nothing of a session that is not there
    tiny.free()
    assert chat.send("Hello").read() == "Fine."
    assert len(ana.sessions.list()) == 1


def test_a_chat_says_once_that_it_could_not_be_closed(tiny: Tiny, told: Run) -> None:
    assert told("memories", "add", "profile", "city", "Porto").code == 0
    tiny.fill(40_960)
    done = told("chat")
    assert done.code == 1
    assert "there is no session" not in done.err
    # Once for each of the two lines, and no more for a conversation that never began.
    assert done.err.count(FULL) == 2


def test_an_index_that_finds_no_room_is_left_out_and_says_why(
    tiny: Tiny,
    open_store: Opener,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from memchat.search import vector_index

    monkeypatch.setattr(vector_index, "SAVE_FROM", 1)
    mc = open_store(home=tiny.home)
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    assert ana.search("Lisbon").hits
    tiny.fill()
    mc.close()
    assert FULL in caplog.text
    assert not list(tiny.home.glob("mem.index/*"))
    tiny.free()
    assert [m.value for m in open_store(home=tiny.home).user(**ANA).memories.list()] == ["Lisbon"]


def test_a_backup_that_finds_no_room_leaves_the_older_store_as_it_was(tiny: Tiny) -> None:
    Database(tiny.home).close()
    tiny.fill(16_384)
    with pytest.raises(StoreFull) as error:
        migrate.back_up(tiny.home / FILE, HEAD)
    assert FULL in str(error.value)
    assert [path.name for path in tiny.home.iterdir() if path.name.endswith((".tmp", ".bak"))] == []


def test_a_backup_or_restore_that_finds_no_room_leaves_the_store_as_it_was(tiny: Tiny) -> None:
    with MemChat(tiny.home) as mc:
        mc.user(**ANA).memories.add("profile", "city", "Lisbon")
    backups = Backups(tiny.home)
    made = backups.create()
    with MemChat(tiny.home) as mc:
        mc.user(**ANA).memories.update(1, value="Porto")
    for left in (16_384, 400_000):
        tiny.fill(left)
        with pytest.raises(StoreFull, match="Nothing that was kept is lost"):
            backups.create()
        with pytest.raises(StoreFull, match="Nothing that was kept is lost"):
            backups.create(passphrase="open sesame")
        with pytest.raises(StoreFull, match="Nothing that was kept is lost"):
            backups.restore(made.file)
        tiny.free()
    assert [backup.file for backup in backups.list()] == [made.file]
    with MemChat(tiny.home) as mc:
        assert [m.value for m in mc.user(**ANA).memories.list()] == ["Porto"]


def test_an_export_or_import_that_finds_no_room_leaves_no_half_file_and_no_half_store(
    tiny: Tiny, tmp_path: Path
) -> None:
    with MemChat(tiny.home) as mc, MemChat(tmp_path / "other") as other:
        for number in range(40):
            other.user(**ANA).memories.add("fact", f"plan {number}", "a long walk " * 20)
        other.user(**ANA).export_file(tmp_path / "whole.jsonl")
        tiny.fill(16_384)
        with pytest.raises(StoreFull):
            other.user(**ANA).export_file(tiny.home / "part.jsonl")
        with pytest.raises(StoreFull):
            mc.user(**ANA).import_file(tmp_path / "whole.jsonl")
        tiny.free()
        assert not list(tiny.home.glob("part.jsonl*"))
        assert mc.user(**ANA).memories.count() == 0
        mc.user(**ANA).import_file(tmp_path / "whole.jsonl")
        assert mc.user(**ANA).memories.count() == 40


def test_a_history_that_finds_no_room_leaves_whole_conversations_and_goes_on_later(
    tiny: Tiny, tmp_path: Path
) -> None:
    talks = [talk(f"t{n}", *(f"{n} {m} a long walk " * 9 for m in range(40))) for n in range(60)]
    file = write(tmp_path / "history.json", talks)
    with MemChat(tiny.home) as mc:
        ana = mc.user(**ANA)
        ana.memories.add("fact", "plan", "a walk")
        tiny.fill(1_000_000)
        with pytest.raises(StoreFull):
            ana.import_history(file, learn="no")
        tiny.free()
        there = ana.sessions.list(limit=100)
        assert len(there) < 60 and {len(ana.sessions.messages(one.id)) for one in there} <= {40}
        assert ana.import_history(file, learn="no").added["session"] == 60 - len(there)
        assert ana.import_history(file, learn="no").added == {}


@contextmanager
def no_file_may_grow() -> Iterator[None]:
    """What SQLite tells as it does the end of a quota: by "disk I/O error"."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_quota_that_is_used_up_is_named_like_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: object) -> object:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with (
        closing(Database(tmp_path / "store")) as database,
        no_file_may_grow(),
        pytest.raises(StoreFull, match=r"your quota on the disk that holds .* is used up"),
        database.write() as tx,
    ):
        tx.connection.exec_driver_sql("INSERT INTO meta VALUES ('x', ?)", ("x" * 100_000,))


def test_a_file_that_may_not_grow_on_a_disk_with_room_is_not_called_a_full_disk(
    tmp_path: Path,
) -> None:
    with (
        closing(Database(tmp_path / "store")) as database,
        no_file_may_grow(),
        pytest.raises(StoreError, match="disk I/O error") as error,
        database.write() as tx,
    ):
        tx.connection.exec_driver_sql("INSERT INTO meta VALUES ('x', ?)", ("x" * 100_000,))
    assert not isinstance(error.value, StoreFull)
