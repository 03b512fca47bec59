"""Stores from before there was one baseline: refused and left alone, and what they hold is brought
over by an export.

``data/before_four_nouns`` was made by the version at the git tag of that name: a store, its export,
and what was seen of it there.
"""

from __future__ import annotations

import json
import lzma
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memchat import Backups, MemChat, User
from memchat.config import Settings
from memchat.db.database import FILE, Database
from memchat.errors import SchemaError
from memchat.testing import FakeClock, HashEmbedder
from tests.support import empty_store
from tests.support.cli import Run
from tests.support.paths import DATA
from tests.support.store import NOON

HELD = DATA / "before_four_nouns"
EARLIER = [f"{number:04}" for number in range(1, 17)]
SAYS = "before the first release.*commit 6b973449.*memchat import FILE here.*MEMCHAT_HOME"


def seen(mc: MemChat) -> dict[str, Any]:
    """What the library shows of a person's facts, their history, conversations and notes."""
    own, work = mc.user("ana"), mc.user("ana", app="work")
    return {
        "facts": _facts(own) + _facts(work),
        "conversations": [
            {
                "title": session.title,
                "summary": session.summary,
                "began": session.started_at.isoformat(),
                "status": session.status,
                "said": [
                    [message.role, message.content, message.created_at.isoformat()]
                    for message in own.sessions.messages(session.id)
                ],
            }
            for session in own.sessions.list(limit=100)
        ],
        "notes": [
            [note.app, note.type, note.external_id, note.title, note.text, note.chunks]
            for person in (own, work)
            for note in person.notes.list()
        ],
    }


def _facts(person: User) -> list[dict[str, Any]]:
    """All of them but for their ids, which may be others in another store."""
    facts = person.memories
    ids = ("id", "user", "replaced_by", "sentence", "metadata")  # nothing had these then
    return [
        {
            **{name: value for name, value in memory.to_json().items() if name not in ids},
            "replaced": sorted(older.value for older in facts.replaced(memory.id)),
            "quotes": [proof.quote for proof in facts.evidence(memory.id)],
            "history": [
                [event.kind, event.at.isoformat(), event.actor, event.cause, event.old, event.new]
                for event in facts.history(memory.id)
                if event.kind != "embed"  # vectors are made anew
            ],
        }
        for memory in sorted(
            facts.list(status="all", limit=100), key=lambda one: (one.app, one.key, one.value)
        )
    ]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with the store of that version."""
    home = tmp_path / "old"
    home.mkdir()
    (home / FILE).write_bytes(lzma.decompress((HELD / "store.db.xz").read_bytes()))
    with closing(sqlite3.connect(home / FILE)) as db:
        db.execute("PRAGMA journal_mode=WAL")  # as a store is, and a backup is not
    return home


@pytest.fixture(params=EARLIER)
def earlier(request: pytest.FixtureRequest, old: Path) -> Path:
    """That folder, with a store that says it is of any revision before the baseline."""
    with closing(sqlite3.connect(old / FILE)) as db, db:
        db.execute("UPDATE alembic_version SET version_num = ?", (request.param,))
    return old


def files(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir()}


def test_a_store_of_any_earlier_revision_is_refused_and_left_alone(earlier: Path) -> None:
    before = files(earlier)
    with pytest.raises(SchemaError, match=SAYS) as refused:
        Database(earlier)
    assert "\n" not in str(refused.value) and str(earlier / FILE) in str(refused.value)
    assert files(earlier) == before


def test_a_backup_of_any_earlier_revision_is_refused_and_nothing_is_replaced(
    earlier: Path, tmp_path: Path
) -> None:
    home = empty_store.place(tmp_path / "store")
    (earlier / FILE).rename(home / f"{FILE}.earlier.bak")
    before = files(home)
    backups = Backups(home)
    for attempt in (backups.plan_restore, backups.restore):
        with pytest.raises(SchemaError, match=SAYS):
            attempt(f"{FILE}.earlier.bak")
    (found,) = backups.list()
    assert found.schema is None and re.search(SAYS, str(found.problem))
    assert files(home) == before


def test_a_command_says_in_one_line_how_to_bring_an_earlier_store_over(
    old: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCHAT_HOME", str(old))
    done = run("memories", "list")
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1 and re.search(SAYS, done.err)


def test_a_backup_of_today_takes_the_place_of_an_earlier_store_which_is_kept(
    old: Path, tmp_path: Path
) -> None:
    good = tmp_path / "good.bak"
    with MemChat(settings=Settings(tmp_path / "new", embed_model="none")) as mc:
        mc.user("ana").memories.add("fact", "bike", "a red bike")
        mc.backups.create(good)
    kept = Backups(old).restore(good)
    assert kept is not None
    with closing(sqlite3.connect(kept)) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [("0016",)]
    with MemChat(settings=Settings(old, embed_model="none")) as mc:
        assert [memory.value for memory in mc.user("ana").memories.list()] == ["a red bike"]


def test_the_export_of_an_earlier_store_brings_facts_history_conversations_and_notes_over(
    tmp_path: Path,
) -> None:
    settings = Settings(tmp_path, timezone="Europe/Berlin")
    with MemChat(settings=settings, embedder=HashEmbedder(), clock=FakeClock(NOON)) as mc:
        done = mc.user("ana").import_file(HELD / "ana.jsonl")
        assert not done.refused and not done.known
        assert done.left_out == {"client_write": 2, "receipt": 1, "usage": 24}
        assert seen(mc) == json.loads((HELD / "seen.json").read_text("utf-8"))
        assert not mc.user("ana").import_file(HELD / "ana.jsonl").added
