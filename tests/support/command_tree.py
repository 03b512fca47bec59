"""Typer's tree of the commands, built once a process."""

from __future__ import annotations

import functools

import typer


def build_once() -> None:
    """Have Typer keep it: it reads the signatures of 80 commands anew for each command that is run,
    which takes longer than the command."""
    typer.main.get_command = functools.cache(typer.main.get_command)
