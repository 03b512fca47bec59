"""What a person says next: typed or pasted at a terminal, or a line of standard input."""

from __future__ import annotations

import select
import sys

from memchat.cli import tables

FENCE = '"""'
"""Begins and ends a message of several lines."""
GOES_ON = "\\"
"""At the end of a line: the message goes on in the next one."""
PASTE_SECONDS = 0.05
"""How long the rest of a paste may take to come, in a terminal that does not mark pastes."""


def next_message() -> str:
    """One message. Raises EOFError at the end of the input."""
    if not tables.on_terminal():
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
    _mark_pastes()
    text = input("> ")
    if text.lstrip().startswith(FENCE):
        return _fenced(text.lstrip().removeprefix(FENCE))
    while True:
        if text.endswith(GOES_ON):
            text = f"{text.removesuffix(GOES_ON)}\n{input('... ')}"
        elif text and _waits():
            text = f"{text}\n{input()}"
        else:
            return text


def _fenced(text: str) -> str:
    """The lines up to the closing quotes."""
    while not text.rstrip().endswith(FENCE):
        text = f"{text}\n{input('... ')}"
    return text.rstrip().removesuffix(FENCE).strip("\n")


def _mark_pastes() -> None:
    """Have the terminal mark what is pasted, so that it comes as one line with breaks in it; Python
    switches that off. The module also gives ``input`` its line editing."""
    import readline

    readline.parse_and_bind("set enable-bracketed-paste on")


def _waits() -> bool:
    """Whether more lines came with this one, as in a paste that the terminal does not mark."""
    return bool(select.select([sys.stdin], [], [], PASTE_SECONDS)[0])
