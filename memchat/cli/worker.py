"""``worker`` and ``backfill``: the queue's work as a process, and vectors for what has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memchat.cli import log, tables
from memchat.cli.options import Yes, confirm, open_store
from memchat.cli.signals import stopping

if TYPE_CHECKING:
    from memchat.app import MemChat
    from memchat.jobs.backfill import BackfillResult

MOST_FAILURES = 20
"""Failures that are printed one by one."""


def worker(
    once: Annotated[
        bool, typer.Option("--once", help="Do what is due now, and end; 1 if anything failed.")
    ] = False,
) -> None:
    """Do queued work of everybody as it becomes due.

    It goes on until Ctrl-C or a signal to end. Each piece of work is a line on standard error,
    with numbers and no words of yours. What is in hand is ended first; a second Ctrl-C gives it
    back to the queue.
    """
    with open_store() as mc:
        log.start(mc.settings, verbose=1)
        if once:
            done = mc.jobs.run()
            print(f"{done.done} done, {len({job.id for job in done.failed})} failed")
            if done.failed:
                raise typer.Exit(1)
            return
        tables.notice("waiting for work; Ctrl-C ends it")
        with stopping(mc.jobs.stop):
            mc.jobs.work()
        tables.notice("ended; what waits is kept in the queue")


def backfill(
    batch: Annotated[
        int, typer.Option("--batch", min=1, max=2048, help="Texts that are sent together.")
    ] = 100,
    cues: Annotated[
        bool, typer.Option("--cues", help="Ask for words to find facts by that have none, first.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Make the vectors that are missing.

    Those of memories, past messages, summaries and notes. What has one is skipped, so it can be
    broken off and run again at any time. The exit code is 1 if anything failed or is left.
    """
    from memchat.cli.progress import ProgressLine

    with open_store() as mc:
        if cues:
            _fill_cues(mc, yes=yes)
        with stopping(mc.jobs.stop) as told, ProgressLine() as line:
            result = mc.jobs.backfill(batch=batch, progress=line.update)
        print(f"{result.done} done, {len(result.failed)} failed, {result.left} left")
        _print_failures(result)
        if told:
            raise typer.Exit(130)
        if result.left or result.failed:
            raise typer.Exit(1)


def _fill_cues(mc: MemChat, *, yes: bool) -> None:
    """Give facts cues that have none, once the person agrees to what that sends and costs."""
    plan = mc.jobs.cue_plan()
    if not plan.facts:
        print("no fact is without cues")
        return
    print(f"{plan.facts} facts have no cues")
    if plan.asked:
        price = "of unknown price" if plan.cost_usd is None else f"for about ${plan.cost_usd:.4f}"
        print(f"{plan.asked} are sent to {plan.model}: about {plan.tokens} tokens, {price}")
        confirm("Ask for their cues?", yes=yes, why="facts are sent and it may cost money")
    print(f"{mc.jobs.backfill_cues().count} facts have cues now")


def _print_failures(result: BackfillResult) -> None:
    single = [job for job in result.failed if job.error_message != result.stopped]
    for job in sorted(single, key=lambda job: job.id)[:MOST_FAILURES]:
        tables.error(tables.failed(job))
    if len(single) > MOST_FAILURES:
        tables.error(f"and {len(single) - MOST_FAILURES} more; see memchat jobs status")
    if result.stopped is not None:
        tables.error(f"stopped: {result.stopped}")
