"""The backups of a store: making, listing, deleting and restoring them."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from memchat.errors import InputError, NotFound, StoreError
from memchat.store import backup_comparison, backup_copy, backup_files, restore
from memchat.store.backup_copy import Report
from memchat.store.database import FILE
from memchat.types import Backup, OnProgress, Progress, RestorePlan


class Backups:
    """The backups of the store in a folder: ``memchat.db.<time or schema>.bak``.

    The store need not be open: ``Backups(folder)`` works on one that cannot be opened, too. Nothing
    deletes a backup but ``prune``.
    """

    def __init__(self, home: Path | str) -> None:
        self._home = Path(home)
        self._store = self._home / FILE

    def create(
        self, file: Path | str | None = None, *, progress: OnProgress | None = None
    ) -> Backup:
        """Copy the store, while others may write to it, and check the copy.

        Without ``file`` the copy is in the store's folder, named after the time. Raises NotFound if
        there is no store, InputError if ``file`` exists, StoreError if the store is damaged or the
        file cannot be written, StoreFull if the disk is full.
        """
        target = Path(file) if file is not None else self._new_path()
        try:
            backup_copy.make(self._store, target, _reported(progress))
        except InputError:
            if file is not None:
                raise
            return self.create(progress=progress)  # another one made in this second has the name
        return backup_files.describe(target, self._store)

    def write(self, out: BinaryIO, *, progress: OnProgress | None = None) -> None:
        """Copy the store as ``create`` does, to a stream of bytes."""
        copy = backup_files.temporary_path(self._store)
        try:
            self.create(copy, progress=progress)
            with copy.open("rb") as made:
                shutil.copyfileobj(made, out)
        finally:
            backup_files.delete(copy)

    def list(self) -> Sequence[Backup]:
        """The backups in the store's folder, the newest first, whether they can be restored or
        not."""
        return [backup_files.describe(path, self._store) for path in backup_files.find(self._home)]

    def perhaps_forgotten(self) -> Sequence[Path]:
        """The backups that hold words that were forgotten or deleted since, or for which that
        cannot be told. Reads nothing if there are no backups."""
        return backup_files.perhaps_forgotten(self._home)

    def prune(self, *, keep: int = 1) -> Sequence[Path]:
        """Delete the backups in the store's folder but the ``keep`` newest that can be restored.

        Gives the files that were deleted. Raises InputError for a ``keep`` below 0, StoreError
        where a file cannot be deleted.
        """
        return self._deleted(self.prunable(keep=keep))

    def delete(self, files: Iterable[Path | str]) -> Sequence[Path]:
        """Delete these backups of the store's folder, by path or by name.

        Raises NotFound for a file that is no backup there, and nothing is deleted then; StoreError
        where a file cannot be deleted.
        """
        return self._deleted(self.named(files))

    def named(self, files: Iterable[Path | str]) -> Sequence[Path]:
        """The files that ``delete`` would delete. Raises NotFound as it does."""
        there = {path.name: path for path in backup_files.find(self._home)}
        wanted = [Path(file) for file in files]
        for file in wanted:
            found = there.get(file.name)
            if found is None or file.parent not in (Path(), found.parent):
                raise NotFound(f"{file} is no backup in {self._home}; see memchat backup list")
        return [there[file.name] for file in wanted]

    def _deleted(self, files: Sequence[Path]) -> Sequence[Path]:
        for path in files:
            try:
                backup_files.delete(path)
            except OSError as error:
                raise StoreError(f"{path} cannot be deleted ({error.strerror})") from error
        return files

    def prunable(self, *, keep: int = 1) -> Sequence[Path]:
        """The files that ``prune`` would delete. Raises InputError for a ``keep`` below 0."""
        if keep < 0:
            raise InputError(f"{keep} backups cannot be kept; give 0 or more")
        if not keep:
            return backup_files.find(self._home)
        every = self.list()
        kept = [backup.file for backup in every if backup.problem is None][:keep]
        return [backup.file for backup in every if backup.file not in kept]

    def plan_restore(self, file: Path | str) -> RestorePlan:
        """What restoring a backup would take from the store; nothing is changed.

        ``file`` is a path, or the name of a backup in the store's folder. Raises NotFound,
        InputError, SchemaError or StoreError for a file that cannot be restored.
        """
        path = self._checked(file)
        backup = backup_files.describe(path, self._store)
        if not self._store.exists() or not self._store.stat().st_size:
            return RestorePlan(backup)
        try:
            with backup_comparison.opened(path, self._store) as both:
                lost = backup_comparison.only_in_store(both)
        except sqlite3.Error as error:
            return RestorePlan(backup, store_problem=str(error))
        return RestorePlan(
            backup,
            lost["memories"],
            lost["sessions"],
            lost["messages"],
            lost["inbox"],
            lost["sources"],
        )

    def restore(
        self, file: Path | str, *, keep_present: bool = True, progress: OnProgress | None = None
    ) -> Path | None:
        """Replace the whole store by a backup. What was forgotten since then is in it again.

        Every ``MemChat`` of the store has to be closed, in all processes. With ``keep_present`` the
        store as it was becomes a backup, whose path is returned. An older schema is brought up to
        date when the store is next opened. If the process is killed, the store is the old or the
        new one. Raises as ``plan_restore``, and StoreError if the store is open anywhere or cannot
        be written, StoreFull if the disk is full; the store is unchanged then.
        """
        path = self._checked(file)
        there = self._store.exists() and self._store.stat().st_size
        kept = self._new_path() if keep_present and there else None
        restore.put_back(path, self._store, kept, self._drop_index, _reported(progress))
        return kept

    def _checked(self, file: Path | str) -> Path:
        path = Path(file)
        if not path.exists() and (self._home / path.name).exists() and path.name == str(file):
            path = self._home / path.name
        if path.exists() and self._store.exists() and path.samefile(self._store):
            raise InputError(f"{path} is the store itself; memchat backup list shows its backups")
        backup_files.check(path)
        return path

    def _new_path(self) -> Path:
        """The path of a new backup; two in the same second have different ones."""
        while (path := backup_files.new_path(self._home, datetime.now(UTC))).exists():
            time.sleep(0.1)
        return path

    def _drop_index(self) -> None:
        """Delete the saved index, which may hold vectors of what the backup lacks; the rows make it
        again."""
        from memchat.vectors.vector_index import FOLDER

        shutil.rmtree(self._home / FOLDER, ignore_errors=True)


def _reported(progress: OnProgress | None) -> Report:
    """The pages that are copied, as progress."""
    begun = time.monotonic()

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(Progress(done, total, time.monotonic() - begun, unit="pages"))

    return report
