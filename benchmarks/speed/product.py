"""memchat under measurement: loaded through its own store verbs, used through ``MemChat``."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.speed.peers.serving import Data, serve
from memchat import MemChat, config
from memchat.db import apps
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory, search_text
from memchat.search import embeddings
from memchat.search.passages import text_hash
from memchat.types import Scope, Service, Usage

VALUES_A_KEY = 20
HOLD = 3600.0
"""Seconds for which a deletion waits for its purge, so that both can be timed apart."""
DENSE = 10


class GivenVectors:
    """An embedder that hands back the vectors of the data: embedding costs nothing here.

    ``value_of`` gives the row's own text of what is embedded, where that is more.
    """

    def __init__(self, data: Data, value_of: Callable[[str], str] = lambda text: text) -> None:
        self.service = Service("given", "vectors", data.dimensions, 2_000, local=True)
        self._value_of = value_of
        self._data = data
        self._questions = {text: n for n, text in enumerate(data.questions)}
        first = len(data.users) - len(data.extra())
        self._rows = {text: n for n, text in enumerate(data.extra(), first)}

    def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        rows = [self._rows[self._value_of(text)] for text in texts]
        return np.array(self._data.vectors[rows], np.float32), self._usage()

    def embed_query(self, text: str) -> tuple[np.ndarray, Usage]:
        vector = self._data.question_vectors[self._questions[text]]
        return vector, self._usage()

    def _usage(self) -> Usage:
        return Usage("embed", self.service.name, 0, 0, 0.0, 0.0)


class Clock:
    """The real time, moved on at will: held purges fall due."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self.ahead, UTC)


class Store:
    """A memchat store, and what it is asked for whatever is in it."""

    def __init__(self, folder: Path, data: Data, embedder: GivenVectors) -> None:
        self._data, self._folder = data, folder
        self._clock = Clock()
        settings = config.load({}).with_(home=folder)
        self._mc = MemChat(settings=settings, embedder=embedder, clock=self._clock)

    def close(self) -> None:
        self._mc.close()

    def bytes(self) -> dict[str, int]:
        """Of the database, its vectors apart, and of the index files."""
        self._mc._assembly.database.truncate_wal()
        index = self._folder / "mem.index"
        return {
            "database": (self._folder / "memchat.db").stat().st_size,
            "index": sum(f.stat().st_size for f in index.glob("*")) if index.exists() else 0,
        }

    def drop_index(self) -> None:
        """Take the index files away; the next opening builds from the rows."""
        shutil.rmtree(self._folder / "mem.index", ignore_errors=True)


class Product(Store):
    """One memchat store. Row n of the data is the memory n + 1."""

    def __init__(self, folder: Path, data: Data) -> None:
        super().__init__(folder, data, GivenVectors(data, _value))
        self._ids: dict[int, int] = {}
        self._people = int(data.users.max()) + 1

    def load(self, start: int, texts: list[str]) -> None:
        """Rows as ``add`` leaves them, many in one transaction; each user's shared row too."""
        meaning, _ = self._mc._assembly.embedding_space()
        assert meaning is not None
        now, zone = self._clock(), self._mc.settings.zone
        cause = Cause("user", "added by hand")
        with self._mc._assembly.database.write() as tx:
            scopes: dict[str, int] = {}
            for row, value in enumerate(texts, start):
                user = self._data.user(row)
                if user not in scopes:
                    scopes[user] = apps.ensure(tx, Scope(user)).own
                key = self._key(row)
                words = search_text(key, value, now, zone)
                # The vector first: a row that lacks one is written as work for the queue.
                vector = (text_hash(words), self._data.vectors[row])
                embeddings.put(tx, meaning.service_id, [vector])
                new = NewMemory("fact", key, value, True, words, now, "manual")
                memory_id = changes.add(tx, scopes[user], new, cause)
                assert memory_id == row + 1

    def _key(self, row: int) -> str:
        """One of as many keys as leave each person about twenty values a key."""
        keys = max(len(self._data.users) // self._people // VALUES_A_KEY, 1)
        return _key(row // self._people % keys)

    def search(self, question: int) -> list[int]:
        """The public call; facts alone are in the store."""
        data = self._data
        found = self._mc.user(data.asked[question]).search(data.questions[question], limit=10)
        return [hit.id - 1 for hit in found.hits]

    def add(self, row: int, text: str) -> None:
        self._ids[row] = (
            self._mc.user(self._data.user(row)).memories.add("fact", self._key(row), text).id
        )

    def delete(self, row: int) -> None:
        memory_id = self._ids.get(row, row + 1)
        self._mc.user(self._data.user(row)).memories.delete(memory_id, hold=HOLD)

    # What only memchat is asked for

    def embed(self) -> float:
        """The vectors of what was added, as the queue makes them: ms a row."""
        started = time.perf_counter()
        done = self._mc.jobs.embed().count
        return (time.perf_counter() - started) * 1000 / max(done, 1)

    def purge(self) -> float:
        """All deletions that are held, purged and scrubbed: ms a row."""
        self._clock.ahead += 2 * HOLD
        started = time.perf_counter()
        done = self._mc.jobs.run(kinds=("forget",)).done
        return (time.perf_counter() - started) * 1000 / max(done, 1)

    def dense(self, questions: list[int]) -> list[list[int]]:
        """The ten nearest by meaning alone, as the search sees them."""
        meaning, _ = self._mc._assembly.embedding_space()
        assert meaning is not None
        found = []
        for n in questions:
            with self._mc._assembly.database.read() as tx:
                ids = apps.find(tx, Scope(self._data.asked[n])).ids
                vector = self._mc._assembly.parts().recall.question(self._data.questions[n]).vector
                assert vector is not None
                hits = meaning.index.search(tx, ids, vector, DENSE)
            found.append([i - 1 for i, _ in hits])
        return found


def _value(search_text: str) -> str:
    """The value of a memory, which is the row's text, from what of the memory is embedded."""
    return search_text.partition("\n")[0].split(" | ", 2)[2]


def _key(number: int) -> str:
    """A key of many values, in letters: a key holds no digit."""
    return "topic_" + "".join(chr(97 + int(digit)) for digit in str(number))


if __name__ == "__main__":
    serve(partial(Product))
