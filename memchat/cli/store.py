"""The apps of a store, its queue of work, its embedding services, and copies of it.

``memchat apps``, ``users``, ``jobs``, ``worker``, ``backfill``, ``services``, ``backup``,
``restore`` and ``wipe``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, BadParameter, Option

from memchat.cli import command as cli
from memchat.cli import memories, output, system, transfer
from memchat.cli.output import ProgressLine
from memchat.config.providers import MINILM, embedding_name
from memchat.errors import InputError, NotFound
from memchat.types import MOST_AT_ONCE, MOST_BATCH, JobStatus, RestorePlan, counted

if TYPE_CHECKING:
    from memchat.api.store import Backups


apps_group = cli.group("See the apps, switch their memory on and off, delete them.")

AppName = Annotated[str | None, Argument(metavar="APP", help="The app, the same as --app.")]
AllApps = Annotated[bool, Option("--all-apps", help="The user's own switch, over every app.")]


@cli.command(apps_group, "list")
def list_apps(call: cli.Call) -> None:
    """List a user's apps, how much each remembers, and how many notes it has."""
    call.table(
        call.person.apps.list(),
        "app=name memory memories sessions notes since=created_at",
        none=f"no apps of {call.user} yet",
        memory=lambda item: "on" if item.memory else "off",
    )
    switch = call.person.memory_switch()
    if not switch.on and not call.as_json:
        output.notice(switch.reason)


@cli.command(apps_group)
def on(call: cli.Call, name: AppName = None, all_apps: AllApps = False, yes: bool = False) -> None:
    """Switch memory on for an app, or for the user.

    An app that is not there yet is made, if you agree.
    """
    _switch(call, True, name, all_apps=all_apps, yes=yes)


@cli.command(apps_group)
def off(call: cli.Call, name: AppName = None, all_apps: AllApps = False, yes: bool = False) -> None:
    """Switch memory off for an app, or for the user.

    Nothing is read, used or saved until it is on again. An app that is not there yet is made, if
    you agree.
    """
    _switch(call, False, name, all_apps=all_apps, yes=yes)


@cli.command(apps_group, without="app")
def delete(call: cli.Call, name: AppName = None, app: str | None = None, yes: bool = False) -> None:
    """Delete an app with its conversations, notes and memories.

    Prints how many memories went, and which memories for every app speak of them.

    :param app: The app to delete.
    """
    chosen = name or app
    if chosen is None:
        raise BadParameter("name the app to delete; memchat apps list shows them")
    call.app = chosen
    person = call.known
    cli.confirm(
        f"Delete the app {chosen} of {call.user}, its conversations, notes and memories, for good?",
        yes=yes,
    )
    found = memories.mentions_of_app(person)
    deleted = person.apps.delete(chosen)
    counts = {"memories": deleted.memories, "sessions": deleted.sessions}
    call.result({"app": chosen, **counts, "notes": deleted.notes}, deleted.memories)
    if found is not None:  # all but the memories for every app went with the app
        left = tuple(place for place in found.places if place.kind == "memory")
        memories.tell_mentions_of_app(call, replace(found, places=left))
    call.tell_forgotten()


def _switch(
    call: cli.Call, memory_on: bool, name: str | None, *, all_apps: bool, yes: bool
) -> None:
    app = None if all_apps else name or call.app
    call.app = app or cli.DEFAULT_APP
    person = call.person
    known = {cli.DEFAULT_APP, *(one.name for one in person.apps.list())}
    if app is not None and person.scope.app not in known:
        there = f"{call.user} has no app {app!r}"
        cli.confirm(f"{there}. Make it?", yes=yes, why=f"{there} (see memchat apps list)")
    person.set_memory(memory_on, all_apps=all_apps)
    where = f"the app {app}" if app is not None else "every app"
    said = f"memory is {'on' if memory_on else 'off'} for {call.user} in {where}"
    call.result({"app": app, "memory": memory_on}, said)


users_group = cli.group("See who is in the store, take a person's things out, delete a person.")


@cli.command(users_group, "list", without="user app")
def list_users(call: cli.Call) -> None:
    """List everybody of whom something is kept, with how much, and when they were last here."""
    call.table(
        call.mc.users.list(),
        "user=name apps memories sessions notes last=last_used_at",
        none="nothing is kept of anybody yet",
    )


@cli.command(users_group, "export", without="user app")
def export_user(
    call: cli.Call, name: str, file: Path, format: transfer.ExportFormat = "jsonl"
) -> None:
    """Write all that is kept of a person into a file, as `memchat export` does.

    :param name: The person.
    :param file: A file that is not there yet, - for standard output.
    :param format: jsonl, which import reads; zip, the same with the files of notes; markdown, a
        page for people; prompt, lines for another assistant.
    """
    call.user = name
    transfer.export_to(call, file, format, None)


