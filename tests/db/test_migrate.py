"""The schema over time: fresh, older, newer, foreign, and an upgrade that fails."""

from __future__ import annotations

import hashlib
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
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
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory, ValuesInForce
from memchat.providers.embedders import HashEmbedder
from memchat.types import Scope, Service, Wanted
from tests.support import later_version
from tests.support.later_version import AFTER_NEXT, HEAD, NEXT, SECOND, THIRD
from tests.support.rows import count
from tests.support.store import NOON, WAIT

BACKUP = f"{FILE}.{HEAD}.bak"
LANDED = {"0100_baseline.py": "ef23bf6c8de8f7d8"}
LATER = """
import sys
from pathlib import Path
from memchat.db import migrate, schema
from memchat.db.database import Database
migrate.SCRIPTS, schema.HEAD = Path({scripts!r}), {head!r}
print("ready", flush=True)
sys.stdin.readline()
database = Database(Path({home!r}))
print(database.backup)
database.close()
"""
"""A process of a later version that opens the store once it is told to."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store of this revision that holds one memory."""
    with closing(Database(tmp_path / "store")) as database, database.write() as tx:
        own = apps.ensure(tx, Scope("ana")).own
        fact = NewMemory("profile", "city", "Lisbon", False, "city Lisbon", NOON, "manual")
        changes.add(tx, own, fact, Cause("user"))
    return tmp_path / "store"


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
        context = MigrationContext.configure(tx.connection, opts=options)
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
    next_version()
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
    next_version()
    Database(home).close()
    (home / BACKUP).replace(home / FILE)
    with closing(Database(home)) as database, database.read() as tx:
        assert count(
            tx, apps.find(tx, Scope("ana")).ids, Wanted(status="all"), ValuesInForce(NOON.date())
        )


def test_a_process_that_comes_second_waits_and_makes_no_backup(
    home: Path, next_version, monkeypatch
) -> None:
    next_version()
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
    next_version()
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
    next_version()
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
    next_version()
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


def test_several_processes_that_open_an_older_store_at_once_upgrade_it_once(
    home: Path, tmp_path: Path
) -> None:
    scripts = later_version.write_scripts(tmp_path / "migrations", SECOND)
    code = LATER.format(scripts=str(scripts), head=NEXT, home=str(home))
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline()  # it is ready
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    backups = [process.communicate(timeout=WAIT)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(backups) == sorted(["None", "None", str(home / BACKUP)])
    assert sorted(files(home)) == [FILE, BACKUP]
    assert ask(home / FILE, "SELECT version_num FROM alembic_version") == [(NEXT,)]
    assert ask(home / FILE, "SELECT value, mood FROM memories") == [("Lisbon", "calm")]


def test_keyword_rows_that_a_step_takes_away_are_made_anew(home: Path, next_version) -> None:
    next_version()
    with MemChat(settings=Settings(home=home, embed_model="none")) as mc:
        assert "Lisbon" in mc.user("ana").search("Lisbon").hits[0].text


def test_a_migration_of_a_release_is_never_edited() -> None:
    """Nor is a table in code that the baseline makes, without a migration. Until the first release
    both may be: the baseline's new hash is set here. From then on a line is only added."""
    assert dict(made_by_each()) == LANDED


def made_by_each() -> Iterator[tuple[str, str]]:
    """Of each migration its file's name, and the hash of its text and of the tables after it."""
    scripts = ScriptDirectory(str(migrate.SCRIPTS))
    config = Config()
    config.set_main_option("script_location", str(migrate.SCRIPTS))
    for script in reversed([*scripts.walk_revisions()]):
        engine = create_engine("sqlite://")
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, script.revision)
            tables = connection.exec_driver_sql(
                "SELECT sql FROM sqlite_master WHERE name NOT LIKE '%~_fts~_%' ESCAPE '~'"
                " AND sql IS NOT NULL ORDER BY type, name"
            ).scalars()
            made = " ".join(" ".join(tables).split())
        engine.dispose()
        path = Path(script.path)
        digest = hashlib.sha256(path.read_bytes() + made.encode()).hexdigest()
        yield path.name, digest[:16]


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
