"""Files that become notes."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from memchat.app.results import FileFailure, FilesAdded
from memchat.app.room import Room
from memchat.assembly import Assembly
from memchat.errors import ConfigError, InputError, ProviderError
from memchat.notes.files import folder, formats
from memchat.notes.files.document import Document, short_title
from memchat.notes.index import has_words
from memchat.store import note_files, notes, usage
from memchat.types import Note, OnProgress, Progress, Scope, clean_text
from memchat.types.note import EARLIEST, LATEST

if TYPE_CHECKING:
    from memchat.app.notes import Notes

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
        note = self._stored(found, note_files.TYPE, key_of(path), written_at)
        self._keep(note, written_at)
        # Thousands of them are held at once, and texts may be large.
        return replace(note, created_at=written_at, missing=False, text="")

    def _read(self, name: str, data: bytes) -> Document:
        read = self._transcribed if formats.is_audio(name) else formats.read
        found = read(name, data)
        written_at = found.written_at
        if written_at is not None and written_at.tzinfo is None:
            written_at = written_at.replace(tzinfo=self._settings.zone)
        if written_at is not None and not EARLIEST <= written_at <= LATEST:
            written_at = None  # some programs write 0001-01-01 for no date
        title = found.title or short_title(Path(name).stem)
        return replace(found, title=title, written_at=written_at)

    def _transcribed(self, name: str, data: bytes) -> Document:
        formats.check_size(name, len(data))
        transcriber = self._assembly.transcriber()
        if transcriber is None:
            raise ConfigError(NO_TRANSCRIBER)
        heard = transcriber.transcribe(name, data)
        with self._database.write() as tx:
            own = self._context(tx, ensure=True).scope.own
            assert own is not None
            usage.add(tx, own, None, heard.usage, self._clock())
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
        with self._database.read() as tx:
            own = self._ids(tx).own
            if own is None:
                return None
            return notes.by_external_id(tx, own, note_files.TYPE, key_of(path))

    def _keep(self, note: Note, written_at: datetime) -> None:
        """Have the date of a note be that of its file, which is there."""
        if note.created_at == written_at and not note.missing:
            return
        with self._database.write() as tx:
            note_files.set_date(tx, note.id, written_at)
            notes.mark_missing(tx, [note.id], False)


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
