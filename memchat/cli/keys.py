"""``memchat keys``: the providers' keys that memchat keeps for this account."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from memchat.cli import output
from memchat.cli.options import Json, group, settings

app = group("Set, list and remove the keys of providers.")

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A provider, as openai, or its variable: OPENAI_API_KEY."),
]


@app.command("set", context_settings={"allow_extra_args": True})
def put(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Keep a key in keys.toml, which this account alone can read.

    It is asked for and not shown; without a terminal it is read from standard input. It is never
    given as an argument: other programs can read those, and shells keep them.
    """
    from memchat.config import keys

    variable = keys.variable_of(name)
    if context.args:
        output.error(
            f"a key is never given as an argument; run memchat keys set {name} and paste it there, "
            "and take it out of your shell's history"
        )
        raise typer.Exit(2)
    set_to = settings()
    keys.set_key(set_to.home, variable, _asked(variable))
    file = set_to.home / keys.FILE
    record = {"key": variable, "file": str(file), "kept": True}
    output.print_result(record, f"{variable} is kept in {file}", as_json)
    origin = set_to.keys.origin(variable)
    if origin not in (None, keys.FILE):
        output.notice(f"the one of the {origin} comes before it, as long as it is set there")


@app.command("list")
def listed(as_json: Json = False) -> None:
    """List which keys are set and where, never the keys themselves."""
    from memchat.config import keys
    from memchat.types import to_json

    set_to = settings()
    found = keys.listed(set_to.home, set_to.keys)
    if as_json:
        output.print_json([to_json(key) for key in found])
        return
    output.print_table(
        ("key", "provider", "from", "state"),
        [(k.name, k.provider, k.origin, "set" if k.used else "set, but not used") for k in found],
        none="no key is set; memchat keys set openai keeps one",
    )


@app.command("remove")
def remove(name: Name, as_json: Json = False) -> None:
    """Take a key out of keys.toml."""
    from memchat.config import keys

    set_to = settings()
    variable = keys.remove_key(set_to.home, name)
    file = set_to.home / keys.FILE
    record = {"key": variable, "file": str(file), "kept": False}
    output.print_result(record, f"{variable} is removed from {file}", as_json)


def _asked(variable: str) -> str:
    """The key, typed without being shown, or all of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.read()
    from getpass import getpass

    return getpass(f"{variable}: ")
