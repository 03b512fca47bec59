"""Conversations that another program holds: its own name for each, and which turns are known.

Names and turns are kept as keyed hashes, so that they are recognised when they are sent again, even
after their words were forgotten or their session was deleted.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from memchat.store import meta, raw_sql

_LENGTH = 8
"""Characters of a turn's hash: too few to tell which words were sent."""


def get(tx: Connection, app_id: int, name: str) -> tuple[int | None, list[str]]:
    """The session of this name, None where there is none (any more), and the turns that are known,
    as hashes."""
    sql = "SELECT session_id, turns FROM external_sessions WHERE app_id = ? AND name = ?"
    found = raw_sql.rows(tx, sql, app_id, _hash(meta.hash_key(tx), name))
    if not found:
        return None, []
    session_id, turns = found[0]
    return session_id, [turns[i : i + _LENGTH] for i in range(0, len(turns), _LENGTH)]


def put(
    tx: Connection, app_id: int, name: str, session_id: int | None, turns: Sequence[str]
) -> None:
    """Keep which session has this name, None where none has it yet, and the turns that are
    known."""
    sql = (
        "INSERT INTO external_sessions (app_id, name, session_id, turns) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (app_id, name) DO UPDATE SET session_id = excluded.session_id,"
        " turns = excluded.turns"
    )
    raw_sql.rows(tx, sql, app_id, _hash(meta.hash_key(tx), name), session_id, "".join(turns))


def hashes(tx: Connection, turns: Iterable[tuple[str, str]]) -> list[str]:
    """The hashes of turns, each a role and its words."""
    key = meta.hash_key(tx)
    return [_hash(key, f"{role}\0{words}")[:_LENGTH] for role, words in turns]


def _hash(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()
