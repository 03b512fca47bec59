"""``demo``, ``doctor``, ``config``, ``--version``: what is in use, why, and what is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from memchat.cli import show
from memchat.cli.options import Json, open_store
from memchat.types import to_json

VARIABLES = {
    "home": "MEMCHAT_HOME",
    "chat_model": "MEMCHAT_CHAT_MODEL",
    "extract_model": "MEMCHAT_EXTRACT_MODEL",
    "embed_model": "MEMCHAT_EMBED_MODEL",
    "embed_dimensions": "MEMCHAT_EMBED_DIMENSIONS",
    "embed_max_tokens": "MEMCHAT_EMBED_MAX_TOKENS",
    "models": "MEMCHAT_MODELS",
    "timezone": "MEMCHAT_TIMEZONE",
    "extraction": "MEMCHAT_EXTRACTION",
    "gemini_base_url": "GEMINI_API_BASE",
    "top_k": "MEMCHAT_TOP_K",
    "budget_tokens": "MEMCHAT_BUDGET",
    "pinned_tokens": "MEMCHAT_PINNED",
    "ranking": "MEMCHAT_RANKING",
    "merge_threshold": "MEMCHAT_MERGE_THRESHOLD",
    "timeout": "MEMCHAT_TIMEOUT",
    "embed_patience": "MEMCHAT_EMBED_PATIENCE",
    "embed_per_minute": "MEMCHAT_EMBED_PER_MINUTE",
    "retry_minutes": "MEMCHAT_RETRY_MINUTES",
    "context_tokens": "MEMCHAT_CONTEXT",
    "idle_minutes": "MEMCHAT_IDLE_MINUTES",
    "mask_before_extraction": "MEMCHAT_MASK",
    "verify": "MEMCHAT_VERIFY",
    "filter_pinned": "MEMCHAT_FILTER",
}


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

    run()


def doctor(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="First put keyword rows, vectors and index in step with the rows."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check version, keys, models, database and folder.

    The exit code is 1 if something is wrong.
    """
    with open_store() as mc:
        repaired = mc.repair() if repair else []
        checks = mc.doctor()
    if as_json and repair:
        show.print_json({"repaired": repaired, "checks": [to_json(check) for check in checks]})
    elif as_json:
        show.print_records(checks)
    else:
        for line in repaired or (["nothing was out of step"] if repair else []):
            print(f"repaired {line}" if repaired else f"ok       repair: {line}")
        for check in checks:
            print(show.plain(f"{check.state:<8} {check.name}: {check.detail}"))
            if check.remedy:
                print(show.plain(f"{'':<8} → {check.remedy}"))
    if any(check.state == "problem" for check in checks):
        raise typer.Exit(1)


def config(as_json: Json = False) -> None:
    """Show every setting, where it came from, and its variable."""
    from memchat.config import load

    settings = load(dotenv=Path(".env"))
    rows = [
        {
            "setting": name,
            "value": _printable(getattr(settings, name)),
            "from": settings.why.get(name) or _origin(variable),
            "variable": variable,
        }
        for name, variable in VARIABLES.items()
    ]
    if as_json:
        show.print_json(rows)
        return
    show.print_table(
        ("setting", "value", "from", "variable"),
        [["" if cell is None else cell for cell in row.values()] for row in rows],
        none="",
    )


def _origin(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        if variable == "MEMCHAT_TIMEZONE":
            return "TZ" if os.environ.get("TZ") else "this machine"
        return "default"
    return ".env" if _in_dotenv(variable) == value else "environment"


def _in_dotenv(variable: str) -> str | None:
    path = Path(".env")
    if not path.is_file():
        return None
    from dotenv import dotenv_values

    return dotenv_values(path).get(variable)


def _printable(value: object) -> object:
    """The value without a password that an address may carry, as its variable is written."""
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, tuple):
        value = ",".join(f"{number:g}" for number in value)
    return re.sub(r"//[^/@\s]*@", "//…@", value) if isinstance(value, str) else value
