"""Conversations: their rows, the lease that says a process is still in one, and how each stands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, delete, func, insert, or_, select, update

from memchat.store import changes, embeddings, keywords, raw_sql
from memchat.store.records import from_row
from memchat.store.schema import apps, jobs, messages, sessions
from memchat.types import Session

_s = sessions.c

_COUNT = (
    select(func.count()).where(messages.c.session_id == _s.id).correlate(sessions).scalar_subquery()
)
_SELECT: Select[Any] = (
    select(
        sessions,
        apps.c.user,
        apps.c.name.label("app"),
        _COUNT.label("message_count"),
        jobs.c.status.label("job_status"),
    )
    .join(apps, apps.c.id == _s.app_id)
    .outerjoin(
        jobs,
        and_(jobs.c.kind == "extract", jobs.c.source_type == "session", jobs.c.source_id == _s.id),
    )
)


def start(tx: Connection, app_id: int, owner: str, until: datetime, now: datetime) -> int:
    """A new open session under a lease; its id."""
    statement = insert(sessions).values(
        app_id=app_id, started_at=now, last_activity_at=now, lease_owner=owner, lease_until=until
    )
    return int(tx.execute(statement.returning(_s.id)).scalar_one())


def reopen(tx: Connection, session_id: int, owner: str, until: datetime, now: datetime) -> None:
    """Open a session again, under a new lease."""
    tx.execute(
        update(sessions)
        .where(_s.id == session_id)
        .values(ended_at=None, lease_owner=owner, lease_until=until, last_activity_at=now)
    )


def renew(tx: Connection, session_id: int, owner: str, until: datetime) -> bool:
    """Keep the lease; False when somebody else ended or took the session."""
    done = tx.execute(
        update(sessions)
        .where(_s.id == session_id, _s.lease_owner == owner, _s.ended_at.is_(None))
        .values(lease_until=until)
    )
    return bool(done.rowcount)


def touch(tx: Connection, session_id: int, now: datetime) -> None:
    """Note that something was said."""
    tx.execute(update(sessions).where(_s.id == session_id).values(last_activity_at=now))


def end(tx: Connection, session_id: int, now: datetime) -> bool:
    """Close the session; False when it was closed already."""
    done = tx.execute(
        update(sessions)
        .where(_s.id == session_id, _s.ended_at.is_(None))
        .values(ended_at=now, lease_owner=None, lease_until=None)
    )
    return bool(done.rowcount)


def open_sessions(
    tx: Connection, user: str | None = None
) -> list[tuple[Session, str | None, datetime | None]]:
    """Every open session with its lease: (session, owner, until)."""
    query = _SELECT.where(_s.ended_at.is_(None))
    if user is not None:
        query = query.where(apps.c.user == user)
    return [(_session(row), row.lease_owner, row.lease_until) for row in tx.execute(query)]


def lease(tx: Connection, session_id: int) -> tuple[str | None, datetime | None]:
    """Who holds the session, and until when."""
    row = tx.execute(select(_s.lease_owner, _s.lease_until).where(_s.id == session_id)).one()
    return row.lease_owner, row.lease_until


def mark_extracted(
    tx: Connection, session_id: int, message_id: int, title: str | None, summary: str | None
) -> None:
    """What was read up to which message. A new summary replaces the old; a title stays as people
    know it, or gave it."""
    values: dict[str, Any] = {"extracted_to": func.max(_s.extracted_to, message_id)}
    if title:
        values["title"] = func.coalesce(_s.title, title)
    tx.execute(update(sessions).where(_s.id == session_id).values(**values))
    if summary:
        _summarise(tx, session_id, summary)


def rename(tx: Connection, session_id: int, title: str) -> None:
    """Give a session its title by hand."""
    tx.execute(update(sessions).where(_s.id == session_id).values(title=title))


def set_description(
    tx: Connection, session_id: int, title: str | None, summary: str | None
) -> None:
    """Set title and summary as given."""
    tx.execute(update(sessions).where(_s.id == session_id).values(title=title))
    _summarise(tx, session_id, summary)


def _summarise(tx: Connection, session_id: int, summary: str | None) -> None:
    """Give a session its summary; its vector is another's from now on."""
    before = tx.execute(
        select(_s.summary, _s.summary_hash, _s.app_id).where(_s.id == session_id)
    ).one()
    if before.summary == summary:
        return
    values = {"summary": summary, "summary_hash": None}
    tx.execute(update(sessions).where(_s.id == session_id).values(**values))
    keywords.remove(tx, "sessions", [session_id])
    if summary:
        keywords.write(tx, "sessions", session_id, before.app_id, summary)
    if before.summary_hash is not None:
        embeddings.drop_unused(tx, [before.summary_hash])
        changes.record(tx, before.app_id, "sessions", [session_id])


