"""A person's notes: memos and documents, kept whole, found by meaning and words, and asked; one at
a time, or many in a few transactions with their vectors made together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from memchat.api.base import (
    Changed,
    FileChange,
    FilesAdded,
    Page,
    Room,
    check_choice,
    check_count,
    page_of,
    place_of,
)
from memchat.api.note_files import NoteWriting, bound
from memchat.assembly import Assembly
from memchat.db import Tx, usage
from memchat.errors import InputError, NotFound, StoreError
from memchat.notes import rows
from memchat.notes.rows import Filter
from memchat.search import embeddings, passages
from memchat.types import (
    ExternalId,
    NewNote,
    Note,
    NoteHit,
    NotesAdded,
    NotesFound,
    NotesReport,
    OnProgress,
    Progress,
    Usage,
    clean_text,
)

if TYPE_CHECKING:
    from memchat.jobs.embedding import EmbeddingResult
    from memchat.notes.ask import NotesAnswer
    from memchat.notes.index import Prepared
    from memchat.notes.search import Relevant

BATCH = 20
"""Notes written in one transaction: other writers wait for no more than that."""
TOGETHER = 500
"""Notes that are stored before their vectors are made."""


class NoteBatches:
    """Runs over many notes of one scope."""

    def __init__(self, assembly: Assembly, writing: NoteWriting, tell: OnProgress | None) -> None:
        """``tell`` is told how many notes are done."""
        self._assembly = assembly
        self._writing = writing
        self._tell = tell
        self._began = monotonic()

    def add(self, given: Iterable[NewNote], *, embed: bool) -> NotesAdded:
        """Store notes; those that cannot be kept are named."""
        every = list(given)
        ids: list[int] = []
        failed: dict[int, str] = {}

        def store(first: int, last: int) -> None:
            prepared: list[Prepared] = []
            for place in range(first, last):
                try:
                    prepared.append(self._writing.prepare(every[place]))
                except InputError as error:
                    failed[place] = str(error)
            ids.extend(self._writing.write(prepared))

        self._run(len(every), store, embed=embed)
        return NotesAdded(tuple(ids), failed)

    def recut(self, note_ids: Sequence[int]) -> int:
        """Cut notes anew for the service in use; how many have other chunks now."""
        from memchat.notes.index import Cutter, recut

        cutter, changed = Cutter(self._writing.embedder()), 0

        def cut(first: int, last: int) -> None:
            nonlocal changed
            with self._assembly.database.write() as tx:
                changed += sum(recut(tx, i, cutter) is not None for i in note_ids[first:last])

        self._run(len(note_ids), cut, embed=True)
        return changed

    def _run(self, total: int, do: Callable[[int, int], None], *, embed: bool) -> None:
        """Do something with the notes of each run of places, and embed these together."""
        for first in range(0, total, TOGETHER):
            end = min(first + TOGETHER, total)
            for start in range(first, end, BATCH):
                last = min(start + BATCH, end)
                do(start, last)
                if not embed:
                    self._report(last, total)
            if embed:
                self._embed(first, end, total)

    def _embed(self, first: int, end: int, total: int) -> None:
        def so_far(result: EmbeddingResult) -> None:
            self._report(min(first + len(result.lengths) + len(result.reasons), end), total)

        self._writing.embed(on_progress=so_far)
        self._report(end, total)

    def _report(self, done: int, total: int) -> None:
        if self._tell is not None:
            self._tell(Progress(done, total, monotonic() - self._began, unit="notes"))


log = logging.getLogger(__name__)

RANKINGS = ("weighted", "rrf")


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
        from memchat.language.text import has_words

        if not has_words(text):
            return None
        new = NewNote(text, title, type, external_id, created_at, profile, pair_id, parent_id)
        return self._keep(new, embed=wait)

    def add_many(
        self, notes: Iterable[NewNote], *, on_progress: OnProgress | None = None, wait: bool = True
    ) -> NotesAdded:
        """Keep many notes, as ``add`` keeps one; those that cannot be kept are named in ``failed``
        with the reason, and the others are kept.

        Their texts are embedded together, about a hundred at a time. It may be stopped at any time:
        what ``on_progress`` has counted is kept, and so is more. ``on_progress`` counts notes.
        """
        return self._batches(on_progress).add(notes, embed=wait)

    def add_files(
        self, paths: Iterable[Path | str], *, on_progress: OnProgress | None = None
    ) -> FilesAdded:
        """Keep files as notes of type "file"; of a folder, all files below it that can be read.

        The ending of the name tells the format; docs/notes.md lists them. Hidden files and links in
        a folder are left out. The external id is the absolute path: a file that was changed
        replaces its note, one that was not is not read again. ``created_at`` is the date that the
        document gives, or when the file was last changed. ``on_progress`` counts files. A file that
        cannot be read does not stop the others: it is in ``failed`` with the reason. Raises
        StoreError where notes cannot be written.
        """
        from memchat.api.note_files import NoteFiles

        files = NoteFiles(self._assembly, self._scope, self, self._writing.embed)
        return files.add_all(paths, on_progress)

    def add_upload(
        self, name: str, data: bytes, *, title: str | None = None, wait: bool = True
    ) -> Note:
        """Keep the bytes of a file as a note of type "upload"; ``name`` tells the format. The same
        bytes again are the same note. ``wait`` is that of ``add``. Raises InputError, which says
        why, where they cannot be read; ConfigError where a package or a model for the format is
        missing."""
        from memchat.api.note_files import NoteFiles

        files = NoteFiles(self._assembly, self._scope, self, self._writing.embed)
        return files.add_upload(name, data, title, wait)

    def watch(
        self,
        folder: Path | str,
        *,
        on_change: Callable[[FileChange], None],
        stop: threading.Event | None = None,
    ) -> None:
        """Keep the files of a folder as notes, as ``add_files`` does, and go on as they change.

        Returns when ``stop`` is set, from another thread. ``on_change`` is told of each file. One
        that is being written is read when it rests; one that cannot be read, when it changes again.
        The note of a file that is moved within the folder moves with it. That of a file that is
        gone stays, and is marked as ``missing``. Raises InputError where the folder cannot be
        watched, ConfigError where the package for it is missing, StoreError where notes cannot be
        written.
        """
        from memchat.api.note_files import NoteWatch

        files = NoteWatch(self._assembly, self._scope, self, self._writing.embed)
        files.watch(folder, on_change, stop)

    def get(self, note_id: int) -> Note:
        """One note, whole. Raises NotFound outside the scope."""
        with self._database.read(self._scope) as tx:
            return self._found_note(tx, note_id)

    def list(
        self,
        query: str = "",
        *,
        type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Note]:
        """The notes without their texts, the newest first; with ``query`` those that have all its
        words, whatever their case and accents, in their title or text. ``since`` and ``until``
        bound when a note was said; both ends count. ``cursor`` is that of the page before."""
        check_count(limit)
        wanted = Filter(type=type, since=bound(since), until=bound(until))
        before = None if cursor is None else place_of(cursor)[:2]
        with self._database.read(self._scope) as tx:
            found = rows.listed(
                tx, [tx.own], wanted, limit=limit + 1, before=before, search=query.strip()
            )
        return page_of(found, limit, lambda one: (one.created_at, one.id))

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
        mode: str | None = None,
    ) -> NotesFound:
        """Search the notes by meaning and words, best first; what surely has to do with the query
        is ``confident`` and comes first.

        ``since`` and ``until`` bound when a note was said; both ends count. What the filters leave
        out takes no place of the ``limit``. ``mode`` is how the score is made: weighted, of cosine
        and words, or rrf, of the ranks in both lists; None for what MEMCHAT_RANKING says. Each
        result counts one match, unless another process is writing just then. Raises InputError for
        an empty query or a bad limit.
        """
        if not query.strip():
            raise InputError("the question is empty; say what to look for")
        check_count(limit)
        check_choice(mode or RANKINGS[0], RANKINGS, "mode")
        from memchat.notes import search

        recall = self._assembly.recall()
        found = search.find(
            recall,
            self._scope,
            recall.question(query),
            limit,
            wanted=Filter(None, type, pair_id, parent_id, bound(since), bound(until)),
            ranking=mode,
            min_score=min_score,
            with_text=include_text,
        )
        self._count_matches(found.hits)
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
        on_progress: OnProgress | None = None,
    ) -> NotesAnswer:
        """Answer a question from the notes; iterate over the result, or call its ``read``.

        ``mode`` is answer, from the ``limit`` best passages, or summary, from all that may speak of
        the subject. The answer names notes by number, and its ``cited`` gives these. Days that the
        question names ("last week") come first; ``since`` and ``until`` leave out all others. A
        summary of many notes takes several calls: its ``plan`` tells how many before it is read,
        and ``on_progress`` is called after each. Where no note speaks of the question, or no model
        is set up, no model is asked. Raises InputError for an empty question or a bad limit;
        reading raises ProviderError where the model fails.
        """

        wanted = Filter(type=type, since=bound(since), until=bound(until))
        asked = NoteQuestions(self._assembly, self._scope)
        return asked.ask(question, mode, limit, wanted, on_progress)

    def update(
        self, note_id: int, *, text: str | None = None, title: str | None = None, wait: bool = True
    ) -> Note:
        """Change text or title of a note; what is not given stays, and an empty title takes the
        title away. Only chunks whose text changed are embedded anew. ``wait`` is that of ``add``.

        Raises NotFound outside the scope, InputError for a text without words.
        """
        kept = None
        while kept is None:  # again where another process changed it meanwhile
            before = self.get(note_id)
            new = NewNote(
                before.text if text is None else text,
                before.title if title is None else title.strip() or None,
                before.type,
                before.external_id,
                profile=before.profile,
            )
            kept = self._keep(new, embed=wait, instead_of=before)
        return kept

    def delete(self, note_id: int, *, hold: float = 0.0) -> Changed:
        """Delete a note with its chunks and vectors; its words leave this disk.

        Nothing lists or finds it from now on. With ``hold`` its words leave the disk in so many
        seconds, and ``restore`` undoes the deletion meanwhile; else they have left it when this
        returns. Raises NotFound outside the scope.
        """

        now = self._clock()
        with self._database.write(self._scope) as tx:
            note = self._found_note(tx, note_id)
            app_id = rows.app_id_of(tx, note_id)
            assert app_id is not None
            if hold:
                rows.hold(tx, app_id, note, purge_at=now + timedelta(seconds=hold))
            else:
                rows.remove(tx, app_id, note)
            tx.forget_bytes(app_id)
        log.info("Deleted note %d: %d characters", note.id, len(note.text))
        return Changed(1)

    def restore(self, note_id: int) -> Note:
        """Undo the deletion of a note while it is held. Raises NotFound where its words have left
        this disk, outside the scope, and where a note of its type and external id was kept
        since."""
        with self._database.write(self._scope) as tx:
            back = rows.restore(tx, tx.own, note_id)
            if back is None:
                raise NotFound(f"the deletion of note {note_id} cannot be undone any more")
        return back

    def mark_as_read(self, chunk_ids: Sequence[int]) -> Changed:
        """Count that these results of a search were read; unknown ids are left out."""
        with self._database.write(self._scope) as tx:
            return Changed(rows.count_reads(tx, [tx.own], chunk_ids))

    def reindex(self, *, on_progress: OnProgress | None = None) -> Changed:
        """Cut every note anew for the embedding service in use, and make the vectors that are
        lacking; how many notes have other chunks now.

        What did not change keeps its chunks and vectors. It may be stopped at any time.
        ``on_progress`` counts notes.
        """
        with self._database.read(self._scope) as tx:
            ids = rows.ids(tx, [tx.own])
        return Changed(self._batches(on_progress).recut(ids))

    def report(self, *, top: int = 20) -> NotesReport:
        """Figures: sizes and use by type, the ``top`` notes that were found and never read, and how
        the queue stands."""
        check_count(top, "top")
        embeds = self._assembly.embeds()
        with self._database.read(self._scope) as tx:
            own, in_use = tx.own, embeddings.in_use(tx) or 0
            return NotesReport(
                rows.by_type(tx, own),
                tuple(rows.unread(tx, own, top)),
                passages.count_chunks_lacking(tx, in_use, own),
                *rows.queued(tx, own),
                embeds=embeds,
            )

    @property
    def _writing(self) -> NoteWriting:
        return NoteWriting(self._assembly, self._scope)

    def _batches(self, on_progress: OnProgress | None) -> NoteBatches:
        return NoteBatches(self._assembly, self._writing, on_progress)

    def _keep(self, new: NewNote, *, embed: bool, instead_of: Note | None = None) -> Note | None:
        """Store a note, or replace the one of the same type and external id; None where that is no
        longer as ``instead_of`` says."""

        def unchanged(tx: Tx) -> bool:
            return instead_of is None or self._found_note(tx, instead_of.id) == instead_of

        writing = self._writing
        ids = writing.write([writing.prepare(new)], only_if=unchanged)
        if not ids:
            return None
        (note_id,) = ids
        if embed:
            writing.embed(note_id)
        return self.get(note_id)

    def _count_matches(self, hits: Sequence[NoteHit]) -> None:
        """Count that these were found. A search waits for no writer and for no disk: where another
        process is writing just then, the count is missed."""
        if not hits:
            return
        try:
            with self._database.write_if_free() as tx:
                rows.count_matches(tx, [hit.chunk_id for hit in hits])
        except StoreError as error:
            log.debug("matches of notes were not counted: %s", error)

    def _found_note(self, tx: Tx, note_id: int) -> Note:
        note = rows.get(tx, [tx.own], note_id)
        if note is None:
            raise NotFound(f"there is no note {note_id} here; see memchat notes list")
        return note


class NoteQuestions(Room):
    """Questions to the notes of a scope."""

    def ask(
        self, question: str, mode: str, limit: int, wanted: Filter, on_progress: OnProgress | None
    ) -> NotesAnswer:
        """See ``Notes.ask``."""
        from memchat.notes.ask import Asking, Passages
        from memchat.notes.search import Finder
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
        with self._database.read(self._scope) as tx:
            own = [tx.own]
            found = (rows.get(tx, own, note_id) for note_id in ids)
            return {note.id: note for note in found if note is not None}

    def _keep(self, spent: Sequence[Usage], chunk_ids: Sequence[int]) -> None:
        """Count what was read, and what it took. An answer that came is not lost where that cannot
        be stored."""
        try:
            with self._database.write(self._scope) as tx:
                own = tx.own
                rows.count_matches(tx, chunk_ids)
                rows.count_reads(tx, [own], chunk_ids)
                for one in spent:
                    usage.add(tx, own, None, one)
        except StoreError as error:
            log.warning("what an answer from notes took was not stored: %s", error)
