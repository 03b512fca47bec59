"""``demo``, ``doctor``, ``config``, ``--version``: what is in use, why, and what is wrong.

``memchat ui``: the app in the browser.

``memchat audit``: what among the memories should not be there, or not like this.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module, util
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from memchat.cli import output, progress
from memchat.cli.options import (
    ENV_FILE,
    App,
    Json,
    User,
    Yes,
    advise_move,
    known_app,
    open_store,
    settings,
)
from memchat.config.names import ADDRESS_NAMES
from memchat.config.settings import VARIABLES, shown
from memchat.config.sources import DOTENV, misspelt, read_env_file, unread_dotenv
from memchat.errors import ConfigError
from memchat.types import Audit, Finding, to_json
from memchat.types.upkeep import FindingKind

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
    progress.offer(set_to)
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
        output.print_json({"repaired": repaired, "checks": [to_json(check) for check in checks]})
    elif as_json:
        output.print_records(checks)
    else:
        for line in repaired or (["nothing was out of step"] if repair else []):
            print(f"repaired {line}" if repaired else f"ok       repair: {line}")
        for check in checks:
            print(output.plain(f"{check.state:<8} {check.name}: {check.detail}"))
            if check.remedy:
                print(output.plain(f"{'':<8} → {check.remedy}"))
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
        output.print_json(rows)
    else:
        output.print_table(
            ("variable", "value", "from"),
            [(r["variable"], "" if r["value"] is None else r["value"], r["from"]) for r in rows],
            none="",
        )
    for line in [*set_to.redirect_warnings(), *_unread()]:
        output.notice(line)


def env_file(path: Path) -> EnvFile:
    """The file that ``--env-file`` names, after one line on what in it memchat does not know."""
    found = read_env_file(path)
    if found.ignored:
        output.notice(
            f"ignored in {found.name}, as memchat knows no such names: {', '.join(found.ignored)}"
        )
    tell_misspelt(found.ignored)
    return found


def tell_misspelt(names: Iterable[str]) -> None:
    """Name the variables that were meant to be memchat's, by their beginning, and are not."""
    for line in misspelt(names):
        output.notice(line)


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


def ui(
    user: User,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Where it listens.")] = 8501,
) -> None:
    """Open the app in the browser.

    Chat, memories, inbox, insights and settings. It is for one person, and listens on this
    machine alone (127.0.0.1). Ctrl-C ends it.
    """
    from memchat.cli import log, output, progress
    from memchat.types import clean_name

    if util.find_spec("streamlit") is None:
        raise ConfigError(
            "the app in the browser needs Streamlit, which is not installed; "
            "run pip install 'memchat[ui]'"
        )
    set_to = settings()
    advise_move(set_to)
    progress.offer(set_to)
    sys.path.insert(0, str(_folder()))
    launch = import_module("ui.launch").launch
    log.start(set_to)
    launch(clean_name(user, "user"), port, output.notice, env_file=ENV_FILE.get())


def _folder() -> Path:
    # In a wheel the app lies inside the package, in a checkout beside it: no other package is to
    # meet one that is called ui.
    package = Path(str(files("memchat")))
    inside = package / "ui_data"
    return inside if inside.is_dir() else package.parent


def _one_word_kinds() -> list[str]:
    """The kinds of findings for completion, without those that a shell would have to quote."""
    return [kind for kind in get_args(FindingKind) if " " not in kind]


def _kind(text: str) -> str:
    """A kind of finding. Raises BadParameter for any other word."""
    kinds = get_args(FindingKind)
    if text not in kinds:
        raise typer.BadParameter(f"{text!r} is no kind; use one of {', '.join(kinds)}")
    return text


def audit(
    user: User,
    app: App = "default",
    fix: Annotated[
        bool, typer.Option("--fix", help="Show what mending would do, and do it with --yes.")
    ] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            parser=_kind,
            autocompletion=_one_word_kinds,
            metavar="KIND",
            help="Only findings of this kind; may be repeated.",
        ),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Look through the memories for what should not be there.

    Secrets, contradictions, duplicates, stale and expiring facts, missing evidence, suspected junk,
    what was never recalled, and an index that differs from the rows.
    """
    with open_store() as mc:
        person = known_app(mc, user, app)
        seen = person.audit()
        found = [f for f in seen.findings if not kind or f.kind in kind]
        # What cannot be undone is done only where it is named.
        mendable = [f for f in found if f.fix is not None and (f.kind != "secret" or kind)]
        mended = person.mend(mendable).count if fix and yes and mendable else 0
        if as_json:
            findings = {"findings": [to_json(finding) for finding in found]}
            output.print_json(to_json(seen) | findings | ({"mended": mended} if fix else {}))
        else:
            _report(seen, found, user, app)
        if not fix:
            return
        if not mendable:
            output.notice("nothing here can be mended unasked")
        elif not yes:
            output.notice("a dry run: nothing was changed; add --yes to do it")
        elif not as_json:
            print(f"mended {mended} of {len(mendable)}")


def _report(seen: Audit, found: list[Finding], user: str, app: str) -> None:
    whose = output.plain(f"{user} in {app}")
    print(f"{seen.active} memories in use, {seen.inactive} kept aside ({whose})")
    if not found:
        print("nothing found")
    for kind, group in groupby(found, key=lambda finding: finding.kind):
        findings = list(group)
        print(f"\n{kind} ({len(findings)})")
        for finding in findings:
            print(output.plain(f"  {finding.what}"))
            if finding.fix is not None:
                print(output.plain(f"    mend: {finding.fix}"))
