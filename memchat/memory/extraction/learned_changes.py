"""What a conversation taught, read from its events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from memchat.memory.forgetting.undo import DELETED, TAKEN_BACK
from memchat.store import events, memories
from memchat.types import Change, Event, Memory

_KINDS = {"add": "added", "restore": "revived", "merge": "merged", "end": "ended"}


def of_session(tx: Connection, app_ids: Sequence[int], session_id: int) -> dict[int, list[Change]]:
    """The changes that still stand, by the message that caused them, each memory once.

    A memory that replaced another has the value before.
    """
    past = [e for e in events.of_session(tx, session_id) if e.cause not in (DELETED, TAKEN_BACK)]
    ids = {e.memory_id for e in past} | {e.related_id for e in past if e.related_id}
    known = memories.by_ids(tx, app_ids, sorted(ids))
    found: defaultdict[int, dict[int, Change]] = defaultdict(dict)
    for event in past:
        memory = _subject(event, known)
        if memory is None or event.message_id is None or event.actor != "model":
            continue
        here = found[event.message_id]
        if event.kind == "supersede" and event.old is not None:
            change = Change("superseded", memory, before=str(event.old.get("value")))
        elif event.kind in _KINDS:
            change = Change(_KINDS[event.kind], memory)
        else:
            continue
        before = here.get(memory.id)
        if before is not None and before.before is not None:
            change = replace(change, kind=before.kind, before=before.before)
        if _stands(change):
            here[memory.id] = change
    return {message_id: list(changes.values()) for message_id, changes in found.items() if changes}


def _subject(event: Event, known: dict[int, Memory]) -> Memory | None:
    """The memory that the user is told of: of a replacement, the new one."""
    if event.kind == "supersede":
        return known.get(event.related_id or 0)
    return known.get(event.memory_id)


def _stands(change: Change) -> bool:
    memory = change.memory
    assert memory is not None
    return memory.active == (change.kind not in ("ended", "merged"))
