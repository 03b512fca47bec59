"""The progress of a long command: one line on standard error, with the rate and the time left.

A terminal shows a bar that is updated; a file or pipe gets a plain line every few seconds.
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import Self

from memchat.cli.tables import plain
from memchat.cli.text_width import shorten
from memchat.types import Progress

EVERY_SECONDS = 0.2
EVERY_SECONDS_IN_A_FILE = 5.0
"""Longer, as each update is a new line there."""
BAR = 24


class ProgressLine:
    """Shows ``Progress`` reports, not too often, and always the last one. It ends with its ``with``
    block."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown_at = 0.0
        self._open = False
        self._pending: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Show the last report and end the line."""
        if self._pending is not None:
            self._show(self._pending)
        if self._open:
            print(file=sys.stderr, flush=True)

    def update(self, progress: Progress) -> None:
        """Show this, unless there is nothing to do or a report was shown just before."""
        if not progress.total:
            return
        self._pending = progress
        between = EVERY_SECONDS if self._terminal else EVERY_SECONDS_IN_A_FILE
        if progress.pause is not None or time.monotonic() - self._shown_at >= between:
            self._show(progress)

    def _show(self, progress: Progress) -> None:
        self._pending, self._shown_at = None, time.monotonic()
        text = line(progress)
        if self._terminal:
            columns = shutil.get_terminal_size().columns - 1
            text = shorten(f"{_bar(progress)} {text}", columns)
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
            self._open = True
        else:
            print(text, file=sys.stderr, flush=True)


def line(progress: Progress) -> str:
    """``1,200 of 3,000 (40 %), 600 a second, 3 s left``."""
    share = 100 if not progress.total else int(100 * progress.past / progress.total)
    unit = f" {progress.unit}" if progress.unit else ""
    parts = [f"{progress.done:,} of {progress.total:,}{unit} ({share} %)"]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.rate:
        parts.append(f"{progress.rate:,.{0 if progress.rate >= 10 else 1}f} a second")
    if progress.left is not None and progress.past < progress.total:
        parts.append(f"{duration(progress.left)} left")
    if progress.pause is not None:
        parts.append(f"waiting {progress.pause:.0f} s, as the service asked")
    if progress.name:
        parts.append(plain(progress.name))
    return ", ".join(parts)


def _bar(progress: Progress) -> str:
    filled = min(BAR, BAR * progress.past // progress.total)
    return f"[{'#' * filled}{'.' * (BAR - filled)}]"


def duration(seconds: float) -> str:
    """A time span in its two largest units: ``1 h 5 min``, ``2 min 10 s``, ``7 s``."""
    whole = max(1, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
