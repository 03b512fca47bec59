"""``memchat jobs``: the queue of work that waits, such as a failed extraction."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from memchat.cli import tables
from memchat.cli.options import Json, Limit, User, group, open_store
from memchat.errors import NotFound
from memchat.types import to_json

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
            tables.print_records(found)
            return
        counts = mc.jobs.count(user=user)
        if any(counts.values()):
            tables.print_text(", ".join(f"{count} {name}" for name, count in counts.items()))
        for gone in mc.jobs.dead_holders(user=user):
            tables.print_text(gone.message)
        tables.print_table(
            ("id", "work", "app", "target", "state", "tries", "next", "error"),
            [
                (
                    job.id,
                    job.kind,
                    tables.app_name(job.app),
                    job.target_id,
                    job.status,
                    job.attempts,
                    tables.time(job.run_at, mc.settings.zone) if job.status == "pending" else "",
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
            tables.notice(f"{waiting} waiting …")
        result = mc.jobs.run(user=user, again=True)
        failed = {job.id: job for job in result.failed}
        if as_json:
            learned = [to_json(outcome) for outcome in result.learned]
            tables.print_json({"done": result.done, "failed": [*failed], "learned": learned})
        else:
            for outcome in result.learned:
                print(tables.learned(outcome))
            print(f"{result.done} done, {len(failed)} failed")
        for job in failed.values():
            tables.error(tables.failed(job))
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
    tables.print_result({"retried": count}, count, as_json)


@app.command()
def clear(user: User, app: AnyApp = None, as_json: Json = False) -> None:
    """Take completed work off the list and print how much that was; what it did stays."""
    with open_store() as mc:
        count = mc.jobs.clear(user=user).count
        tables.print_result({"removed": count}, count, as_json)
