"""Repairing notes whose chunks do not fit their texts: they are cut anew from the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from sqlalchemy import Connection

from memchat.notes.index import Cutter, queue
from memchat.providers import Embedder
from memchat.store import apps, chunks, notes, repair
from memchat.store.database import Database
from memchat.types import counted


class NoteRepair:
    """One round over the notes of a whole store."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        drop_vectors: Callable[[Connection, Iterable[int]], None],
        embedder: Callable[[], Embedder | None],
    ) -> None:
        """``drop_vectors`` takes the saved vectors of scope rows from memory and disk. ``embedder``
        gives what chunks are cut for; it is called only if a note has to be cut."""
        self._database = database
        self._clock = clock
        self._drop_vectors = drop_vectors
        self._embedder = embedder

    def run(self) -> list[str]:
        """Repair what does not fit the texts; gives a line for each thing done."""
        return [line for step in (self._strays, self._chunks) if (line := step())]

    def _strays(self) -> str | None:
        """Chunks of notes that are not there."""
        with self._database.read() as tx:
            stray = repair.chunks_without_note(tx)
        if not stray:
            return None
        with self._database.write() as tx:
            repair.remove_chunks(tx, stray)
            self._drop_vectors(tx, apps.all_ids(tx))
        return f"deleted {counted(len(stray), 'chunk')} of notes that are gone"

    def _chunks(self) -> str | None:
        with self._database.read() as tx:
            wrong = repair.notes_with_wrong_chunks(tx)
        if not wrong:
            return None
        cutter = Cutter(self._embedder())
        for note_id in wrong:
            with self._database.write() as tx:
                self._cut_anew(tx, note_id, cutter)
        return f"cut {counted(len(wrong), 'note')} anew, whose chunks did not fit the text"

    def _cut_anew(self, tx: Connection, note_id: int, cutter: Cutter) -> None:
        app_id, now = notes.app_id_of(tx, note_id), self._clock()
        note = None if app_id is None else notes.get(tx, [app_id], note_id)
        if app_id is None or note is None:
            return  # it was deleted meanwhile
        chunks.replace(tx, notes.of(note, app_id), cutter.parts(note.text, note.profile), now)
        notes.size_for(tx, [note_id], cutter.model)
        queue(tx, note_id, app_id, now)
        self._drop_vectors(tx, [app_id])
