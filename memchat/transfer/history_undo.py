"""Takes an import of another product's history back as a whole.

What a conversation is noted with says which import began it (``import``), and which later ones
added to it (``import`` and their id): with the first and the last message, signed, since a store
that the conversation is moved to has other messages under these numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import sqlalchemy as sa

from memchat.db import Tx, messages, schema, sessions
from memchat.errors import NotFound
from memchat.forget import purge
from memchat.forget.undo import delete_turns, take_back
from memchat.types import Message, Undone

BEGAN = "import"
LAST = "last"
"""Stands for the id of the latest import."""
_d, _x = schema.details.c, schema.external_sessions.c
_NOTED = (
    sa.select(_d.session_id, _d.key, _d.value)
    .join(schema.sessions, schema.sessions.c.id == _d.session_id)
    .where(schema.sessions.c.app_id == sa.bindparam("app"))
)


def new_id(tx: Tx) -> str:
    """A new id for an import, which sorts behind those before: its time, and a number where there
    was one in the same second."""
    known, time = _ids(tx), f"{tx.now:%Y%m%d-%H%M%S}"
    return next(
        one
        for number in range(1, len(known) + 2)
        if (one := f"{time}-{number:03}" if number > 1 else time) not in known
    )


def noted(
    tx: Tx, import_id: str, product: str, session_id: int, added: Sequence[int], *, begun: bool
) -> dict[str, str]:
    """What a conversation is noted with, to which an import added these messages."""
    if begun:
        return {BEGAN: import_id, "product": product}
    place = f"{added[0]}-{added[-1]}"
    return {f"{BEGAN} {import_id}": f"{place} {_signed(tx, session_id, place)}"}


def _signed(tx: Tx, session_id: int, place: str) -> str:
    return sessions.turn_hashes(tx, [(BEGAN, f"{session_id} {place}")])[0]


def _ids(tx: Tx) -> set[str]:
    rows = tx.execute(_NOTED.where(_d.key.startswith(BEGAN)), {"app": tx.own})
    found = (json.loads(row.value) if row.key == BEGAN else row.key[7:] for row in rows)
    return {one for one in found if isinstance(one, str)}


def undo(tx: Tx, import_id: str) -> tuple[Undone, int]:
    """Delete what an import added, and what only that taught; what that did, and how many
    conversations were deleted. Raises NotFound where nothing is left of it."""
    known = _ids(tx)
    if import_id == LAST and known:
        import_id = max(known)
    if import_id not in known:
        listed = f"; there are {', '.join(sorted(known))}" if known else ""
        raise NotFound(f"there is no import {import_id!r} here{listed}")
    done, deleted = Undone(), 0
    mine = sa.or_(
        sa.and_(_d.key == BEGAN, _d.value == json.dumps(import_id)),
        _d.key == f"{BEGAN} {import_id}",
    )
    for session_id, key, value in tx.execute(_NOTED.where(mine), {"app": tx.own}).all():
        turns = messages.of_session(tx, session_id, every=True)
        if key == BEGAN:
            done = done.then(take_back(tx, turns))
            tx.execute(sa.delete(schema.external_sessions).where(_x.session_id == session_id))
            purge.forget_session(tx, session_id)
            deleted += 1
            continue
        place, _, sign = json.loads(value).partition(" ")
        if sign == _signed(tx, session_id, place):
            first, last = map(int, place.split("-"))
            turns = [turn for turn in turns if first <= turn.id <= last]
            _unknow(tx, session_id, turns)
            done = done.then(delete_turns(tx, turns))
        tx.execute(sa.delete(schema.details).where(_d.session_id == session_id, _d.key == key))
    return done, deleted


def _unknow(tx: Tx, session_id: int, turns: Sequence[Message]) -> None:
    """Let these turns be new again when they are imported again; those that were blanked since
    stay known."""
    query = sa.select(_x.app_id, _x.name, _x.turns).where(_x.session_id == session_id)
    gone = sessions.turn_hashes(tx, [(turn.role, turn.content) for turn in turns])
    for app_id, name, known in tx.execute(query).all():
        hashes = sessions.apart(known)
        for one in gone:
            if one in hashes:  # the last of the same words is the one that was added last
                del hashes[len(hashes) - 1 - hashes[::-1].index(one)]
        this = sa.update(schema.external_sessions).where(_x.app_id == app_id, _x.name == name)
        tx.execute(this.values(turns="".join(hashes)))
