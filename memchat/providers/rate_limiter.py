"""Limits the requests to a provider: so many a minute, and none during a pause it asked for.

A token bucket: the requests of one second may go at once, further ones are spread, so that no
minute has more than the limit. All requests of a process to one address share one limiter.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable

from memchat.errors import ProviderError

PER_MINUTE = 3_000
SHORT_PAUSE = 1.0
"""Seconds: a request waits for a pause of this length; during a longer one it is refused."""


class PauseRequested(ProviderError):
    """The request was not sent, as the provider asked for a pause that is not over."""


class RateLimiter:
    """A token bucket for the requests to one provider. Safe in several threads."""

    def __init__(
        self,
        name: str,
        per_minute: int,
        *,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """``now`` and ``wait`` are in seconds."""
        self._name = name
        self._capacity = float(max(1, per_minute // 60))
        self._per_second = (per_minute - self._capacity + 1) / 60
        self._now = now
        self._wait = wait
        self._lock = threading.Lock()
        self._tokens = self._capacity
        self._filled = -math.inf
        self._paused_until = -math.inf

    def take(self) -> None:
        """Wait until the next request may be sent. Raises PauseRequested in a long pause."""
        with self._lock:
            now = self._now()
            pause = self._paused_until - now
            if pause > SHORT_PAUSE:
                raise PauseRequested(
                    f"{self._name} asked to be left alone; try again in {math.ceil(pause)} s",
                    status=429,
                    retryable=True,
                    retry_after=pause,
                )
            grown = self._tokens + (now - self._filled) * self._per_second
            self._tokens = min(self._capacity, grown) - 1
            self._filled = now
            seconds = max(pause, -self._tokens / self._per_second)
        if seconds > 0:
            self._wait(seconds)

    def pause(self, seconds: float) -> None:
        """Send nothing for so many seconds, as the provider asked."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._now() + seconds)

    def pause_after(self, error: Exception) -> None:
        """Pause if the error says that the provider asks for it."""
        if isinstance(error, ProviderError) and error.status == 429 and error.retry_after:
            self.pause(error.retry_after)


@functools.lru_cache(maxsize=64)
def shared_limiter(name: str, address: str | None, per_minute: int) -> RateLimiter:
    """The limiter of a provider at an address; None is its usual address."""
    return RateLimiter(name, per_minute)
