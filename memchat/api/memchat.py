"""MemChat: one open store, and the way to everything in it."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from memchat import config
from memchat.api.store import Backups, Jobs, Services
from memchat.api.user import User
from memchat.assembly import Assembly
from memchat.config.settings import misspelt
from memchat.db.database import utc_now
from memchat.errors import InputError
from memchat.types import OnProgress, Scope
from memchat.types.conversations import EARLIEST, LATEST

if TYPE_CHECKING:
    from memchat.chat import Chat
    from memchat.doctor import Check
    from memchat.providers import ChatModel, Embedder

log = logging.getLogger(__name__)
Result = TypeVar("Result")


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
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Open the store in the folder ``home``, or where the settings say.

        Without ``settings`` they are read from the environment and the settings file. Models given
        here are used instead of those that the settings name. ``clock`` returns the current time,
        with its zone. Raises ConfigError for settings that cannot be used, StoreError when the
        folder or file cannot be used, SchemaError for a store of a newer memchat, or of one from
        before the first release.
        """
        if settings is None:
            settings = config.load()
            for line in misspelt(os.environ):
                log.warning(line)
        self.settings = settings.with_(home=Path(home)) if home is not None else settings
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
        return User(self._assembly, self._background, Scope(user, app))

    @cached_property
    def jobs(self) -> Jobs:
        """The queue of work of the whole store."""
        return Jobs(self._assembly, self._background)

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

    def doctor(self, *, probe: bool = False, progress: OnProgress | None = None) -> list[Check]:
        """What is in use and why, and what is wrong, each with its remedy.

        With ``probe`` each model is asked one word over the network, and what came back is one
        more check, named "probe". Waits for each as long as MEMCHAT_TIMEOUT says, at most;
        ``progress`` counts the models that were asked.
        """
        from memchat import doctor

        store = self._assembly
        checks = doctor.examine(
            store.database,
            self.settings,
            store.embedding_space,
            store.clock(),
            self.address_notices(),
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
        from memchat.config.providers import MINILM
        from memchat.providers.local import available

        used = self._assembly.in_force()
        missing = used.embed_model == MINILM and not available()
        return used.models_line() + (" (its weights are missing)" if missing else "")

    def warm(self) -> None:
        """Load the models of this machine before the first question; it takes some seconds."""
        if not self._assembly.chat_model_known:
            from memchat.providers import factory

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

    def now() -> datetime:
        at: object = clock()
        if not isinstance(at, datetime) or not EARLIEST.year <= at.year <= LATEST.year:
            raise InputError(
                f"the clock said {at}; it must return an aware time of the years {EARLIEST.year} "
                f"to {LATEST.year}, as datetime.now(UTC) does"
            )
        return at

    return now


CLOSE_SECONDS = 5.0
"""How long closing waits for background work; what is not done then is done at the next start."""


class Background:
    """The open chats of a store, and the work that runs in threads beside them. Safe to use from
    several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chats: weakref.WeakSet[Chat] = weakref.WeakSet()
        self._threads: list[threading.Thread] = []

    def add(self, chat: Chat) -> None:
        """Keep track of an open chat, so that closing the store lets go of it."""
        with self._lock:
            self._chats.add(chat)

    def run(self, work: Callable[[], None]) -> threading.Thread:
        """Do some work in a thread of its own."""
        thread = threading.Thread(target=work, name="memchat-worker", daemon=True)
        with self._lock:
            self._threads = [other for other in self._threads if other.is_alive()]
            self._threads.append(thread)
            thread.start()
        return thread

    def run_within(self, seconds: float, work: Callable[[], Result]) -> Result:
        """Do some work in a thread, and return what it gives, or raise what it raises.

        Raises TimeoutError where it takes longer than ``seconds``; the work then goes on.
        """
        result: Future[Result] = Future()

        def run() -> None:
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
                result.set_exception(error)

        self.run(run)
        return result.result(seconds)

    def close(self) -> bool:
        """Let go of the chats and wait for the work; whether all of it has ended."""
        with self._lock:
            chats, threads = list(self._chats), list(self._threads)
        for chat in chats:
            chat.abandon()
        for thread in threads:
            thread.join(timeout=CLOSE_SECONDS)
        return not any(thread.is_alive() for thread in threads)
