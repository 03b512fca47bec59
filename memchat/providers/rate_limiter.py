"""So many requests a minute, and none while a provider wants to be left alone.

A token bucket: a second's worth may go at once, after that they are spread, so that no minute
holds more than the limit. One bucket serves all that this process asks of one address.
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
"""Seconds of a pause that a request waits for; in a longer one it is refused at once."""


class PauseRequested(ProviderError):
    """Not sent: the provider asked for a pause, which is not over."""


class RateLimiter:
    """The requests of one provider. Safe in several threads."""

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
        self._room = float(max(1, per_minute // 60))
        self._a_second = (per_minute - self._room + 1) / 60
        self._now = now
        self._wait = wait
        self._lock = threading.Lock()
        self._tokens = self._room
        self._filled = -math.inf
        self._paused_until = -math.inf

    def take(self) -> None:
        """Return when the next request may go. Raises Paused in a pause of more than a second."""
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
            grown = self._tokens + (now - self._filled) * self._a_second
            self._tokens = min(self._room, grown) - 1
            self._filled = now
            seconds = max(pause, -self._tokens / self._a_second)
        if seconds > 0:
            self._wait(seconds)

    def pause(self, seconds: float) -> None:
        """Let nothing go for so long, as the provider asked."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._now() + seconds)

    def heed(self, error: Exception) -> None:
        """Pause where the error is the provider's wish for it."""
        if isinstance(error, ProviderError) and error.status == 429 and error.retry_after:
            self.pause(error.retry_after)


@functools.lru_cache(maxsize=64)
def shared_limiter(name: str, address: str | None, per_minute: int) -> RateLimiter:
    """The one bucket of a provider at an address, None for its usual one."""
    return RateLimiter(name, per_minute)
