"""The lease on an open session: while it is renewed, no other process may go on with it."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from sqlalchemy import Connection

from memchat import processes
from memchat.chat.conversation import Conversation
from memchat.chat.parts import Parts
from memchat.chat.reader import Reader
from memchat.errors import StoreError
from memchat.jobs.session_end import close_session
from memchat.store import sessions

log = logging.getLogger(__name__)

LEASE_SECONDS = 60.0


class Lease:
    """Takes the lease with each message, and renews it in a thread until it is stopped."""

    def __init__(self, parts: Parts, conversation: Conversation, reader: Reader) -> None:
        self.owner = processes.new_owner()
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None
        self._parts = parts
        self._conversation = conversation
        self._reader = reader
        self.chat: object = None
        """Whose lease it is. The thread that renews it keeps the chat alive, so that closing the
        store finds it and stops the thread."""

    def begin(self, tx: Connection, own: int, now: datetime) -> int:
        """Begin a session in scope row ``own`` with its lease taken; gives its id."""
        return sessions.start(tx, own, self.owner, self.until(now), now)

    def take(self, tx: Connection, session_id: int, now: datetime) -> None:
        """Take the lease of a session. Raises StoreError where another process holds it."""
        self.refuse_held(tx, session_id)
        sessions.reopen(tx, session_id, self.owner, self.until(now), now)

    def until(self, now: datetime) -> datetime:
        """When a lease that is taken now runs out."""
        return now + timedelta(seconds=LEASE_SECONDS)

    def refuse_held(self, tx: Connection, session_id: int) -> None:
        """Raise StoreError where another process holds the session."""
        if self.is_held_elsewhere(tx, session_id):
            raise StoreError(f"session {session_id} is open in another process; end it there first")

    def is_held_elsewhere(self, tx: Connection, session_id: int) -> bool:
        """Whether another process that is still alive holds the session."""
        owner, until = sessions.lease(tx, session_id)
        if owner == self.owner or processes.has_ended(owner):
            return False
        return processes.is_renewed(owner) or (until is not None and until >= self._parts.clock())

    def start(self) -> None:
        """Renew the lease from now on, where no thread does so yet."""
        if self.thread is None or not self.thread.is_alive():
            self.stopped = threading.Event()
            processes.add_renewal(self.owner, self.stopped)
            self.thread = threading.Thread(
                target=self._run, args=(self.stopped,), name="memchat-lease", daemon=True
            )
            self.thread.start()

    def stop(self) -> None:
        """Renew it no more."""
        self.stopped.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread that renews it, so long at most."""
        if self.thread is not None:
            self.thread.join(timeout=seconds)

    def renew(self) -> bool:
        """Renew once; False where the session is no longer this one's, or was idle and is ended."""
        session_id = self._conversation.session_id
        assert session_id is not None
        now = self._parts.clock()
        with self._parts.database.write() as tx:
            if not sessions.renew(tx, session_id, self.owner, self.until(now)):
                return False
            found = sessions.by_id(tx, session_id)
            idle = timedelta(minutes=self._parts.settings.idle_minutes)
            if found is None or now - found[0].last_activity_at <= idle:
                return found is not None
            close_session(tx, found[0], now)
        self.thread = None  # the next message starts another
        self._reader.read()
        return False

    def _run(self, stopped: threading.Event) -> None:
        """Renew while the process lives; a session that has gone silent is ended and read."""
        try:
            while not stopped.wait(LEASE_SECONDS / 3) and self._goes_on():
                pass
        finally:
            processes.remove_renewal(self.owner, stopped)

    def _goes_on(self) -> bool:
        try:
            return self.renew()
        except StoreError as error:
            session_id = self._conversation.session_id
            log.warning("the lease of session %s was not renewed: %s", session_id, error)
            return True
