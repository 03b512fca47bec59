"""The files of the pages, which Streamlit runs as scripts."""

from __future__ import annotations

import ast

import pytest

from tests.support.paths import ROOT

PAGES = sorted((ROOT / "ui" / "views").glob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_holds_a_text_that_streamlit_would_draw(page) -> None:
    behind_the_docstring = ast.parse(page.read_text(encoding="utf-8")).body[1:]
    bare = [part for part in behind_the_docstring if isinstance(part, ast.Expr)]
    assert [part.lineno for part in bare if isinstance(part.value, ast.Constant)] == []
