"""The example of docs/workflows.md, as a person would try it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.support.cli import Run
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "workflows.md").read_text("utf-8")


def test_the_example_is_checked_added_and_run_by_its_commands(run: Run, tmp_path: Path) -> None:
    (definition,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "topic.json").write_text(definition, "utf-8")
    assert run("notes", "add", "--text", "The garden fence is to be green.").code == 0
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 6
    for line in lines:
        done = run(*shlex.split(line)[1:])
        assert done.code == 0, f"{line}: {done.err}"
    assert "The garden fence is to be green." in done.out


def test_each_workflow_that_comes_with_memchat_is_in_the_table(run: Run) -> None:
    there = {row["slug"] for row in run("workflow", "list", "--json").json}
    assert {*re.findall(r"^\| `([a-z-]+-[a-z-]+)`", PAGE, re.M)} == there
