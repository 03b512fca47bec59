"""The transcript in docs/notes.md is what the commands print."""

from __future__ import annotations

import re
import shlex

from tests.support import pages
from tests.support.cli import Run
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "notes.md").read_text("utf-8")


def test_the_commands_print_what_stands_below_them(run: Run) -> None:
    (transcript,) = pages.blocks(PAGE, "console")
    for part in re.split(r"^\$ memchat ", transcript, flags=re.M)[1:]:
        command, _, printed = part.partition("\n")
        done = run(*shlex.split(command))
        assert (done.code, done.out) == (0, printed), done.err
