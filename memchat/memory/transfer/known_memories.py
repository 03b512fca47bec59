"""Recognising the facts of an export that the store has, has reworded, or has forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from memchat.memory.forgetting import tombstone_marks
from memchat.store import events, memories, tombstones
from memchat.store.new_memory import sha1_of


@dataclass(slots=True)
class KnownMemories:
    """The facts of some scope rows, as they were before the import."""

    tx: Connection
    _reworded: dict[int, dict[str, int]] = field(default_factory=dict)

    def find(self, app_id: int, sha1: str) -> tuple[int, bool] | None:
        """The id of the memory that says this, or that said it before it was edited, and whether
        it is deleted and waits for its purge; None where there is none."""
        found = memories.id_of(self.tx, app_id, sha1)
        if found is not None:
            return found
        edited = self._former(app_id).get(sha1)
        return None if edited is None else (edited, False)

    def is_forgotten(self, app_ids: Sequence[int], key: str, value: str, said_at: datetime) -> bool:
        """Whether this fact was forgotten after it was said. Others that share words with a
        forgotten one are not."""
        if not any(tombstones.any_in(self.tx, app_id) for app_id in app_ids):
            return False
        found = tombstones.find(self.tx, app_ids, [tombstone_marks.value_mark(key, value)])
        return any(said_at <= at for at in found.values())

    def _former(self, app_id: int) -> dict[str, int]:
        """The former wordings of edited memories, by hash."""
        if app_id not in self._reworded:
            self._reworded[app_id] = {
                sha1_of(old["memory_type"], old["key"], old["value"]): memory_id
                for memory_id, old in events.former_wordings(self.tx, app_id)
            }
        return self._reworded[app_id]
