"""Asking the notes of one person in one app."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.app.arguments import check_choice, check_count
from memchat.app.room import Room
from memchat.errors import InputError, StoreError
from memchat.store import chunks, notes, usage
from memchat.store.notes import Filter
from memchat.types import Note, OnProgress, Usage, clean_text

if TYPE_CHECKING:
    from memchat.notes.notes_answer import NotesAnswer
    from memchat.notes.relevant import Relevant

log = logging.getLogger(__name__)


class NoteQuestions(Room):
    """Questions to the notes of a scope."""

    def ask(
        self, question: str, mode: str, limit: int, wanted: Filter, on_progress: OnProgress | None
    ) -> NotesAnswer:
        """See ``Notes.ask``."""
        from memchat.notes.ask import Asking
        from memchat.notes.passages import Passages
        from memchat.notes.relevant import Finder
        from memchat.notes.summary import Summary

        check_choice(mode, ("answer", "summary"), "mode")
        check_count(limit)
        text = clean_text(question).strip()
        if not text:
            raise InputError("the question is empty; say what to look for")
        assembly, now, zone = self._assembly, self._clock(), self._settings.zone
        recall = assembly.recall()
        finder = Finder(recall, self._scope, recall.question(text), wanted, now, zone)
        relevant = finder.all() if mode == "summary" else finder.best(limit)
        found = self._notes(relevant)
        relevant = relevant.of(found)
        passages = Passages(found, zone)
        local = now.astimezone(zone)
        asking = Asking(text, assembly.chat_model(), assembly.prompts, passages, local, self._keep)
        if mode == "summary":
            return Summary(asking, on_progress).answer(relevant, found)
        return asking.answer(relevant, found)

    def _notes(self, relevant: Relevant) -> dict[int, Note]:
        """The notes of these hits, whole."""
        ids = dict.fromkeys(hit.note_id for hit in (*relevant.hits, *relevant.others))
        with self._database.read() as tx:
            own = self._own(tx)
            found = (notes.get(tx, own, note_id) for note_id in ids)
            return {note.id: note for note in found if note is not None}

    def _keep(self, spent: Sequence[Usage], chunk_ids: Sequence[int]) -> None:
        """Count what was read, and what it took. An answer that came is not lost where that cannot
        be stored."""
        try:
            with self._database.write() as tx:
                own = self._own(tx)
                chunks.count_matches(tx, chunk_ids)
                chunks.count_reads(tx, own, chunk_ids)
                for one in spent:
                    usage.add(tx, own[0], None, one, self._clock())
        except StoreError as error:
            log.warning("what an answer from notes took was not stored: %s", error)

    def _own(self, tx: Connection) -> Sequence[int]:
        own = self._ids(tx).own
        return [] if own is None else [own]
