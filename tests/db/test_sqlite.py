"""What is SQLite's own: the tables, durability, scrubbing, indexes and faults of the disk."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, insert, select

from memchat.db import apps, jobs, schema, sessions, usage
from memchat.db.database import FILE, Database
from memchat.errors import InputError, StoreError
from memchat.facts import changes, memories, proposals
from memchat.facts.memories import ValuesInForce
from memchat.forget import tombstones
from memchat.search import receipts
from memchat.types import Hit, Proposal, Usage, Wanted
from tests.support import private
from tests.support.rows import ANA, BO, TODAY, count, keep, talk
from tests.support.store import NOON


def raw(database: Database) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(database.path))


def test_the_table_has_the_founding_columns_with_their_defaults(sqlite: Database) -> None:
    with sqlite.write() as tx:
        own = apps.ensure(tx, ANA).own
    with raw(sqlite) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(memories)")]
        assert columns[:10] == [
            "id",
            "created_at",
            "memory_type",
            "key",
            "value",
            "sha1",
            "expires_at",
            "seen_count",
            "last_seen_at",
            "active",
        ]
        connection.execute(
            "INSERT INTO memories (app_id, memory_type, key, value, sha1)"
            " VALUES (?, 'fact', 'city', 'Lisbon', 'x')",
            (own,),
        )
        row = connection.execute(
            "SELECT seen_count, active, expires_at, created_at, last_seen_at, content FROM memories"
        ).fetchone()
        assert row[:3] == (1, 1, None) and row[5] == "city: Lisbon"
        for written in row[3:5]:
            age = datetime.now(UTC) - datetime.fromisoformat(written)
            assert timedelta(0) <= age < timedelta(minutes=1) and len(written) == 27
        for bad in ("memory_type = ''", "created_by = 'thief'", "active = 0"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(f"UPDATE memories SET {bad}")


def test_the_desktop_paper_s_table_is_a_view_with_unix_times(sqlite: Database) -> None:
    with sqlite.write() as tx:
        tx.now = NOON
        memory_id = keep(tx, ANA, "Lisbon")
        own, now = apps.find(tx, ANA).own, int(tx.now.timestamp())
    with raw(sqlite) as connection:
        cursor = connection.execute("SELECT * FROM app_memories")
        assert [c[0] for c in cursor.description] == [
            "id",
            "app_id",
            "content",
            "created_at",
            "updated_at",
        ]
        assert cursor.fetchone() == (memory_id, own, "city: Lisbon", now, now)


def test_every_connection_is_durable_checked_and_scrubbing(sqlite: Database) -> None:
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1}
    seen: list[dict] = []

    def look() -> None:
        with sqlite.read() as tx:
            ready.wait(timeout=10)  # all at once, so that each has a connection of its own
            seen.append(
                {name: tx.connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted}
            )

    ready = threading.Barrier(6)
    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [wanted] * 6


def test_deleting_an_app_s_row_empties_every_table_of_it(sqlite: Database) -> None:
    with sqlite.write() as tx:
        memory_id, other = keep(tx, ANA, "Lisbon"), keep(tx, BO, "Porto")
        own = apps.ensure(tx, ANA).own
        session_id, (message_id,) = talk(tx, ANA, "I live in Lisbon")
        changes.add_evidence(tx, memory_id, [(message_id, 10, "Lisbon")])
        hit = Hit("memory", memory_id, "t", 1.0, None, None, "pinned", 1)
        receipts.add(tx, message_id, [hit])
        receipts.add_prompt(tx, message_id, receipts.SentPrompt("You are …", message_id))
        sessions.mute(tx, session_id, memory_id)
        jobs.enqueue(tx, "extract", own, session_id, NOON)
        proposals.add(tx, own, Proposal("near", message_id=message_id, memory_id=memory_id))
        tombstones.add(tx, own, 1, [("value", "x")], NOON)
        usage.add(tx, own, session_id, Usage("chat", "m", 1, 1, None, 0.0))
        source = insert(schema.sources).values(app_id=own, type="memo", external_id="1")
        source_id = tx.execute(source.returning(schema.sources.c.id)).scalar_one()
        tx.execute(
            insert(schema.chunks).values(
                hash="h", source_type="memo", source_id=source_id, offset=0, size=1
            )
        )
    with sqlite.write() as tx:
        apps.remove(tx, own)
    with raw(sqlite) as connection:
        kept = {"apps": 3, "memories": 1, "memory_events": 2, "alembic_version": 1}
        kept |= {"passages": 1, "changes": 1}
        kept["meta"] = 1  # the key of the tombstones
        for table in schema.metadata.tables:
            (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert count == kept.get(table, 0), table
        assert connection.execute("SELECT id FROM memories").fetchone() == (other,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_looking_up_a_scope_s_rows_uses_an_index(sqlite: Database) -> None:
    queries = [
        "SELECT * FROM memories WHERE app_id IN (1, 2) AND active = 1",
        "SELECT * FROM memories WHERE app_id IN (1, 2) AND active = 1 AND key = 'city'",
        "SELECT * FROM memories WHERE app_id IN (1, 2) AND sha1 = 'x'",
        "SELECT id FROM memories WHERE app_id = 1 AND active = 1 AND expires_at < '2026-05-01'",
        "SELECT id FROM apps WHERE user = 'ana' AND name IN ('home', '')",
        "SELECT * FROM sessions WHERE app_id = 1 ORDER BY id",
        "SELECT * FROM messages WHERE session_id = 1 ORDER BY id",
        "SELECT memory_id FROM memory_events WHERE app_id = 1 AND id > 7",
        "SELECT max(id) FROM memory_events WHERE app_id = 1",
        "SELECT * FROM memory_events WHERE memory_id = 1 ORDER BY id",
        "SELECT * FROM jobs WHERE status = -1 AND kind = 'x' AND run_at <= '2026'"
        " ORDER BY run_at, id",
        "SELECT * FROM receipts WHERE kind = 'memory' AND item_id IN (1, 2)",
        "SELECT embedding FROM embeddings WHERE hash = 'h' AND service_id = 1",
    ]
    with raw(sqlite) as connection:
        for query in queries:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert all("INDEX" in step for step in plan if not step.startswith("USE TEMP")), plan
            assert not any(step.startswith("SCAN") for step in plan), plan


def test_every_foreign_key_begins_an_index_so_that_cascades_need_no_scan(sqlite: Database) -> None:
    missing = set()
    with raw(sqlite) as connection:
        for table in schema.metadata.tables:
            leading = {
                connection.execute(f"PRAGMA index_info({index[1]!r})").fetchone()[2]
                for index in connection.execute(f"PRAGMA index_list({table})").fetchall()
            }
            keys = [c for c in connection.execute(f"PRAGMA table_info({table})") if c[5]]
            if len(keys) == 1 and keys[0][2] == "INTEGER":
                leading.add(keys[0][1])  # the rowid itself
            for key in connection.execute(f"PRAGMA foreign_key_list({table})"):
                if key[3] not in leading:
                    missing.add(f"{table}.{key[3]}")
    # A service is seldom deleted, after its vectors; an index on it would cost every vector.
    assert missing == {"embeddings.service_id"}


@pytest.mark.parametrize(
    "name", ["what? 100% #1", "Ünï 日本 👩‍👩‍👧", "a&b=c;d", "file:x", "sp ace"]
)
def test_a_folder_of_any_name_holds_the_rows_itself(tmp_path: Path, name: str) -> None:
    with closing(Database(tmp_path / name)) as database, database.write() as tx:
        keep(tx, ANA, "Lisbon")
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert [p.name for p in (tmp_path / name).iterdir()] == [FILE]
    assert (tmp_path / name / FILE).stat().st_size > 10_000


def test_nobody_else_on_the_machine_may_read_the_words(sqlite: Database) -> None:
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
        for path in sqlite.home.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def one_line(error: pytest.ExceptionInfo[StoreError]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_that_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError) as error:
        Database(tmp_path / "file" / "store")
    assert "MEMCHAT_HOME" in one_line(error)


def test_a_folder_in_the_place_of_the_file_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(StoreError) as error:
        Database(tmp_path)
    assert "MEMCHAT_HOME" in one_line(error)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_said_in_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError) as error:
        Database(tmp_path)
    tmp_path.chmod(0o700)
    assert "make it writable" in one_line(error)


def test_a_file_that_turns_read_only_refuses_the_write_and_still_reads(sqlite: Database) -> None:
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
    sqlite.close()
    with closing(Database(sqlite.home)) as sqlite:
        event.listen(
            private.engine(sqlite), "connect", lambda c, _: c.execute("PRAGMA query_only=ON")
        )
        private.engine(sqlite).dispose()
        with pytest.raises(StoreError) as error, sqlite.write() as tx:
            keep(tx, ANA, "Porto")
        assert "cannot be written" in one_line(error)
        with sqlite.read() as tx:
            assert (
                count(tx, apps.find(tx, ANA).ids, Wanted(status="all"), ValuesInForce(TODAY)) == 1
            )


def test_a_full_disk_refuses_the_whole_write_and_keeps_what_was_there(sqlite: Database) -> None:
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
    sqlite.close()
    with closing(Database(sqlite.home)) as sqlite:
        event.listen(
            private.engine(sqlite),
            "connect",
            lambda c, _: c.execute("PRAGMA max_page_count=1").fetchall(),
        )  # SQLite raises the limit to what the file has; then there is no room for one page more
        private.engine(sqlite).dispose()
        with pytest.raises(StoreError) as error, sqlite.write() as tx:
            keep(tx, ANA, "Porto")
            talk(tx, ANA, *(f"{i} " + "long words " * 5_000 for i in range(20)))
        assert "full" in one_line(error)
        with sqlite.read() as tx:
            (memory,) = memories.listed(
                tx, apps.find(tx, ANA).ids, Wanted(status="all"), ValuesInForce(TODAY)
            )
            assert memory.value == "Lisbon"
            assert tx.execute(select(schema.messages)).first() is None
            assert (
                tx.connection.exec_driver_sql("SELECT count(*) FROM passages_fts").scalar() == 1
            ), "the fact"
            assert tx.connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


@pytest.mark.parametrize("damage", ["garbage", "cut"])
def test_a_damaged_file_is_said_in_one_line_and_left_alone(sqlite: Database, damage: str) -> None:
    with sqlite.write() as tx:
        talk(tx, ANA, *(f"{i} " + "words " * 500 for i in range(100)))
    sqlite.close()
    whole = sqlite.path.read_bytes()
    broken = b"not a database at all" * 500 if damage == "garbage" else whole[: len(whole) // 3]
    sqlite.path.write_bytes(broken)
    with (
        pytest.raises(StoreError) as error,
        closing(Database(sqlite.home)) as database,
        database.write() as tx,
    ):
        talk(tx, ANA, "more")
        keep(tx, ANA, "Lisbon")
        tx.connection.exec_driver_sql("SELECT count(*), max(content) FROM messages").all()
        tx.connection.exec_driver_sql("SELECT * FROM passages_fts_data").all()
    assert "damaged" in one_line(error)
    assert sqlite.path.read_bytes() == broken


def test_a_writer_that_waits_too_long_is_told_who_is_in_the_way(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("memchat.db.database.BUSY_SECONDS", 0.05)
    with closing(Database(tmp_path)) as database, database.write():
        with pytest.raises(StoreError) as error, database.write():
            pass
        assert "another process" in one_line(error)


@pytest.mark.parametrize("wrong", [2**63, -(2**70), "half a \ud83d"])
def test_what_no_row_can_hold_is_refused_in_one_line(store: Database, wrong) -> None:
    with pytest.raises(InputError) as error, store.read() as tx:
        if isinstance(wrong, int):
            memories.by_ids(tx, [1], [wrong])
        else:
            jobs.listed(tx, user=wrong, status=None, now=NOON, limit=1)
    assert "\n" not in str(error.value)


def test_every_commit_survives_a_copy_of_the_files_as_they_lie(sqlite: Database) -> None:
    """What a crash leaves: the file and its log, the process gone without closing."""
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
    crashed = sqlite.home.parent / "crashed"
    crashed.mkdir()
    for path in sqlite.home.iterdir():
        if not path.name.endswith("-shm"):
            (crashed / path.name).write_bytes(path.read_bytes())
    with closing(Database(crashed)) as database, database.read() as tx:
        assert count(tx, apps.find(tx, ANA).ids, Wanted(status="all"), ValuesInForce(date.max)) == 1


def test_the_log_is_emptied_once_no_reader_holds_it(sqlite: Database) -> None:
    log = sqlite.path.with_name(FILE + "-wal")
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
    assert log.stat().st_size > 0
    assert sqlite.truncate_wal() and log.stat().st_size == 0
