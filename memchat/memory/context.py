"""What every step of one piece of work in a scope is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.store.apps import ScopeIds

WHOLE_STORE = ScopeIds(None, None)
"""The scope of work on rows that are named by their ids, whatever app they are of."""


@dataclass(frozen=True, slots=True)
class Context:
    """One transaction over one scope. ``now`` is when the work is done, ``zone`` where its days
    are counted."""

    tx: Connection
    scope: ScopeIds
    now: datetime
    zone: ZoneInfo

    @property
    def today(self) -> date:
        """The day of ``now`` in ``zone``."""
        return self.now.astimezone(self.zone).date()
