"""A person's notes: memos and documents, kept whole, found by meaning and words, and asked; one at
a time, or many in a few transactions with their vectors made together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from memchat import types
from memchat.api import base
from memchat.api.note_files import NoteFiles, NoteWatch, NoteWriting
from memchat.db import usage
from memchat.errors import InputError, NotFound, StoreError
from memchat.language.text import has_words
from memchat.notes import rows
from memchat.notes.rows import Filter, bound
from memchat.search import embeddings, passages

if TYPE_CHECKING:
    from memchat.notes.ask import NotesAnswer

log = logging.getLogger(__name__)

RANKINGS = ("weighted", "rrf")


class Notes(base.Resource):
    """The notes of one person in one app."""

    def add(
        self,
        text: str,
        *,
        title: str | None = None,
        type: str = "memo",
        external_id: types.ExternalId | None = None,
        created_at: datetime | None = None,
        profile: str = "memo",
        pair_id: int | None = None,
        parent_id: int | None = None,
        metadata: types.Metadata | None = None,
        tags: Iterable[str] | None = None,
        wait: bool = True,
    ) -> types.Note | None:
        """Keep a note; None for a text without words. It is on disk when this returns.

        The same ``type`` and ``external_id`` again replace the note: only what changed in it is
        embedded anew. ``created_at`` is when it was said or written, an aware time; now, if not
        given. ``profile`` is how it is cut: memo (500 tokens that overlap by up to 50) or document
        (2,000, no overlap); never more than the embedding model reads. ``pair_id`` and
        ``parent_id`` are ids of your own, to search by, ``metadata`` are values, which no model
        sees, and ``tags`` words to group it by, as those of memories. With ``wait`` its vectors are
        made before this returns, where the service answers; else a worker makes them, and it is
        found by its words until then. Raises InputError for what cannot be kept.
        """
        if not has_words(text):
            return None
        more = (created_at, profile, pair_id, parent_id, metadata, tags)
        new = types.NewNote(text, title, type, external_id, *more)
        return self._writing.keep(new, embed=wait)

    def add_many(
        self,
        notes: Iterable[types.NewNote],
        *,
        on_progress: types.OnProgress | None = None,
        wait: bool = True,
    ) -> types.NotesAdded:
        """Keep many notes, as ``add`` keeps one; those that cannot be kept are named in ``failed``
        with the reason, and the others are kept.

        Their texts are embedded together, about a hundred at a time. It may be stopped at any time:
        what ``on_progress`` has counted is kept, and so is more. ``on_progress`` counts notes.
        """
        return self._writing.add_many(notes, on_progress, embed=wait)

    def add_files(
        self, paths: Iterable[Path | str], *, on_progress: types.OnProgress | None = None
    ) -> base.FilesAdded:
        """Keep files as notes of type "file"; of a folder, all files below it that can be read.

        The ending of the name tells the format; docs/notes.md lists them. Hidden files and links in
        a folder are left out. The external id is the absolute path: a file that was changed
        replaces its note, one that was not is not read again. ``created_at`` is the date that the
        document gives, or when the file was last changed. ``on_progress`` counts files. A file that
        cannot be read does not stop the others: it is in ``failed`` with the reason. Raises
        StoreError where notes cannot be written.
        """
        return NoteFiles(self._assembly, self._scope).add_all(paths, on_progress)

    def add_upload(
        self, name: str, data: bytes, *, title: str | None = None, wait: bool = True
    ) -> types.Note:
        """Keep the bytes of a file as a note of type "upload"; ``name`` tells the format. The same
        bytes again are the same note. ``wait`` is that of ``add``. Raises InputError, which says
        why, where they cannot be read; ConfigError where a package or a model for the format is
        missing."""
        return NoteFiles(self._assembly, self._scope).add_upload(name, data, title, wait)

    def watch(
        self,
        folder: Path | str,
        *,
        on_change: Callable[[base.FileChange], None],
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
        NoteWatch(self._assembly, self._scope).watch(folder, on_change, stop)

    def get(self, note_id: int) -> types.Note:
        """One note, whole. Raises NotFound outside the scope."""
        return self._writing.get(note_id)

    def list(
        self,
        query: str = "",
        *,
        type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: types.Metadata | None = None,
        tags: Iterable[str] = (),
        topic: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> base.Page[types.Note]:
        """The notes without their texts, the newest first; with ``query`` those that have all its
        words, whatever their case and accents, in their title or text. ``since`` and ``until``
        bound when a note was said; both ends count. With ``metadata`` those beside which each of
        these values is noted, with ``tags`` those that have all of them, with ``topic`` those of a
        topic, by its id. ``cursor`` is that of the page before."""
        base.check_count(limit)
        wanted = Filter(
            *(None, type, None, None, bound(since), bound(until), _noted(metadata)),
            *(types.clean_tags(tags) if tags else (), topic),
        )
        before = None if cursor is None else base.place_of(cursor)[:2]
        with self._database.read(self._scope) as tx:
            found = rows.listed(
                tx, [tx.own], wanted, limit=limit + 1, before=before, search=query.strip()
            )
        return base.page_of(found, limit, lambda one: (one.created_at, one.id))

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
        metadata: types.Metadata | None = None,
        tags: Iterable[str] = (),
        topic: int | None = None,
        min_score: float | None = None,
        include_text: bool = False,
        mode: str | None = None,
    ) -> types.NotesFound:
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
        base.check_count(limit)
        base.check_choice(mode or RANKINGS[0], RANKINGS, "mode")
        from memchat.notes import search

        recall = self._assembly.recall()
        found = search.find(
            recall,
            self._scope,
            recall.question(query),
            limit,
            wanted=Filter(
                *(None, type, pair_id, parent_id, bound(since), bound(until), _noted(metadata)),
                *(types.clean_tags(tags) if tags else (), topic),
            ),
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
        topic: int | None = None,
        on_progress: types.OnProgress | None = None,
    ) -> NotesAnswer:
        """Answer a question from the notes; iterate over the result, or call its ``read``.

        ``mode`` is answer, from the ``limit`` best passages, or summary, from all that may speak of
        the subject. The answer names notes by number, and its ``cited`` gives these. Days that the
        question names ("last week") come first; ``since`` and ``until`` leave out all others, and
        ``topic`` the notes that are not of that topic, of which a summary reads all. A
        summary of many notes takes several calls: its ``plan`` tells how many before it is read,
        and ``on_progress`` is called after each. Where no note speaks of the question, or no model
        is set up, no model is asked. Raises InputError for an empty question or a bad limit;
        reading raises ProviderError where the model fails.
        """
        from memchat.notes.ask import Asking, Passages, Summary
        from memchat.notes.search import Finder

        base.check_choice(mode, ("answer", "summary"), "mode")
        base.check_count(limit)
        text = types.clean_text(question).strip()
        if not text:
            raise InputError("the question is empty; say what to look for")
        wanted = Filter(type=type, since=bound(since), until=bound(until), topic=topic)
        assembly, zone = self._assembly, self._settings.zone
        now = assembly.clock()
        recall = assembly.recall()
        finder = Finder(recall, self._scope, recall.question(text), wanted, now, zone)
        relevant = finder.all() if mode == "summary" else finder.best(limit)
        ids = dict.fromkeys(hit.note_id for hit in (*relevant.hits, *relevant.others))
        with self._database.read(self._scope) as tx:
            there = (rows.get(tx, [tx.own], note_id) for note_id in ids)
            found = {note.id: note for note in there if note is not None}
        relevant = relevant.of(found)
        passages, model, local = Passages(found, zone), assembly.chat_model(), now.astimezone(zone)
        put = (text, model, assembly.prompts, passages, local, self._count_reading)
        asking = Summary(*put, on_progress=on_progress) if mode == "summary" else Asking(*put)
        return asking.answer(relevant, found)

    def update(
        self,
        note_id: int,
        *,
        text: str | None = None,
        title: str | None = None,
        metadata: types.Metadata | None = None,
        tags: Iterable[str] | None = None,
        wait: bool = True,
    ) -> types.Note:
        """Change text, title, metadata or tags of a note; what is not given stays, and an empty
        title takes the title away. Only chunks whose text changed are embedded anew. ``wait`` is
        that of ``add``.

        Raises NotFound outside the scope, InputError for a text without words.
        """
        return self._writing.update(
            note_id, text=text, title=title, metadata=metadata, tags=tags, embed=wait
        )

    def delete(self, note_id: int, *, hold: float = 0.0) -> base.Changed:
        """Delete a note with its chunks and vectors; its words leave this disk.

        Nothing lists or finds it from now on. With ``hold`` its words leave the disk in so many
        seconds, and ``restore`` undoes the deletion meanwhile; else they have left it when this
        returns. Raises NotFound outside the scope.
        """
        with self._database.write(self._scope) as tx:
            note = self._found_note(tx, note_id)
            if hold:
                rows.hold(tx, tx.own, note, purge_at=tx.now + timedelta(seconds=hold))
            else:
                rows.remove(tx, tx.own, note)
            tx.forget_bytes(tx.own)
        log.info("Deleted note %d: %d characters", note.id, len(note.text))
        return base.Changed(1)

    def restore(self, note_id: int) -> types.Note:
        """Undo the deletion of a note while it is held. Raises NotFound where its words have left
        this disk, outside the scope, and where a note of its type and external id was kept
        since."""
        with self._database.write(self._scope) as tx:
            back = rows.restore(tx, tx.own, note_id)
        if back is None:
            raise NotFound(f"the deletion of note {note_id} cannot be undone any more")
        return back

    def mark_as_read(self, chunk_ids: Sequence[int]) -> base.Changed:
        """Count that these results of a search were read; unknown ids are left out."""
        with self._database.write(self._scope) as tx:
            return base.Changed(rows.count_reads(tx, [tx.own], chunk_ids))

    def reindex(self, *, on_progress: types.OnProgress | None = None) -> base.Changed:
        """Cut every note anew for the embedding service in use, and make the vectors that are
        lacking; how many notes have other chunks now.

        What did not change keeps its chunks and vectors. It may be stopped at any time.
        ``on_progress`` counts notes.
        """
        with self._database.read(self._scope) as tx:
            ids = rows.ids(tx, [tx.own])
        return base.Changed(self._writing.recut(ids, on_progress))

    def report(self, *, top: int = 20) -> types.NotesReport:
        """Figures: sizes and use by type, the ``top`` notes that were found and never read, and how
        the queue stands."""
        base.check_count(top, "top")
        embeds = self._assembly.embeds()
        with self._database.read(self._scope) as tx:
            own, in_use = tx.own, embeddings.in_use(tx) or 0
            by_type, unread = rows.by_type(tx, own), tuple(rows.unread(tx, own, top))
            lacking, queued = passages.count_chunks_lacking(tx, in_use, own), rows.queued(tx, own)
            return types.NotesReport(by_type, unread, lacking, *queued, embeds=embeds)

    def topics(self) -> Sequence[types.Topic]:
        """What the notes and conversations are about: the topics that were found last, the largest
        first. ``list`` gives the notes of one, ``ask`` a summary of it."""
        from memchat.notes import topics

        with self._database.read(self._scope) as tx:
            return topics.listed(tx, tx.own)

    def find_topics(self, *, name: bool = False) -> Sequence[types.Topic]:
        """Find the topics anew, and give them. A worker does so once a day where there is anything
        new; a topic keeps its id as long as most of what is in it stays together.

        With ``name`` the extraction model is asked once for names of those that have none; it is
        given their words and the titles of some notes. Raises ProviderError where that fails.
        """
        from memchat.notes import topics

        topics.find(self._database, self._scope)
        found = self.topics()
        model = self._assembly.extract_model() if name else None
        nameless = [topic for topic in found if topic.name is None]
        if model is None or model.stand_in or not nameless:
            return found
        titles = {
            topic.id: [note.title for note in self.list(topic=topic.id, limit=5) if note.title]
            for topic in nameless
        }
        names, spent = topics.named(model, self._assembly.prompts, nameless, titles)
        with self._database.write(self._scope) as tx:
            topics.name(tx, tx.own, names)
            usage.add(tx, tx.own, None, spent)
        return self.topics()

    def suggested_tags(self, note_id: int) -> Sequence[str]:
        """Tags that may fit a note and that it does not have: those in use whose words it has, the
        words of its topic, and names that it repeats. None where MEMCHAT_SUGGEST_TAGS is off.
        Raises NotFound outside the scope."""
        from memchat.notes import topics

        note = self.get(note_id)
        if not self._settings.suggest_tags:
            return ()
        with self._database.read(self._scope) as tx:
            return topics.suggested(tx, note)

    @property
    def _writing(self) -> NoteWriting:
        return NoteWriting(self._assembly, self._scope)

    def _count_matches(self, hits: Sequence[types.NoteHit]) -> None:
        """Count that these were found. A search waits for no writer and for no disk: where another
        process is writing just then, the count is missed."""
        if not hits:
            return
        try:
            with self._database.write_if_free() as tx:
                rows.count_matches(tx, [hit.chunk_id for hit in hits])
        except StoreError as error:
            log.debug("matches of notes were not counted: %s", error)

    def _count_reading(self, spent: Sequence[types.Usage], chunk_ids: Sequence[int]) -> None:
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


def _noted(metadata: types.Metadata | None) -> tuple[tuple[str, str], ...]:
    return tuple(types.clean_metadata(metadata).items()) if metadata else ()
