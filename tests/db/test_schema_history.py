"""A store of every earlier schema opens whole, also where a migration was edited after it had run.

``data/schemas`` holds a store as each commit made it that changed a migration.
"""

from __future__ import annotations

import hashlib
import lzma
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.db import backup, layout, migrate, schema
from memchat.db.database import FILE, Database
from memchat.testing import HashEmbedder
from tests.support.paths import DATA

STORES = sorted((DATA / "schemas").glob("*.db.xz"))
LANDED = {
    "0001_first.py": "b7074386cf3ba619",
    "0002_replaced.py": "52b403ed56a7912c",
    "0003_moments.py": "53565dda1e562856",
    "0004_pin.py": "97376e550568918f",
    "0005_words.py": "af90495231a14825",
    "0006_learned.py": "a44f03711899ffd2",
    "0007_lists.py": "74fd32944892662e",
    "0008_healed.py": "8debb741aa55d99f",
    "0009_external_sessions.py": "b78f0e9041222be4",
    "0010_hashed_session_names.py": "189dd1e779662339",
    "0011_copies.py": "4272dc7d22cccdd5",
    "0012_read_all.py": "10898ba13d5b4bef",
    "0013_notes.py": "56378f121970cbea",
    "0014_clients.py": "9d2a96a19110cadf",
    "0015_tags.py": "fee392635fc22d86",
    "0016_inbox_ids.py": "40263fe2e2ae1c2a",
}
"""The migrations that landed, each with the beginning of its SHA-256. A new one is added below; one
that stands here is never edited: stores have been made by it."""


@pytest.mark.parametrize("store", STORES, ids=lambda path: path.name.removesuffix(".db.xz"))
def test_a_store_of_every_earlier_schema_opens_whole(store: Path, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(lzma.decompress(store.read_bytes()))
    backup.check(tmp_path / FILE)  # it could be restored as well
    with MemChat(settings=Settings(tmp_path), embedder=HashEmbedder()) as mc:
        ana = mc.user("ana")
        assert [m.value for m in ana.memories.list()] == ["Lisbon"]
        assert [m.value for m in mc.user("ana", app="work").memories.list()] == ["a red kayak"]
        assert mc.user("bo").memories.list() == []
        (session,) = ana.sessions.list()
        said = [m.content for m in ana.sessions.messages(session.id)]
        assert said == ["I live in Lisbon.", "Hello Ana.", "It rains.", "Nice city."]
        mc.jobs.run()
        assert "Lisbon" in ana.search("Lisbon").hits[0].text
        assert [check for check in mc.doctor() if check.state == "problem"] == []
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        assert layout.difference(db, schema.HEAD) is None


def test_counters_and_prompts_of_the_early_second_schema_come_back(tmp_path: Path) -> None:
    early = next(path for path in STORES if path.name.startswith("05-"))
    (tmp_path / FILE).write_bytes(lzma.decompress(early.read_bytes()))
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute("UPDATE memories SET match_count = 3, read_count = 7 WHERE value = 'Lisbon'")
        (reply,) = db.execute("SELECT max(id) FROM messages").fetchone()
        row = (reply, "You are kind.", reply - 1)
        db.execute("DELETE FROM prompts")
        db.execute(
            "INSERT INTO prompts (message_id, system, first_message_id) VALUES (?, ?, ?)", row
        )
        db.execute("INSERT INTO muted (session_id, memory_id) SELECT 1, id FROM memories LIMIT 1")
        db.commit()
    Database(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        counts = "SELECT match_count, read_count FROM memories WHERE value = 'Lisbon'"
        assert db.execute(counts).fetchall() == [(3, 7)]
        prompts = "SELECT message_id, system, first_message_id FROM prompts"
        assert db.execute(prompts).fetchall() == [row]
        assert db.execute("SELECT count(*) FROM muted").fetchone() == (1,)


def test_a_session_kept_under_its_plain_name_is_still_known_and_the_name_is_gone(
    tmp_path: Path,
) -> None:
    (plain,) = (path for path in STORES if path.name.startswith("16-"))
    (tmp_path / FILE).write_bytes(lzma.decompress(plain.read_bytes()))
    assert b"Zanzibar trip" in (tmp_path / FILE).read_bytes()
    with MemChat(settings=Settings(tmp_path), embedder=HashEmbedder()) as mc:
        assert mc.user("ana").add("It is warm.", session="Zanzibar trip", wait=False).known == 1
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        ((name,),) = db.execute("SELECT name FROM external_sessions").fetchall()
    assert "Zanzibar" not in name


def test_a_row_of_a_note_that_no_version_wrote_does_not_stop_the_upgrade(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(lzma.decompress(STORES[-1].read_bytes()))
    with closing(sqlite3.connect(tmp_path / FILE)) as db, db:
        (app_id,) = db.execute("SELECT id FROM apps WHERE name = 'default'").fetchone()
        db.execute(
            "INSERT INTO sources (id, app_id, type, external_id, title)"
            " VALUES (5, ?, 'memo', '7', 'Budget')",
            (app_id,),
        )
        db.execute(
            "INSERT INTO chunks (hash, source_type, source_id, offset, size)"
            " VALUES ('', 'memo', 5, 0, 9)"
        )
    with MemChat(settings=Settings(tmp_path), embedder=HashEmbedder()) as mc:
        notes = mc.user("ana").notes
        assert [(n.id, n.external_id, n.title, n.chunks) for n in notes.list()] == [
            (5, 7, "Budget", 0)  # its chunks had no text
        ]
        notes.delete(5)
        assert notes.add("The budget is forty.").id == 6


def test_a_migration_that_landed_is_never_edited() -> None:
    scripts = sorted((migrate.SCRIPTS / "versions").glob("0*.py"))
    now = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in scripts}
    assert now == LANDED
