"""Adding a conversation that another program holds: stored, and read as a chat of memchat is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from sqlalchemy import Connection

from memchat.app.incoming import Incoming
from memchat.assembly import Assembly
from memchat.errors import InputError, StoreError
from memchat.store import apps, external_sessions, jobs, messages, sessions
from memchat.types import Learned, Scope

NAME_LIMIT = 200


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

    def store(self) -> Learned:
        """Store what is new in one transaction and queue its reading; nothing where memory is off.

        Raises InputError for a time or a name that cannot be, StoreError where the conversation is
        open in a chat.
        """
        from memchat.jobs.session_end import close_session

        now = self.assembly.clock()
        at = _checked(self.at, now)
        if self.session is not None and not 0 < len(self.session) <= NAME_LIMIT:
            raise InputError(f"the name of a session has 1 to {NAME_LIMIT} characters")
        self.assembly.parts().worker.end_abandoned(self.scope.user)
        with self.assembly.database.write() as tx:
            switch = apps.memory_switch(tx, self.scope)
            if not switch.on:
                return Learned(None, skipped=switch.reason, ignored=self.incoming.ignored)
            own, _ = apps.ensure(tx, self.scope, now)
            session_id, turns, known = self._known(tx, own)
            new = self.incoming.turns[known:]
            if session_id is None and new:
                session_id = sessions.start(tx, own, "", now, at)
            elif session_id is not None:
                self._refuse_open(tx, session_id)
                if new:
                    sessions.reopen(tx, session_id, "", now, at)
            if session_id is None:
                return self._outcome(None, known=known)
            for role, words in new:
                messages.add(tx, session_id, role, words, at)
            if self.session is not None:
                external_sessions.put(tx, own, self.session, session_id, turns)
            found = sessions.by_id(tx, session_id)
            assert found is not None
            close_session(tx, found[0], now)
            waits = jobs.is_unfinished(tx, "extract", session_id)
        return self._outcome(session_id, known=known, waits=waits)

    def read(self, stored: Learned) -> Learned:
        """Read what ``store`` queued, and say what it taught or why it still waits."""
        worker = self.assembly.parts().worker
        done = worker.run(kinds=("extract", "verify"), target_id=stored.session_id)
        if not done.learned:
            why = done.errors[-1] if done.errors else "another worker reads it, or will"
            return replace(stored, queued=why)
        first = done.learned[0]
        return replace(
            stored,
            queued=done.errors[-1] if done.errors else None,
            changes=tuple(change for one in done.learned for change in one.changes),
            title=first.title,
            summary=first.summary,
            skipped=first.skipped,
        )

    def _known(self, tx: Connection, own: int) -> tuple[int | None, list[str], int]:
        """The session of the caller's name, the hashes of all turns that are known once this call
        is stored, and how many of this call were known before."""
        if self.session is None:
            return None, [], 0
        session_id, before = external_sessions.get(tx, own, self.session)
        new = external_sessions.hashes(tx, self.incoming.turns)
        overlap = _overlap(before, new)
        if overlap == 0 and len(new) > 1:
            # The whole conversation was sent, with an earlier turn changed.
            pairs = zip(before, new, strict=False)
            same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            if same:
                return session_id, new, same
        return session_id, before + new[overlap:], overlap

    def _refuse_open(self, tx: Connection, session_id: int) -> None:
        found = sessions.by_id(tx, session_id)
        if found is not None and found[0].ended_at is None:
            raise StoreError(f"session {session_id} is open in a chat; end it there first")

    def _outcome(self, session_id: int | None, *, known: int, waits: bool = False) -> Learned:
        return Learned(
            session_id,
            queued="it waits to be read" if waits else None,
            skipped=None if waits else "nothing new was said",
            stored=len(self.incoming.turns) - known,
            known=known,
            ignored=self.incoming.ignored,
        )


def _overlap(before: Sequence[str], new: Sequence[str]) -> int:
    """How many turns at the end of those known are sent again at the beginning of the new ones."""
    most = min(len(before), len(new))
    return next((n for n in range(most, 0, -1) if before[-n:] == new[:n]), 0)


def _checked(at: datetime | None, now: datetime) -> datetime:
    if at is None:
        return now
    if at.tzinfo is None:
        raise InputError("the time of the messages has no zone; give an aware datetime")
    if at > now:
        raise InputError(f"{at.isoformat()} is still to come; give the time of the messages")
    return at
