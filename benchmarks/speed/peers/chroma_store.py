"""Chroma, persistent client: HNSW by its defaults with cosine, filtered by the user."""

from __future__ import annotations

from pathlib import Path

import chromadb
from chromadb.config import Settings
from serving import Data, serve


class Chroma:
    """One collection."""

    def __init__(self, folder: Path, data: Data) -> None:
        self._data = data
        client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._most = client.get_max_batch_size()
        self._rows = client.get_or_create_collection(
            "memories", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    def load(self, start: int, texts: list[str]) -> None:
        for at in range(0, len(texts), self._most):
            self._insert(start + at, texts[at : at + self._most])

    def _insert(self, start: int, texts: list[str]) -> None:
        rows = range(start, start + len(texts))
        self._rows.add(
            ids=[str(row) for row in rows],
            embeddings=self._data.vectors[start : start + len(texts)],
            documents=texts,
            metadatas=[{"user": self._data.user(row)} for row in rows],
        )

    def search(self, question: int) -> list[int]:
        found = self._rows.query(
            query_embeddings=[self._data.question_vectors[question]],
            n_results=10,
            where={"user": self._data.asked[question]} if self._data.filtered else None,
        )
        return [int(i) for i in found["ids"][0]]

    def add(self, row: int, text: str) -> None:
        self._insert(row, [text])

    def delete(self, row: int) -> None:
        self._rows.delete(ids=[str(row)])


if __name__ == "__main__":
    serve(Chroma)
