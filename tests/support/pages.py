"""The Markdown pages of the project, and what of them is code."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.paths import ROOT

FOLDERS = (".", "docs", "benchmarks", "data", "examples", "tests/data")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def pages() -> list[Path]:
    """Every page that people read; prompts are not among them."""
    return sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))


def name(page: Path) -> str:
    """Its path from the checkout's root."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of this language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def code_lines(text: str) -> list[str]:
    """Every code span, and every line of the fenced blocks of shell commands."""
    typed = "".join(blocks(text, "(?:sh)?")).splitlines()
    spans = re.findall(r"`([^`]+)`", FENCE.sub("", text))
    return [line.strip().removeprefix("$ ") for line in (*typed, *spans)]
