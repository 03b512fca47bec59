"""What a command is about where that may be several things: numbers, ``--query`` or ``--tag``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeVar

import typer

from memchat.cli import output
from memchat.cli.options import confirm
from memchat.errors import MemChatError, NotFound

Thing = TypeVar("Thing")
Ids = Annotated[
    list[int] | None,
    typer.Argument(metavar="ID", help="Its number; there may be several.", show_default=False),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query", metavar="WORDS", help="All that have each of these words.", show_default=False
    ),
]
ALL = 1_000_000
"""More than anybody has of anything."""


def chosen(
    ids: Sequence[int] | None,
    get: Callable[[int], Thing],
    query: str | None,
    find: Callable[[str], Iterable[Thing]],
    tags: Sequence[str] | None = None,
) -> list[Thing]:
    """The things of these numbers, or those that ``find`` gives for the words and tags.

    Raises NotFound for an unknown number, and where nothing has the words: nothing is done then.
    """
    words = (query or "").strip()
    if bool(ids) == bool(words or tags):
        raise typer.BadParameter("give one or several numbers, or say which ones by --query WORDS")
    things = [get(number) for number in dict.fromkeys(ids or ())] if ids else [*find(words)]
    if not things:
        raise NotFound("nothing has all of that, so nothing was done")
    return things


def agree(ask: str, names: Sequence[str], kind: str, *, yes: bool) -> None:
    """Show what a command is about, and ask once for all of it: ``ask`` has {} in its place."""
    if len(names) > 1 and not yes:
        for name in names:
            output.notice(name)
    what = names[0] if len(names) == 1 else f"these {len(names)} {kind}"
    confirm(ask.format(what), yes=yes)


def in_turn(
    ids: Sequence[int], do: Callable[[Sequence[int]], object], *, at_once: int = 1
) -> list[int]:
    """Do something with so many at a time; those it was done with. The others are named, each with
    the reason."""
    done: list[int] = []
    for first in range(0, len(ids), at_once):
        part = ids[first : first + at_once]
        try:
            do(part)
        except MemChatError as error:
            output.error(f"not done with {listed(part)}: {error}")
        else:
            done += part
    return done


def listed(ids: Sequence[int]) -> str:
    """Numbers in a sentence."""
    return ", ".join(map(str, ids))


def print_each(records: Sequence[object], *, one: bool) -> None:
    """Print as JSON what was done with each; for ``one`` number that was given no list."""
    output.print_json(records[0] if one and len(records) == 1 else [*records])


def leave(done: Sequence[int], ids: Sequence[int]) -> None:
    """End with an error where it was not done with all."""
    if len(done) < len(ids):
        raise typer.Exit(1)
