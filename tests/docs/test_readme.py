"""The README's code, figures and length. Its transcript is checked in tests/cli/test_demo.py."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import pages
from tests.support.cli import Run
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")
FIGURES = README.partition("## How well it works\n")[2].partition("\n## ")[0]
ROWS = [line for line in FIGURES.splitlines() if "**" in line]


def section(heading: str) -> str:
    """The section of benchmarks/README.md with this anchor."""
    text = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title = part.partition("\n")[0].lower()
        if re.sub(r"[^\w\- ]", "", title).replace(" ", "-") == heading:
            return part
    raise AssertionError(heading)


def test_the_code_runs_and_prints_what_stands_below_it(tmp_path: Path) -> None:
    (code,) = pages.blocks(README, "python")
    env = {"MEMCHAT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == pages.blocks(README, "text")[1]


def test_the_commands_print_what_stands_below_them(run: Run) -> None:
    (transcript,) = pages.blocks(README, "console")
    for part in re.split(r"^\$ memchat ", transcript, flags=re.M)[1:]:
        command, _, printed = part.partition("\n")
        done = run(*shlex.split(command))
        assert (done.code, done.out) == (0, printed), done.err


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_each_figure_stands_in_the_benchmark_that_the_row_names(row: str) -> None:
    (heading,) = re.findall(r"\(benchmarks/README\.md#([^)]+)\)", row)
    measured = section(heading)
    for figure in re.findall(r"\*\*([^*]+)\*\*", row):
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)", measured), figure


def test_there_are_figures_of_quality_and_speed() -> None:
    assert len(ROWS) >= 5
    assert "ms" in FIGURES


def test_it_is_short_enough_to_be_read() -> None:
    assert len(README.splitlines()) <= 282
