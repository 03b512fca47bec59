"""Memories that a person marked as not relevant, so that they are left out of the rest of a
conversation."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from memchat.store.schema import muted

_m = muted.c


def mute(tx: Connection, session_id: int, memory_id: int, now: datetime) -> None:
    """Leave a memory out of a conversation from now on."""
    values = {"session_id": session_id, "memory_id": memory_id, "created_at": now}
    tx.execute(insert(muted).values(**values).on_conflict_do_nothing())


def unmute(tx: Connection, session_id: int, memory_id: int) -> None:
    """Use a memory in the conversation again."""
    tx.execute(delete(muted).where(_m.session_id == session_id, _m.memory_id == memory_id))


def of_session(tx: Connection, session_id: int) -> set[int]:
    """The ids of the memories that are left out of a conversation."""
    return set(tx.execute(select(_m.memory_id).where(_m.session_id == session_id)).scalars())
