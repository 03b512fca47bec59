"""Prompts: declared variables, a person's own copy, and an error that names what does not fit."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from memchat.errors import ConfigError
from memchat.language.calendar import coded_days
from memchat.prompts import Prompts
from tests.support.paths import ROOT

SHIPPED = sorted(p.stem for p in (ROOT / "prompts").glob("*.md"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_prompt_declares_exactly_the_variables_it_uses(name: str) -> None:
    body = Prompts().text(name)
    used = {m[1] or m[2] for m in re.finditer(r"\$(?:(\w+)|\{(\w+)\})", body.replace("$$", ""))}
    filled = Prompts().render(name, **{variable: f"<{variable}>" for variable in used})
    assert all(f"<{variable}>" in filled for variable in used)
    assert not re.search(r"\$\w", filled)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_missing_and_an_unknown_variable_are_named(name: str) -> None:
    with pytest.raises(ConfigError, match="nobody_asked"):
        Prompts().render(name, nobody_asked="x")


def test_a_copy_in_the_data_folder_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "chat.md").write_text("variables: memories\nBe brief. $memories costs $$1\n")
    assert Prompts(tmp_path).render("chat", memories="Tea") == "Be brief. Tea costs $1\n"
    assert Prompts(tmp_path).text("extract") == Prompts().text("extract")


def test_what_is_filled_in_is_never_read_as_a_template(tmp_path: Path) -> None:
    (tmp_path / "chat.md").write_text("variables: memories\n$memories\n")
    evil = "$memories ${memories} $$ %s {0} \\1"
    assert Prompts(tmp_path).render("chat", memories=evil) == evil + "\n"


def test_a_prompt_of_any_language_is_read_as_utf_8(tmp_path: Path) -> None:
    (tmp_path / "chat.md").write_text("variables: memories\nПривет 👋 $memories\n", "utf-8")
    assert "Привет 👋" in Prompts(tmp_path).render("chat", memories="")


@pytest.mark.parametrize(
    "text", ["Be nice.\n", "", "variable: x\n$x", "variables memories\n$memories"]
)
def test_a_copy_without_its_first_line_is_refused_by_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / "chat.md").write_text(text)
    with pytest.raises(ConfigError, match=r"chat\.md"):
        Prompts(tmp_path).render("chat", memories="")


@pytest.mark.parametrize("body", ["$other", "${memories", "cost: $", "$memories $1"])
def test_a_copy_that_uses_what_it_does_not_declare_is_refused(tmp_path: Path, body: str) -> None:
    (tmp_path / "chat.md").write_text(f"variables: memories\n{body}\n")
    with pytest.raises(ConfigError, match="chat"):
        Prompts(tmp_path).render("chat", memories="")


def test_every_date_code_that_the_prompt_names_is_read() -> None:
    text = " ".join(Prompts().text("extract").split())
    listed = text.partition("the same as a code: ")[2].partition("; before:CODE")[0]
    plain, _, also = listed.partition(" (also ")
    codes = plain.replace("MM-DD", "05-14").replace("YYYY-05-14", "2027-05-14").split(", ")
    codes += [f"{end}:{unit.strip(' )')}" for end in ("next", "end") for unit in also.split(",")]
    assert len(codes) > 18
    for code in (*codes, *(f"before:{code}" for code in codes)):
        assert coded_days(code, date(2026, 11, 20))


def test_an_unknown_prompt_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="install memchat again"):
        Prompts().text("nothing_like_it")