@cli.command(users_group, "delete", without="user app")
def delete_user(call: cli.Call, name: str, yes: bool = False) -> None:
    """Delete all that is kept of a person, in every app, for good.

    Memories, conversations, notes, the inbox and the programs that they let in. Prints how many
    memories went.

    :param name: The person.
    """
    if name not in {one.name for one in call.mc.users.list()}:  # told before anything is asked
        raise NotFound(f"nothing is kept of {name}; see memchat users list")
    cli.confirm(f"Delete all that is kept of {name}, in every app, for good?", yes=yes)
    gone = call.mc.users.delete(name)
    counts = {"memories": gone.memories, "sessions": gone.sessions, "notes": gone.notes}
    call.result({"user": name, **counts, "apps": gone.apps}, gone.memories)
    call.tell_forgotten()


jobs_group = cli.group("See, run and retry queued work.")

AnyApp = Annotated[
    str | None, Option("--app", help="Changes nothing: a user's queue is one for all apps.")
]


@cli.command(jobs_group, without="app")
def status(
    call: cli.Call,
    app: str | None = None,
    state: JobStatus | None = Option(None, "--status"),
    limit: int = 100,
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
        "id work=kind app target=target_id state=status tries=attempts next error=error_message",
        none=f"no work for {user} yet" if state is None else f"no work of {user} is {state}",
        app=lambda job: output.app_name(job.app),
        next=lambda job: job.run_at if job.status == "pending" else None,
    )


@cli.command(jobs_group, without="app")
def run(call: cli.Call, app: AnyApp = None) -> None:
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


