"""LanceDB, exact (no vector index) with a scalar index on the user; ``hybrid`` searches words too.

Its own hybrid search: full-text index, both lists joined by reciprocal ranks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
from lancedb.index import FTS, BTree
from serving import Data, serve


class Lance:
    """One table."""

    def __init__(self, folder: Path, data: Data, kind: str) -> None:
        self._data = data
        self._hybrid = kind == "hybrid"
        schema = pa.schema(
            {
                "id": pa.int64(),
                "user": pa.string(),
                "text": pa.string(),
                "vector": pa.list_(pa.float32(), data.dimensions),
            }
        )
        self._table = lancedb.connect(folder / "lance").create_table(
            "memories", schema=schema, exist_ok=True
        )

    def load(self, start: int, texts: list[str]) -> None:
        self._table.add([self._row(row, text) for row, text in enumerate(texts, start)])

    def loaded(self) -> None:
        self._table.create_index("user", config=BTree())
        if self._hybrid:
            self._table.create_index("text", config=FTS())
        self._table.optimize()

    def _row(self, row: int, text: str) -> dict[str, Any]:
        vector = self._data.vectors[row]
        return {"id": row, "user": self._data.user(row), "text": text, "vector": vector}

    def search(self, question: int) -> list[int]:
        vector = self._data.question_vectors[question]
        if self._hybrid:
            query = self._table.search(query_type="hybrid").vector(vector)
            query = query.text(self._data.questions[question])
        else:
            query = self._table.search(vector).distance_type("cosine")
        if self._data.filtered:
            query = query.where(f"user = '{self._data.asked[question]}'", prefilter=True)
        found = query.limit(10).to_list()
        return [row["id"] for row in found]

    def add(self, row: int, text: str) -> None:
        self._table.add([self._row(row, text)])

    def delete(self, row: int) -> None:
        self._table.delete(f"id = {row}")


if __name__ == "__main__":
    serve(lambda folder, data: Lance(folder, data, sys.argv[3]))
