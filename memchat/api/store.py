"""The public interface to a whole store: its backups, embedding services, jobs and apps.

``Backups``, ``wipe_files`` and ``wipe`` work on a data folder and need no open store; ``wipe``
refuses to delete one that is open anywhere.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from memchat.api.base import Changed, Deleted, FetchedModel, Room, check_choice, check_count
from memchat.assembly import Assembly
from memchat.config.keys import FILE as KEYS
from memchat.config.settings import FILE as SETTINGS
from memchat.db import apps, backup, jobs
from memchat.db import backup as db_backup
from memchat.db.backup import Report
from memchat.db.database import FILE, damaged
from memchat.db.jobs import DeadHolder
from memchat.errors import InputError, NotFound, StoreError
from memchat.search.vector_index import FOLDER
from memchat.types import (
    MOST_BATCH,
    AppInfo,
    Backup,
    Job,
    OnProgress,
    PluginInfo,
    Progress,
    RestorePlan,
    Scope,
    ServiceInfo,
    checked_timeout,
)

if TYPE_CHECKING:
    from memchat.api.memchat import Background
    from memchat.jobs.embedding import BackfillResult
    from memchat.jobs.worker import JobsDone
    from memchat.search.switch import EmbeddingServices, MigrationResult


class Apps(Room):
    """The apps of one person: each has memories, notes and conversations of its own."""

    def list(self) -> Sequence[AppInfo]:
        """The person's apps, by name."""
        with self._database.read() as tx:
            return apps.of_user(tx, self._scope.user)

    def delete(self, app: str) -> Deleted:
        """Delete an app with its memories, notes and conversations for good.

        Raises NotFound where the person has no such app.
        """
        from memchat.forget import purge

        scope = Scope(self._scope.user, app)
        with self._database.write(scope) as tx:
            if not tx.own:
                raise NotFound(f"there is no app {app!r}; see memchat apps list")
            held = next(one for one in apps.of_user(tx, scope.user) if one.name == scope.app)
            count = purge.forget_app(tx, tx.own)
        return Deleted(count, held.sessions, apps=1, notes=held.notes)


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
            backup.make(self._store, target, _reported(progress))
        except InputError:
            if file is not None:
                raise
            return self.create(progress=progress)  # another one made in this second has the name
        return backup.describe(target, self._store)

    def write(self, out: BinaryIO, *, progress: OnProgress | None = None) -> None:
        """Copy the store as ``create`` does, to a stream of bytes."""
        copy = backup.temporary_path(self._store)
        try:
            self.create(copy, progress=progress)
            with copy.open("rb") as made:
                shutil.copyfileobj(made, out)
        finally:
            backup.delete(copy)

    def list(self) -> Sequence[Backup]:
        """The backups in the store's folder, the newest first, whether they can be restored or
        not."""
        return [backup.describe(path, self._store) for path in backup.find(self._home)]

    def perhaps_forgotten(self) -> Sequence[Path]:
        """The backups that hold words that were forgotten or deleted since, or for which that
        cannot be told. Reads nothing if there are no backups."""
        return backup.perhaps_forgotten(self._home)

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
        there = {path.name: path for path in backup.find(self._home)}
        wanted = [Path(file) for file in files]
        for file in wanted:
            found = there.get(file.name)
            if found is None or file.parent not in (Path(), found.parent):
                raise NotFound(f"{file} is no backup in {self._home}; see memchat backup list")
        return [there[file.name] for file in wanted]

    def _deleted(self, files: Sequence[Path]) -> Sequence[Path]:
        for path in files:
            try:
                backup.delete(path)
            except OSError as error:
                raise StoreError(f"{path} cannot be deleted ({error.strerror})") from error
        return files

    def prunable(self, *, keep: int = 1) -> Sequence[Path]:
        """The files that ``prune`` would delete. Raises InputError for a ``keep`` below 0."""
        if keep < 0:
            raise InputError(f"{keep} backups cannot be kept; give 0 or more")
        if not keep:
            return backup.find(self._home)
        every = self.list()
        kept = [backup.file for backup in every if backup.problem is None][:keep]
        return [backup.file for backup in every if backup.file not in kept]

    def plan_restore(self, file: Path | str) -> RestorePlan:
        """What restoring a backup would take from the store; nothing is changed.

        ``file`` is a path, or the name of a backup in the store's folder. Raises NotFound,
        InputError, SchemaError or StoreError for a file that cannot be restored.
        """
        path = self._checked(file)
        backup = db_backup.describe(path, self._store)
        if not self._store.exists() or not self._store.stat().st_size:
            return RestorePlan(backup)
        try:
            with db_backup.opened_beside(path, self._store) as both:
                lost = db_backup.only_in_store(both)
        except sqlite3.Error as error:
            return RestorePlan(backup, store_problem=str(error))
        return RestorePlan(
            backup,
            lost["memories"],
            lost["sessions"],
            lost["messages"],
            lost["proposals"],
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
        backup.put_back(path, self._store, kept, self._drop_index, _reported(progress))
        return kept

    def _checked(self, file: Path | str) -> Path:
        path = Path(file)
        if not path.exists() and (self._home / path.name).exists() and path.name == str(file):
            path = self._home / path.name
        if path.exists() and self._store.exists() and path.samefile(self._store):
            raise InputError(f"{path} is the store itself; memchat backup list shows its backups")
        backup.check(path)
        return path

    def _new_path(self) -> Path:
        """The path of a new backup; two in the same second have different ones."""
        while (path := backup.new_path(self._home, datetime.now(UTC))).exists():
            time.sleep(0.1)
        return path

    def _drop_index(self) -> None:
        """Delete the saved index, which may hold vectors of what the backup lacks; the rows make it
        again."""
        from memchat.search.vector_index import FOLDER

        shutil.rmtree(self._home / FOLDER, ignore_errors=True)


def _reported(progress: OnProgress | None) -> Report:
    """The pages that are copied, as progress."""
    begun = time.monotonic()

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(Progress(done, total, time.monotonic() - begun, unit="pages"))

    return report


class Services:
    """The embedding services of the whole store: which one search uses, and their vectors."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def list(self) -> Sequence[ServiceInfo]:
        """The services that the store knows, and how many of their vectors it has."""
        return self._services().infos()

    def plugins(self) -> Sequence[PluginInfo]:
        """The embedding providers that other packages bring: ``memchat.providers.embedders``."""
        from memchat.providers import embedders

        return embedders.plugins()

    def use(self, name: str, *, force: bool = False) -> Changed:
        """Search the vectors of this service from now on; how many texts were queued, as they have
        none of it yet.

        Raises InputError where some have none, unless ``force`` leaves these to the queue.
        """
        queued = self._services().use(name, force=force)
        self._assembly.accept_stored_service()
        return Changed(queued)

    def migrate(
        self,
        name: str | None = None,
        *,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        progress: OnProgress | None = None,
    ) -> MigrationResult:
        """Embed everything with another service, while the one in use answers; then change to it.

        The store changes in one transaction, when no text lacks its vector. May be stopped and run
        again at any time. Without ``name``: the change begun before, else what the settings name.
        ``dimensions`` and ``max_tokens`` are for a model that memchat does not know.
        """
        done = self._services().migrate(
            name, dimensions=dimensions, max_tokens=max_tokens, tell=progress or _ignore
        )
        if done.switched:
            self._assembly.accept_stored_service()
        return done

    def fetch(self, name: str, *, progress: OnProgress | None = None) -> FetchedModel:
        """Download a model to run on this machine: ``minilm`` or one of fastembed's. Nothing else
        ever downloads one.

        Raises InputError for an unknown name, ConfigError where fastembed is not installed,
        ProviderError where the files cannot be downloaded or are not those expected, StoreFull if
        the disk is full.
        """
        from memchat.providers import factory

        return FetchedModel(*factory.download(self._assembly.settings, name, progress or _ignore))

    def remove(self, name: str, *, force: bool = False) -> Changed:
        """Delete a service with its vectors; how many. Raises InputError for the one in use,
        unless ``force`` is given."""
        return Changed(self._services().remove(name, force=force))

    def _services(self) -> EmbeddingServices:
        from memchat.search.switch import EmbeddingServices

        store = self._assembly
        common = (store.database, store.settings, store.clock)
        return EmbeddingServices(*common, store.embedder)


def _ignore(progress: Progress) -> None:
    pass


_DERIVED = (FOLDER, "models", "minilm-checked.json", "memchat.log*")
_PERSONAL = (SETTINGS, KEYS, f".{SETTINGS}.*", f".{KEYS}.*", "prompts")
"""What the person wrote: settings, keys (with unfinished files of them) and own prompts."""


def wipe_files(home: Path, *, with_settings: bool = False) -> Sequence[Path]:
    """The files and folders that ``wipe`` would delete: the store, its backups, its index, logs and
    downloaded models; with ``with_settings`` also settings, keys and prompts."""
    store = home / FILE
    patterns = _DERIVED + (_PERSONAL if with_settings else ())
    found = [path for name in patterns for path in home.glob(name)]
    # The store goes last, so that a wipe that was interrupted can be done again.
    for database in (*backup.find(home), store):
        found += [p for p in (*backup.beside(database), database) if os.path.lexists(p)]
    return found


def wipe(home: Path, *, with_settings: bool = False) -> Sequence[Path]:
    """Delete these files; gives those that were there before it began.

    Raises StoreError while the store is open, here or in another process, or where a file cannot be
    deleted, and SchemaError for a database of something else.
    """
    store, there = home / FILE, wipe_files(home, with_settings=with_settings)
    if not store.exists():
        _delete(there)
        return there
    try:
        with backup.exclusive(store):
            # SQLite has made files beside the store meanwhile, and deleted others.
            _delete(wipe_files(home, with_settings=with_settings))
    except sqlite3.DatabaseError as error:
        if not damaged(error):
            raise StoreError(f"{store} cannot be locked ({error}); nothing was deleted") from error
        _delete(wipe_files(home, with_settings=with_settings))
    return there


def _delete(paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"{error.filename or path} cannot be deleted ({error.strerror}); "
                "run memchat wipe again once it can"
            ) from error


class Jobs:
    """The queue of work of the whole store. ``user`` limits a verb to one person's jobs.

    ``run``, ``work`` and ``backfill`` work in the caller's thread; ``stop``, from another thread or
    a signal handler, lets them end after what they are doing.
    """

    def __init__(self, assembly: Assembly, background: Background) -> None:
        self._assembly = assembly
        self._background = background
        self._database = assembly.database
        self._clock = assembly.clock

    def list(
        self,
        *,
        user: str | None = None,
        status: str | None = None,
        note_ids: Sequence[int] | None = None,
        limit: int = 100,
    ) -> Sequence[Job]:
        """The jobs, the latest first. ``status`` is pending, running, completed or failed;
        ``note_ids`` limits them to those of these notes."""
        check_choice(status or jobs.STATUSES[0], jobs.STATUSES, "status")
        check_count(limit)
        with self._database.read() as tx:
            now = self._clock()
            return jobs.listed(
                tx, user=user, status=status, note_ids=note_ids, now=now, limit=limit
            )

    def count(self, *, user: str | None = None) -> Mapping[str, int]:
        """How many jobs there are of each status."""
        with self._database.read() as tx:
            return jobs.counted(tx, user=user, now=self._clock())

    def due(self, *, user: str) -> bool:
        """Whether the queue holds work of the person that could be done now."""
        with self._database.read() as tx:
            user = Scope(user).user
            return bool(jobs.due_kinds(tx, user, self._clock()) or jobs.dead_holders(tx, user))

    def dead_holders(self, *, user: str | None = None) -> Sequence[DeadHolder]:
        """The processes that have ended and still hold jobs; the next run takes these over."""
        with self._database.read() as tx:
            return jobs.dead_holders(tx, user)

    def run(
        self,
        *,
        user: str | None = None,
        kinds: Sequence[str] | None = None,
        timeout: float | None = None,
        again: bool = False,
    ) -> JobsDone:
        """End abandoned sessions, then do all that is due, of these kinds or of any.

        With ``again`` also what failed: each job that waits for its next try or was given up gets
        one now, and is left as it was where that fails too.
        With ``timeout`` it returns after so many seconds with what was done by then, ``running`` is
        True, and the rest is done in the background. Raises InputError for a bad ``timeout``.
        """
        from memchat.jobs.worker import KINDS, JobsDone

        seconds = checked_timeout(timeout)
        worker, done = self._assembly.parts().worker, JobsDone()

        def work() -> JobsDone:
            worker.end_abandoned(user)
            if again:
                with self._database.write() as tx:
                    most = len(self._assembly.settings.retry_minutes)
                    jobs.retry(tx, self._clock(), user=user, attempts=most)
            return worker.run(user=user, kinds=KINDS if kinds is None else kinds, done=done)

        if seconds is None:
            return work()
        try:
            return self._background.run_within(seconds, work)
        except TimeoutError:
            return replace(done, learned=[*done.learned], failed=[*done.failed], running=True)

    def work(self, *, look: float | None = None) -> None:
        """Do what is due, for everybody, and wait for more, until ``stop``.

        ``look`` is how many seconds lie between two looks into the queue.
        """
        from memchat.jobs.worker import POLL_SECONDS, run_loop

        run_loop(self._assembly.parts().worker, POLL_SECONDS if look is None else look)

    def stop(self) -> None:
        """Begin no more work, in ``run``, ``work``, ``backfill`` or in the background."""
        self._assembly.parts().worker.stopping.set()

    def embed(self, *, remote: bool = False) -> Changed:
        """Make the vectors of waiting memories with a service of this machine; with ``remote`` also
        with one on the network. How many were made."""
        meaning, _ = self._assembly.embedding_space()
        if meaning is None or not (meaning.embedder.service.local or remote):
            return Changed(0)
        return Changed(self._assembly.parts().worker.run(kinds=("embed",)).done)

    def backfill(self, *, batch: int = 100, progress: OnProgress | None = None) -> BackfillResult:
        """Make the vector of every fact, message, summary and chunk of a note that has none.

        It asks the embedding service for ``batch`` texts at a time. Raises ConfigError where no
        service is in use.
        """
        if not 1 <= batch <= MOST_BATCH:
            raise InputError(f"a batch of {batch} cannot be; use 1 to {MOST_BATCH}")
        return self._assembly.parts().worker.backfill(batch, progress or (lambda _: None))

    def retry(self, *, user: str, job_id: int | None = None, failed_only: bool = False) -> Changed:
        """Put failed and waiting jobs, or only the failed ones, first in line again; how many."""
        with self._database.write() as tx:
            count = jobs.retry(tx, self._clock(), user=user, job_id=job_id, failed_only=failed_only)
        return Changed(count)

    def clear(self, *, user: str) -> Changed:
        """Remove the person's completed jobs from the queue; how many. What they did stays."""
        with self._database.write() as tx:
            return Changed(jobs.remove_completed(tx, user=user))
