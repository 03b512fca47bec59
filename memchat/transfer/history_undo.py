"""Takes an import of another product's history back as a whole.

What a conversation is noted with says which import began it (``import``), and which later ones
added to it (``import`` and their id): with the first and the last message, signed, since a store
that the conversation is moved to has other messages under these numbers. Ids are times and numbers
are letters, as no figures in what is noted may look like a secret.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa

from memchat.db import Tx, details, jobs, messages, schema, sessions
from memchat.errors import NotFound
from memchat.forget import purge
from memchat.forget.undo import delete_turns, take_back
from memchat.transfer.formats import moment
from memchat.types import Message, PastImport, Undone, clean_metadata

BEGAN = "import"
UNREAD = "unread"
"""What a conversation is noted with that no import had read."""
LAST = "last"
"""Stands for the id of the latest import."""
_MOST = 40
"""Later imports that are noted beside one conversation, the latest: what is noted has a limit."""
_LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")
_FIGURES = str.maketrans("bcdfghjklmnpqrst", "0123456789abcdef")
_d, _x = schema.details.c, schema.external_sessions.c
_NOTED = (
    sa.select(_d.session_id, _d.key, _d.value)
    .join(schema.sessions, schema.sessions.c.id == _d.session_id)
    .where(schema.sessions.c.app_id == sa.bindparam("app"))
)


def new_id(tx: Tx) -> str:
    """A new id for an import, which sorts behind those before: its time, and a number where there
    was one in the same second."""
    known, time = _ids(tx), f"{tx.now:%Y-%m-%dT%H:%M:%S}"
    return next(
        one
        for number in range(1, len(known) + 2)
        if (one := f"{time}-{number:03}" if number > 1 else time) not in known
    )


def note(
    tx: Tx,
    import_id: str,
    product: str,
    session_id: int,
    added: Sequence[int],
    *,
    begun: bool,
    unread: bool,
) -> None:
    """Note beside a conversation that an import began it, or added these messages to it, and
    whether it leaves them unread."""
    place = f"{added[0]:x} {added[-1]:x}".translate(_LETTERS)
    noted: dict[str, object] = {BEGAN: import_id, "product": product}
    if not begun:
        noted = {f"{BEGAN} {import_id}": f"{place} {_signed(tx, session_id, place)}"}
        mine = sa.select(_d.id).where(_d.session_id == session_id, _d.key.startswith(f"{BEGAN} "))
        oldest = mine.order_by(_d.key.desc()).offset(_MOST - 1)
        tx.execute(sa.delete(schema.details).where(_d.id.in_(oldest)))
    noted |= {UNREAD: True} if unread else {}
    details.put(tx, schema.sessions, session_id, clean_metadata(noted), add=True)


def note_read(tx: Tx, session_id: int) -> None:
    """Note that a conversation is read from now on."""
    tx.execute(sa.delete(schema.details).where(_d.session_id == session_id, _d.key == UNREAD))


def _signed(tx: Tx, session_id: int, place: str) -> str:
    return sessions.turn_hashes(tx, [(BEGAN, f"{session_id} {place}")])[0].translate(_LETTERS)


def _ids(tx: Tx) -> set[str]:
    return {one.id for one in listed(tx)}


def listed(tx: Tx) -> list[PastImport]:
    """The imports of which something is left here, the latest first."""
    talks: defaultdict[str, set[int]] = defaultdict(set)
    products: dict[int, str] = {}
    for session_id, key, value in tx.execute(_NOTED, {"app": tx.own}):
        if key == "product":
            products[session_id] = str(json.loads(value))
        elif key.startswith(BEGAN):
            talks[str(json.loads(value)) if key == BEGAN else key[7:]].add(session_id)
    waiting, found = jobs.unfinished_targets(tx, "extract", tx.own), []
    for one, mine in sorted(talks.items(), reverse=True):
        if (at := moment(one[:19])) is not None:  # else a program noted something of its own
            names = {products[session_id] for session_id in mine & products.keys()}
            told = " and ".join(sorted(names))
            found.append(PastImport(one, told, at, len(mine), len(mine & waiting)))
    return found


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
        place, _, sign = str(json.loads(value)).rpartition(" ")
        if sign == _signed(tx, session_id, place):
            first, last = (int(one.translate(_FIGURES), 16) for one in place.split())
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
