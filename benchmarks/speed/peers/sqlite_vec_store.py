"""sqlite-vec through apsw (many Pythons cannot load extensions): vectors alone, exact.

The user is the partition key; ``metadata`` keeps it in a metadata column instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

import apsw
import sqlite_vec
from serving import Data, serve


class SqliteVec:
    """A vec0 table and a table of texts."""

    def __init__(self, folder: Path, data: Data, kind: str) -> None:
        self._data = data
        self._db = apsw.Connection(str(folder / "vec.db"))
        self._db.enable_load_extension(True)
        self._db.load_extension(sqlite_vec.loadable_path())
        self._db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
        user = "user text partition key" if kind == "partition" else "user text"
        self._db.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS v USING vec0(id integer primary key, {user}, "
            f"e float[{data.dimensions}] distance_metric=cosine);"
            "CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, user TEXT, text TEXT)"
        )

    def load(self, start: int, texts: list[str]) -> None:
        with self._db:
            for row, text in enumerate(texts, start):
                self._insert(row, text)

    def _insert(self, row: int, text: str) -> None:
        user = self._data.user(row)
        vector = self._data.vectors[row].tobytes()
        self._db.execute("INSERT INTO v(id, user, e) VALUES (?, ?, ?)", (row, user, vector))
        self._db.execute("INSERT INTO t VALUES (?, ?, ?)", (row, user, text))

    def search(self, question: int) -> list[int]:
        whose = (self._data.asked[question],) if self._data.filtered else ()
        rows = self._db.execute(
            "WITH near AS (SELECT id, distance FROM v WHERE e MATCH ? AND k = 10"
            f"{' AND user = ?' if whose else ''}) "
            "SELECT t.id, t.text FROM near JOIN t ON t.id = near.id ORDER BY distance",
            (self._data.question_vectors[question].tobytes(), *whose),
        )
        return [row[0] for row in rows]

    def add(self, row: int, text: str) -> None:
        with self._db:
            self._insert(row, text)

    def delete(self, row: int) -> None:
        with self._db:
            self._db.execute("DELETE FROM v WHERE id = ?", (row,))
            self._db.execute("DELETE FROM t WHERE id = ?", (row,))


if __name__ == "__main__":
    serve(lambda folder, data: SqliteVec(folder, data, sys.argv[3]))
