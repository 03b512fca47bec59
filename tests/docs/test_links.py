"""Every link of the pages leads to a file that is there, and to a heading in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import pages

LINK = re.compile(r"\]\(([^()\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", pages.FENCE.sub("", page.read_text("utf-8")), re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        again = sum(1 for anchor in found if re.fullmatch(rf"{re.escape(plain)}(-\d+)?", anchor))
        found.add(f"{plain}-{again}" if again else plain)
    return found


@pytest.mark.parametrize("page", pages.pages(), ids=pages.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = re.sub(r"`[^`]+`", "", pages.FENCE.sub("", page.read_text("utf-8")))
    for link in LINK.findall(text):
        if "://" in link:
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if heading:
            assert heading in anchors(target), link


def test_each_page_in_docs_is_linked_from_the_map_or_the_readme() -> None:
    root = pages.ROOT
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in (root / "README.md", root / "docs" / "architecture.md")
        for link in LINK.findall(page.read_text("utf-8"))
    }
    assert {page.resolve() for page in (root / "docs").glob("*.md")} <= linked


@pytest.mark.parametrize("page", pages.pages(), ids=pages.name)
def test_files_and_folders_of_the_checkout_that_are_named_exist(page: Path) -> None:
    tops = {path.name for path in pages.ROOT.iterdir() if path.is_dir()}
    for span in re.findall(r"`([\w.-]+/[\w./-]*)`", pages.FENCE.sub("", page.read_text("utf-8"))):
        if span.split("/")[0] in tops:
            assert (pages.ROOT / span).exists(), span
