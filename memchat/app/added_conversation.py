"""Adding a conversation that another program holds: stored, and read as a chat of memchat is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from memchat.app.incoming import Incoming
from memchat.app.known_turns import KnownTurns
from memchat.assembly import Assembly
from memchat.errors import InputError, StoreError
from memchat.store import apps, external_sessions, jobs, messages, sessions
from memchat.types import Learned, Scope

NAME_LIMIT = 200
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AddedConversation:
    """One call of ``User.add``: first ``store``, then ``read``."""

    assembly: Assembly
    scope: Scope
    incoming: Incoming
    session: str | None
    """The caller's own name of the conversation."""
    at: datetime | None
    """When the messages were said; None for now."""
    read_all: bool
    """Whether all of a very long message is read."""

    def store(self) -> Learned:
        """Store what is new in one transaction and queue its reading; nothing where memory is off.

        Raises InputError for a time or a name that cannot be, StoreError where the conversation is
        open in a chat.
        """
        from memchat.jobs.session_end import close_session

        now = self.assembly.clock()
        at = _checked(self.at, now)
        _check_name(self.session)
        self.assembly.parts().worker.end_abandoned(self.scope.user)
        with self.assembly.database.write() as tx:
            switch = apps.memory_switch(tx, self.scope)
            if not switch.on and self.session is None:
                return Learned(None, skipped=switch.reason, ignored=self.incoming.ignored)
            own, _ = apps.ensure(tx, self.scope, now)
            session_id, turns = self._compare(tx, own)
            if not switch.on and self.session is not None:
                # Said while memory was off: not to be learned when the conversation is sent again.
                external_sessions.put(tx, own, self.session, session_id, turns.hashes)
                return Learned(None, skipped=switch.reason, ignored=self.incoming.ignored)
            if not turns.new:
                return self._outcome(session_id, 0)
            if session_id is None:
                session_id = sessions.start(tx, own, "", now, at)
            else:
                self._refuse_open(tx, session_id)
                sessions.reopen(tx, session_id, "", now, at)
            for place in turns.new:
                role, words = self.incoming.turns[place]
                message_id = messages.add(tx, session_id, role, words, at)
                if self.read_all:
                    messages.read_all(tx, message_id)
            if self.session is not None:
                external_sessions.put(tx, own, self.session, session_id, turns.hashes)
            found = sessions.by_id(tx, session_id)
            assert found is not None
            close_session(tx, found[0], now)
            waits = jobs.is_unfinished(tx, "extract", session_id)
        return self._outcome(session_id, len(turns.new), waits=waits)

    def read(self, stored: Learned) -> Learned:
        """Read what ``store`` queued, and say what it taught or why it still waits."""
        from memchat.jobs.jobs_done import outcome

        worker = self.assembly.parts().worker
        done = worker.run(kinds=("extract", "verify"), target_id=stored.session_id)
        return outcome(done, stored)

    def _compare(self, tx: Connection, own: int) -> tuple[int | None, KnownTurns]:
        """The session of the caller's name, and which turns were known before."""
        if self.session is None:
            return None, KnownTurns(tuple(range(len(self.incoming.turns))), ())
        session_id, before = external_sessions.get(tx, own, self.session)
        return session_id, KnownTurns.of(before, external_sessions.hashes(tx, self.incoming.turns))

    def _refuse_open(self, tx: Connection, session_id: int) -> None:
        found = sessions.by_id(tx, session_id)
        if found is not None and found[0].ended_at is None:
            raise StoreError(f"session {session_id} is open in a chat; end it there first")

    def _outcome(self, session_id: int | None, stored: int, *, waits: bool = False) -> Learned:
        why = "nothing was said by the user" if stored else "nothing new was said"
        return Learned(
            session_id,
            queued="it waits to be read" if waits else None,
            skipped=None if waits else why,
            stored=stored,
            known=len(self.incoming.turns) - stored,
            ignored=self.incoming.ignored,
        )


def _check_name(session: object) -> None:
    named = isinstance(session, str) and 0 < len(session) <= NAME_LIMIT
    if session is not None and not named:
        raise InputError(f"the name of a session is a text of 1 to {NAME_LIMIT} characters")


def _checked(at: object, now: datetime) -> datetime:
    if at is None:
        return now
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InputError("the time of the messages is no time with a zone; give an aware datetime")
    if at < EARLIEST:
        raise InputError(f"{at.isoformat()} is before 1970; give the time of the messages")
    if at > now:
        raise InputError(f"{at.isoformat()} is still to come; give the time of the messages")
    return at
