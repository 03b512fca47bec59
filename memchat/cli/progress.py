"""How far a long command has come: one line on standard error, with the rate and the time left."""

from __future__ import annotations

import sys
import time

from memchat.types import Progress

EVERY_SECONDS = 0.2
EVERY_SECONDS_IN_A_FILE = 10.0
"""Where the line cannot be written over, as in a log, it is written anew and seldom."""


class ProgressLine:
    """Show each ``Progress`` that it is told, not too often, and the last one always."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown_at = 0.0
        self._width = 0
        self._waiting = ""

    def tell(self, progress: Progress) -> None:
        """Show this, unless something was shown just before."""
        self._waiting = line(progress)
        pause = EVERY_SECONDS if self._terminal else EVERY_SECONDS_IN_A_FILE
        if time.monotonic() - self._shown_at >= pause:
            self._show()

    def end(self) -> None:
        """Show the last that was told, and leave the line."""
        if self._waiting:
            self._show()
        if self._terminal and self._width:
            print(file=sys.stderr, flush=True)

    def _show(self) -> None:
        text, self._waiting, self._shown_at = self._waiting, "", time.monotonic()
        if self._terminal:
            print(f"\r{text:<{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(text)
        else:
            print(text, file=sys.stderr, flush=True)


def line(progress: Progress) -> str:
    """``1,200 of 3,000 (40 %), 600 a second, 3 s left``."""
    share = 100 if not progress.total else int(100 * progress.done / progress.total)
    parts = [f"{progress.done:,} of {progress.total:,} ({share} %)"]
    if progress.rate:
        parts.append(f"{progress.rate:,.{0 if progress.rate >= 10 else 1}f} a second")
    if progress.left is not None and progress.done < progress.total:
        parts.append(f"{duration(progress.left)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """A time span in its two largest units: ``1 h 5 min``, ``2 min 10 s``, ``7 s``."""
    whole = max(1, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
