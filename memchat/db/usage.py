"""The tokens and cost of each call to a provider."""

from __future__ import annotations

import logging

from sqlalchemy import func, insert, select

from memchat.db import Tx
from memchat.db.records import columns, from_row
from memchat.db.schema import apps, sessions, usage
from memchat.types import Usage, UsageTotal

log = logging.getLogger(__name__)


def add(
    tx: Tx,
    app_id: int,
    session_id: int | None,
    spent: Usage,
    *,
    message_id: int | None = None,
) -> None:
    """Store one call. If its session was deleted meanwhile it is stored without it, and not at all
    if the app was.

    ``message_id`` is the reply that the call was made for.
    """
    if not tx.rows("SELECT 1 FROM apps WHERE id = ?", app_id):
        return
    log.debug(
        "%s by %s: %d tokens in, %d out, %.2f s",
        spent.purpose,
        spent.model,
        spent.prompt_tokens,
        spent.completion_tokens,
        spent.seconds,
    )
    here = select(sessions.c.id).where(sessions.c.id == session_id).scalar_subquery()
    values = {"app_id": app_id, "session_id": here, "message_id": message_id, "at": tx.now}
    tx.execute(insert(usage).values(**values, **columns(spent)))


def of_reply(tx: Tx, session_id: int, message_id: int) -> list[Usage]:
    """The calls made for one reply of a conversation, in order."""
    u = usage.c
    query = select(usage).where(u.session_id == session_id, u.message_id == message_id)
    return [from_row(Usage, row) for row in tx.execute(query.order_by(u.id))]


def totals(tx: Tx, user: str, session_id: int | None = None) -> list[UsageTotal]:
    """Sums by purpose and model, for a user or one of their sessions."""
    u = usage.c
    query = (
        select(
            u.purpose,
            u.model,
            func.count(),
            func.sum(u.prompt_tokens),
            func.sum(u.completion_tokens),
            func.sum(u.cost_usd),
            func.sum(u.seconds),
        )
        .join(apps, apps.c.id == u.app_id)
        .where(apps.c.user == user)
        .group_by(u.purpose, u.model)
        .order_by(u.purpose, u.model)
    )
    if session_id is not None:
        query = query.where(u.session_id == session_id)
    return [UsageTotal(*row) for row in tx.execute(query)]
