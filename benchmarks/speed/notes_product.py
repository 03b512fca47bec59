"""memchat's notes under measurement: each row is a memo of one chunk, used through ``Notes``."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.speed.peers.serving import Data, serve
from benchmarks.speed.product import DENSE, GivenVectors, Store
from memchat.db import apps
from memchat.notes import index, rows
from memchat.notes.index import Prepared
from memchat.notes.rows import Filter, NewChunk
from memchat.search import embeddings
from memchat.search.embeddings import Selection
from memchat.search.passages import text_hash
from memchat.search.ranking import ScoreParts
from memchat.types import NewNote, Scope

USER = "reader"
TOKENS = 250
"""What the chunks are said to have; nothing here depends on it."""


class NotesProduct(Store):
    """One memchat store. Row n of the data is the note with the external id n."""

    def __init__(self, folder: Path, data: Data) -> None:
        super().__init__(folder, data, GivenVectors(data))
        self._notes = self._mc.user(USER).notes
        self._ids: dict[int, int] = {}

    def load(self, start: int, texts: list[str]) -> None:
        """Rows as ``add`` leaves them, many in one transaction."""
        meaning, _ = self._mc._assembly.embedding_space()
        assert meaning is not None
        now = self._clock()
        rows = range(start, start + len(texts))
        vectors = zip(map(text_hash, texts), self._data.vectors[rows], strict=True)
        with self._mc._assembly.database.write(Scope(USER), ensure=True) as tx:
            embeddings.put(tx, meaning.service_id, vectors)
            for row, text in zip(rows, texts, strict=True):
                note = NewNote(text, type=self._data.user(row), external_id=row, created_at=now)
                parts = [NewChunk(0, len(text), TOKENS)]
                index.write(tx, tx.own, Prepared(note, parts, None))

    def search(self, question: int) -> list[int]:
        """The public call, of one type where the data asks for one."""
        text = self._data.questions[question]
        found = self._notes.search(text, limit=10, type=self._type(question))
        return [int(hit.source_id) for hit in found.hits]

    def add(self, row: int, text: str) -> None:
        note = self._notes.add(
            text, type=self._data.user(row), external_id=row, profile="document", wait=False
        )
        assert note is not None and note.chunks == 1
        self._ids[row] = note.id

    def delete(self, row: int) -> None:
        """The public call, which also takes the words from the file."""
        self._notes.delete(self._ids[row])

    # What only memchat is asked for

    def embed(self) -> float:
        """The vectors of what was added, as the queue makes them: ms a row."""
        started = time.perf_counter()
        done = self._mc.jobs.run(kinds=("note",)).done
        return (time.perf_counter() - started) * 1000 / max(done, 1)

    def purge(self) -> None:
        """Deleting a note purges it at once."""

    def dense(self, questions: list[int]) -> list[list[int]]:
        """The ten nearest by meaning alone, as the search sees them."""
        meaning, _ = self._mc._assembly.embedding_space()
        assert meaning is not None
        found = []
        for n in questions:
            vector = self._mc._assembly.recall().question(self._data.questions[n]).vector
            assert vector is not None
            with self._mc._assembly.database.read() as tx:
                own = [i for i in [apps.find(tx, Scope(USER)).own] if i is not None]
                wanted = Filter(type=self._type(n))
                only = None if wanted == Filter() else rows.chunk_ids(tx, own, wanted)
                near = meaning.index.search(tx, own, vector, DENSE, Selection(only), "chunk")
                hits = rows.hits(tx, {i: _NO_PARTS for i, _ in near}, with_text=False)
            found.append([int(hit.source_id) for hit in hits])
        return found

    def _type(self, question: int) -> str | None:
        return self._data.asked[question] if self._data.filtered else None


_NO_PARTS = ScoreParts(0.0, None, None)


if __name__ == "__main__":
    serve(NotesProduct)