def set_summary_hash(tx: Connection, session_id: int, app_id: int, text_hash: str) -> None:
    """Say under which hash the vector of a session's summary is kept."""
    set_it = update(sessions).where(_s.id == session_id).values(summary_hash=text_hash)
    tx.execute(set_it)
    changes.record(tx, app_id, "sessions", [session_id])


def summary_hash(tx: Connection, session_id: int) -> str | None:
    """Under which hash the vector of a session's summary is kept."""
    return tx.execute(select(_s.summary_hash).where(_s.id == session_id)).scalar()


def get(tx: Connection, app_ids: Sequence[int], session_id: int) -> Session | None:
    """One session of these scope rows."""
    row = tx.execute(_SELECT.where(_s.id == session_id, _s.app_id.in_(app_ids))).first()
    return None if row is None else _session(row)


def by_id(tx: Connection, session_id: int) -> tuple[Session, int] | None:
    """A session and its scope row, for a job that was queued in its scope."""
    row = tx.execute(_SELECT.where(_s.id == session_id)).first()
    return None if row is None else (_session(row), row.app_id)


def ended_with_unread(tx: Connection, user: str) -> list[tuple[Session, int]]:
    """The user's ended sessions with words that no extraction has read, and their scope rows."""
    unread = (
        select(messages.c.id)
        .where(
            messages.c.session_id == _s.id,
            messages.c.role == "user",
            messages.c.memory == 1,
            messages.c.id > _s.extracted_to,
        )
        .exists()
    )
    query = _SELECT.where(apps.c.user == user, _s.ended_at.is_not(None), unread)
    return [(_session(row), row.app_id) for row in tx.execute(query)]


def app_id_of(tx: Connection, session_id: int) -> int:
    """The scope row of a known session."""
    return int(tx.execute(select(_s.app_id).where(_s.id == session_id)).scalar_one())


def description(tx: Connection, session_id: int) -> tuple[str | None, str | None]:
    """Title and summary of a known session."""
    row = tx.execute(select(_s.title, _s.summary).where(_s.id == session_id)).one()
    return row.title, row.summary


def any_in_app(tx: Connection, app_id: int) -> bool:
    """Whether the app has any conversation."""
    return bool(raw_sql.rows(tx, "SELECT 1 FROM sessions WHERE app_id = ? LIMIT 1", app_id))


def titles(tx: Connection, session_ids: Sequence[int]) -> dict[int, str | None]:
    """The titles of these sessions."""
    rows = tx.execute(select(_s.id, _s.title).where(_s.id.in_(session_ids)))
    return {row.id: row.title for row in rows}


def remove_summaries(tx: Connection, app_id: int) -> None:
    """Take the summaries of a scope row's sessions out, with what is searched of them."""
    told = select(_s.id).where(_s.app_id == app_id, _s.summary.is_not(None))
    for session_id in list(tx.execute(told).scalars()):
        _summarise(tx, session_id, None)


def listed(
    tx: Connection, app_ids: Sequence[int], limit: int, offset: int = 0, *, search: str = ""
) -> list[Session]:
    """Sessions of these scope rows, the latest active first; with ``search`` those that have it."""
    query = _SELECT.where(_s.app_id.in_(app_ids)).order_by(_s.last_activity_at.desc(), _s.id.desc())
    if search:
        said = select(messages.c.id).where(
            messages.c.session_id == _s.id, messages.c.content.icontains(search, autoescape=True)
        )
        query = query.where(or_(_s.title.icontains(search, autoescape=True), said.exists()))
    return [_session(row) for row in tx.execute(query.limit(limit).offset(offset))]


def remove(tx: Connection, session_id: int) -> None:
    """Delete the session's row; its messages go by cascade."""
    _summarise(tx, session_id, None)
    tx.execute(delete(sessions).where(_s.id == session_id))


def has_unread_messages(tx: Connection, session_id: int) -> bool:
    """Whether a user's message waits that no extraction has read."""
    query = (
        select(messages.c.id)
        .join(sessions, _s.id == messages.c.session_id)
        .where(
            _s.id == session_id,
            messages.c.role == "user",
            messages.c.memory == 1,
            messages.c.id > _s.extracted_to,
        )
    )
    return tx.execute(query.limit(1)).first() is not None


def _session(row: Row[Any]) -> Session:
    return from_row(Session, row, status=_status(row))


def _status(row: Row[Any]) -> str:
    if row.job_status is not None and row.job_status > 0:
        return "failed"
    if row.job_status == -1:
        return "pending"
    if row.ended_at is None:
        return "open"
    return "extracted" if row.extracted_to else "off"