@cli.command(jobs_group, without="app")
def retry(
    call: cli.Call,
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


@cli.command(jobs_group, without="app")
def clear(call: cli.Call, app: AnyApp = None) -> None:
    """Take completed work off the list and print how much that was; what it did stays."""
    count = call.mc.jobs.clear(user=call.user).count
    call.result({"removed": count}, count)


MOST_FAILURES = 20
"""Failures that are printed one by one."""


@cli.command(without="user app as_json")
def worker(
    call: cli.Call, once: bool = False, parallel: int = Option(1, min=1, max=MOST_AT_ONCE)
) -> None:
    """Do queued work of everybody as it becomes due.

    It goes on until Ctrl-C or a signal to end. Each piece of work is a line on standard error,
    with numbers and no words of yours. What is in hand is ended first; a second Ctrl-C gives it
    back to the queue.

    :param once: Do what is due now, and end; 1 if anything failed.
    :param parallel: Conversations read at once; those of one person one after another.
    """
    mc = call.mc
    output.start_log(mc.settings, verbose=1)
    if once:
        done = mc.jobs.run(parallel=parallel)
        print(f"{done.done} done, {len({job.id for job in done.failed})} failed")
        call.failed = bool(done.failed)
        return
    output.notice("waiting for work; Ctrl-C ends it")
    with cli.stopping(mc.jobs.stop):
        mc.jobs.work(parallel=parallel)
    output.notice("ended; what waits is kept in the queue")


@cli.command(without="user app as_json")
def backfill(call: cli.Call, batch: int = Option(100, min=1, max=MOST_BATCH)) -> None:
    """Make the vectors that are missing.

    Those of memories, past messages, summaries and notes. What has one is skipped, so it can be
    broken off and run again at any time. The exit code is 1 if anything failed or is left.

    :param batch: Texts that are sent together.
    """
    jobs = call.mc.jobs
    with cli.stopping(jobs.stop) as told, ProgressLine() as line:
        result = jobs.backfill(batch=batch, progress=line.update)
    print(f"{result.done} done, {len(result.failed)} failed, {result.left} left")
    single = [job for job in result.failed if job.error_message != result.stopped]
    for job in sorted(single, key=lambda job: job.id)[:MOST_FAILURES]:
        output.error(output.failed(job))
    if len(single) > MOST_FAILURES:
        output.error(f"and {len(single) - MOST_FAILURES} more; see memchat jobs status")
    if result.stopped is not None:
        output.error(f"stopped: {result.stopped}")
    if told:
        raise typer.Exit(130)
    call.failed = bool(result.left or result.failed)


services_group = cli.group("See and change the embedding services of the store.")

ServiceName = Annotated[
    str, Argument(metavar="NAME", help="As `services list` shows it, or its number.")
]


@cli.command(services_group, "list", without="user app")
def list_services(call: cli.Call) -> None:
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


@cli.command(services_group, without="user app")
def use(call: cli.Call, name: ServiceName, force: bool = False) -> None:
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
    _tell_what_is_set(call, name)


@cli.command(services_group, without="user app")
def migrate(
    call: cli.Call,
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
    in_use = output.plain(f"{done.service} is in use")
    if call.as_json:
        output.print_json(done)
    elif done.before is None and not done.embedded:
        print(in_use)
    else:
        cost = "" if not done.cost_usd else f", ${done.cost_usd:.4f}"
        texts = counted(done.embedded, "text")
        print(output.plain(f"{texts} embedded with {done.service} ({done.tokens:,} tokens{cost})"))
        for what, reason in done.refused.items():
            output.error(f"{what} has no vector of it: {reason}")
        if not done.switched:
            output.error(
                f"{done.before or 'words alone'} stays in use; mend these texts and run it again, "
                f"or leave them to words with memchat services use {done.service} --force"
            )
        else:
            print(in_use)
            if done.before is not None:
                kept = f"the vectors of {done.before} are kept; memchat services rm {done.before}"
                print(output.plain(kept))
    call.failed = not done.switched
    if done.switched:
        _tell_what_is_set(call, done.service)


@cli.command(services_group, without="user app")
def fetch(call: cli.Call, name: str, yes: bool = False) -> None:
    """Download a model to run on this machine. Chat, ui and demo offer minilm once.

    minilm, the default without a key, is downloaded after a question. It is for all
    stores of your account, in the platform's cache folder.

    The files of other models come to the folder MEMCHAT_MODELS, below the model's name, where files
    from another machine may be put as well. An interrupted download is continued. `memchat services
    migrate` changes to the model.

    :param name: minilm, or as fastembed knows it: BAAI/bge-small-en-v1.5.
    """
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


@cli.command(services_group, "rm", without="user app")
def remove(call: cli.Call, name: ServiceName, force: bool = False) -> None:
    """Delete a service with its vectors. What they were made of stays.

    The room they took in the file is used again; the file itself does not shrink.

    :param force: Also the one in use, or the one that is coming.
    """
    removed = call.mc.services.remove(name, force=force).count
    said = f"{name} is removed, with {counted(removed, 'vector')}"
    call.result({"service": name, "removed": removed}, said)


def _tell_what_is_set(call: cli.Call, name: str) -> None:
    """Where a setting names another model, the next start would stop at it."""
    set_to = call.mc.settings
    named = set_to.why.get("embed_model") == "MEMCHAT_EMBED_MODEL"
    if named and set_to.embed_model not in (name, embedding_name(name)):
        output.notice(
            f"MEMCHAT_EMBED_MODEL still names {set_to.embed_model}; unset it, or set it to {name}"
        )


backup_group = cli.group(
    "Copy the whole store, list the copies, delete them; memchat restore brings one back."
)


@cli.command(backup_group, without="user app as_json")
def create(_: cli.Call, file: Path | None = Argument(None), encrypt: bool = False) -> None:
    """Copy the whole store to a new file, check the copy, and print its path.

    Chats, the app and workers may go on meanwhile.

    :param file: The new file, - for standard output; without it one in the data folder, named after
        the time.
    :param encrypt: Encrypt it with a passphrase, which is asked for; without a terminal it is the
        first line of standard input.
    """
    passphrase = cli.secret("passphrase", again=True) if encrypt else None
    with ProgressLine() as line:
        if str(file) == cli.PIPED:
            _backups().write(cli.out(), passphrase=passphrase, progress=line.update)
        else:
            print(_backups().create(file, passphrase=passphrase, progress=line.update).file)
    if encrypt:
        output.notice("nobody can open it without the passphrase, you neither: keep it elsewhere")
    if file is not None:
        output.notice(
            "backups under a name of your own are not in memchat backup list; when you forget "
            "something, delete them yourself"
        )


@cli.command(backup_group, "list", without="user app")
def list_backups(call: cli.Call) -> None:
    """List the backups in the data folder, newest first.

    Those that memchat made before an upgrade or a restore are among them.
    """
    found, zone = _backups().list(), cli.settings().zone
    words = {True: "yes", False: "no", None: "unknown"}
    call.table(
        found,
        "made size schema forgotten_words state file",
        none="no backups; memchat backup create makes one",
        made=lambda one: output.time(one.made_at, zone),
        size=lambda one: _size(one.size),
        forgotten_words=lambda one: words[one.holds_forgotten],
        state=lambda one: (
            "unusable" if one.problem is not None else "encrypted" if one.encrypted else "ok"
        ),
        file=lambda one: one.file.name,
    )
    for backup in () if call.as_json else found:
        if backup.problem is not None:
            output.notice(backup.problem)


@cli.command(backup_group, without="user app as_json")
def prune(
    _: cli.Call,
    names: list[Path] | None = Argument(None, metavar="NAME"),
    keep: int | None = Option(None, min=0),
    yes: bool = False,
) -> None:
    """Delete backups in the data folder, after showing which they are.

    Nothing else deletes a backup, except memchat wipe.

    :param names: Delete these, by their names in the list.
    :param keep: Delete all but so many of the newest that can be restored.
    """
    if (keep is None) == (not names):
        raise BadParameter(
            "say how many of the newest to keep (--keep 1), or name backups to delete"
        )
    backups = _backups()
    gone = backups.named(names) if names else backups.prunable(keep=keep or 0)
    if not gone:
        output.notice("there are no backups to delete")
        return
    for path in gone:
        output.notice(f"{path.name}  {_size(path.lstat().st_size)}")
    cli.confirm(f"Delete {counted(len(gone), 'backup')} for good?", yes=yes)
    output.notice(f"deleted {counted(len(backups.delete(gone)), 'backup')}")


@cli.command(without="user app as_json")
def restore(_: cli.Call, file: Path, no_backup: bool = False, yes: bool = False) -> None:
    """Replace the whole store by a backup, after showing what is lost.

    No chat, app or worker may have the store open. The present store is kept as a backup. The
    passphrase of an encrypted one is asked for; without a terminal it is the first line of standard
    input.

    :param file: A backup, by path or by its name in the list.
    :param no_backup: Do not keep the present store as a backup.
    """
    backups = _backups()
    passphrase = cli.secret("passphrase") if backups.is_encrypted(file) else None
    plan = backups.plan_restore(file, passphrase=passphrase)
    made = output.time(plan.backup.made_at, cli.settings().zone)
    for told in _consequences(plan, made, keep_present=not no_backup):
        output.notice(told)
    question = f"Replace the whole store by {plan.backup.file.name}?"
    cli.confirm(question, yes=yes, why="this replaces the whole store")
    with ProgressLine() as line:
        kept = backups.restore(
            file, passphrase=passphrase, keep_present=not no_backup, progress=line.update
        )
    output.notice(f"restored {plan.backup.file}")
    if kept is not None:
        output.notice(f"the store as it was before is {kept}")


@cli.command(without="user app as_json")
def wipe(_: cli.Call, with_settings: bool = False, yes: bool = False) -> None:
    """Delete what memchat keeps of all users; settings, keys and MiniLM stay.

    What goes: the store, its backups and index, the logs, and models fetched into the data folder.
    What stays: settings, keys and your own prompts, unless --with-settings is given; MiniLM in
    your cache folder and models in a folder that MEMCHAT_MODELS names; any other file. Shows the
    files first and asks for the word “wipe”.

    :param with_settings: Also delete settings.toml, keys.toml and your own prompts.
    """
    from memchat.api.store import wipe, wipe_files

    home = _folder_of_store()
    files = wipe_files(home, with_settings=with_settings)
    if not files:
        output.notice(f"there is nothing of memchat to delete in {home}")
        return
    for path in files:
        output.notice(str(path))
    cli.confirm("Type wipe to delete all of this for good:", yes=yes, word="wipe")
    output.notice(f"deleted {counted(len(wipe(home, with_settings=with_settings)), 'item')}")


def _backups() -> Backups:
    from memchat.api.store import Backups

    return Backups(_folder_of_store())


def _folder_of_store() -> Path:
    """The data folder, where the store lies in it. Raises InputError where it does not."""
    found = cli.settings()
    if found.database_url is not None:
        raise InputError(
            "this store is in PostgreSQL: pg_dump and pg_restore copy it and bring it back, and "
            "DROP SCHEMA deletes it; docs/postgres.md says how"
        )
    return found.home


_LOST = {"memories": "memory", "sessions": "session", "messages": "message"}
_LOST |= {"inbox_items": "open inbox item", "notes": "note"}


def _consequences(plan: RestorePlan, made: str, *, keep_present: bool) -> list[str]:
    """What the restore would take away and bring back."""
    if plan.store_problem is not None:
        lines = [f"the present store cannot be read ({plan.store_problem}); all of it is replaced"]
    else:
        lost = ", ".join(counted(getattr(plan, name), noun) for name, noun in _LOST.items())
        lines = [
            f"the present store has these, and the backup of {made} has not: {lost}",
            "they are lost, and so is every change since then to what both have",
        ]
    if plan.backup.holds_forgotten is not False:
        verb = "comes" if plan.backup.holds_forgotten else "may come"
        lines.append(f"what was forgotten or deleted since the backup was made {verb} back")
    kept = "is kept as a backup" if keep_present else "is not kept"
    return [*lines, f"the present store {kept}"]


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
