"""Rows as they were before a transaction changed them, so that the change can be taken back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, update
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from memchat.store import events, keywords, raw_sql
from memchat.store.events import Cause
from memchat.store.record_kinds import UPKEEP
from memchat.store.schema import (
    inbox,
    memories,
    memory_events,
    memory_sources,
    memory_tags,
    tombstones,
)

Row = Mapping[str, Any]
_CHANGED = (
    "app_id", "active", "inactive_reason", "replaced_by", "said_at", "last_seen_at", "seen_count",
    "expires_at", "starts_at", "pinned", "sensitive",
)  # fmt: skip
"""The columns that an answer may change. The words of a memory are not among them: forgetting may
have taken some of them away meanwhile."""


@dataclass(frozen=True, slots=True)
class RowImages:
    """What a transaction changed in one user's rows, with the rows as they were before."""

    memories: tuple[Row, ...]
    added: tuple[int, ...]
    """The ids of the memories that were added."""
    proofs: frozenset[int]
    """The ids of the evidence that the memories had before."""
    tags: tuple[Row, ...]
    """The tags that the memories had before."""
    inbox: tuple[Row, ...]
    left_items: frozenset[int]
    """The ids of the inbox items that were still there afterwards, with another status."""
    tombstones: tuple[Row, ...]
    """Those that were deleted or renewed."""
    new_tombstones: tuple[Row, ...]
    first_event: int
    last_event: int


def take(
    before: Connection, tx: Connection, item_ids: Sequence[int], app_ids: Sequence[int], since: int
) -> RowImages:
    """What ``tx`` changed since the event ``since`` in these scope rows, and its inbox items.

    ``before`` is another transaction, which does not see what ``tx`` has not committed yet.
    """
    touched = sorted({i for one in app_ids for i in events.changed_since(tx, one, since)})
    left = {row["id"] for row in _rows(tx, memories, "id", touched)}
    old = _rows(before, memories, "id", touched)
    marks, new_marks = _marks(before, app_ids), _marks(tx, app_ids)
    return RowImages(
        memories=tuple(row for row in old if row["id"] in left),
        added=tuple(sorted(left - {row["id"] for row in old})),
        proofs=frozenset(row["id"] for row in _rows(before, memory_sources, "memory_id", touched)),
        tags=tuple(_rows(before, memory_tags, "memory_id", touched)),
        inbox=tuple(_rows(before, inbox, "id", item_ids)),
        left_items=frozenset(row["id"] for row in _rows(tx, inbox, "id", item_ids)),
        tombstones=tuple(_rows(before, tombstones, "id", [i for i, _ in marks - new_marks])),
        new_tombstones=tuple(_rows(tx, tombstones, "id", [i for i, _ in new_marks - marks])),
        first_event=since + 1,
        last_event=max((events.latest(tx, one) for one in app_ids), default=0),
    )


def changed_meanwhile(tx: Connection, images: RowImages) -> bool:
    """Whether anything but upkeep has changed one of the memories since."""
    ids = [*images.added, *(row["id"] for row in images.memories)]
    e = memory_events.c
    later = select(e.id).where(
        e.id > images.last_event, e.memory_id.in_(ids), e.kind.not_in(UPKEEP)
    )
    return tx.execute(later.limit(1)).first() is not None


def put_back(tx: Connection, images: RowImages, cause: Cause) -> None:
    """Give the memories that were there, their evidence, their tags and the tombstones their state
    of before; each memory gets a ``restore`` event, and the cause of what happened to it becomes
    that of ``cause``. What was added is not touched."""
    s, e, ids = memory_sources.c, memory_events.c, [row["id"] for row in images.memories]
    past = e.memory_id.in_(ids), e.id.between(images.first_event, images.last_event)
    tx.execute(update(memory_events).where(*past, e.actor == "user").values(cause=cause.cause))
    for row in images.memories:
        m = memories.c
        home = tx.execute(select(m.app_id).where(m.id == row["id"])).scalar_one()
        if home != row["app_id"]:
            events.move(tx, row["id"], home, row["app_id"], cause)
        search_text = tx.execute(
            update(memories)
            .where(m.id == row["id"])
            .values(updated_at=cause.at, **{name: row[name] for name in _CHANGED})
            .returning(m.search_text)
        ).scalar_one()
        keywords.remove(tx, "memories", [row["id"]])
        if row["active"] or row["inactive_reason"] == "superseded":
            keywords.write(tx, "memories", row["id"], row["app_id"], search_text)
        events.record(tx, row["id"], row["app_id"], "restore", cause)
    tx.execute(delete(memory_sources).where(s.memory_id.in_(ids), s.id.not_in(images.proofs)))
    tx.execute(delete(memory_tags).where(memory_tags.c.memory_id.in_(ids)))
    for row in images.tags:
        tx.execute(insert(memory_tags).values(**row))
    for row in images.new_tombstones:
        t = tombstones.c
        renewed = t.id == row["id"], t.created_at == row["created_at"]
        tx.execute(delete(tombstones).where(*renewed))
    for row in images.tombstones:
        tx.execute(sqlite_insert(tombstones).values(**row).on_conflict_do_nothing())


def put_items_back(tx: Connection, images: RowImages, item_ids: Collection[int]) -> list[int]:
    """Store these inbox items as they were; their ids, which are new where others have them by now.

    One that stayed in the store and was deleted there since is left out.
    """
    ids = []
    for row in images.inbox:
        same = inbox.c.id == row["id"], inbox.c.created_at == row["created_at"]
        if row["id"] not in item_ids:
            continue
        if tx.execute(update(inbox).where(*same).values(**row)).rowcount:
            ids.append(int(row["id"]))
        elif row["id"] not in images.left_items:
            taken = tx.execute(select(inbox.c.id).where(inbox.c.id == row["id"])).first()
            values = {name: row[name] for name in row if name != "id" or taken is None}
            new = insert(inbox).values(**values).returning(inbox.c.id)
            ids.append(int(tx.execute(new).scalar_one()))
    return ids


def _marks(tx: Connection, app_ids: Sequence[int]) -> set[tuple[int, str]]:
    """The tombstones of these scope rows, each with the time that it was made or renewed."""
    sql = "SELECT id, created_at FROM tombstones WHERE app_id IN (SELECT value FROM json_each(?))"
    return {(row[0], row[1]) for row in raw_sql.rows(tx, sql, raw_sql.json_list(app_ids))}


def _rows(tx: Connection, table: Table, column: str, values: Sequence[int]) -> list[Row]:
    stored = select(*(one for one in table.c if one.computed is None))
    wanted = stored.where(table.c[column].in_(raw_sql.id_list(values)))
    return [dict(row._mapping) for row in tx.execute(wanted)]
