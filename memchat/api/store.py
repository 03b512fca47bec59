"""MemChat: one open store, and the way to everything in it: its people, its backups, embedding
services and jobs.

``Backups``, ``wipe_files`` and ``wipe`` work on a data folder and need no open store; ``wipe``
refuses to delete one that is open anywhere.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TextIO, TypeVar

from memchat import config, types, waiting
from memchat.api.base import (
    Changed,
    Deleted,
    Exported,
    FetchedModel,
    check_choice,
    check_count,
    checked_arguments,
)
from memchat.api.user import User
from memchat.assembly import Assembly
from memchat.config.keys import FILE as KEYS
from memchat.config.providers import MINILM
from memchat.config.settings import FILE as SETTINGS
from memchat.config.settings import misspelt
from memchat.db import apps, backup, encryption, jobs
from memchat.db.database import FILE, damaged, utc_now
from memchat.db.jobs import DeadHolder
from memchat.errors import ConfigError, InputError, NotFound, StoreError, origin
from memchat.providers import ChatModel, Embedder, embedders, factory
from memchat.search.embeddings import FOLDER

if TYPE_CHECKING:
    from memchat.chat import Chat
    from memchat.doctor import Check
    from memchat.jobs.embedding import BackfillResult
    from memchat.jobs.worker import JobsDone
    from memchat.search.switch import EmbeddingServices, MigrationResult

log = logging.getLogger(__name__)
Result = TypeVar("Result")


@checked_arguments
class Backups:
    """The backups of the store in a folder: ``memchat.db.<time or schema>.bak``.

    The store need not be open: ``Backups(folder)`` works on one that cannot be opened, too. Nothing
    deletes a backup but ``prune``.
    """

    def __init__(self, home: Path | str) -> None:
        self._home = Path(home)
        self._store = self._home / FILE

    def create(
        self,
        file: Path | str | None = None,
        *,
        passphrase: str | None = None,
        progress: types.OnProgress | None = None,
    ) -> types.Backup:
        """Copy the store, while others may write to it, and check the copy.

        Without ``file`` the copy is in the store's folder, named after the time. With a
        ``passphrase`` it is encrypted; nobody can read it who does not have that. Raises NotFound
        if there is no store, InputError if ``file`` exists or the passphrase is empty, StoreError
        if the store is damaged or the file cannot be written, StoreFull if the disk is full.
        """
        target = Path(file) if file is not None else self._new_path()
        try:
            backup.make(self._store, target, types.timed(progress, "pages"), passphrase)
        except InputError:
            if file is not None or not target.exists():
                raise
            # another one made in this second has the name
            return self.create(passphrase=passphrase, progress=progress)
        return backup.describe(target, self._store)

    def write(
        self,
        out: BinaryIO,
        *,
        passphrase: str | None = None,
        progress: types.OnProgress | None = None,
    ) -> None:
        """Copy the store as ``create`` does, to a stream of bytes."""
        copy = backup.temporary_path(self._store)
        try:
            self.create(copy, passphrase=passphrase, progress=progress)
            with copy.open("rb") as made:
                shutil.copyfileobj(made, out)
        finally:
            backup.delete(copy)

    def list(self) -> Sequence[types.Backup]:
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
        return self.delete(self.prunable(keep=keep))

    def delete(self, files: Iterable[Path | str]) -> Sequence[Path]:
        """Delete these backups of the store's folder, by path or by name.

        Raises NotFound for a file that is no backup there, and nothing is deleted then; StoreError
        where a file cannot be deleted.
        """
        found = self.named(files)
        for path in found:
            try:
                backup.delete(path)
            except OSError as error:
                raise StoreError(f"{path} cannot be deleted ({error.strerror})") from error
        return found

    def named(self, files: Iterable[Path | str]) -> Sequence[Path]:
        """The files that ``delete`` would delete. Raises NotFound as it does."""
        there = {path.name: path for path in backup.find(self._home)}
        wanted = [Path(file) for file in files]
        for file in wanted:
            found = there.get(file.name)
            if found is None or file.parent not in (Path(), found.parent):
                raise NotFound(f"{file} is no backup in {self._home}", see="backup list")
        return [there[file.name] for file in wanted]

    def prunable(self, *, keep: int = 1) -> Sequence[Path]:
        """The files that ``prune`` would delete. Raises InputError for a ``keep`` below 0."""
        if keep < 0:
            raise InputError(f"{keep} backups cannot be kept; give 0 or more")
        if not keep:
            return backup.find(self._home)
        every = self.list()
        kept = [one.file for one in every if one.problem is None][:keep]
        return [one.file for one in every if one.file not in kept]

    def is_encrypted(self, file: Path | str) -> bool:
        """Whether a file, or a backup of this name in the store's folder, is encrypted. Raises
        NotFound where there is none."""
        path = self._path(file)
        if not path.exists():
            raise NotFound(f"there is no file {path}", see="backup list")
        return encryption.header(path) is not None

    def plan_restore(self, file: Path | str, *, passphrase: str | None = None) -> types.RestorePlan:
        """What restoring a backup would take from the store; nothing is changed.

        ``file`` is a path, or the name of a backup in the store's folder; an encrypted one needs
        its ``passphrase``. Raises NotFound, InputError, SchemaError or StoreError for a file that
        cannot be restored.
        """
        with self._opened(file, passphrase) as (path, plain):
            described = backup.describe(path, self._store, plain)
            if not self._store.exists() or not self._store.stat().st_size:
                return types.RestorePlan(described)
            try:
                with backup.opened_with(plain, self._store) as both:
                    lost = backup.only_in_store(both)
            except sqlite3.Error as error:
                return types.RestorePlan(described, store_problem=str(error))
            return types.RestorePlan(described, **lost)

    def restore(
        self,
        file: Path | str,
        *,
        passphrase: str | None = None,
        keep_present: bool = True,
        progress: types.OnProgress | None = None,
    ) -> Path | None:
        """Replace the whole store by a backup. What was forgotten since then is in it again.

        Every ``MemChat`` of the store has to be closed, in all processes. With ``keep_present`` the
        store as it was becomes a backup, whose path is returned. An older schema is brought up to
        date when the store is next opened. If the process is killed, the store is the old or the
        new one. Raises as ``plan_restore``, and StoreError if the store is open anywhere or cannot
        be written, StoreFull if the disk is full; the store is unchanged then.
        """
        with self._opened(file, passphrase) as (_, plain):
            there = self._store.exists() and self._store.stat().st_size
            kept = self._new_path() if keep_present and there else None
            # The saved index may hold vectors of what the backup lacks; the rows make it again.
            drop_index = partial(shutil.rmtree, self._home / FOLDER, ignore_errors=True)
            report = types.timed(progress, "pages")
            backup.put_back(plain, self._store, kept, drop_index, report)
            return kept

    def _path(self, file: Path | str) -> Path:
        path = Path(file)
        if not path.exists() and (self._home / path.name).exists() and path.name == str(file):
            return self._home / path.name
        return path

    @contextmanager
    def _opened(self, file: Path | str, passphrase: str | None) -> Iterator[tuple[Path, Path]]:
        """A backup that was checked, and the file with what it holds, decrypted."""
        path = self._path(file)
        if path.exists() and self._store.exists() and path.samefile(self._store):
            raise InputError(f"{path} is the store itself, not a backup", see="backup list")
        with backup.decrypted(path, self._store, passphrase) as plain:
            backup.check(path, plain)
            yield path, plain

    def _new_path(self) -> Path:
        """The path of a new backup; two in the same second have different ones."""
        while (path := backup.new_path(self._home, datetime.now(UTC))).exists():
            time.sleep(0.1)
        return path


@checked_arguments
class Users:
    """The people of a store."""

    def __init__(self, mc: MemChat) -> None:
        self._mc = mc

    def list(self) -> Sequence[types.UserInfo]:
        """Everybody of whom something is kept, in order of their names."""
        with self._mc._assembly.database.read() as tx:
            return apps.users(tx)

    def export(
        self, name: str, file: Path | str | TextIO | BinaryIO, *, format: str = "jsonl"
    ) -> Exported:
        """Write everything that is kept of a person into a new file, as ``User.export_file`` does.
        Raises NotFound where nothing is kept of them."""
        return self._mc.user(name).export_file(file, format=format)

    def delete(self, name: str) -> Deleted:
        """Delete everything that is kept of a person for good, in every app and for every app; how
        much that was. Raises NotFound where nothing is kept of them."""
        with self._mc._assembly.database.read() as tx:
            known = apps.ids_of_user(tx, name)
        if not known:
            raise NotFound(f"nothing is kept of {name}", see="users list")
        return self._mc.user(name).delete_all()


@checked_arguments
class Services:
    """The embedding services of the whole store: which one search uses, and their vectors."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def list(self) -> Sequence[types.ServiceInfo]:
        """The services that the store knows, and how many of their vectors it has."""
        return self._services().infos()

    def plugins(self) -> Sequence[types.PluginInfo]:
        """The embedding providers that other packages bring: ``memchat.providers.embedders``."""
        return embedders.plugins()

    def use(self, name: str, *, force: bool = False) -> Changed:
        """Search the vectors of this service from now on; how many texts were queued, as they have
        none of it yet.

        Raises InputError where some have none, unless ``force`` leaves these to the queue.
        """
        queued = self._services().use(name, force=force)
        self._assembly.accept_stored_service()
        return Changed(queued)

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The vectors of texts, made by the service in use. Raises ConfigError where none is."""
        meaning, reason = self._assembly.embedding_space()
        if meaning is None:
            raise ConfigError(f"nothing makes vectors here: {reason}")
        rows: Sequence[Sequence[float]] = meaning.embedder.embed_documents(texts)[0].tolist()
        return rows

    def migrate(
        self,
        name: str | None = None,
        *,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        progress: types.OnProgress | None = None,
    ) -> MigrationResult:
        """Embed everything with another service, while the one in use answers; then change to it.

        The store changes in one transaction, when no text lacks its vector. May be stopped and run
        again at any time. Without ``name``: the change begun before, else what the settings name.
        ``dimensions`` and ``max_tokens`` are for a model that memchat does not know.
        """
        done = self._services().migrate(
            name, dimensions=dimensions, max_tokens=max_tokens, tell=progress
        )
        if done.switched:
            self._assembly.accept_stored_service()
        return done

    def fetch(self, name: str, *, progress: types.OnProgress | None = None) -> FetchedModel:
        """Download a model to run on this machine: ``minilm`` or one of fastembed's. Nothing else
        ever downloads one.

        Raises InputError for an unknown name, ConfigError where fastembed is not installed,
        ProviderError where the files cannot be downloaded or are not those expected, StoreFull if
        the disk is full.
        """
        return FetchedModel(*factory.download(self._assembly.settings, name, progress))

    def remove(self, name: str, *, force: bool = False) -> Changed:
        """Delete a service with its vectors; how many. Raises InputError for the one in use,
        unless ``force`` is given."""
        return Changed(self._services().remove(name, force=force))

    def _services(self) -> EmbeddingServices:
        from memchat.search.switch import EmbeddingServices

        store = self._assembly
        return EmbeddingServices(store.database, store.settings, store.embedder)


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
    try:
        with backup.exclusive(store) if store.exists() else nullcontext():
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


@checked_arguments
class Jobs:
    """The queue of work of the whole store. ``user`` limits a verb to one person's jobs.

    ``run``, ``work`` and ``backfill`` work in the caller's thread; ``stop``, from another thread or
    a signal handler, lets them end after what they are doing.
    """

    def __init__(self, assembly: Assembly, background: Background) -> None:
        self._assembly = assembly
        self._background = background
        self._database = assembly.database

    def list(
        self,
        *,
        user: str | None = None,
        status: str | None = None,
        note_ids: Sequence[int] | None = None,
        limit: int = 100,
    ) -> Sequence[types.Job]:
        """The jobs, the latest first. ``status`` is pending, running, completed or failed;
        ``note_ids`` limits them to those of these notes."""
        check_choice(jobs.STATUSES[0] if status is None else status, jobs.STATUSES, "status")
        check_count(limit)
        with self._database.read() as tx:
            now = tx.now
            return jobs.listed(
                tx, user=user, status=status, note_ids=note_ids, now=now, limit=limit
            )

    def count(self, *, user: str | None = None) -> Mapping[str, int]:
        """How many jobs there are of each status."""
        with self._database.read() as tx:
            return jobs.counted(tx, user=user, now=tx.now)

    def due(self, *, user: str) -> bool:
        """Whether the queue holds work of the person that could be done now."""
        with self._database.read() as tx:
            user = types.Scope(user).user
            return bool(jobs.due_kinds(tx, user, tx.now) or jobs.dead_holders(tx, user))

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
        parallel: int = 1,
    ) -> JobsDone:
        """End abandoned sessions, then do all that is due, of these kinds or of any, and read
        ``parallel`` conversations at once: those of one person one after another.

        With ``again`` also what failed: each job that waits for its next try or was given up gets
        one now, and is left as it was where that fails too.
        With ``timeout`` it returns after so many seconds with what was done by then, ``running`` is
        True, and the rest is done in the background. Raises InputError for a bad ``timeout`` or
        ``parallel``.
        """
        from memchat.jobs.worker import KINDS, JobsDone

        seconds = types.checked_timeout(timeout)
        _check_parallel(parallel)
        worker, done = self._assembly.parts().worker, JobsDone()

        def work() -> JobsDone:
            worker.end_abandoned(user)
            if again:
                with self._database.write() as tx:
                    most = len(self._assembly.settings.retry_minutes)
                    jobs.retry(tx, tx.now, user=user, attempts=most)
            wanted = KINDS if kinds is None else kinds
            return worker.run(user=user, kinds=wanted, done=done, parallel=parallel)

        if seconds is None:
            return work()
        try:
            return self._background.run_within(seconds, work)
        except TimeoutError:
            return replace(done, learned=[*done.learned], failed=[*done.failed], running=True)

    def work(self, *, look: float | None = None, parallel: int = 1) -> None:
        """Do what is due, for everybody, and wait for more, until ``stop``.

        ``look`` is how many seconds lie between two looks into the queue; ``parallel`` is as in
        ``run``.
        """
        from memchat.jobs.worker import POLL_SECONDS, run_loop

        _check_parallel(parallel)
        run_loop(self._assembly.parts().worker, POLL_SECONDS if look is None else look, parallel)

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

    def backfill(
        self, *, batch: int = 100, progress: types.OnProgress | None = None
    ) -> BackfillResult:
        """Make the vector of every fact, message, summary and chunk of a note that has none.

        It asks the embedding service for ``batch`` texts at a time. Raises ConfigError where no
        service is in use.
        """
        if not 1 <= batch <= types.MOST_BATCH:
            raise InputError(f"a batch of {batch} cannot be; use 1 to {types.MOST_BATCH}")
        return self._assembly.parts().worker.backfill(batch, progress)

    def retry(self, *, user: str, job_id: int | None = None, failed_only: bool = False) -> Changed:
        """Put failed and waiting jobs, or only the failed ones, first in line again; how many."""
        with self._database.write() as tx:
            count = jobs.retry(tx, tx.now, user=user, job_id=job_id, failed_only=failed_only)
        return Changed(count)

    def clear(self, *, user: str) -> Changed:
        """Remove the person's completed jobs from the queue; how many. What they did stays."""
        with self._database.write() as tx:
            return Changed(jobs.remove_completed(tx, user=user))


