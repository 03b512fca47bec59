"""What a program notes beside a memory, a conversation or a note, and the tags of memories and
notes: read, written, and filtered by.

It goes with its owner, by a cascade. A memory is found by what is noted beside itself, and by what
is noted beside a conversation that proves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from memchat.db import Tx
from memchat.db import schema as t
from memchat.errors import InputError
from memchat.types import clean_metadata

Pairs = Iterable[tuple[str, str]]
"""Names with their values as JSON."""
_d = t.details.c
_TAGS = {t.memories: t.memory_tags.c.memory_id, t.sources: t.note_tags.c.source_id}
_OWNERS = {t.memories: _d.memory_id, t.sessions: _d.session_id, t.sources: _d.source_id}


def of_row(owner: sa.Table) -> Any:
    """The metadata of a row of memories, sessions or notes as a JSON object, null where it has
    none; a column of a query over that table."""
    every = sa.func.json_group_object(_d.key, sa.func.json(_d.value))
    found = sa.select(sa.case((sa.func.count() > 0, every))).where(_OWNERS[owner] == owner.c.id)
    return found.correlate(owner).scalar_subquery().label("metadata")


def tags_of_row(owner: sa.Table) -> Any:
    """The tags of a row of memories or notes, separated by spaces; null where it has none."""
    mine = _TAGS[owner]
    tag = mine.table.c.tag
    every = sa.select(tag).where(mine == owner.c.id).order_by(tag).correlate(owner).subquery()
    return sa.select(sa.func.aggregate_strings(every.c.tag, " ")).scalar_subquery().label("tags")


def put_tags(tx: Tx, owner: sa.Table, row_id: int, tags: Iterable[str]) -> None:
    """Give a row these tags and no others."""
    mine = _TAGS[owner]
    tx.execute(sa.delete(mine.table).where(mine == row_id))
    tx.run_many(sa.insert(mine.table), [{mine.name: row_id, "tag": tag} for tag in tags])


def tagged(owner: sa.Table, tags: Iterable[str]) -> list[sa.ColumnElement[bool]]:
    """Conditions for rows of memories or notes that have each of these tags."""
    mine = _TAGS[owner]
    return [owner.c.id.in_(sa.select(mine).where(mine.table.c.tag == tag)) for tag in tags]


def checked(given: object) -> dict[str, str]:
    """Metadata as it is stored. Raises InputError for what cannot be, as for what looks like a
    secret."""
    from memchat.language import secrets

    found = clean_metadata(given)
    said = (hit for pair in found.items() for _words, hit in secrets.find_in_fact(*pair))
    if any(hit.kind not in secrets.PERSONAL for hit in said):
        raise InputError("the metadata has what looks like a secret; leave it out")
    return found


def put(
    tx: Tx, owner: sa.Table, row_id: int, given: Mapping[str, str], *, add: bool = False
) -> None:
    """Note these values, as JSON, beside a row in the place of what is there, or with ``add``
    beside it."""
    if add and not given:
        return
    mine = _OWNERS[owner]
    gone = sa.delete(t.details).where(mine == row_id)
    tx.execute(gone.where(_d.key.in_(given)) if add else gone)
    rows = [{mine.name: row_id, "key": key, "value": value} for key, value in given.items()]
    tx.run_many(sa.insert(t.details), rows)


def noted(owner: sa.Table, wanted: Pairs) -> list[sa.ColumnElement[bool]]:
    """Conditions for rows of memories, sessions or notes beside which each of these is noted."""
    return [owner.c.id.in_(_with(_OWNERS[owner], *pair)) for pair in wanted]


def noted_of_facts(wanted: Pairs) -> list[sa.ColumnElement[bool]]:
    """The same for memories, where what is noted beside a conversation that proves one counts."""
    proof, said = t.memory_sources.c, t.messages.c
    proved = sa.select(proof.memory_id).join(t.messages, said.id == proof.message_id)
    return [
        t.memories.c.id.in_(_with(_d.memory_id, *pair))
        | t.memories.c.id.in_(proved.where(said.session_id.in_(_with(_d.session_id, *pair))))
        for pair in wanted
    ]


def _with(owner: Any, key: str, value: str) -> sa.Select[Any]:
    return sa.select(owner).where(_d.key == key, _d.value == value, owner.is_not(None))
