"""A change of the embedding service meets failures, a kill and a second run."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest

from memchat import MemChat
from memchat.cli.output import progress_text
from memchat.db.database import FILE
from memchat.errors import ConfigError, ProviderError, StoreError
from memchat.providers.embedders import HashEmbedder
from memchat.search import embed, embeddings, vector_index
from memchat.types import Progress, Usage
from tests.support import private
from tests.support.service_change import NEW, OLD, RIVERS, THIRD, Between, found, migrate, spaces
from tests.support.store import Opener

# What goes wrong


def test_one_text_that_the_new_service_refuses_stops_neither_the_rest_nor_a_search(
    rivers: MemChat,
) -> None:
    class Refusing(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            if any("Sado" in text for text in texts):
                raise ProviderError("refused the request (status 400)", status=400)
            return super().embed_documents(texts)

    done = migrate(rivers, Refusing("other-96"))
    assert (done.switched, done.embedded) == (False, 6)
    assert list(done.refused) == ["memory 5"]
    assert OLD in spaces(rivers, "Sado flood", found(rivers, "Sado"))
    assert rivers.services.use(NEW, force=True).count == 1
    (hit,) = [h for h in found(rivers, "Sado") if "Sado" in h.text]
    assert hit.id == 5


def test_a_busy_service_is_waited_for_as_long_as_it_asks(rivers: MemChat) -> None:
    waits: list[float] = []

    class Busy(HashEmbedder):
        left = 3

        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            if self.left:
                self.left -= 1
                asked = 7.0 if self.left == 1 else None
                raise ProviderError("busy", status=429, retryable=True, retry_after=asked)
            return super().embed_documents(texts)

    assert migrate(rivers, Busy("other-96"), sleep=waits.append).switched
    assert waits == [1, 7, 4]


def test_a_service_that_wants_an_hour_ends_the_run_at_once_and_says_so(rivers: MemChat) -> None:
    class Spent(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            raise ProviderError("again in 3600 s", status=429, retryable=True, retry_after=3600)

    with pytest.raises(ProviderError, match="3600 s"):
        migrate(rivers, Spent("other-96"), sleep=lambda seconds: pytest.fail(f"slept {seconds} s"))
    assert migrate(rivers, HashEmbedder("other-96")).switched


def test_a_service_that_stays_down_ends_the_run_and_the_old_one_goes_on(rivers: MemChat) -> None:
    class Down(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            raise ProviderError("is failing (status 500)", status=500, retryable=True)

    with pytest.raises(ProviderError):
        migrate(rivers, Down("other-96"), sleep=lambda seconds: None)
    assert OLD in spaces(rivers, "Tejo flood", found(rivers, "Tejo"))
    assert migrate(rivers, HashEmbedder("other-96")).switched


@pytest.mark.parametrize("status", [401, 404])
def test_a_service_that_refuses_everybody_is_asked_once(rivers: MemChat, status: int) -> None:
    calls: list[int] = []

    class Locked(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            calls.append(len(texts))
            raise ProviderError("refused", status=status)

    with pytest.raises(ProviderError):
        migrate(rivers, Locked("other-96"))
    assert calls == [2]


def test_a_service_that_refuses_every_text_is_not_asked_for_each(
    rivers: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "FAILURES_BEFORE_PROBE", 5)
    calls: list[int] = []

    class Picky(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            calls.append(len(texts))
            raise ProviderError("refused the request (status 400)", status=400)

    with pytest.raises(ProviderError):
        migrate(rivers, Picky("other-96"))
    assert len(calls) == 5 + 1, "the last is a plain word, to tell the texts from the service"


@pytest.mark.parametrize("how", ["nan", "zero", "long", "few"])
def test_a_vector_that_cannot_be_kept_is_refused_and_the_old_service_goes_on(
    rivers: MemChat, how: str
) -> None:
    class Broken(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
            vectors, usage = super().embed_documents(texts)
            for n, text in enumerate(texts):
                if "Sado" in text and how in ("nan", "zero"):
                    vectors[n] = np.nan if how == "nan" else 0
                elif "Sado" in text and how == "few":
                    return vectors[:-1], usage
            if how == "long" and any("Sado" in text for text in texts):
                vectors = np.hstack([vectors, vectors])
            return vectors, usage

    done = migrate(rivers, Broken("other-96"))
    assert list(done.refused) == ["memory 5"] and not done.switched
    with private.database(rivers).read() as tx:
        rows = tx.connection.exec_driver_sql(
            "SELECT service_id, length(embedding) FROM embeddings"
        ).all()
    assert sorted(rows) == [(1, 4 * 64)] * 7 + [(2, 4 * 96)] * 6
    found(rivers, "Sado")


def test_a_change_that_cannot_begin_leaves_no_trace(
    rivers: MemChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        rivers.services.migrate("openai/text-embedding-3-small")
    assert [(info.name, info.state) for info in rivers.services.list()] == [(OLD, "in use")]


def test_a_service_that_fails_half_way_is_gone_on_with(rivers: MemChat) -> None:
    def fail(batch: int) -> None:
        if batch == 3:
            raise ProviderError("the account has no credit left", status=402)

    with pytest.raises(ProviderError):
        migrate(rivers, Between(NEW, fail))
    assert {i.name: i.state for i in rivers.services.list()} == {OLD: "in use", NEW: "coming"}
    assert rivers.services.migrate().switched  # without a name: the one that was begun
    assert {i.name: i.state for i in rivers.services.list()} == {OLD: "kept", NEW: "in use"}


def test_a_change_that_was_called_off_is_told_and_ends(rivers: MemChat, open_store: Opener) -> None:
    def call_off(batch: int) -> None:
        if batch == 2:
            open_store().services.remove(NEW, force=True)

    with pytest.raises(StoreError, match="called this change off"):
        migrate(rivers, Between(NEW, call_off))
    assert [info.name for info in rivers.services.list()] == [OLD]
    found(rivers, "Tejo")


def test_two_runs_at_once_are_refused_and_a_dead_one_is_not_waited_for(
    rivers: MemChat, open_store: Opener
) -> None:
    def second(batch: int) -> None:
        if batch == 1:
            with pytest.raises(StoreError, match="another memchat is making these vectors"):
                open_store().services.migrate(NEW)

    assert migrate(rivers, Between(NEW, second)).switched


def test_changing_to_a_third_service_meanwhile_leaves_the_second_aside(rivers: MemChat) -> None:
    with private.database(rivers).write() as tx:
        half = embeddings.register_service(tx, HashEmbedder("other-96").service)
        embeddings.set_coming(tx, half)
    assert {i.name: i.state for i in rivers.services.list()} == {OLD: "in use", NEW: "coming"}
    assert rivers.services.migrate(THIRD).switched
    assert {i.name: i.state for i in rivers.services.list()} == {
        OLD: "kept",
        NEW: "kept",
        THIRD: "in use",
    }


def test_progress_tells_rate_and_time_left() -> None:
    progress = Progress(done=1_200, total=3_000, seconds=2.0, begun_at=200)
    assert progress.rate == 500.0 and progress.left == 3.6
    assert Progress(0, 10, 0.0).left is None
    assert progress_text(progress) == "1,200 of 3,000 (40 %), 500 a second, 4 s left"
    assert progress_text(Progress(10, 10, 4.0)) == "10 of 10 (100 %), 2.5 a second"


# kill -9

KILLED = """
import os, signal, sys
from pathlib import Path
from memchat import MemChat
from memchat.config import Settings
from memchat.search import switch as migration
from memchat.providers.embedders import HashEmbedder
from tests.support.service_change import migrate

