"""``memchat completion``, and answering a shell that asks what may come next on a command line."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

COMPLETE_VAR = "_MEMCHAT_COMPLETE"
"""The variable by which the scripts ask the program for completions."""

Shell = Annotated[
    Literal["bash", "zsh", "fish"],
    typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False),
]


def completion(shell: Shell) -> None:
    """Print a shell's script for the Tab key.

    It completes commands, options and their values. No file is changed. In bash, try it with:
    eval "$(memchat completion bash)"
    """
    from typer._completion_shared import get_completion_script

    print(get_completion_script(prog_name="memchat", complete_var=COMPLETE_VAR, shell=shell))


def asked() -> bool:
    """Whether a shell's script runs the program to ask for completions."""
    return COMPLETE_VAR in os.environ


def prepare() -> None:
    """Make Typer able to answer a shell's script."""
    from typer import _completion_classes

    _completion_classes.completion_init()
    # Typer would import rich to remove its markup from help texts, which takes longer than all
    # else. Ours have none.
    _completion_classes._sanitize_help_text = lambda text: text
