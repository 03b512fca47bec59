"""``memchat jobs``: the queue of work that waits, such as a failed extraction."""

from __future__ import annotations

from typing import Annotated

import typer

from memchat.cli import show
from memchat.cli.options import Json, Limit, User, group, open_store
from memchat.errors import NotFound

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


@app.command()
def status(user: User, app: OneApp = None, limit: Limit = 100, as_json: Json = False) -> None:
    """List a user's work, newest first: queued, running, completed and failed."""
    with open_store() as mc:
        found = [job for job in mc.jobs(user=user, limit=limit) if app in (None, job.app)]
        if as_json:
            show.print_records(found)
            return
        show.print_table(
            ("id", "work", "app", "target", "state", "tries", "next", "error"),
            [
                (
                    job.id,
                    job.kind,
                    show.app_name(job.app),
                    job.target_id,
                    job.status,
                    job.attempts,
                    show.time(job.run_at, mc.settings.zone) if job.status == "pending" else "",
                    job.error_message or "",
                )
                for job in found
            ],
            none=f"no work for {user} yet",
        )


@app.command()
def run(user: User, app: AnyApp = None) -> None:
    """Do the work that is due now, and print what was learned."""
    with open_store() as mc:
        waiting = len(mc.jobs(user=user, status="pending"))
        if waiting:
            show.notice(f"{waiting} waiting …")
        result = mc.run_jobs(user=user)
        for outcome in result.learned:
            print(show.learned(outcome))
        failed = {job.id: job for job in result.failed}
        print(f"{result.done} done, {len(failed)} failed")
        for job in failed.values():
            show.error(show.failed(job))
        if failed:
            raise typer.Exit(1)


@app.command()
def retry(
    user: User,
    job_id: Annotated[
        int | None,
        typer.Argument(metavar="ID", help="Only this job.", show_default=False),
    ] = None,
    app: AnyApp = None,
) -> None:
    """Queue failed work again.

    Prints how many jobs that were; `memchat jobs run` does them.
    """
    with open_store() as mc:
        count = mc.retry_jobs(user=user, job_id=job_id)
    if job_id is not None and count == 0:
        raise NotFound(f"there is nothing to retry in job {job_id}; see memchat jobs status")
    print(count)
