"""A person's notes: memos and documents, kept whole, found by meaning and words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import Connection

from memchat.app.arguments import check_choice, check_count
from memchat.app.page import Page, note_cursor, note_place
from memchat.app.results import Changed
from memchat.app.room import Room
from memchat.errors import InputError, NotFound, StoreError
from memchat.store import chunks, notes
from memchat.store.chunks import NewChunk
from memchat.store.notes import Filter, NewNote
from memchat.types import ExternalId, Note, NotesFound, clean_text, one_line

if TYPE_CHECKING:
    from memchat.notes.ask import NotesAnswer

PROFILES = ("memo", "document")
TITLE_LIMIT = 200
TYPE_LIMIT = 40
MOST = 200
"""Passages that a summary reads at most."""


class Notes(Room):
    """The notes of one person in one app."""

    def add(
        self,
        text: str,
        *,
        title: str | None = None,
        type: str = "memo",
        external_id: ExternalId | None = None,
        created_at: datetime | None = None,
        profile: str = "memo",
        pair_id: int | None = None,
        parent_id: int | None = None,
        wait: bool = True,
    ) -> Note | None:
        """Keep a note; None for a text without words. It is on disk when this returns.

        The same ``type`` and ``external_id`` again replace the note: only what changed in it is
        embedded anew. ``created_at`` is when it was said or written, an aware time; now, if not
        given. ``profile`` is how it is cut: memo (500 tokens that overlap by up to 50) or document
        (2,000, no overlap); never more than the embedding model reads. ``pair_id`` and
        ``parent_id`` are ids of your own, to search by. With ``wait`` its vectors are made before
        this returns, where the service answers; else a worker makes them, and it is found by its
        words until then. Raises InputError for what cannot be kept.
        """
        words = clean_text(text)
        if not words.strip():
            return None
        from memchat.notes import index

        new = self._checked(words, title, type, external_id, created_at, profile)
        parts = self._parts(new)
        with self._database.write() as tx:
            ctx = self._context(tx, ensure=True)
            app_id = ctx.scope.own
            assert app_id is not None
            note_id = index.write(ctx, app_id, new, parts, pair_id=pair_id, parent_id=parent_id)
        if wait:
            self._embed(note_id)
        return self.get(note_id)

    def get(self, note_id: int) -> Note:
        """One note, whole. Raises NotFound outside the scope."""
        with self._database.read() as tx:
            return self._found_note(tx, note_id)

    def list(
        self, *, type: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[Note]:
        """The notes without their texts, the newest first. ``cursor`` is that of the page
        before."""
        check_count(limit)
        before = note_place(cursor)
        with self._database.read() as tx:
            found = notes.listed(tx, self._own(tx), type=type, limit=limit + 1, before=before)
        more = len(found) > limit > 0
        return Page(found[:limit], note_cursor(found[limit - 1]) if more else None)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        type: str | None = None,
        pair_id: int | None = None,
        parent_id: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        min_score: float | None = None,
        include_text: bool = False,
    ) -> NotesFound:
        """Search the notes by meaning and words, best first; what surely has to do with the query
        is ``confident`` and comes first.

        ``since`` and ``until`` bound when a note was said; both ends count. What the filters leave
        out takes no place of the ``limit``. Each result counts one match, unless another process
        is writing just then. Raises InputError for an empty query or a bad limit.
        """
        if not query.strip():
            raise InputError("the question is empty; say what to look for")
        check_count(limit)
        from memchat.notes import search

        recall = self._assembly.recall()
        found = search.find(
            recall,
            self._scope,
            recall.question(query),
            limit,
            wanted=Filter(None, type, pair_id, parent_id, _aware(since), _aware(until)),
            min_score=min_score,
            with_text=include_text,
        )
        if found.hits:
            # A search waits for no writer and for no disk; a count may be missed.
            with suppress(StoreError), self._database.write_if_free() as tx:
                chunks.count_matches(tx, [hit.chunk_id for hit in found.hits])
        return found

    def ask(
        self,
        question: str,
        *,
        mode: str = "answer",
        limit: int = 8,
        type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> NotesAnswer:
        """Answer a question from the notes; iterate over the result, or call its ``read``.

        ``mode`` is answer, from the ``limit`` best passages, or summary, from all that speak of the
        subject. The answer names its passages by number, and ``cited`` gives these. Where nothing
        was found, or no model is set up, no model is asked. Raises InputError for an empty
        question; reading raises ProviderError where the model fails.
        """
        from memchat.notes.ask import Asking, NotesAnswer
        from memchat.notes.passages import numbered

        check_choice(mode, ("answer", "summary"), "mode")
        found = self._passages(question, limit if mode == "answer" else MOST, type, since, until)
        sure = [hit for hit in found.hits if hit.confident]
        passages = numbered(sure)
        model = self._assembly.chat_model()
        asking = Asking(model, self._assembly.prompts, self._settings, self._clock())
        give = asking.summary if mode == "summary" else asking.answer
        self.mark_as_read([passage.chunk_id for passage in passages])
        return NotesAnswer(passages, give(question, passages), found.degraded)

    def _passages(
        self,
        question: str,
        limit: int,
        type: str | None,
        since: datetime | None,
        until: datetime | None,
    ) -> NotesFound:
        return self.search(
            question, limit=limit, type=type, since=since, until=until, include_text=True
        )

    def update(self, note_id: int, *, text: str | None = None, title: str | None = None) -> Note:
        """Change text or title of a note; what is not given stays. Only chunks whose text changed
        are embedded anew. Raises NotFound outside the scope, InputError for an empty text."""
        from memchat.notes import index

        with self._database.read() as tx:
            before = self._found_note(tx, note_id)
        words = before.text if text is None else clean_text(text)
        if not words.strip():
            raise InputError("the text is empty; delete the note to be rid of it")
        named = before.title if title is None else _title(title)
        new = NewNote(
            before.type, before.external_id, named, words, before.created_at, before.profile
        )
        parts = self._parts(new)
        with self._database.write() as tx:
            self._found_note(tx, note_id)  # it may have been deleted meanwhile
            app_id = notes.app_id_of(tx, note_id)
            assert app_id is not None
            index.write(self._context(tx), app_id, new, parts)
        self._embed(note_id)
        return self.get(note_id)

    def delete(self, note_id: int) -> Changed:
        """Delete a note with its chunks and vectors; its words leave this disk. Raises NotFound
        outside the scope."""
        from memchat.memory.forgetting import purge

        with self._database.write() as tx:
            note = self._found_note(tx, note_id)
            app_id = notes.app_id_of(tx, note_id)
            assert app_id is not None
            notes.remove(tx, app_id, note)
            self._assembly.drop_vectors(tx, [app_id])
            purge.request_scrub(tx)
        purge.scrub(self._database)
        return Changed(1)

    def mark_as_read(self, chunk_ids: Sequence[int]) -> Changed:
        """Count that these results of a search were read; unknown ids are left out."""
        with self._database.write() as tx:
            return Changed(chunks.count_reads(tx, self._own(tx), chunk_ids))

    def _parts(self, new: NewNote) -> Sequence[NewChunk]:
        """The chunks of a note, for the embedding service in use."""
        from memchat.notes.index import Cutter

        space, _ = self._assembly.embedding_space()
        return Cutter(space.embedder if space is not None else None).parts(new.text, new.profile)

    def _embed(self, note_id: int) -> None:
        self._assembly.parts().worker.run(kinds=("note",), target_id=note_id)

    def _own(self, tx: Connection) -> Sequence[int]:
        own = self._ids(tx).own
        return [] if own is None else [own]

    def _found_note(self, tx: Connection, note_id: int) -> Note:
        note = notes.get(tx, self._own(tx), note_id)
        if note is None:
            raise NotFound(f"there is no note {note_id} here; see memchat notes list")
        return note

    def _checked(
        self,
        words: str,
        title: str | None,
        type: str,
        external_id: ExternalId | None,
        created_at: datetime | None,
        profile: str,
    ) -> NewNote:
        check_choice(profile, PROFILES, "profile")
        kind = one_line(type, "type", TYPE_LIMIT)
        named = None if title is None else _title(title)
        own_id = uuid4().hex if external_id is None else external_id
        said_at = _aware(created_at) or self._clock()
        return NewNote(kind, own_id, named, words, said_at, profile)


def _title(title: str) -> str:
    return one_line(title, "title", TITLE_LIMIT)


def _aware(at: datetime | None) -> datetime | None:
    if at is not None and at.tzinfo is None:
        raise InputError(f"the time {at.isoformat()} has no zone; give an aware one")
    return at
