"""The commands, options, settings and make targets that the pages name exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from memchat.cli import app
from memchat.config.settings import VARIABLES
from tests.support import pages
from tests.support.paths import ROOT

COMMAND = re.compile(r"memchat ((?:-\S+ |--env-file \S+ )*[a-z][a-z-]+[^\n#]*)")
OTHER_VARIABLES = {"MEMCHAT_DEBUG", "MEMCHAT_HOME", "MEMCHAT_USER"}
ROOT_COMMAND: Any = typer.main.get_command(app)


def unknown(line: str) -> str | None:
    """What of a command line, without the word memchat, the program does not know."""
    words = re.sub(r"--env-file \S+", "", line).split()
    while words and words[0].startswith("-"):
        words.pop(0)
    command, context = ROOT_COMMAND, click.Context(ROOT_COMMAND)
    while hasattr(command, "commands") and words and re.fullmatch(r"[a-z][a-z-]*,?", words[0]):
        name = words.pop(0).rstrip(",")
        command = command.get_command(context, name)
        if command is None:
            return name
    options = {flag for parameter in command.params for flag in parameter.opts} | {"--help", "-h"}
    for word in words:
        flag = re.match(r"--[a-z][a-z-]+", word.strip("[]().,;"))
        if flag and flag[0] not in options:
            return flag[0]
    return None


@pytest.mark.parametrize("page", pages.pages(), ids=pages.name)
def test_commands_and_options_exist(page: Path) -> None:
    for line in pages.code_lines(page.read_text("utf-8")):
        typed = COMMAND.match(line)
        assert typed is None or unknown(typed[1]) is None, line


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("memories lost", "lost"),
        ("remember this", "remember"),
        ("chat --offline", "--offline"),
        ("--env-file .env chat", None),
        ("-v --env-file .env talk", "talk"),
        ("memories update 3 --value tea", None),
    ],
)
def test_a_command_or_option_that_does_not_exist_is_noticed(line: str, named: str | None) -> None:
    assert unknown(line) == named


@pytest.mark.parametrize("page", pages.pages(), ids=pages.name)
def test_settings_and_make_targets_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    known = {*VARIABLES.values(), *OTHER_VARIABLES}
    assert set(re.findall(r"\bMEMCHAT_[A-Z_]+\b", text)) <= known
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for line in pages.code_lines(text):
        named = re.match(r"make ([a-z-]+)\b", line)
        assert named is None or named[1] in targets, line
