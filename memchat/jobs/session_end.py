"""Ending a session in the store."""

from __future__ import annotations

from datetime import datetime

from memchat import processes
from memchat.db import Tx, apps, jobs, sessions
from memchat.facts import proposals
from memchat.types import Scope, Session


def close_session(tx: Tx, session: Session) -> None:
    """End a session and, in the same transaction, queue the extraction of its unread messages."""
    sessions.end(tx, session.id)
    scope = Scope(session.user, session.app)
    own = apps.find(tx, scope).own
    if not own or not apps.memory_switch(tx, scope).on:
        return
    if sessions.has_unread_messages(tx, session.id):
        jobs.enqueue(tx, "extract", own, session.id, tx.now)
    elif proposals.awaiting_second_look(tx, session.id):
        jobs.enqueue(tx, "verify", own, session.id, tx.now)


def is_abandoned(owner: str | None, until: datetime | None, now: datetime) -> bool:
    """Whether the process that holds a session's lease has ended, or lost the lease."""
    if processes.is_renewed(owner):
        return False
    return until is None or until < now or processes.has_ended(owner)