def _check_parallel(parallel: object) -> None:
    if not isinstance(parallel, int) or not 1 <= parallel <= types.MOST_AT_ONCE:
        raise InputError(f"{parallel!r} at once cannot be; use 1 to {types.MOST_AT_ONCE}")


@checked_arguments
class MemChat:
    """One store and the models around it. Use it in a ``with`` block, or ``close`` it.

    One ``MemChat`` may be used from any number of threads.
    """

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        settings: config.Settings | None = None,
        chat_model: ChatModel | None = None,
        extract_model: ChatModel | None = None,
        embedder: Embedder | None = None,
        types: Mapping[str, types.OwnType] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Open the store in the folder ``home``, or where the settings say.

        Without ``settings`` they are read from the environment and the settings file. Models given
        here are used instead of those that the settings name; ``types`` of memories, by name, are
        there beside those of the settings. ``clock`` returns the current time, with its zone.
        Raises InputError for a type that cannot be declared, ConfigError for settings that cannot
        be used, StoreError when the folder or file cannot be used, SchemaError for a store of a
        newer memchat, or of one from before the first release.
        """
        if settings is None:
            settings = config.load()
            for line in misspelt(os.environ):
                log.warning(line)
        own = {**settings.types, **(types or {})}
        self.settings: config.Settings = settings.with_(
            home=settings.home if home is None else Path(home), types=own
        )
        for given, kind, name in (
            (chat_model, ChatModel, "chat_model"),
            (extract_model, ChatModel, "extract_model"),
            (embedder, Embedder, "embedder"),
        ):
            lacking = [n for n in vars(kind) if n[0] != "_" and not hasattr(given, n)]
            if given is not None and lacking:
                raise TypeError(f"the {name} has no {', '.join(lacking)}; see {kind.__name__}")
        now = utc_now if clock is None else _checked(clock)
        self._assembly = Assembly(self.settings, now, chat_model, extract_model, embedder)
        self._background = Background()
        self._closed = False

    def __enter__(self) -> Self:
        self._assembly.database.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def user(self, user: str, app: str = "default") -> User:
        """One person in one app: every verb of the result is about their memory alone.

        Nothing is stored until the first verb that stores something. Raises ScopeError for a name
        that cannot be used.
        """
        return User(self._assembly, self._background, types.Scope(user, app))

    @cached_property
    def jobs(self) -> Jobs:
        """The queue of work of the whole store."""
        return Jobs(self._assembly, self._background)

    @cached_property
    def users(self) -> Users:
        """The people of the store."""
        return Users(self)

    @cached_property
    def services(self) -> Services:
        """The embedding services of the store."""
        return Services(self._assembly)

    @property
    def backups(self) -> Backups:
        """The backups of the store. To restore one, close every ``MemChat`` of the store and use
        ``Backups(folder).restore``."""
        return Backups(self.settings.home)

    @property
    def backup(self) -> Path | None:
        """The copy of the store from before opening it brought it up to date; None if that was not
        needed."""
        return self._assembly.database.backup

    def doctor(
        self, *, probe: bool = False, progress: types.OnProgress | None = None
    ) -> list[Check]:
        """What is in use and why, and what is wrong, each with its remedy.

        With ``probe`` each model is asked one word over the network, and what came back is one
        more check, named "probe". Waits for each as long as MEMCHAT_TIMEOUT says, at most;
        ``progress`` counts the models that were asked.
        """
        from memchat import doctor

        store = self._assembly
        checks = doctor.examine(
            store.database, self.settings, store.embedding_space, self.address_notices()
        )
        if probe:
            models = store.chat_model(), store.extract_model()
            checks += doctor.probe(*models, store.embedding_space, progress)
        return checks

    def repair(self) -> list[str]:
        """Bring keyword rows, vectors and index back in step with the rows, and the chunks of notes
        with their texts; what was done.

        Asks no provider: what has no vector is queued.
        """
        from memchat.search.repair import Repair

        return Repair(self._assembly.database, self._assembly.usable_embedder).run()

    def address_notices(self) -> list[str]:
        """A sentence for each address that words are sent to and that is not the provider's own."""
        return self._assembly.in_force().redirect_warnings()

    def models_line(self) -> str:
        """The models in use and where each is asked, in one line; no provider is called for it."""
        from memchat.providers.local import available

        used = self._assembly.in_force()
        missing = used.embed_model == MINILM and not available()
        return used.models_line() + (" (its weights are missing)" if missing else "")

    def models(self, provider: str) -> Sequence[str]:
        """The models that a provider lists just now, as a setting names them; empty where it lists
        none. Raises ConfigError where its key is missing or refused, ProviderError where it does
        not answer."""
        return factory.offered(self.settings, provider)

    def connect(self, provider: str, key: str = "", address: str = "") -> Sequence[str]:
        """Try a provider's key at an address, or at the provider's own, and keep both in the data
        folder; the models that are listed there. They are used by what is opened afterwards.

        Raises InputError or ConfigError for what cannot be, and where the key is refused: nothing
        is kept then. A provider that does not answer just now is kept, and lists none.
        """
        return factory.connect(self.settings, provider, key, address)

    def warm(self) -> None:
        """Load the models of this machine before the first question; it takes some seconds."""
        if not self._assembly.chat_model_known:
            factory.preload(self._assembly.settings)
        self._assembly.warm()

    @property
    def now(self) -> datetime:
        """The current time by the clock of this store."""
        return self._assembly.clock()

    def close(self) -> None:
        """Save the index of large scopes, end the threads and close the files.

        Sessions that are open stay open on disk: the next process ends and reads them. Whatever is
        used afterwards raises StoreError; closing again does nothing.
        """
        if self._closed:
            return
        self._closed = True
        if not self._background.close():
            self.jobs.stop()  # what is being done is brought to its end
        self._assembly.close()


