"""The lease on an open session: while it is renewed, no other process may go on with it.

Within a process a session goes on in the chat that resumed it last.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from memchat import processes
from memchat.chat.conversation import Conversation, Parts
from memchat.chat.reply import Reader
from memchat.db import Tx, sessions
from memchat.errors import StoreError
from memchat.jobs.session_end import close_session

log = logging.getLogger(__name__)

LEASE_SECONDS = 60.0


def is_held(tx: Tx, session_id: int, now: datetime) -> bool:
    """Whether a chat of a process that is still alive holds the session."""
    owner, until = sessions.lease(tx, session_id)
    if processes.has_ended(owner):
        return False
    return processes.is_renewed(owner) or (until is not None and until >= now)


def refuse_held(tx: Tx, session_id: int, now: datetime) -> None:
    """Raise StoreError where a chat of a process that is still alive holds the session."""
    if is_held(tx, session_id, now):
        owner, _ = sessions.lease(tx, session_id)
        where = (
            "a chat of this program" if processes.is_of_this_process(owner) else "another process"
        )
        raise StoreError(f"session {session_id} is open in {where}; end it there first")


class Lease:
    """Takes the lease with each message, and renews it in a thread until it is stopped."""

    def __init__(self, parts: Parts, conversation: Conversation, reader: Reader) -> None:
        self.owner = processes.new_owner()
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None
        self._parts = parts
        self._conversation = conversation
        self._reader = reader
        self._held = False
        """Whether this chat had the lease before."""
        self.chat: object = None
        """Whose lease it is. The thread that renews it keeps the chat alive, so that closing the
        store finds it and stops the thread."""

    def begin(self, tx: Tx, own: int, now: datetime) -> int:
        """Begin a session in scope row ``own`` with its lease taken; gives its id."""
        self._held = True
        return sessions.start(tx, own, self.owner, self.until(now), now)

    def take(self, tx: Tx, session_id: int, now: datetime) -> None:
        """Take the lease of a session, also from an older chat of this process.

        Raises StoreError where another process holds it, or where a newer chat has taken it over.
        """
        self._refuse_taken_over(tx, session_id)
        if not self.is_held_here(tx, session_id):
            refuse_held(tx, session_id, now)
        sessions.reopen(tx, session_id, self.owner, self.until(now), now)
        self._held = True

    def take_over(self, tx: Tx, session_id: int, now: datetime) -> bool:
        """Take the lease where an older chat of this process holds it; whether that was so.

        Raises StoreError where another process holds it.
        """
        if not self.is_held_here(tx, session_id):
            refuse_held(tx, session_id, now)
            return False
        self._held = sessions.hand_over(tx, session_id, self.owner, self.until(now))
        return True

    def is_held_here(self, tx: Tx, session_id: int) -> bool:
        """Whether a chat of this process holds the lease, this one or another."""
        return processes.is_of_this_process(sessions.lease(tx, session_id)[0])

    def _refuse_taken_over(self, tx: Tx, session_id: int) -> None:
        owner, _ = sessions.lease(tx, session_id)
        if self._held and owner != self.owner and processes.is_of_this_process(owner):
            raise StoreError(
                f"session {session_id} was taken over by another chat of this program, which "
                "resumed it; go on there, or resume it here"
            )

    def until(self, now: datetime) -> datetime:
        """When a lease that is taken now runs out."""
        return now + timedelta(seconds=LEASE_SECONDS)

    def is_held_elsewhere(self, tx: Tx, session_id: int) -> bool:
        """Whether another chat, of this process or of another that is alive, holds the session."""
        owner, _ = sessions.lease(tx, session_id)
        return owner != self.owner and is_held(tx, session_id, self._parts.clock())

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
