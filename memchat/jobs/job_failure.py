"""Recording why a job failed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import MemChatError, ProviderError
from memchat.store import jobs
from memchat.store.jobs import Claim


def fail_job(
    tx: Connection, claimed: Claim, error: Exception, now: datetime, settings: Settings
) -> str:
    """Record a failed try and give its reason: the message of one of memchat's own errors, else the
    error's class alone, as its text may hold what a user wrote."""
    reason = str(error) if isinstance(error, MemChatError) else type(error).__name__
    provider = error if isinstance(error, ProviderError) else None
    jobs.fail(
        tx,
        claimed,
        now,
        reason,
        code=(provider.status or 1) if provider else 1,
        retry_after=provider.retry_after if provider else None,
        retry_minutes=settings.retry_minutes,
    )
    return reason
