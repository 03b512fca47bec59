"""Cutting notes again whose chunks an embedding model cannot read whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.errors import MemChatError
from memchat.memory.embedding.batch_split import embed_documents
from memchat.notes.index import Cutter, queue
from memchat.providers import Embedder
from memchat.store import chunks, embeddings, notes, services
from memchat.store.chunks import NewChunk
from memchat.store.database import Database
from memchat.types import Note

if TYPE_CHECKING:
    from memchat.providers import Vectors

log = logging.getLogger(__name__)

BATCH = 20
"""Notes that are looked at together."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """New chunks for a note, and the vectors that the service in use has for them, by hash."""

    note: Note
    app_id: int
    parts: Sequence[NewChunk]
    vectors: Mapping[str, Vectors]


def recut(tx: Connection, note_id: int, cutter: Cutter, now: datetime) -> bool:
    """Cut a note anew, in the caller's transaction; whether it has other chunks now. Those with the
    same text keep their vectors and their counts."""
    found = _read(tx, note_id)
    if found is None:
        return False
    note, app_id = found
    parts = cutter.parts(note.text, note.profile)
    changed = parts != chunks.parts(tx, note_id)
    if changed:
        chunks.replace(tx, notes.of(note, app_id), parts, now)
    if cutter.model is not None:
        notes.size_for(tx, [note_id], cutter.model)
    queue(tx, note_id, app_id, now)
    return changed


def fit(tx: Connection, note_id: int, cutter: Cutter, now: datetime) -> None:
    """Cut a note anew, in the caller's transaction, if the model cannot read a chunk whole."""
    if notes.sized_for(tx, note_id) == cutter.model:
        return
    if not all(map(cutter.reads_whole, chunks.texts(tx, note_id))):
        recut(tx, note_id, cutter, now)


class NoteFitting:
    """Fits the notes of a store to an embedding service that it is about to use.

    The service in use goes on to answer: it gets its vectors of the new chunks first, and each note
    is changed in one transaction.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        coming: Embedder,
        in_use: Embedder | None,
    ) -> None:
        """``in_use`` is None where its service cannot be asked: until the change the new chunks are
        found by their words."""
        self._database = database
        self._clock = clock
        self._cutter = Cutter(coming)
        self._in_use = in_use

    def run(self) -> None:
        """Fit all notes. It may be stopped at any time; the next run goes on from there."""
        model = self._cutter.model
        assert model is not None
        while True:
            with self._database.read() as tx:
                batch = notes.not_sized_for(tx, model, BATCH)
                unfit = [i for i in batch if not self._fits(tx, i)]
                found = [read for i in unfit if (read := _read(tx, i)) is not None]
            if not batch:
                return
            cuts = [self._cut(note, app_id) for note, app_id in found]
            with self._database.write() as tx:
                # One that was written anew meanwhile is looked at again.
                same = [cut for cut in cuts if _read(tx, cut.note.id) == (cut.note, cut.app_id)]
                for cut in same:
                    self._write(tx, cut)
                fitting = [i for i in batch if i not in unfit and self._fits(tx, i)]
                notes.size_for(tx, [*fitting, *(cut.note.id for cut in same)], model)

    def done(self, tx: Connection) -> bool:
        """Whether the coming service reads every chunk of the store whole."""
        assert self._cutter.model is not None
        return not notes.not_sized_for(tx, self._cutter.model, 1)

    def _fits(self, tx: Connection, note_id: int) -> bool:
        return all(map(self._cutter.reads_whole, chunks.texts(tx, note_id)))

    def _cut(self, note: Note, app_id: int) -> _Cut:
        parts = self._cutter.parts(note.text, note.profile)
        said = (part.masked or note.text[part.offset : part.offset + part.size] for part in parts)
        texts = {chunks.text_hash(text): text for text in said}
        return _Cut(note, app_id, parts, self._vectors(texts))

    def _vectors(self, texts: Mapping[str, str]) -> Mapping[str, Vectors]:
        """What the service in use makes of these texts; nothing once it has failed."""
        if self._in_use is None or not texts:
            return {}
        try:
            return embed_documents(self._in_use, texts)[0]
        except MemChatError as error:
            log.warning("notes are found by their words until the change: %s", error)
            self._in_use = None
            return {}

    def _write(self, tx: Connection, cut: _Cut) -> None:
        now, in_use = self._clock(), services.in_use(tx)
        chunks.replace(tx, notes.of(cut.note, cut.app_id), cut.parts, now)
        if in_use is not None:
            embeddings.put(tx, in_use, cut.vectors.items(), now)
        queue(tx, cut.note.id, cut.app_id, now)


def _read(tx: Connection, note_id: int) -> tuple[Note, int] | None:
    """A note, and its scope row; None if it is gone."""
    app_id = notes.app_id_of(tx, note_id)
    note = None if app_id is None else notes.get(tx, [app_id], note_id)
    return None if app_id is None or note is None else (note, app_id)
