"""The schema over time: fresh, older, newer, foreign, and an upgrade that fails."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps, migrate, schema
from memchat.db.database import FILE, Database
from memchat.errors import SchemaError, StoreError
from memchat.facts import changes, lists
from memchat.facts.history import Cause
from memchat.facts.memories import NewMemory, ValuesInForce
from memchat.providers.embedders import HashEmbedder
from memchat.types import Scope, Service, Wanted
from tests.support.store import NOON, WAIT

HEAD = schema.HEAD
BACKUP = f"{FILE}.{HEAD}.bak"
NEXT, AFTER_NEXT = (f"{int(HEAD) + steps:04}" for steps in (1, 2))

SECOND = f'''
"""A step that a later version may take."""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{HEAD}"


def upgrade():
    op.add_column("memories", sa.Column("mood", sa.String(), nullable=True))
    op.execute("UPDATE memories SET mood = 'calm'")
'''
THIRD = f'''
"""A step that goes wrong half way."""
from alembic import op

revision = "{AFTER_NEXT}"
down_revision = "{NEXT}"


def upgrade():
    op.execute("DELETE FROM memories")
    op.execute("DROP TABLE jobs")
    op.execute("UPDATE no_such_table SET x = 1")
'''


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store of this revision that holds one memory."""
    with closing(Database(tmp_path / "store")) as database, database.write() as tx:
        own, _ = apps.ensure(tx, Scope("ana"), NOON)
        fact = NewMemory("profile", "city", "Lisbon", False, "city Lisbon", NOON, "manual")
        changes.add(tx, own, fact, Cause(NOON, "user"))
    return tmp_path / "store"


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch):
    """Makes this memchat a later one, with these steps more."""

    def become(head: str, *steps: str) -> None:
        scripts = tmp_path / "migrations"
        shutil.copytree(migrate.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
        for number, step in enumerate(steps, 3):
            (scripts / "versions" / f"{number:04}_step.py").write_text(step)
        monkeypatch.setattr(migrate, "SCRIPTS", scripts)
        monkeypatch.setattr(migrate.upgrade, "__defaults__", (scripts,))
        monkeypatch.setattr(schema, "HEAD", head)

    return become


def ask(path: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def files(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir()}


def test_a_fresh_store_is_what_the_tables_in_code_say(tmp_path: Path) -> None:
    ours = set(schema.metadata.tables)

    def is_ours(_object, name: str, kind: str, _reflected, _to) -> bool:
        return kind != "table" or name in ours  # keyword search is SQLite's alone

    with closing(Database(tmp_path)) as database, database.read() as tx:
        options = {"include_object": is_ours, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(tx, opts=options)
        assert compare_metadata(context, schema.metadata) == []


def test_a_fresh_store_needs_no_backup(tmp_path: Path) -> None:
    Database(tmp_path).close()
    assert list(files(tmp_path)) == [FILE]


def test_the_revision_in_code_is_the_newest_script() -> None:
    assert ScriptDirectory(str(migrate.SCRIPTS)).get_heads() == [schema.HEAD]


def test_opening_again_changes_nothing(home: Path) -> None:
    before = files(home)
    for _ in range(2):
        Database(home).close()
    assert files(home) == before


def test_an_older_store_is_brought_up_to_date_with_its_rows_and_a_backup(
    home: Path, next_version
) -> None:
    rows = ask(home / FILE, "SELECT id, key, value, sha1 FROM memories")
    next_version(NEXT, SECOND)
    Database(home).close()
    assert ask(home / FILE, "SELECT version_num FROM alembic_version") == [(schema.HEAD,)]
    assert ask(home / FILE, "SELECT id, key, value, sha1 FROM memories") == rows != []
    assert ask(home / FILE, "SELECT mood FROM memories") == [("calm",)]
    assert sorted(files(home)) == [FILE, BACKUP]
    assert ask(home / BACKUP, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    assert ask(home / BACKUP, "SELECT id, key, value, sha1 FROM memories") == rows
    assert stat.S_IMODE((home / BACKUP).stat().st_mode) == 0o600

    before = files(home)
    Database(home).close()
    assert files(home) == before


def test_the_backup_opens_again_with_the_version_that_made_it(home: Path, next_version) -> None:
    next_version(NEXT, SECOND)
    Database(home).close()
    (home / BACKUP).replace(home / FILE)
    with closing(Database(home)) as database, database.read() as tx:
        assert lists.counted(
            tx, apps.find(tx, Scope("ana")).ids, Wanted(status="all"), ValuesInForce(NOON.date())
        )


def test_a_process_that_comes_second_waits_and_makes_no_backup(
    home: Path, next_version, monkeypatch
) -> None:
    next_version(NEXT, SECOND)
    upgrade, check = migrate.upgrade, migrate.check_known
    pool, second, came_second = ThreadPoolExecutor(1), [], threading.Event()

    def meanwhile(tx) -> None:
        monkeypatch.setattr(migrate, "upgrade", upgrade)
        monkeypatch.setattr(
            migrate, "check_known", lambda *given: (check(*given), came_second.set())
        )
        second.append(pool.submit(Database, home))
        assert came_second.wait(WAIT)
        upgrade(tx)

    monkeypatch.setattr(migrate, "upgrade", meanwhile)
    Database(home).close()
    with closing(second[0].result(timeout=WAIT)) as database:
        assert database.backup is None
    assert ask(home / BACKUP, "SELECT version_num FROM alembic_version") == [(HEAD,)]


def test_where_another_process_takes_too_long_to_upgrade_it_says_to_wait(
    home: Path, next_version, monkeypatch
) -> None:
    next_version(NEXT, SECOND)
    monkeypatch.setattr("memchat.db.database.BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(home / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="brings an older store up to date; wait") as error:
            Database(home)
    assert "restore" not in str(error.value)
    Database(home).close()


def test_the_backup_of_an_earlier_upgrade_is_not_overwritten_by_that_of_a_restored_store(
    home: Path, next_version
) -> None:
    restored = (home / FILE).read_bytes()
    with closing(sqlite3.connect(home / FILE)) as db, db:
        db.execute("UPDATE memories SET value = 'later'")
    next_version(NEXT, SECOND)
    Database(home).close()
    first = (home / BACKUP).read_bytes()
    for _ in range(2):
        (home / FILE).write_bytes(restored)
        with closing(Database(home)) as database:
            assert database.backup == home / f"{FILE}.{HEAD}.2.bak"
    assert (home / BACKUP).read_bytes() == first
    values = ask(home / f"{FILE}.{HEAD}.2.bak", "SELECT DISTINCT value FROM memories")
    assert values != [("later",)]
    assert sorted(files(home)) == [FILE, f"{FILE}.{HEAD}.2.bak", BACKUP]


def test_an_upgrade_that_fails_leaves_the_rows_as_they_were(home: Path, next_version) -> None:
    dump = (
        ask(home / FILE, "SELECT * FROM memories"),
        ask(home / FILE, "SELECT sql FROM sqlite_master"),
    )
    next_version(AFTER_NEXT, SECOND, THIRD)
    for _ in range(2):
        with pytest.raises(StoreError, match="no_such_table") as error:
            Database(home)
        assert "\n" not in str(error.value)
        assert str(home / BACKUP) in str(error.value) and "nothing" in str(error.value)
    assert ask(home / FILE, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    assert dump == (
        ask(home / FILE, "SELECT * FROM memories"),
        ask(home / FILE, "SELECT sql FROM sqlite_master"),
    )
    assert sorted(files(home)) == [FILE, BACKUP]


def test_a_backup_that_cannot_be_made_stops_the_upgrade(home: Path, next_version) -> None:
    (home / BACKUP).mkdir()
    next_version(NEXT, SECOND)
    with pytest.raises(StoreError) as error:
        Database(home)
    assert "\n" not in str(error.value) and BACKUP in str(error.value)
    assert ask(home / FILE, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    assert {path.name for path in home.iterdir()} == {FILE, BACKUP}


def test_a_store_of_a_newer_memchat_is_refused_and_left_alone(home: Path) -> None:
    with closing(sqlite3.connect(home / FILE)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = files(home)
    with pytest.raises(SchemaError, match=r"newer memchat.*9999.*update memchat"):
        Database(home)
    assert files(home) == before


def test_another_program_s_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute("CREATE TABLE recipes (id INTEGER PRIMARY KEY)")
    before = files(tmp_path)
    with pytest.raises(SchemaError, match=r"recipes.*MEMCHAT_HOME"):
        Database(tmp_path)
    assert files(tmp_path) == before


def test_a_creation_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    Database(tmp_path).close()
    assert ask(tmp_path / FILE, "SELECT version_num FROM alembic_version") == [(schema.HEAD,)]


class OtherEmbedder(HashEmbedder):
    """The same words under another name or size."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def service(self) -> Service:
        return self._service


@pytest.mark.parametrize(
    "other",
    [
        Service("gemini", "gemini-embedding-001", 64, 2048),
        Service("hash", "words", 768, 2048),
        Service("hash", "words", 64, 2048, version="2"),
    ],
    ids=["model", "dimension", "version"],
)
def test_a_store_with_another_service_s_vectors_is_refused_and_left_alone(
    home: Path, other: Service
) -> None:
    settings = Settings(home=home)
    with MemChat(settings=settings, embedder=HashEmbedder()) as mc:
        mc.user("ana").memories.add("profile", "job", "baker")
        assert mc.jobs.embed().count == 1
    before = files(home)
    with (
        MemChat(settings=settings, embedder=OtherEmbedder(other)) as mc,
        pytest.raises(SchemaError) as error,
    ):
        mc.user("ana").search("baker")
    assert HashEmbedder().service.name in str(error.value)
    assert other.name in str(error.value) and "\n" not in str(error.value)
    assert f"memchat services migrate {other.name}" in str(error.value)
    assert "unset MEMCHAT_EMBED_MODEL" in str(error.value)
    assert files(home) == before
    with MemChat(settings=settings, embedder=HashEmbedder()) as mc:
        assert [h.text for h in mc.user("ana").search("baker").hits] != []


def test_a_service_that_differs_only_in_size_is_told_by_its_size(home: Path) -> None:
    settings = Settings(home=home)
    with MemChat(settings=settings, embedder=HashEmbedder()) as mc:
        mc.user("ana").memories.add("fact", "bike", "a red bike")
        mc.jobs.embed()
    other = OtherEmbedder(Service("hash", "words", 768, 2048))
    with MemChat(settings=settings, embedder=other) as mc, pytest.raises(SchemaError) as error:
        mc.user("ana").search("baker")
    assert "64" in str(error.value) and "768" in str(error.value)


def test_a_store_of_the_first_revision_finds_its_replaced_values_from_now_on(
    tmp_path: Path, monkeypatch
) -> None:
    home = tmp_path / "store"
    home.mkdir()
    with closing(sqlite3.connect(home / FILE)) as raw, raw:
        raw.execute("PRAGMA journal_mode=WAL")
    engine = create_engine(f"sqlite:///{home / FILE}")
    with engine.begin() as tx:
        config = Config()
        config.set_main_option("script_location", str(migrate.SCRIPTS))
        config.attributes["connection"] = tx
        command.upgrade(config, "0001")
        tx.exec_driver_sql("INSERT INTO apps (user, name) VALUES ('ana', 'default')")
        for value, active, reason in (("Porto", 1, None), ("Lisbon", 0, "superseded")):
            tx.exec_driver_sql(
                "INSERT INTO memories (memory_type, key, value, sha1, app_id, active,"
                " inactive_reason, replaced_by, search_text, text_hash)"
                " VALUES ('profile', 'city', ?, ?, 1, ?, ?, ?, ?, 'x')",
                (value, value, active, reason, None if active else 1, f"city {value}"),
            )
        tx.exec_driver_sql(
            "INSERT INTO memory_events (memory_id, app_id, kind, actor, cause)"
            " SELECT id, app_id, 'add', 'user', '' FROM memories"
        )
    engine.dispose()
    with MemChat(settings=Settings(home=home, timezone="Europe/Berlin", embed_model="none")) as mc:
        (hit,) = mc.user("ana").search("Lisbon").hits
        assert hit.memory.value == "Porto" and "before: Lisbon" in hit.text


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004", "0005", "0006", "0007"])
def test_a_store_of_any_earlier_revision_opens_with_its_rows_and_a_backup(
    tmp_path: Path, revision: str
) -> None:
    home = tmp_path / "store"
    home.mkdir()
    with closing(sqlite3.connect(home / FILE)) as connection:
        _make_at(home / FILE, revision)
        connection.executescript(
            """
            INSERT INTO apps (id, user, name) VALUES (1, 'ana', 'default');
            INSERT INTO memories (id, memory_type, key, value, sha1, app_id, created_by,
                search_text, text_hash, said_at, last_seen_at, updated_at, created_at)
            VALUES (1, 'profile', 'city', 'Lisbon', 'x', 1, 'manual', 'city Lisbon', 'y',
                '2026-05-01T12:00:00.000000Z', '2026-05-01T12:00:00.000000Z',
                '2026-05-01T12:00:00.000000Z', '2026-05-01T12:00:00.000000Z');
            INSERT INTO inbox (id, app_id, reason, memory_type, key, value)
            VALUES (1, 1, 'the model was not sure', 'fact', 'hobby', 'bees');
            """
        )
        connection.commit()
    with MemChat(settings=Settings(home=home), embedder=HashEmbedder(), clock=lambda: NOON) as mc:
        ana = mc.user("ana")
        assert [(m.key, m.value, m.starts_at) for m in ana.memories.list()] == [
            ("city", "Lisbon", None)
        ]
        (item,) = ana.inbox.list()
        assert (item.relation, item.target_id, item.value) == ("new", None, "bees")
        assert ana.inbox.accept(item.id).value == "bees"
    assert ask(home / FILE, "SELECT version_num FROM alembic_version") == [(schema.HEAD,)]
    assert ask(home / f"{FILE}.{revision}.bak", "SELECT value FROM memories") == [("Lisbon",)]


def test_an_upgrade_marks_what_is_sensitive_by_its_key_and_by_why_it_was_asked(
    tmp_path: Path,
) -> None:
    home = tmp_path / "store"
    home.mkdir()
    _make_at(home / FILE, "0006")
    with closing(sqlite3.connect(home / FILE)) as connection:
        connection.execute("INSERT INTO apps (id, user, name) VALUES (1, 'ana', 'default')")
        for key in ("diet", "allergy", "medication", "asthma_medication", "debts", "religion"):
            connection.execute(
                "INSERT INTO memories (memory_type, key, value, sha1, app_id, search_text,"
                " text_hash) VALUES ('fact', ?, 'x', ?, 1, 'x', 'x')",
                (key, key),
            )
        for key, reason in (("knee", "it is sensitive: health, debts"), ("hobby", "not sure")):
            connection.execute(
                "INSERT INTO inbox (app_id, reason, memory_type, key, value)"
                " VALUES (1, ?, 'fact', ?, 'x')",
                (reason, key),
            )
        connection.commit()
    with MemChat(settings=Settings(home=home), embedder=HashEmbedder(), clock=lambda: NOON) as mc:
        ana = mc.user("ana")
        marked = {m.key for m in ana.memories.list() if m.sensitive}
        assert marked == {"medication", "asthma_medication", "debts", "religion"}
        knee, hobby = ana.inbox.list()
        assert ana.inbox.accept(knee.id).sensitive
        assert not ana.inbox.accept(hobby.id).sensitive


def test_numbers_of_the_inbox_that_programs_were_told_before_the_upgrade_are_not_given_again(
    tmp_path: Path,
) -> None:
    home = tmp_path / "store"
    home.mkdir()
    _make_at(home / FILE, "0015")
    early, late = ("2026-01-01T00:00:00.000000Z", "2026-02-01T00:00:00.000000Z")
    with closing(sqlite3.connect(home / FILE)) as db, db:
        db.execute("INSERT INTO apps (id, user, name) VALUES (1, 'ana', 'default')")
        db.execute("INSERT INTO clients (id, app_id, name, mode) VALUES (1, 1, 'Desk', 'ask')")
        db.execute(
            "INSERT INTO inbox (id, app_id, reason, memory_type, key, value, created_at)"
            " VALUES (3, 1, 'r', 'fact', 'pet', 'a dog', ?)",
            (late,),
        )
        db.executemany(
            "INSERT INTO client_writes (client_id, kind, target_id, at) VALUES (1, 'inbox', ?, ?)",
            [(3, early), (9, late)],  # 3 was answered, and another item got its number
        )
    with MemChat(settings=Settings(home=home), embedder=HashEmbedder(), clock=lambda: NOON) as mc:
        ana = mc.user("ana")
        assert [item.id for item in ana.inbox.list()] == [3]
        assert [one.waiting for one in ana.clients.list()] == [0]
        assert ana.client("Desk").remember("fact", "car", "a red van").inbox_id == 10


def _make_at(path: Path, revision: str) -> None:
    """A store as the version of that revision made it."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as tx:
        config = Config()
        config.set_main_option("script_location", str(migrate.SCRIPTS))
        config.attributes["connection"] = tx
        command.upgrade(config, revision)
    engine.dispose()
