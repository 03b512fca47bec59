"""Making notes: from files and watched folders, and the steps that every note goes through.

A note is checked, cut and written, and its vectors are made afterwards. The external id of a file's
note is its path. A note that was edited here after its file is not overwritten, and a file that
cannot be read does not keep the others from being read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING
from uuid import uuid4

from memchat import types
from memchat.api.base import MOST, FileChange, FileFailure, FilesAdded, Resource, check_choice
from memchat.db import Tx, usage
from memchat.errors import ConfigError, InputError, MemChatError, ProviderError
from memchat.facts.manual import checked_tags
from memchat.language.text import has_words
from memchat.notes import files, index, rows
from memchat.notes.files import Changes
from memchat.notes.formats import Document, short_title
from memchat.notes.index import Cutter, Prepared
from memchat.providers import Embedder

if TYPE_CHECKING:
    from memchat.jobs.embedding import EmbeddingResult

log = logging.getLogger(__name__)

BATCH = 20
"""Notes written in one transaction: other writers wait for no more than that."""
EMBEDDED_TOGETHER = 500
"""Notes that are stored before their vectors are made."""


class NoteWriting(Resource):
    """Keeps notes of one scope."""

    def prepare(self, new: types.NewNote) -> Prepared:
        """Check a note and cut it. Raises InputError for one that cannot be kept.

        Where the embedding model cannot be used it is cut without: its job fits it to the model.
        """
        new = checked(new)
        try:
            return Cutter(self._embedder()).prepare(new)
        except MemChatError as error:
            news = self._assembly.parts().worker.news
            if str(error) not in news:
                news.add(str(error))
                log.warning("notes are cut without the embedding model: %s", error)
            return Cutter(None).prepare(new)

    def write(self, tx: Tx, prepared: Sequence[Prepared]) -> list[int]:
        """Store notes; their ids."""
        written = [index.write(tx, tx.own, one) for one in prepared]
        if any(reworded for _, reworded in written):
            tx.forget_bytes(tx.own)
        return [note_id for note_id, _ in written]

    def keep(
        self, new: types.NewNote, *, embed: bool, instead_of: types.Note | None = None
    ) -> types.Note | None:
        """Store a note, or replace the one of the same type and external id; None where that is no
        longer as ``instead_of`` says."""
        prepared = [self.prepare(new)]
        with self._database.write(self._scope, ensure=True) as tx:
            if instead_of is not None and self._found_note(tx, instead_of.id) != instead_of:
                return None
            (note_id,) = self.write(tx, prepared)
        if embed:
            self.embed(note_id)
        return self.get(note_id)

    def get(self, note_id: int) -> types.Note:
        """One note, whole. Raises NotFound outside the scope."""
        with self._database.read(self._scope) as tx:
            return self._found_note(tx, note_id)

    def update(
        self,
        note_id: int,
        *,
        text: str | None,
        title: str | None,
        metadata: types.Metadata | None = None,
        tags: Iterable[str] | None = None,
        embed: bool,
    ) -> types.Note:
        """Change text, title, tags or metadata of a note, as ``Notes.update`` says."""
        kept = None
        while kept is None:  # again where another process changed it meanwhile
            before = self.get(note_id)
            words = before.text if text is None else text
            name = before.title if title is None else title.strip() or None
            key = before.type, before.external_id
            new = types.NewNote(words, name, *key, None, before.profile, None, None, metadata, tags)
            kept = self.keep(new, embed=embed, instead_of=before)
        return kept

    def add_many(
        self, given: Iterable[types.NewNote], tell: types.OnProgress | None, *, embed: bool
    ) -> types.NotesAdded:
        """Store notes; those that cannot be kept are named."""
        every = list(given)
        ids: list[int] = []
        failed: dict[int, str] = {}

        def store(places: range) -> None:
            prepared: list[Prepared] = []
            for place in places:
                try:
                    prepared.append(self.prepare(every[place]))
                except InputError as error:
                    failed[place] = str(error)
            with self._database.write(self._scope, ensure=True) as tx:
                ids.extend(self.write(tx, prepared))

        self._run(len(every), store, tell, embed=embed)
        return types.NotesAdded(tuple(ids), failed)

    def recut(self, note_ids: Sequence[int], tell: types.OnProgress | None) -> int:
        """Cut notes anew for the service in use; how many have other chunks now."""
        cutter, changed = Cutter(self._embedder()), 0

        def cut(places: range) -> None:
            nonlocal changed
            with self._database.write() as tx:
                changed += sum(index.recut(tx, note_ids[i], cutter) is not None for i in places)

        self._run(len(note_ids), cut, tell, embed=True)
        return changed

    def _run(
        self, total: int, do: Callable[[range], None], tell: types.OnProgress | None, *, embed: bool
    ) -> None:
        """Do something with the notes of each run of places, and embed many of them together."""
        report = types.timed(tell, "notes")

        def embed_these(first: int, end: int) -> None:
            def so_far(result: EmbeddingResult) -> None:
                report(min(first + len(result.notes), end), total)

            self.embed(on_progress=so_far)

        first = 0
        for start in range(0, total, BATCH):
            end = min(start + BATCH, total)
            do(range(start, end))
            if not embed:
                report(end, total)
            elif end - first == EMBEDDED_TOGETHER or end == total:
                embed_these(first, end)
                report(end, total)
                first = end

    def embed(
        self,
        note_id: int | None = None,
        on_progress: Callable[[EmbeddingResult], None] = lambda _: None,
    ) -> None:
        """Make the vectors of a note, or of all of the person's that are due."""
        worker = self._assembly.parts().worker
        worker.run(
            user=self._scope.user, kinds=("note",), target_id=note_id, on_progress=on_progress
        )

    def _embedder(self) -> Embedder | None:
        """What makes the vectors of this store."""
        space, _ = self._assembly.embedding_space()
        return None if space is None else space.embedder


