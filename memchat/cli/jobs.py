"""``memchat jobs``: the queue of work that waits, such as a failed extraction.

``worker`` and ``backfill``: the queue's work as a process, and vectors for what has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memchat.cli import log, output
from memchat.cli.log import stopping
from memchat.cli.options import Json, Limit, User, group, open_store
from memchat.errors import NotFound
from memchat.types import to_json

if TYPE_CHECKING:
    from memchat.jobs.embedding import BackfillResult

app = group("See, run and retry queued work.")

OneApp = Annotated[
    str | None, typer.Option("--app", help="Only this app's work.", show_default=False)
]
AnyApp = Annotated[
    str | None,
    typer.Option(
        "--app", help="Changes nothing: a user's queue is one for all apps.", show_default=False
    ),
]


State = Annotated[
    Literal["pending", "running", "completed", "failed"] | None,
    typer.Option("--status", help="Only work that stands so.", show_default=False),
]


@app.command()
def status(
    user: User,
    app: OneApp = None,
    state: State = None,
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List a user's work, newest first: queued, running, completed and failed."""
    with open_store() as mc:
        found = mc.jobs.list(user=user, status=state, limit=limit)
        found = [job for job in found if app in (None, job.app)]
        if as_json:
            output.print_records(found)
            return
        counts = mc.jobs.count(user=user)
        if any(counts.values()):
            output.print_text(", ".join(f"{count} {name}" for name, count in counts.items()))
        for gone in mc.jobs.dead_holders(user=user):
            output.print_text(gone.message)
        output.print_table(
            ("id", "work", "app", "target", "state", "tries", "next", "error"),
            [
                (
                    job.id,
                    job.kind,
                    output.app_name(job.app),
                    job.target_id,
                    job.status,
                    job.attempts,
                    output.time(job.run_at, mc.settings.zone) if job.status == "pending" else "",
                    job.error_message or "",
                )
                for job in found
            ],
            none=f"no work for {user} yet" if state is None else f"no work of {user} is {state}",
        )


@app.command()
def run(user: User, app: AnyApp = None, as_json: Json = False) -> None:
    """Do the work that waits, also what failed before, and print what was learned.

    What failed gets one more try now, whenever its next one was due and if it was given up.
    """
    with open_store() as mc:
        counts = mc.jobs.count(user=user)
        waiting = counts["pending"] + counts["failed"]
        if waiting:
            output.notice(f"{waiting} waiting …")
        result = mc.jobs.run(user=user, again=True)
        failed = {job.id: job for job in result.failed}
        if as_json:
            learned = [to_json(outcome) for outcome in result.learned]
            output.print_json({"done": result.done, "failed": [*failed], "learned": learned})
        else:
            for outcome in result.learned:
                print(output.learned(outcome))
            print(f"{result.done} done, {len(failed)} failed")
        for job in failed.values():
            output.error(output.failed(job))
        if failed:
            raise typer.Exit(1)


@app.command()
def retry(
    user: User,
    job_id: Annotated[
        int | None,
        typer.Argument(metavar="ID", help="Only this job.", show_default=False),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only what was given up, not what waits for a retry.")
    ] = False,
    app: AnyApp = None,
    as_json: Json = False,
) -> None:
    """Give failed work all its tries anew, the first of them at once.

    Prints how many jobs that were; `memchat jobs run` or `memchat worker` does them.
    """
    with open_store() as mc:
        count = mc.jobs.retry(user=user, job_id=job_id, failed_only=failed).count
    if job_id is not None and count == 0:
        raise NotFound(f"there is nothing to retry in job {job_id}; see memchat jobs status")
    output.print_result({"retried": count}, count, as_json)


@app.command()
def clear(user: User, app: AnyApp = None, as_json: Json = False) -> None:
    """Take completed work off the list and print how much that was; what it did stays."""
    with open_store() as mc:
        count = mc.jobs.clear(user=user).count
        output.print_result({"removed": count}, count, as_json)


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
        output.notice("waiting for work; Ctrl-C ends it")
        with stopping(mc.jobs.stop):
            mc.jobs.work()
        output.notice("ended; what waits is kept in the queue")


def backfill(
    batch: Annotated[
        int, typer.Option("--batch", min=1, max=2048, help="Texts that are sent together.")
    ] = 100,
) -> None:
    """Make the vectors that are missing.

    Those of memories, past messages, summaries and notes. What has one is skipped, so it can be
    broken off and run again at any time. The exit code is 1 if anything failed or is left.
    """
    from memchat.cli.progress import ProgressLine

    with open_store() as mc:
        with stopping(mc.jobs.stop) as told, ProgressLine() as line:
            result = mc.jobs.backfill(batch=batch, progress=line.update)
        print(f"{result.done} done, {len(result.failed)} failed, {result.left} left")
        _print_failures(result)
        if told:
            raise typer.Exit(130)
        if result.left or result.failed:
            raise typer.Exit(1)


def _print_failures(result: BackfillResult) -> None:
    single = [job for job in result.failed if job.error_message != result.stopped]
    for job in sorted(single, key=lambda job: job.id)[:MOST_FAILURES]:
        output.error(output.failed(job))
    if len(single) > MOST_FAILURES:
        output.error(f"and {len(single) - MOST_FAILURES} more; see memchat jobs status")
    if result.stopped is not None:
        output.error(f"stopped: {result.stopped}")
