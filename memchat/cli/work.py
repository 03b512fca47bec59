"""``worker`` and ``backfill``: the queue's work as a process, and vectors for what has none."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from memchat.cli import show
from memchat.cli.options import open_store

if TYPE_CHECKING:
    from memchat.app import MemChat
    from memchat.jobs.backfill import Backfilled, Progress

MOST_FAILURES = 20
"""Failures that are printed one by one."""


def worker(
    once: Annotated[
        bool, typer.Option("--once", help="Do what is due now, and end; 1 if anything failed.")
    ] = False,
) -> None:
    """Do queued work as it becomes due, for everybody, until Ctrl-C or a signal to end.

    Each piece of work is a line on standard error, with numbers and no words of yours. What is in
    hand is ended first; a second Ctrl-C gives it back to the queue.
    """
    _log_to_stderr()
    with open_store() as mc:
        if once:
            done = mc.run_jobs()
            print(f"{done.done} done, {len({job.id for job in done.failed})} failed")
            if done.failed:
                raise typer.Exit(1)
            return
        _stop_on_signals(mc)
        show.notice("waiting for work; Ctrl-C ends it")
        mc.work()
        show.notice("ended; what waits is kept in the queue")


def backfill(
    batch: Annotated[
        int, typer.Option("--batch", min=1, max=2048, help="Texts that are sent together.")
    ] = 100,
) -> None:
    """Make the vectors that are missing: of memories, past messages and summaries.

    What has one is skipped, so it can be broken off and run again at any time. The exit code is 1
    if anything failed or is left.
    """
    with open_store() as mc:
        told = _stop_on_signals(mc)
        bar = Bar()
        try:
            result = mc.backfill(batch=batch, seen=bar.show)
        finally:
            bar.end()
        print(f"{result.done} done, {len(result.failed)} failed, {result.left} left")
        _print_failures(result)
        if told:
            raise typer.Exit(130)
        if result.left or result.failed:
            raise typer.Exit(1)


def _print_failures(result: Backfilled) -> None:
    single = [job for job in result.failed if job.error_message != result.stopped]
    for job in sorted(single, key=lambda job: job.id)[:MOST_FAILURES]:
        show.error(show.failed(job))
    if len(single) > MOST_FAILURES:
        show.error(f"and {len(single) - MOST_FAILURES} more; see memchat jobs status")
    if result.stopped is not None:
        show.error(f"stopped: {result.stopped}")


class Bar:
    """How far something is: a bar on a terminal, else a line now and then."""

    WIDTH = 24
    LINE_SECONDS = 5.0
    """Between two lines where there is no terminal."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self._told = self._began
        self._open = False

    def show(self, now: Progress) -> None:
        """Tell it, where there is anything to do."""
        if not now.total:
            return
        at = time.monotonic()
        if self._terminal:
            import shutil

            line = f"{self._bar(now)} {self._words(now, at)}"
            columns = shutil.get_terminal_size().columns - 1
            print(f"\r{show.shorten(line, columns)}\x1b[K", end="", file=sys.stderr, flush=True)
            self._open = True
        elif (
            now.pause is not None
            or now.done + now.failed in (0, now.total)
            or at - self._told >= self.LINE_SECONDS
        ):
            print(self._words(now, at), file=sys.stderr, flush=True)
            self._told = at

    def end(self) -> None:
        """Go on to a new line."""
        if self._open:
            print(file=sys.stderr, flush=True)

    def _bar(self, now: Progress) -> str:
        filled = min(self.WIDTH, self.WIDTH * (now.done + now.failed) // now.total)
        return f"[{'#' * filled}{'.' * (self.WIDTH - filled)}]"

    def _words(self, now: Progress, at: float) -> str:
        past = now.done + now.failed
        parts = [f"{now.done} of {now.total} texts"]
        if now.failed:
            parts.append(f"{now.failed} failed")
        spent = at - self._began
        if past and spent > 0:
            rate = past / spent
            parts.append(f"{rate:.0f} a second" if rate >= 10 else f"{rate:.1f} a second")
            if past < now.total:
                parts.append(f"{_duration((now.total - past) / rate)} left")
        if now.pause is not None:
            parts.append(f"waiting {now.pause:.0f} s, as the service asked")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _stop_on_signals(mc: MemChat) -> list[int]:
    """The first signal lets what is in hand come to its end, the second breaks it off.

    Gives a list that the signal's number is put into.
    """
    told: list[int] = []

    def first(number: int, frame: FrameType | None) -> None:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.default_int_handler)
        told.append(number)
        mc.stop_work()

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, first)
    return told


def _log_to_stderr() -> None:
    import logging

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    log = logging.getLogger("memchat")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
