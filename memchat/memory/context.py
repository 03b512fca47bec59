"""What almost every step over the memories needs: the transaction, the scope and the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.store.apps import ScopeIds


@dataclass(frozen=True, slots=True)
class Context:
    """One transaction over one scope, at one instant in the user's time zone."""

    tx: Connection
    scope: ScopeIds
    now: datetime
    """An aware instant."""
    zone: ZoneInfo

    @property
    def today(self) -> date:
        """The day that the user lives in."""
        return self.now.astimezone(self.zone).date()
