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
            if (note_id := self._note_id(path)) is not None:
                with self._database.write() as tx:
                    notes.mark_missing(tx, [note_id], True)
                yield FileChange(path, "missing", replace(self._room.get(note_id), text=""))
        for before, path in changes.moved:
            yield from self._move(before, path)
        for path in changes.changed:
            yield from self._read_again(path)

    def _read_again(self, path: Path) -> Iterator[FileChange]:
        known = self._note_id(path) is not None
        try:
            note = self.add_file(path)
        except UNREADABLE as error:
            yield FileChange(path, "failed", reason=str(error))
        else:
            if note is not None:
                yield FileChange(path, "changed" if known else "added", note)

    def _move(self, before: Path, path: Path) -> Iterator[FileChange]:
        """Have the note of a file follow it to another path."""
        note_id, other = self._note_id(before), self._note_id(path)
        if note_id is None or other is not None:
            # It could not be read before, or takes the place of another: its note is a new one.
            yield from self._follow(Changes(changed=(path,), gone=(before,)))
            return
        with self._database.write() as tx:
            note_files.move(tx, note_id, key_of(path))
        note = self._room.get(note_id)
        if note.title == short_title(before.stem):
            note = self._room.update(note_id, title=short_title(path.stem))
        yield FileChange(path, "moved", replace(note, text=""))

    def _note_id(self, path: Path) -> int | None:
        note = self._known(path)
        return None if note is None else note.id

    def _notes_below(self, path: Path) -> dict[str, int]:
        with self._database.read() as tx:
            own = self._ids(tx).own
            return {} if own is None else note_files.paths_below(tx, own, path)
