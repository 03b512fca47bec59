"""What is piped into a command or out of it, and what a person writes in their editor."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

import typer

from memchat.errors import InputError

PIPED = "-"
"""What stands for standard input, or output, where a command takes a file or a text."""


def piped() -> str:
    """All of standard input. Raises InputError where it is no text, or in another encoding."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="strict")  # what is kept must not lose characters
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InputError(
            "standard input is not in UTF-8; save it as a file and give its name"
        ) from error
    if "\0" in text:
        raise InputError("standard input is no text; save it as a file and give its name")
    return text


def out() -> BinaryIO:
    """Standard output as bytes. Raises BadParameter for a terminal, which would obey what it is
    sent."""
    if sys.stdout.isatty():
        raise typer.BadParameter("standard output is a terminal; name a file, or add > FILE")
    sys.stdout.flush()
    return sys.stdout.buffer


@contextmanager
def text_out() -> Iterator[TextIO]:
    """Standard output in UTF-8, whatever the system's encoding."""
    text = io.TextIOWrapper(out(), encoding="utf-8", newline="\n")
    try:
        yield text
    finally:
        text.detach()  # closing it would close standard output


def edited(text: str) -> str:
    """The text as the person leaves it in their editor.

    Raises BadParameter without a terminal or an editor, and InputError where the editor fails.
    """
    import shlex
    import subprocess
    import tempfile

    from memchat.config.names import without_secrets

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command or not sys.stdin.isatty():
        raise typer.BadParameter("give --text or --title, or name your editor in EDITOR")
    # A folder of its own, which this account alone can read, goes with all that editors leave.
    with tempfile.TemporaryDirectory(prefix="memchat-") as folder:
        file = Path(folder, "note.md")
        file.write_text(text, "utf-8", newline="")
        given = without_secrets(os.environ)
        try:
            ended = subprocess.run([*shlex.split(command), str(file)], env=given, check=False)
        except (OSError, ValueError) as error:
            raise InputError(f"the editor {command!r} cannot be started ({error})") from error
        if ended.returncode:
            raise InputError(f"the editor failed ({ended.returncode}); nothing was changed")
        with file.open(encoding="utf-8", errors="replace", newline="") as changed:
            after = changed.read()
    # Editors end the last line, whether it was ended before or not.
    return after if text.endswith("\n") else after.removesuffix("\n")
