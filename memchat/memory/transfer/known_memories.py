"""Recognising the facts of an export that the store has, has reworded, or has forgotten, and the
questions about facts that are answered by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from memchat.memory.forgetting import tombstone_marks
from memchat.memory.transfer.record_check import Values
from memchat.store import events, inbox, memories, tombstones
from memchat.store.new_memory import sha1_of

_ITEM = ("created_at", "reason", "memory_type", "key", "value", "quote")


@dataclass(slots=True)
class KnownMemories:
    """The facts of some scope rows, as they were before the import."""

    tx: Connection
    homes: Sequence[int]
    """Every scope row of the person."""
    shared: int | None
    """The one that holds in every app."""
    _reworded: dict[int, dict[str, int]] = field(default_factory=dict)

    def find(self, app_id: int, sha1: str) -> tuple[int, bool] | None:
        """The id of the memory that says this, or that said it before it was edited, and whether
        it is deleted and waits for its purge; None where there is none."""
        found = memories.id_of(self.tx, app_id, sha1)
        if found is not None:
            return found
        edited = self._former(app_id).get(sha1)
        return None if edited is None else (edited, False)

    def is_forgotten(self, app_id: int, values: Values, said_at: datetime) -> bool:
        """Whether this fact was forgotten after it was said. Others that share words with a
        forgotten one are not."""
        # What holds in every app may have been moved into one before it was forgotten.
        shared = [] if self.shared is None else [self.shared]
        app_ids = self.homes if app_id in shared else [app_id, *shared]
        if not any(tombstones.any_in(self.tx, one) for one in app_ids):
            return False
        mark = tombstone_marks.value_mark(values["key"], values["value"])
        return any(said_at <= at for at in tombstones.find(self.tx, app_ids, [mark]).values())

    def answers(self, app_id: int, item: Values) -> bool:
        """Whether the same question as that of this inbox item was asked here before, or its answer
        is known."""
        if inbox.holds(self.tx, app_id, {name: item[name] for name in _ITEM}):
            return True
        if item["key"] is None or item["value"] is None:
            return False
        sha1 = sha1_of(item["memory_type"] or "", item["key"], item["value"])
        known = item["relation"] != "ends" and self.find(app_id, sha1) is not None
        return known or self.is_forgotten(app_id, item, item["created_at"])

    def _former(self, app_id: int) -> dict[str, int]:
        """The former wordings of edited memories, by hash."""
        if app_id not in self._reworded:
            self._reworded[app_id] = {
                sha1_of(old["memory_type"], old["key"], old["value"]): memory_id
                for memory_id, old in events.former_wordings(self.tx, app_id)
            }
        return self._reworded[app_id]
