"""A folder that is watched, so that its files are notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

from memchat.app.note_files import UNREADABLE, NoteFiles, key_of
from memchat.app.results import FileChange
from memchat.notes.files import folder, folder_watch
from memchat.notes.files.document import short_title
from memchat.notes.files.folder_watch import Changes
from memchat.store import note_files, notes


class NoteWatch(NoteFiles):
    """Keeps the notes of one person in one app in step with a folder."""

    def watch(
        self, place: Path | str, on_change: Callable[[FileChange], None], stop: Event | None
    ) -> None:
        """What ``Notes.watch`` does."""
        path, ended = folder.absolute(place), stop or Event()
        known = map(Path, self._notes_below(path))
        for changes in folder_watch.watch(path, known, ended):
            for change in self._follow(changes):
                on_change(change)
                if ended.is_set():
                    return  # the first time there may be thousands
            self._embed()

    def _follow(self, changes: Changes) -> Iterator[FileChange]:
        for path in changes.gone:
            note = self._known(path)
            if note is not None and not note.missing:
                with self._database.write() as tx:
                    notes.mark_missing(tx, [note.id], True)
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
        with self._database.write() as tx:
            note_files.move(tx, note.id, key_of(path))
        if note.title == short_title(before.stem):
            note = self._room.update(note.id, title=short_title(path.stem))
        yield FileChange(path, "moved", replace(note, external_id=key_of(path), text=""))

    def _notes_below(self, path: Path) -> dict[str, int]:
        with self._database.read() as tx:
            own = self._ids(tx).own
            return {} if own is None else note_files.paths_below(tx, own, path)
