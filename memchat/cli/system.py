"""``demo``, ``doctor``, ``config``, ``--version``: what is in use, why, and what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memchat.cli import minilm, tables
from memchat.cli.options import ENV_FILE, Json, advise_move, open_store, settings
from memchat.config.addresses import shown
from memchat.config.names import ADDRESS_NAMES
from memchat.config.settings import VARIABLES
from memchat.config.sources import DOTENV, misspelt, read_env_file, unread_dotenv
from memchat.types import to_json

if TYPE_CHECKING:
    from memchat.config import Settings
    from memchat.config.sources import EnvFile


def version(wanted: bool) -> None:
    """Print the version and stop, where it is asked for."""
    if wanted:
        from importlib.metadata import version

        print(f"memchat {version('memchat')}")
        raise typer.Exit


def demo() -> None:
    """Show the main job on a throw-away store.

    Conversations are held and end, memories appear with the words that prove them, a later
    conversation uses them, and one is forgotten. Your own memories are not touched.
    """
    from memchat.demo import run

    set_to = settings()
    minilm.offer(set_to)
    run(settings=set_to)


def doctor(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="First put keyword rows, vectors and index in step with the rows."
        ),
    ] = False,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Also ask each model one word, and show its answer and how long it took.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check version, keys, models, database and folder.

    Nothing is sent to a provider without --probe. The exit code is 1 if something is wrong.
    """
    from memchat.doctor import Check

    with open_store() as mc:
        repaired = mc.repair() if repair else []
        checks = mc.doctor(probe=probe) + [Check("settings", "note", line) for line in _unread()]
    if as_json and repair:
        tables.print_json({"repaired": repaired, "checks": [to_json(check) for check in checks]})
    elif as_json:
        tables.print_records(checks)
    else:
        for line in repaired or (["nothing was out of step"] if repair else []):
            print(f"repaired {line}" if repaired else f"ok       repair: {line}")
        for check in checks:
            print(tables.plain(f"{check.state:<8} {check.name}: {check.detail}"))
            if check.remedy:
                print(tables.plain(f"{'':<8} → {check.remedy}"))
    if any(check.state == "problem" for check in checks):
        raise typer.Exit(1)


def config(as_json: Json = False) -> None:
    """Show every setting, and where its value came from."""
    set_to = settings()
    advise_move(set_to)
    values = [(name, getattr(set_to, name), variable) for name, variable in VARIABLES.items()]
    known = sorted(ADDRESS_NAMES & set_to.addresses.keys())
    values += [("address", set_to.addresses[variable], variable) for variable in known]
    rows = [
        {
            "setting": name,
            "value": _printable(value),
            "from": _origin(set_to, name, variable),
            "variable": variable,
        }
        for name, value, variable in values
    ]
    if as_json:
        tables.print_json(rows)
    else:
        tables.print_table(
            ("variable", "value", "from"),
            [(r["variable"], "" if r["value"] is None else r["value"], r["from"]) for r in rows],
            none="",
        )
    for line in [*set_to.redirect_warnings(), *_unread()]:
        tables.notice(line)


def env_file(path: Path) -> EnvFile:
    """The file that ``--env-file`` names, after one line on what in it memchat does not know."""
    found = read_env_file(path)
    if found.ignored:
        tables.notice(
            f"ignored in {found.name}, as memchat knows no such names: {', '.join(found.ignored)}"
        )
    tell_misspelt(found.ignored)
    return found


def tell_misspelt(names: Iterable[str]) -> None:
    """Name the variables that were meant to be memchat's, by their beginning, and are not."""
    for line in misspelt(names):
        tables.notice(line)


def _unread() -> list[str]:
    """That the working folder's .env is not read, where it looks as if it were meant to be."""
    names = unread_dotenv(Path(), ENV_FILE.get())
    if not names:
        return []
    return [
        f"{DOTENV} in this folder sets {', '.join(names)} and is not read; "
        f"to use it: memchat --env-file {DOTENV} COMMAND"
    ]


def _origin(set_to: Settings, name: str, variable: str) -> str:
    if variable in set_to.origins:
        return set_to.origins[variable]
    if name == "timezone":
        return "TZ" if os.environ.get("TZ") else "this machine"
    return set_to.why.get(name, "default")


def _printable(value: object) -> object:
    """The value as its variable is written, without a password that an address may carry."""
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, tuple):
        value = ",".join(f"{number:g}" for number in value)
    return shown(value) if isinstance(value, str) else value
