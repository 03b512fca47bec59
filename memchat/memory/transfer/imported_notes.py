"""Writing the notes of an export: a note is known by its type and external id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from memchat.errors import InputError
from memchat.memory.context import Context
from memchat.memory.forgetting import purge
from memchat.memory.transfer.record_check import Values
from memchat.store import chunks, jobs, notes
from memchat.store.chunks import NewChunk, NoteOf
from memchat.types import NewNote, Note


class CutText(NamedTuple):
    """The chunks of a text, and the embedding model that reads each of them whole."""

    parts: Sequence[NewChunk]
    sized_for: str | None


Cut = Callable[[str, str], CutText]
"""Cuts a text for a profile."""


@dataclass(slots=True)
class ImportedNotes:
    """The notes of one import. Their chunks are made anew."""

    ctx: Context
    cut: Cut
    reworded: set[int] = field(default_factory=set)
    """The scope rows of the notes that have another text now."""
    _written: dict[int, int] = field(default_factory=dict)
    """New and changed notes, each with its scope row."""

    def find(self, app_id: int, values: Values) -> Note | None:
        """The note that this is, as it is here."""
        return notes.by_external_id(self.ctx.tx, app_id, values["type"], values["external_id"])

    def is_deleted(self, app_id: int, values: Values) -> bool:
        """Whether the note was deleted here, and was not changed elsewhere since."""
        gone = notes.deleted_at(self.ctx.tx, app_id, values["type"], values["external_id"])
        return gone is not None and not _later(values["updated_at"], gone)

    def cut_text(self, values: Values) -> CutText:
        """The chunks of a note. Raises InputError for one without words."""
        found = self.cut(values["content"], values["profile"])
        if not found.parts:
            raise InputError("its content has no words")
        return found

    def add_chunks(self, note_id: int, app_id: int, values: Values, cut: CutText) -> None:
        """Write the chunks of a new note, whose row is there, with their counts."""
        self._write_chunks(note_id, app_id, values, cut)
        chunks.set_counts(self.ctx.tx, note_id, values["counts"] or {})

    def update(self, note: Note, app_id: int, values: Values) -> bool:
        """Give a known note the text and title of the file if they were changed there later than
        here; whether they were."""
        changed_at, title, words = values["updated_at"], values["title"], values["content"]
        if not _later(changed_at, note.updated_at) or (title, words) == (note.title, note.text):
            return False
        tx, cut = self.ctx.tx, self.cut_text(values)
        new = NewNote(words, title, note.type, note.external_id, profile=values["profile"])
        notes.put(tx, app_id, new, changed_at, sized_for=cut.sized_for)
        notes.mark_missing(tx, [note.id], values["missing"])
        self._write_chunks(note.id, app_id, values, cut)
        self.reworded.add(app_id)
        purge.request_scrub(tx)
        return True

    def queue(self) -> int:
        """Queue what makes the vectors; for how many notes."""
        for note_id, app_id in self._written.items():
            jobs.enqueue(self.ctx.tx, "note", app_id, note_id, self.ctx.now)
        return len(self._written)

    def _write_chunks(self, note_id: int, app_id: int, values: Values, cut: CutText) -> None:
        own = (values["title"], values["content"], values["pair_id"], values["parent_id"])
        note = NoteOf(note_id, app_id, values["type"], *own)
        chunks.replace(self.ctx.tx, note, cut.parts, self.ctx.now)
        self._written[note_id] = app_id


def _later(changed: datetime | None, than: datetime | None) -> bool:
    return changed is not None and (than is None or changed > than)