UPLOAD = "upload"
NO_TRANSCRIBER = (
    "audio needs a model that writes it down: set MEMCHAT_TRANSCRIBE_MODEL, "
    "for example to openai/whisper-1"
)
TOGETHER = 100
"""Files that are read before their vectors are made."""
UNREADABLE = (InputError, ConfigError, ProviderError)
"""What is wrong with one file alone: the others are read all the same."""


class NoteFiles(NoteWriting):
    """Reads files into the notes of one person in one app; ``Notes`` has its verbs."""

    def add_all(
        self, paths: Iterable[Path | str], on_progress: types.OnProgress | None
    ) -> FilesAdded:
        """What ``Notes.add_files`` does."""
        failed: list[FileFailure] = []
        wanted = _files(paths, failed)
        added: list[types.Note] = []
        unchanged = 0
        report = types.timed(on_progress, "files")
        for done, path in enumerate(wanted):
            report(done, len(wanted), name=path.name)
            try:
                note = self.add_file(path)
            except UNREADABLE as error:
                failed.append(FileFailure(path, _reason(error)))
            else:
                if note is None:
                    unchanged += 1
                    continue
                added.append(note)
                if len(added) % TOGETHER == 0:
                    self.embed()
        self.embed()
        report(len(wanted), len(wanted))
        return FilesAdded(tuple(added), unchanged, tuple(failed))

    def add_upload(self, name: str, data: bytes, title: str | None, wait: bool) -> types.Note:
        """What ``Notes.add_upload`` does."""
        found = self._read(Path(name).name, data)
        key = hashlib.sha256(data).hexdigest()
        named = found.title if title is None else title
        note = self._stored(replace(found, title=named), UPLOAD, key, found.written_at)
        if wait:
            self.embed()
        return note

    def add_file(self, path: Path) -> types.Note | None:
        """Read a file into its note, whose vectors are still to be made; None where the note is as
        the file is. The result has no text. Raises InputError, ConfigError or ProviderError where
        the file cannot be read."""
        before = self._known(path)
        modified_at = files.modified_at(path)
        if before is not None and before.created_at == modified_at:
            self._keep(before, modified_at)
            return None
        data, modified_at = files.content(path)
        found = self._read(path.name, data)
        written_at = found.written_at or modified_at
        if before is not None and _is_current(before, found, modified_at):
            self._keep(before, written_at)
            return None
        note = self._stored(found, rows.TYPE, key_of(path), written_at)
        self._keep(note, written_at)
        # Thousands of them are held at once, and texts may be large.
        return replace(note, created_at=written_at, missing=False, text="")

    def _read(self, name: str, data: bytes) -> Document:
        read = self._transcribed if files.is_audio(name) else files.read
        found = read(name, data)
        written_at = found.written_at
        if written_at is not None and written_at.tzinfo is None:
            written_at = written_at.replace(tzinfo=self._settings.zone)
        if written_at is not None and not types.EARLIEST <= written_at <= types.LATEST:
            written_at = None  # some programs write 0001-01-01 for no date
        title = found.title or short_title(Path(name).stem)
        return replace(found, title=title, written_at=written_at)

    def _transcribed(self, name: str, data: bytes) -> Document:
        files.check_size(name, len(data))
        transcriber = self._assembly.transcriber()
        if transcriber is None:
            raise ConfigError(NO_TRANSCRIBER)
        heard = transcriber.transcribe(name, data)
        with self._database.write(self._scope, ensure=True) as tx:
            usage.add(tx, tx.own, None, heard.usage)
        if not has_words(heard.text):
            raise InputError("nothing is said in it")
        return Document(heard.text, profile="memo")

    def _stored(
        self, found: Document, type: str, key: str, written_at: datetime | None
    ) -> types.Note:
        new = types.NewNote(found.text, found.title, type, key, written_at, found.profile)
        note = self.keep(new, embed=False)
        assert note is not None  # the readers refuse a file without words
        return note

    def _known(self, path: Path) -> types.Note | None:
        with self._database.read(self._scope) as tx:
            return rows.by_external_id(tx, tx.own, rows.TYPE, key_of(path))

    def _keep(self, note: types.Note, written_at: datetime) -> None:
        """Have the date of a note be that of its file, which is there."""
        if note.created_at == written_at and not note.missing:
            return
        with self._database.write(self._scope) as tx:
            rows.change(tx, [note.id], created_at=written_at, missing=0)


