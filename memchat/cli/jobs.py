"""The queue of work and what it needs: ``memchat jobs``, ``worker`` and ``backfill``, and
``services``, the embedding services whose vectors it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from memchat.cli import output, system
from memchat.cli.command import Call, Limit, Yes, command, group, stopping
from memchat.cli.output import ProgressLine
from memchat.errors import NotFound
from memchat.types import MOST_BATCH, JobStatus, counted

if TYPE_CHECKING:
    from memchat.jobs.embedding import BackfillResult
    from memchat.search.switch import MigrationResult

app = group("See, run and retry queued work.")

AnyApp = Annotated[
    str | None, Option("--app", help="Changes nothing: a user's queue is one for all apps.")
]


@command(app, without="app")
def status(
    call: Call,
    app: str | None = None,
    state: JobStatus | None = Option(None, "--status"),
    limit: Limit = 100,
) -> None:
    """List a user's work, newest first: queued, running, completed and failed.

    :param app: Only this app's work.
    :param state: Only work that stands so.
    """
    jobs, user = call.mc.jobs, call.user
    found = [
        job for job in jobs.list(user=user, status=state, limit=limit) if app in (None, job.app)
    ]
    if not call.as_json:
        counts = jobs.count(user=user)
        if any(counts.values()):
            output.print_text(", ".join(f"{count} {name}" for name, count in counts.items()))
        for gone in jobs.dead_holders(user=user):
            output.print_text(gone.message)
    call.table(
        found,
        {
            "id": "id",
            "work": "kind",
            "app": lambda job: output.app_name(job.app),
            "target": "target_id",
            "state": "status",
            "tries": "attempts",
            "next": lambda job: job.run_at if job.status == "pending" else None,
            "error": "error_message",
        },
        none=f"no work for {user} yet" if state is None else f"no work of {user} is {state}",
    )


@command(app, without="app")
def run(call: Call, app: AnyApp = None) -> None:
    """Do the work that waits, also what failed before, and print what was learned.

    What failed gets one more try now, whenever its next one was due and if it was given up.
    """
    jobs = call.mc.jobs
    counts = jobs.count(user=call.user)
    waiting = counts["pending"] + counts["failed"]
    if waiting:
        output.notice(f"{waiting} waiting …")
    result = jobs.run(user=call.user, again=True)
    failed = {job.id: job for job in result.failed}
    if call.as_json:
        done = {"done": result.done, "failed": [*failed], "learned": result.learned}
        output.print_json(done)
    else:
        for outcome in result.learned:
            print(output.learned(outcome))
        print(f"{result.done} done, {len(failed)} failed")
    for job in failed.values():
        output.error(output.failed(job))
    call.failed = bool(failed)


@command(app, without="app")
def retry(
    call: Call,
    job_id: int | None = Argument(None, metavar="ID"),
    failed: bool = False,
    app: AnyApp = None,
) -> None:
    """Give failed work all its tries anew, the first of them at once.

    Prints how many jobs that were; `memchat jobs run` or `memchat worker` does them.

    :param job_id: Only this job.
    :param failed: Only what was given up, not what waits for a retry.
    """
    count = call.mc.jobs.retry(user=call.user, job_id=job_id, failed_only=failed).count
    if job_id is not None and count == 0:
        raise NotFound(f"there is nothing to retry in job {job_id}; see memchat jobs status")
    call.result({"retried": count}, count)


@command(app, without="app")
def clear(call: Call, app: AnyApp = None) -> None:
    """Take completed work off the list and print how much that was; what it did stays."""
    count = call.mc.jobs.clear(user=call.user).count
    call.result({"removed": count}, count)


MOST_FAILURES = 20
"""Failures that are printed one by one."""


@command(without="user app as_json")
def worker(call: Call, once: bool = False) -> None:
    """Do queued work of everybody as it becomes due.

    It goes on until Ctrl-C or a signal to end. Each piece of work is a line on standard error,
    with numbers and no words of yours. What is in hand is ended first; a second Ctrl-C gives it
    back to the queue.

    :param once: Do what is due now, and end; 1 if anything failed.
    """
    from memchat.cli import log

    mc = call.mc
    log.start(mc.settings, verbose=1)
    if once:
        done = mc.jobs.run()
        print(f"{done.done} done, {len({job.id for job in done.failed})} failed")
        call.failed = bool(done.failed)
        return
    output.notice("waiting for work; Ctrl-C ends it")
    with stopping(mc.jobs.stop):
        mc.jobs.work()
    output.notice("ended; what waits is kept in the queue")


@command(without="user app as_json")
def backfill(call: Call, batch: int = Option(100, min=1, max=MOST_BATCH)) -> None:
    """Make the vectors that are missing.

    Those of memories, past messages, summaries and notes. What has one is skipped, so it can be
    broken off and run again at any time. The exit code is 1 if anything failed or is left.

    :param batch: Texts that are sent together.
    """
    jobs = call.mc.jobs
    with stopping(jobs.stop) as told, ProgressLine() as line:
        result = jobs.backfill(batch=batch, progress=line.update)
    print(f"{result.done} done, {len(result.failed)} failed, {result.left} left")
    _print_failures(result)
    if told:
        raise typer.Exit(130)
    call.failed = bool(result.left or result.failed)


def _print_failures(result: BackfillResult) -> None:
    single = [job for job in result.failed if job.error_message != result.stopped]
    for job in sorted(single, key=lambda job: job.id)[:MOST_FAILURES]:
        output.error(output.failed(job))
    if len(single) > MOST_FAILURES:
        output.error(f"and {len(single) - MOST_FAILURES} more; see memchat jobs status")
    if result.stopped is not None:
        output.error(f"stopped: {result.stopped}")


services = group("See and change the embedding services of the store.")

Name = Annotated[str, Argument(metavar="NAME", help="As `services list` shows it, or its number.")]


@command(services, "list", without="user app")
def list_services(call: Call) -> None:
    """List the services whose vectors the store has, which one is in use, and plug-ins."""
    found, plugins = call.mc.services.list(), call.mc.services.plugins()
    if call.as_json:
        output.print_json([*found, *plugins])
        return
    call.table(
        found,
        "id service=name version dimensions reads=max_tokens state vectors lacking",
        none="no service yet; it is chosen when the first memory is embedded",
    )
    for plugin in plugins:
        package = f"{plugin.package} {plugin.version}"
        print(output.plain(f"installed: {plugin.name}/…, from the package {package}"))


@command(services, without="user app")
def use(call: Call, name: Name, force: bool = False) -> None:
    """Search a service's vectors from now on.

    It has them all, or the command says what to do. `memchat services migrate` makes them.

    :param force: Also if texts have no vector of it yet.
    """
    lacking = call.mc.services.use(name, force=force).count
    call.result({"service": name, "queued": lacking}, f"{name} is in use")
    if call.as_json:
        return
    if lacking:
        print(f"{counted(lacking, 'text')} without a vector of it; memchat jobs run makes them")
    _say_what_is_set(call, name)


@command(services, without="user app")
def migrate(
    call: Call,
    name: str | None = Argument(None),
    dimensions: int | None = Option(None, min=1),
    max_tokens: int | None = Option(None, min=1),
) -> None:
    """Embed everything with another model, then change to it.

    Search goes on in the old vectors meanwhile, in every process, and the change is one step. It
    may be stopped at any time; run again, it goes on where it was. The old vectors stay until
    `memchat services rm`.

    :param name: The model to change to, e.g. minilm or openai/text-embedding-3-small (default: the
        change begun before, else the model of the settings).
    :param dimensions: Of a model that memchat does not know.
    :param max_tokens: That such a model reads.
    """
    services = call.mc.services
    with ProgressLine() as line:
        done = services.migrate(
            name, dimensions=dimensions, max_tokens=max_tokens, progress=line.update
        )
    if call.as_json:
        output.print_json(done)
    else:
        _say(done)
    call.failed = not done.switched
    if done.switched:
        _say_what_is_set(call, done.service)


@command(services, without="user app")
def fetch(call: Call, name: str, yes: Yes = False) -> None:
    """Download a model to run on this machine. Chat, ui and demo offer minilm once.

    minilm, the default without a key, is downloaded after a question. It is for all
    stores of your account, in the platform's cache folder.

    The files of other models come to the folder MEMCHAT_MODELS, below the model's name, where files
    from another machine may be put as well. An interrupted download is continued. `memchat services
    migrate` changes to the model.

    :param name: minilm, or as fastembed knows it: BAAI/bge-small-en-v1.5.
    """
    from memchat.config.providers import MINILM, embedding_name

    is_minilm = embedding_name(name) == MINILM
    if is_minilm:
        system.confirm_download(yes=yes)
    services = call.mc.services
    with ProgressLine() as line:
        folder, size = services.fetch(name, progress=line.update)
    fetched = f", {size / 1e6:,.1f} MB fetched" if size else " already"
    record = {"model": name, "folder": str(folder), "bytes": size}
    call.result(record, f"{name} is in {folder}{fetched}")
    if not is_minilm and not call.as_json:
        print(f"memchat services migrate fastembed/{name.removeprefix('fastembed/')} changes to it")


@command(services, "rm", without="user app")
def remove(call: Call, name: Name, force: bool = False) -> None:
    """Delete a service with its vectors. What they were made of stays.

    The room they took in the file is used again; the file itself does not shrink.

    :param force: Also the one in use, or the one that is coming.
    """
    removed = call.mc.services.remove(name, force=force).count
    said = f"{name} is removed, with {counted(removed, 'vector')}"
    call.result({"service": name, "removed": removed}, said)


def _say(done: MigrationResult) -> None:
    if done.before is None and not done.embedded:
        print(output.plain(f"{done.service} is in use"))
        return
    cost = "" if not done.cost_usd else f", ${done.cost_usd:.4f}"
    texts = counted(done.embedded, "text")
    print(output.plain(f"{texts} embedded with {done.service} ({done.tokens:,} tokens{cost})"))
    for what, reason in done.refused.items():
        output.error(f"{what} has no vector of it: {reason}")
    if done.switched:
        print(output.plain(f"{done.service} is in use"))
        if done.before is not None:
            kept = f"the vectors of {done.before} are kept; memchat services rm {done.before}"
            print(output.plain(kept))
    else:
        output.error(
            f"{done.before or 'words alone'} stays in use; mend these texts and run it again, or "
            f"leave them to words with memchat services use {done.service} --force"
        )


def _say_what_is_set(call: Call, name: str) -> None:
    """Where a setting names another model, the next start would stop at it."""
    from memchat.config.providers import embedding_name

    set_to = call.mc.settings
    named = set_to.why.get("embed_model") == "MEMCHAT_EMBED_MODEL"
    if named and set_to.embed_model not in (name, embedding_name(name)):
        output.notice(
            f"MEMCHAT_EMBED_MODEL still names {set_to.embed_model}; unset it, or set it to {name}"
        )