def _checked(clock: Callable[[], datetime]) -> Callable[[], datetime]:
    """A clock that raises InputError where the one that was given says no time to reckon with."""
    first, last = types.EARLIEST.year, types.LATEST.year

    def now() -> datetime:
        at: object = clock()
        if not isinstance(at, datetime) or not first <= at.year <= last:
            raise InputError(
                f"the clock said {at}; it must return an aware time of the years {first} "
                f"to {last}, as datetime.now(UTC) does"
            )
        return at

    return now


CLOSE_SECONDS = 5.0
"""How long closing waits for background work; what is not done then is done at the next start."""


class Background:
    """The open chats of a store, and the work beside them. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chats: weakref.WeakSet[Chat] = weakref.WeakSet()
        self._running: set[Future[Any]] = set()

    def add(self, chat: Chat) -> None:
        """Keep track of an open chat, so that closing the store lets go of it."""
        with self._lock:
            self._chats.add(chat)

    def run(self, work: Callable[[], None]) -> None:
        """Begin some work that nobody waits for; an error in it is logged."""
        self._begin(work).add_done_callback(_log_failure)

    def _begin(self, work: Callable[[], Result]) -> Future[Result]:
        """Begin some work beside."""
        future = waiting.beside("memchat-worker", work)
        with self._lock:
            self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def run_within(self, seconds: float, work: Callable[[], Result]) -> Result:
        """Do some work beside, and return what it gives, or raise what it raises.

        Raises TimeoutError where it takes longer than ``seconds``; the work then goes on.
        """
        return waiting.result(self._begin(work), seconds)

    def close(self) -> bool:
        """Let go of the chats and wait for the work; whether all of it has ended."""
        with self._lock:
            chats, running = list(self._chats), list(self._running)
        for chat in chats:
            chat.abandon()
        return not wait(running, CLOSE_SECONDS).not_done


def _log_failure(future: Future[None]) -> None:
    error = future.exception()
    if isinstance(error, Exception):
        log.error("work in the background failed: %s", origin(error))