def _reason(error: MemChatError) -> str:
    """Why a file cannot be read. The log has neither its name nor this, which may quote it."""
    log.warning("Failed to index memo: %s", type(error).__name__)
    return str(error)


def key_of(path: Path) -> str:
    """The external id of a file; a name that is no UTF-8 is kept as far as it can be."""
    return types.clean_text(str(path))


def _is_current(note: types.Note, found: Document, modified_at: datetime) -> bool:
    """Whether a note has the text of its file, or was edited here after the file was."""
    if (note.text, note.title) == (found.text, found.title):
        return True
    # A file with a date of its own has been read here to get so far, though it may be unchanged.
    dated = found.written_at is not None and note.created_at == found.written_at
    return dated and note.updated_at is not None and note.updated_at > modified_at


def _files(paths: Iterable[Path | str], failed: list[FileFailure]) -> list[Path]:
    """These files and those of these folders, each once; what cannot be read is added to
    ``failed``."""
    given = [paths] if isinstance(paths, (str, Path)) else paths
    found: dict[Path, None] = {}

    def fail(path: Path, reason: str) -> None:
        failed.append(FileFailure(path, reason))

    for path in map(files.absolute, given):
        # Unlike Path.is_dir, this raises nothing: what is wrong is told when the file is read.
        is_folder = os.path.isdir(path)
        found.update(dict.fromkeys(files.files_in(path, fail) if is_folder else [path]))
    return list(found)


class NoteWatch(NoteFiles):
    """Keeps the notes of one person in one app in step with a folder."""

    def watch(
        self, place: Path | str, on_change: Callable[[FileChange], None], stop: Event | None
    ) -> None:
        """What ``Notes.watch`` does."""
        path, ended = files.absolute(place), stop or Event()
        with self._database.read(self._scope) as tx:
            known = map(Path, rows.paths_below(tx, tx.own, path))
        for changes in files.watch(path, known, ended):
            for change in self._follow(changes):
                on_change(change)
                if ended.is_set():
                    return  # the first time there may be thousands
            self.embed()

    def _follow(self, changes: Changes) -> Iterator[FileChange]:
        for path in changes.gone:
            note = self._known(path)
            if note is not None and not note.missing:
                with self._database.write(self._scope) as tx:
                    rows.change(tx, [note.id], missing=1)
                yield FileChange(path, "missing", replace(note, missing=True, text=""))
        for before, path in changes.moved:
            yield from self._move(before, path)
        for path in changes.changed:
            yield from self._read_again(path)

    def _read_again(self, path: Path) -> Iterator[FileChange]:
        known = self._known(path) is not None
        try:
            note = self.add_file(path)
        except UNREADABLE as error:
            yield FileChange(path, "failed", reason=_reason(error))
        else:
            if note is not None:
                yield FileChange(path, "changed" if known else "added", note)

    def _move(self, before: Path, path: Path) -> Iterator[FileChange]:
        """Have the note of a file follow it to another path."""
        note = self._known(before)
        if note is None or self._known(path) is not None:
            # It could not be read before, or takes the place of another: its note is a new one.
            yield from self._follow(Changes(changed=(path,), gone=(before,)))
            return
        with self._database.write(self._scope) as tx:
            rows.change(tx, [note.id], external_id=json.dumps(key_of(path)))
        if note.title == short_title(before.stem):
            note = self.update(note.id, text=None, title=short_title(path.stem), embed=True)
        yield FileChange(path, "moved", replace(note, external_id=key_of(path), text=""))


def checked(new: types.NewNote) -> types.NewNote:
    """A note as it is stored. Raises InputError for one that cannot be kept."""
    check_choice(new.profile, types.PROFILES, "profile")
    text = types.clean_text(new.text)
    if not has_words(text):
        raise InputError("the text has no words; give some text")
    for given, name in ((new.pair_id, "pair_id"), (new.parent_id, "parent_id")):
        fits = isinstance(given, int) and not isinstance(given, bool) and abs(given) <= MOST
        if given is not None and not fits:
            raise InputError(f"the {name} {given!r} cannot be; give a whole number up to {MOST}")
    at, first, last = new.created_at, types.EARLIEST, types.LATEST
    if at is not None and not first <= rows.aware(at) <= last:
        said = f"give a day from {first.date()} to {last.date()}"
        raise InputError(f"a note cannot be of {at.date()}; {said}")
    return replace(
        new,
        text=text,
        title=None if new.title is None else types.one_line(new.title, "title", types.TITLE_LIMIT),
        type=types.one_line(new.type, "type", types.TYPE_LIMIT),
        tags=None if new.tags is None else checked_tags(new.tags),
        external_id=uuid4().hex if new.external_id is None else _external_id(new.external_id),
    )


def _external_id(given: object) -> types.ExternalId:
    if isinstance(given, str):
        cleaned = types.clean_text(given)
        if cleaned and len(cleaned) <= types.ID_LIMIT:
            return cleaned
    elif isinstance(given, int) and not isinstance(given, bool) and abs(given) < 2**63:
        return given
    raise InputError(f"that is no external id; give a number or 1 to {types.ID_LIMIT} characters")
