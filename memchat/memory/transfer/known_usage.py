"""Recognising the calls of models of an export that are in the store already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from memchat.memory.transfer.record_check import Values
from memchat.store import usage

_SPENT = ("at", "purpose", "model", "prompt_tokens", "completion_tokens")


@dataclass(slots=True)
class KnownUsage:
    """The calls that were in some scope rows before the import."""

    tx: Connection
    _of_app: dict[int, set[tuple[Any, ...]]] = field(default_factory=dict)

    def holds(self, app_id: int, values: Values) -> bool:
        """Whether the same call is there."""
        if app_id not in self._of_app:
            self._of_app[app_id] = usage.of_app(self.tx, app_id, _SPENT)
        return tuple(values[name] for name in _SPENT) in self._of_app[app_id]
