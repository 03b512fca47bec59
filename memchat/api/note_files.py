"""Making notes: from files and watched folders, and the steps that every note goes through.

A note is checked, cut and written, and its vectors are made afterwards. The external id of a file's
note is its path. A note that was edited here after its file is not overwritten, and a file that
cannot be read does not keep the others from being read.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING
from uuid import uuid4

from memchat.api.base import MOST, FileChange, FileFailure, FilesAdded, Room, check_choice
from memchat.assembly import Assembly
from memchat.db import Tx, usage
from memchat.errors import ConfigError, InputError, MemChatError, ProviderError
from memchat.language.text import has_words
from memchat.notes import files, folder, rows
from memchat.notes.folder import Changes
from memchat.notes.text_formats import Document, short_title
from memchat.types import (
    ExternalId,
    NewNote,
    Note,
    OnProgress,
    Progress,
    Scope,
    clean_text,
    one_line,
)
from memchat.types.conversations import (
    EARLIEST,
    ID_LIMIT,
    LATEST,
    PROFILES,
    TITLE_LIMIT,
    TYPE_LIMIT,
)

if TYPE_CHECKING:
    from memchat.api.notes import Notes
    from memchat.jobs.embedding import EmbeddingResult
    from memchat.notes.index import Prepared
    from memchat.providers import Embedder

log = logging.getLogger(__name__)

UPLOAD = "upload"
NO_TRANSCRIBER = (
    "audio needs a model that writes it down: set MEMCHAT_TRANSCRIBE_MODEL, "
    "for example to openai/whisper-1"
)
TOGETHER = 100
"""Files that are read before their vectors are made."""
UNREADABLE = (InputError, ConfigError, ProviderError)
"""What is wrong with one file alone: the others are read all the same."""


class NoteFiles(Room):
    """Reads files into the notes of one person in one app; ``Notes`` has its verbs."""

    def __init__(
        self, assembly: Assembly, scope: Scope, room: Notes, embed: Callable[[], None]
    ) -> None:
        """``embed`` makes the vectors of all notes that lack them."""
        super().__init__(assembly, scope)
        self._room = room
        self._embed = embed

    def add_all(self, paths: Iterable[Path | str], on_progress: OnProgress | None) -> FilesAdded:
        """What ``Notes.add_files`` does."""
        failed: list[FileFailure] = []
        files = _files(paths, failed)
        added: list[Note] = []
        unchanged = 0
        begun = monotonic()

        def tell(done: int, name: str = "") -> None:
            if on_progress is not None:
                spent = monotonic() - begun
                on_progress(Progress(done, len(files), spent, unit="files", name=name))

        for done, path in enumerate(files):
            tell(done, path.name)
            try:
                note = self.add_file(path)
            except UNREADABLE as error:
                failed.append(FileFailure(path, str(error)))
            else:
                if note is None:
                    unchanged += 1
                    continue
                added.append(note)
                if len(added) % TOGETHER == 0:
                    self._embed()
        self._embed()
        tell(len(files))
        return FilesAdded(tuple(added), unchanged, tuple(failed))

    def add_file(self, path: Path) -> Note | None:
        """Read a file into its note, whose vectors are still to be made; None where the note is as
        the file is. The result has no text. Raises InputError, ConfigError or ProviderError where
        the file cannot be read."""
        try:
            return self._add_file(path)
        except UNREADABLE as error:
            # Neither the file's name nor the reason, which may quote it.
            log.warning("Failed to index memo: %s", type(error).__name__)
            raise

    def add_upload(self, name: str, data: bytes, title: str | None, wait: bool) -> Note:
        """What ``Notes.add_upload`` does."""
        found = self._read(Path(name).name, data)
        key = hashlib.sha256(data).hexdigest()
        named = found.title if title is None else title
        note = self._stored(replace(found, title=named), UPLOAD, key, found.written_at)
        if wait:
            self._embed()
        return note

    def _add_file(self, path: Path) -> Note | None:
        before = self._known(path)
        modified_at = folder.modified_at(path)
        if before is not None and before.created_at == modified_at:
            self._keep(before, modified_at)
            return None
        content = folder.content(path)
        found = self._read(path.name, content.data)
        written_at = found.written_at or content.modified_at
        if before is not None and _is_current(before, found, content.modified_at):
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
        if written_at is not None and not EARLIEST <= written_at <= LATEST:
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

    def _stored(self, found: Document, type: str, key: str, written_at: datetime | None) -> Note:
        note = self._room.add(
            found.text,
            title=found.title,
            type=type,
            external_id=key,
            created_at=written_at,
            profile=found.profile,
            wait=False,
        )
        assert note is not None  # the readers refuse a file without words
        return note

    def _known(self, path: Path) -> Note | None:
        with self._database.read(self._scope) as tx:
            return rows.by_external_id(tx, tx.own, rows.TYPE, key_of(path))

    def _keep(self, note: Note, written_at: datetime) -> None:
        """Have the date of a note be that of its file, which is there."""
        if note.created_at == written_at and not note.missing:
            return
        with self._database.write(self._scope) as tx:
            rows.set_date(tx, note.id, written_at)
            rows.mark_missing(tx, [note.id], False)


def key_of(path: Path) -> str:
    """The external id of a file; a name that is no UTF-8 is kept as far as it can be."""
    return clean_text(str(path))


def _is_current(note: Note, found: Document, modified_at: datetime) -> bool:
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
    files: dict[Path, None] = {}

    def fail(path: Path, reason: str) -> None:
        failed.append(FileFailure(path, reason))

    for path in map(folder.absolute, given):
        # Unlike Path.is_dir, this raises nothing: what is wrong is told when the file is read.
        is_folder = os.path.isdir(path)
        files.update(dict.fromkeys(folder.files_in(path, fail) if is_folder else [path]))
    return list(files)


class NoteWatch(NoteFiles):
    """Keeps the notes of one person in one app in step with a folder."""

    def watch(
        self, place: Path | str, on_change: Callable[[FileChange], None], stop: Event | None
    ) -> None:
        """What ``Notes.watch`` does."""
        path, ended = folder.absolute(place), stop or Event()
        known = map(Path, self._notes_below(path))
        for changes in folder.watch(path, known, ended):
            for change in self._follow(changes):
                on_change(change)
                if ended.is_set():
                    return  # the first time there may be thousands
            self._embed()

    def _follow(self, changes: Changes) -> Iterator[FileChange]:
        for path in changes.gone:
            note = self._known(path)
            if note is not None and not note.missing:
                with self._database.write(self._scope) as tx:
                    rows.mark_missing(tx, [note.id], True)
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
            yield FileChange(path, "failed", reason=str(error))
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
            rows.move(tx, note.id, key_of(path))
        if note.title == short_title(before.stem):
            note = self._room.update(note.id, title=short_title(path.stem))
        yield FileChange(path, "moved", replace(note, external_id=key_of(path), text=""))

    def _notes_below(self, path: Path) -> dict[str, int]:
        with self._database.read(self._scope) as tx:
            return rows.paths_below(tx, tx.own, path)


class NoteWriting:
    """Keeps notes of one scope."""

    def __init__(self, assembly: Assembly, scope: Scope) -> None:
        self._assembly = assembly
        self._scope = scope

    def prepare(self, new: NewNote) -> Prepared:
        """Check a note and cut it. Raises InputError for one that cannot be kept.

        Where the embedding model cannot be used it is cut without: its job fits it to the model.
        """
        from memchat.notes.index import Cutter

        new = checked(new)
        try:
            return Cutter(self.embedder()).prepare(new)
        except MemChatError as error:
            if self._assembly.parts().worker.news.is_new(str(error)):
                log.warning("notes are cut without the embedding model: %s", error)
            return Cutter(None).prepare(new)

    def write(
        self,
        prepared: Sequence[Prepared],
        *,
        only_if: Callable[[Tx], bool] = lambda _: True,
    ) -> list[int]:
        """Store notes in one transaction; their ids, and none where ``only_if`` is false in it."""
        with self._assembly.database.write(self._scope, ensure=True) as tx:
            return self.write_in(tx, prepared) if only_if(tx) else []

    def write_in(self, tx: Tx, prepared: Sequence[Prepared]) -> list[int]:
        """The same in a transaction of the caller."""
        from memchat.notes import index

        ids, reworded = [], False
        for one in prepared:
            note_id, other_text = index.write(tx, tx.own, one)
            ids.append(note_id)
            reworded = reworded or other_text
        if reworded:
            tx.forget_bytes(tx.own)
        return ids

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

    def embedder(self) -> Embedder | None:
        """What makes the vectors of this store."""
        space, _ = self._assembly.embedding_space()
        return None if space is None else space.embedder


def checked(new: NewNote) -> NewNote:
    """A note as it is stored. Raises InputError for one that cannot be kept."""
    from memchat.language.text import has_words

    check_choice(new.profile, PROFILES, "profile")
    text = clean_text(new.text)
    if not has_words(text):
        raise InputError("the text has no words; give some text")
    for number, name in ((new.pair_id, "pair_id"), (new.parent_id, "parent_id")):
        _check_number(number, name)
    return replace(
        new,
        text=text,
        title=None if new.title is None else one_line(new.title, "title", TITLE_LIMIT),
        type=one_line(new.type, "type", TYPE_LIMIT),
        external_id=uuid4().hex if new.external_id is None else _external_id(new.external_id),
        created_at=_written_at(new.created_at),
    )


def bound(at: datetime | None) -> datetime | None:
    """An end of a period, not beyond the times that notes can have. Raises InputError for a time
    without a zone."""
    return None if at is None else min(max(_aware(at), EARLIEST), LATEST)


def _written_at(at: datetime | None) -> datetime | None:
    if at is not None and not EARLIEST <= _aware(at) <= LATEST:
        raise InputError(
            f"a note cannot be of {at.date()}; give a day from {EARLIEST.date()} to {LATEST.date()}"
        )
    return at


def _aware(at: datetime) -> datetime:
    if at.utcoffset() is None:
        raise InputError(f"the time {at.isoformat()} has no zone; give an aware one")
    return at


def _external_id(given: object) -> ExternalId:
    if isinstance(given, str):
        cleaned = clean_text(given)
        if cleaned and len(cleaned) <= ID_LIMIT:
            return cleaned
    elif isinstance(given, int) and not isinstance(given, bool) and abs(given) < 2**63:
        return given
    raise InputError(f"that is no external id; give a number or 1 to {ID_LIMIT} characters")


def _check_number(given: object, name: str) -> None:
    fits = isinstance(given, int) and not isinstance(given, bool) and abs(given) <= MOST
    if given is not None and not fits:
        raise InputError(f"the {name} {given!r} cannot be; give a whole number up to {MOST}")
