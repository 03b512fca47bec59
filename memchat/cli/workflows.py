"""``memchat workflow``: workflows are listed, checked, added and run, and their runs are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter

from memchat.cli import command as cli
from memchat.cli import output
from memchat.errors import InputError
from memchat.types.workflows import WorkflowInfo, WorkflowRun

app = cli.group("Run workflows: steps that search your notes, ask a model or call a tool.")
Slug = Annotated[str, Argument(metavar="NAME", help="The workflow's short name.")]
RunId = Annotated[int, Argument(metavar="RUN", help="The run's number.")]


@cli.command(app, "list")
def list_workflows(call: cli.Call) -> None:
    """List the workflows, those that come with memchat among them."""

    def runs(one: WorkflowInfo) -> str:
        once = "" if one.added else " once it is added"
        return f"{one.when}{once}" if one.when else "by hand"

    call.table(
        call.known.workflows.list(),
        "workflow=slug name runs shared_with does=description",
        none="no workflows",
        runs=runs,
        shared_with=lambda one: ", ".join(one.shared_with),
    )


@cli.command(app)
def show(call: cli.Call, slug: Slug) -> None:
    """Print the JSON text of a workflow."""
    one = call.known.workflows.get(slug)
    call.result(one, one.definition.rstrip())


@cli.command(app)
def validate(call: cli.Call, file: Path = Argument(metavar="FILE")) -> None:
    """Say what is wrong in the JSON text of a workflow, by line and field.

    :param file: A file, or - for standard input.
    """
    found = call.person.workflows.validate(_text(file))
    if call.as_json:
        output.print_json(found)
    else:
        print("\n".join(map(str, found)) or "nothing is wrong in it")
    call.failed = bool(found)


@cli.command(app)
def add(call: cli.Call, file: Path = Argument(metavar="FILE")) -> None:
    """Keep a workflow, in the place of one of the same name. Prints its name.

    Example: memchat workflow add weekly-review

    :param file: A file with its JSON text, - for standard input, or the name of a workflow that
        comes with memchat.
    """
    workflows = call.person.workflows
    there = {one.slug: one.definition for one in workflows.list()}
    one = workflows.add(there.get(str(file)) or _text(file))
    call.result(one, one.slug)
    if one.when is not None:
        when = "for each note that comes in" if one.when == "note" else one.when
        output.notice(f"it runs {when}, while the app, a chat or `memchat worker` is open")


def _text(file: Path) -> str:
    try:
        return cli.piped() if str(file) == cli.PIPED else file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read; give a file with JSON in UTF-8") from error


@cli.command(app)
def delete(call: cli.Call, slug: Slug) -> None:
    """Delete a workflow that was added. Its runs stay for 30 days after they began."""
    call.known.workflows.delete(slug)
    call.result({"slug": slug, "deleted": True}, f"deleted {slug}")


@cli.command(app)
def share(
    call: cli.Call, slug: Slug, program: str = Argument(metavar="PROGRAM"), off: bool = False
) -> None:
    """Let a program run a workflow that was added.

    :param program: The name under which it calls over MCP or HTTP.
    :param off: Do not let it any longer.
    """
    one = call.known.workflows.share(slug, program, on=not off)
    call.result(one, f"{slug} may be run by: {', '.join(one.shared_with) or 'no program'}")


@cli.command(app)
def run(
    call: cli.Call,
    slug: Slug,
    text: str | None = Argument(None, metavar="[TEXT]"),
    note: int | None = None,
    yes: bool = False,
) -> None:
    """Run a workflow, and print what its last step gives.

    Before a tool is called that may change something you are asked; where there is no terminal to
    ask on, the run waits in the inbox.

    Example: memchat workflow run ask-memory "What did I decide about the garden?"

    :param text: What it is about, such as a question; - for standard input.
    :param note: Run it on the note of this number.
    :param yes: Call every tool of it without being asked.
    """
    if text is not None and note is not None:
        raise BadParameter("give either a text or --note")
    said = cli.piped() if text == cli.PIPED else text or ""
    workflows = call.person.workflows
    _do(call, yes, lambda **how: workflows.run(slug, said, note_id=note, **how))


@cli.command(app)
def resume(call: cli.Call, run_id: RunId, yes: bool = False) -> None:
    """Go on with a run that waits, was stopped or failed. What is done is not done again.

    :param yes: Call the tool that it waits for, once, without being asked.
    """
    workflows = call.known.workflows
    _do(call, False, lambda **how: workflows.resume(run_id, yes=yes, **how))


def _do(call: cli.Call, yes: bool, work: Callable[..., WorkflowRun]) -> None:
    """Do a run, and tell how it ended."""

    def asked(question: str) -> bool:
        return yes or output.answer(output.plain(f"{question} [y/N]")).lower() in ("y", "yes")

    shown: list[str] = []

    def tell(step: str, piece: str) -> None:
        if not piece:
            print(end="\n" if shown else "")
            shown.clear()
            output.notice(f"{step} …")
        elif output.on_terminal() and not call.as_json:
            shown.append(piece)
            print(output.plain(piece), end="", flush=True)

    done = work(on_text=tell, ask=asked if yes or sys.stdin.isatty() else None)
    print(end="\n" if shown else "")
    if call.as_json:
        output.print_json(done)
    elif done.state == "done" and not shown:
        output.print_text(done.output)
    if done.state != "done":
        call.failed = done.state != "waiting"
        waits = "" if call.failed else f"for a yes to: {done.steps[-1].call}"
        why = f": {done.error or waits}" if done.error or waits else ""
        go_on = f"memchat workflow resume {done.id}{'' if call.failed else ' --yes'}"
        output.error(f"run {done.id} {done.state}{why}; {go_on} goes on with it")


@cli.command(app)
def stop(call: cli.Call, run_id: RunId) -> None:
    """Stop a run. `memchat workflow resume` goes on with it."""
    call.result(call.known.workflows.stop(run_id), f"run {run_id} is stopped")


@cli.command(app, "runs")
def list_runs(
    call: cli.Call,
    run_id: int | None = Argument(None, metavar="[RUN]"),
    workflow: str | None = None,
    limit: int = 20,
) -> None:
    """List the runs of the last 30 days, newest first, or show one with its steps.

    :param run_id: The run to show.
    :param workflow: Only runs of this workflow.
    """
    workflows = call.known.workflows
    if run_id is not None:
        one = workflows.get_run(run_id)
        lines = [f"run {one.id} of {one.slug}: {one.state}", f"given: {one.text}", one.error or ""]
        for step in one.steps:
            about = ", ".join(filter(None, (step.type, step.model, step.call)))
            lines += [f"{step.id}: {step.state} in {step.seconds:.1f} s ({about})", step.text, ""]
        call.result(one, "\n".join(lines).rstrip())
        return
    call.table(
        workflows.runs(workflow, limit=limit),
        "id began=created_at workflow=slug by=trigger state cost said",
        none="no runs; memchat workflow run ask-memory QUESTION makes one",
        cost=lambda one: f"${one.cost_usd:.4f}" if one.cost_usd else "",
        said=lambda one: one.error or " ".join(one.output.split()),
    )