class Deadly(HashEmbedder):
    left = int(sys.argv[2])
    def embed_documents(self, texts):
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return super().embed_documents(texts)

migration.BATCH = 2
with MemChat(settings=Settings(Path(sys.argv[1]))) as mc:
    migrate(mc, Deadly("other-96"))
"""


@pytest.mark.parametrize("batches", [0, 2])
def test_a_killed_change_is_gone_on_with_and_pays_one_batch_twice_at_most(
    rivers: MemChat, open_store: Opener, batches: int
) -> None:
    home = rivers.settings.home
    command = [sys.executable, "-c", KILLED, str(home), str(batches)]
    done = subprocess.run(command, env={**os.environ, "MEMCHAT_EMBED_MODEL": ""}, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert OLD in spaces(rivers, "Tejo flood", found(rivers, "Tejo"))
    states = {info.name: (info.state, info.vectors) for info in rivers.services.list()}
    state, written = states[NEW]
    assert state == "coming" and 2 * (batches - 1) <= written <= 2 * batches
    rest = Between(NEW, lambda batch: None)
    assert migrate(open_store(), rest).switched
    assert sum(map(len, rest.batches)) == len(RIVERS) - written
    assert NEW in spaces(rivers, "Tejo flood", found(rivers, "Tejo"))


# Clearing up


def test_removing_the_old_service_keeps_what_the_new_one_needs(rivers: MemChat) -> None:
    rivers.services.migrate(NEW)
    before = [found(rivers, river) for river in RIVERS]
    assert rivers.services.remove(OLD).count == len(RIVERS)
    assert [found(rivers, river) for river in RIVERS] == before
    with closing(sqlite3.connect(rivers.settings.home / FILE)) as raw, raw:
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
        assert raw.execute("SELECT count(*) FROM embeddings").fetchone() == (len(RIVERS),)
        assert raw.execute("SELECT count(*) FROM memories").fetchone() == (len(RIVERS),)


def test_a_forgotten_fact_leaves_the_vectors_and_saved_index_of_every_service(
    rivers: MemChat, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "SAVE_FROM", 2)
    home = rivers.settings.home
    found(rivers, "Tejo")
    rivers.close()
    mc = open_store()
    mc.services.migrate(NEW)
    found(mc, "Tejo")
    mc.close()
    assert len(list((home / embeddings.FOLDER).iterdir())) == 2
    mc = open_store(embedder=HashEmbedder("other-96"))
    mc.user("ana").memories.delete(1)
    assert list((home / embeddings.FOLDER).iterdir()) == []
    assert {info.vectors for info in mc.services.list()} == {len(RIVERS) - 1}
