"""Tags of memories. A row of a memory is read together with its tags (``memory_rows``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from memchat.store import events, raw_sql
from memchat.store.events import Cause, Values
from memchat.store.schema import memories, memory_tags
from memchat.store.values_in_force import ValuesInForce
from memchat.types import TAGS_MOST, clean_tags

_m, _t = memories.c, memory_tags.c
_WITH_ALL = """
    SELECT t.memory_id FROM memory_tags t JOIN memories m ON m.id = t.memory_id
    WHERE t.tag IN (SELECT value FROM json_each(?1))
        AND m.app_id IN (SELECT value FROM json_each(?2))
    GROUP BY t.memory_id HAVING count(*) = ?3
"""


def of(tx: Connection, memory_id: int) -> tuple[str, ...]:
    """The tags of a memory, sorted."""
    query = select(_t.tag).where(_t.memory_id == memory_id).order_by(_t.tag)
    return tuple(tx.execute(query).scalars())


def put(tx: Connection, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory these tags and no others, with an event; nothing happens where it has them
    already. Raises InputError for more than it may have."""
    before, after = of(tx, memory_id), clean_tags(tags)
    if after == before:
        return
    tx.execute(delete(memory_tags).where(_t.memory_id == memory_id))
    write(tx, memory_id, after)
    changed = update(memories).where(_m.id == memory_id).values(updated_at=cause.at)
    app_id = int(tx.execute(changed.returning(_m.app_id)).scalar_one())
    values = Values({"tags": before}, {"tags": after})
    events.record(tx, memory_id, app_id, "tag", cause, values)


def add(tx: Connection, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory these tags beside its own, as ``put``."""
    put(tx, memory_id, (*of(tx, memory_id), *tags), cause)


def inherit(tx: Connection, memory_id: int, tags: Iterable[str], cause: Cause) -> None:
    """Give a memory the tags of one that it replaces beside its own, as far as it may have them."""
    own = of(tx, memory_id)
    more = [tag for tag in tags if tag not in own]
    put(tx, memory_id, (*own, *more)[:TAGS_MOST], cause)


def write(tx: Connection, memory_id: int, tags: Iterable[str]) -> None:
    """Write the tags of a memory that has none, without an event."""
    rows = [(memory_id, tag) for tag in tags]
    raw_sql.run_many(tx, "INSERT INTO memory_tags VALUES (?, ?)", rows)


def counts(tx: Connection, app_ids: Sequence[int], now: ValuesInForce) -> dict[str, int]:
    """How many memories in use in these scope rows have each tag, the most used first."""
    number = func.count()
    query = select(_t.tag, number).join_from(memory_tags, memories, _m.id == _t.memory_id)
    query = query.where(_m.app_id.in_(app_ids), now.in_use())
    rows = tx.execute(query.group_by(_t.tag).order_by(number.desc(), _t.tag))
    return {row[0]: row[1] for row in rows}


def has_all(tags: Sequence[str]) -> list[ColumnElement[bool]]:
    """The conditions for a memory that has each of these tags."""
    return [_m.id.in_(select(_t.memory_id).where(_t.tag == tag)) for tag in tags]


def ids_with_all(tx: Connection, app_ids: Sequence[int], tags: Sequence[str]) -> list[int]:
    """The ids of the memories of these scope rows that have each of these tags, active or not."""
    given = raw_sql.json_list(tags), raw_sql.json_list(app_ids)
    return [row[0] for row in raw_sql.rows(tx, _WITH_ALL, *given, len(tags))]
