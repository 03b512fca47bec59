"""mem0ai with its local stores: ``infer=False``, no model asked, no telemetry.

Its optional spaCy and fastembed steps stay off: their models are downloads. The embedder hands back
the given vectors.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from hashlib import md5
from pathlib import Path
from typing import Any
from uuid import UUID

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = str(Path(sys.argv[1]) / "mem0")
os.environ["OPENAI_API_KEY"] = "none"

from mem0 import Memory
from serving import Data, serve


class GivenVectors:
    """Whatever was set before the call."""

    config: Any = None

    def __init__(self) -> None:
        self.vector: list[float] = []

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.vector


class Mem0:
    """One mem0 ``Memory`` over a local store."""

    def __init__(self, folder: Path, data: Data, kind: str) -> None:
        path = str(folder / "store")
        stores: dict[str, dict[str, Any]] = {
            "qdrant": {"path": path, "on_disk": True},
            "faiss": {"path": path, "distance_strategy": "cosine", "normalize_L2": True},
        }
        common = {"collection_name": "memories", "embedding_model_dims": 384}
        self._data = data
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": kind, "config": {**common, **stores[kind]}},
                "embedder": {"provider": "openai", "config": {"embedding_dims": 384}},
                "llm": {"provider": "openai", "config": {"model": "none"}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._given = GivenVectors()
        self._memory.embedding_model = self._given
        self._ids: dict[int, str] = {}

    def load(self, start: int, texts: list[str]) -> None:
        """What ``add`` would write, in bulk."""
        rows = range(start, start + len(texts))
        now = datetime.now(UTC).isoformat()
        payloads = [
            {
                "user_id": self._data.user(row),
                "role": "user",
                "data": text,
                "hash": md5(text.encode()).hexdigest(),
                "created_at": now,
                "updated_at": now,
                "text_lemmatized": text,
            }
            for row, text in zip(rows, texts, strict=True)
        ]
        vectors = self._data.vectors[start : start + len(texts)].tolist()
        self._memory.vector_store.insert(
            vectors=vectors, payloads=payloads, ids=[str(UUID(int=row)) for row in rows]
        )

    def search(self, question: int) -> list[int]:
        self._given.vector = self._data.question_vectors[question].tolist()
        found = self._memory.search(
            self._data.questions[question],
            filters={"user_id": self._data.asked[question]},
            top_k=10,
            threshold=0.0,
        )
        return [UUID(hit["id"]).int for hit in found["results"]]

    def add(self, row: int, text: str) -> None:
        self._given.vector = self._data.vectors[row].tolist()
        done = self._memory.add(text, user_id=self._data.user(row), infer=False)
        self._ids[row] = done["results"][0]["id"]

    def delete(self, row: int) -> None:
        self._memory.delete(self._ids.get(row, str(UUID(int=row))))


if __name__ == "__main__":
    serve(lambda folder, data: Mem0(folder, data, sys.argv[3]))
