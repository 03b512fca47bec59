"""The tokens and cost of each call to a provider."""

from __future__ import annotations

import logging

import sqlalchemy as sa

from memchat.db import Tx
from memchat.db import schema as t
from memchat.db.records import columns, from_row
from memchat.types import Usage, UsageTotal

log = logging.getLogger(__name__)
_u = t.usage.c
_APP = sa.select(t.apps.c.id).where(t.apps.c.id == sa.bindparam("app"))
_SESSION = sa.select(t.sessions.c.id).where(t.sessions.c.id == sa.bindparam("session"))
_ADD = sa.insert(t.usage).values(session_id=_SESSION.scalar_subquery())


def add(
    tx: Tx, app_id: int, session_id: int | None, spent: Usage, *, message_id: int | None = None
) -> None:
    """Store one call. If its session was deleted meanwhile it is stored without it, and not at all
    if the app was.

    ``message_id`` is the reply that the call was made for.
    """
    if not tx.rows(_APP, app=app_id):
        return
    log.debug(
        "%s by %s: %d tokens in, %d out, %.2f s",
        spent.purpose,
        spent.model,
        spent.prompt_tokens,
        spent.completion_tokens,
        spent.seconds,
    )
    about = {"app_id": app_id, "session": session_id, "message_id": message_id, "at": tx.now}
    tx.rows(_ADD, **about, **columns(spent))


def of_reply(tx: Tx, session_id: int, message_id: int) -> list[Usage]:
    """The calls made for one reply of a conversation, in order."""
    query = sa.select(t.usage).where(_u.session_id == session_id, _u.message_id == message_id)
    return [from_row(Usage, row) for row in tx.execute(query.order_by(_u.id))]


def totals(tx: Tx, user: str, session_id: int | None = None) -> list[UsageTotal]:
    """Sums by purpose and model, for a user or one of their sessions."""
    sums = (_u.prompt_tokens, _u.completion_tokens, _u.cost_usd, _u.seconds)
    query = sa.select(_u.purpose, _u.model, sa.func.count(), *map(sa.func.sum, sums))
    query = query.join(t.apps).where(t.apps.c.user == user)
    if session_id is not None:
        query = query.where(_u.session_id == session_id)
    by_model = query.group_by(_u.purpose, _u.model).order_by(_u.purpose, _u.model)
    return [UsageTotal(*row) for row in tx.execute(by_model)]
