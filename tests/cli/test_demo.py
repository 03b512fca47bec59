"""``memchat demo``: what a newcomer sees, and that it is true."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat import demo, disk
from memchat.config import load
from tests.support import pages
from tests.support.paths import ROOT
from tests.support.whole_routes import needs_weights


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The demo's output, and the store it kept because it was named."""
    store = tmp_path_factory.mktemp("demo") / "store"
    out = io.StringIO()
    assert demo.run(store, out, settings=load({})) == 0
    yield out.getvalue(), store


def test_it_fits_on_a_screen_in_plain_text(shown: tuple[str, Path]) -> None:
    lines = shown[0].splitlines()
    assert len(lines) <= 60
    assert max(len(line) for line in lines) <= demo.WIDTH
    assert all(line == line.rstrip() for line in lines)
    assert "\033" not in shown[0]


def test_it_says_that_a_stand_in_answers(shown: tuple[str, Path]) -> None:
    assert "No provider key is set: an offline stand-in answers" in shown[0]


@needs_weights
def test_the_readme_shows_a_part_of_it_as_it_is(shown: tuple[str, Path]) -> None:
    transcript = pages.blocks((ROOT / "README.md").read_text("utf-8"), "text")[0]
    paragraphs = transcript.rstrip("\n").split("\n\n")
    assert paragraphs[0].startswith("1. A conversation")
    printed = shown[0].split("\n\n")
    first = printed.index(paragraphs[0])
    assert printed[first : first + len(paragraphs)] == paragraphs


def test_every_line_of_the_person_is_shown_and_answered(shown: tuple[str, Path]) -> None:
    for story in demo.conversations():
        for text in story.turns:
            assert f"     you  {text}\n memchat  " in shown[0]


def test_what_was_learned_stands_beside_the_words_that_prove_it(shown: tuple[str, Path]) -> None:
    lines = [" ".join(line.split()) for line in shown[0].splitlines()]
    assert "2 [profile] city: Leipzig “I live in Leipzig” 7 Sep 2026" in lines
    assert "4 [profile] diet: vegetarian “I'm vegetarian” 7 Sep 2026" in lines


def test_the_second_conversation_uses_and_changes_what_the_first_taught(
    shown: tuple[str, Path],
) -> None:
    second = shown[0].split("\n2. ")[1]
    assert "From what you told me: you are vegetarian" in second
    assert "sent  all 6 facts" in second
    assert "found: catalogue_deadline: 15 October (score 0." in second
    assert "city: Leipzig → Porto" in second
    assert "catalogue_deadline: 15 October → 22 October, until 22 Oct 2026" in second


def test_what_is_forgotten_is_gone_from_list_recall_and_files(shown: tuple[str, Path]) -> None:
    output, store = shown
    rows = [line.split()[:4] for line in output.split("\n4. ")[1].splitlines()]
    assert ["list", "once", "gone"] in rows
    assert ["recall", "once", "gone"] in rows
    (files,) = [row for row in rows if row[:1] == ["files"]]
    assert int(files[1]) > 0
    assert files[2:] == ["times", "gone"]
    assert demo.occurrences(store, ["harbour", "museum"]) == 0
    assert demo.occurrences(store, ["bookbinder"]) > 0


def test_the_user_s_own_store_is_not_touched_and_the_demo_s_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "mine"))
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(disk, "ROOT", tmp_path)  # as installed, outside a checkout
    settings = load({"MEMCHAT_EMBED_MODEL": "none"})
    assert settings.home.is_relative_to(tmp_path / "mine")
    out = Terminal()
    assert demo.run(out=out, settings=settings) == 0
    assert not (tmp_path / "mine").exists()
    assert "Yours will lie in ~/.local/share/memchat;" in out.getvalue()
    assert "memchat chat " in out.getvalue() and "make chat" not in out.getvalue()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert "\033[1m1. A conversation" in out.getvalue()


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    demo.Screen(out).heading("Now you")
    assert out.getvalue() == "\nNow you\n"


@given(st.lists(st.text(alphabet="ab é日\n", max_size=12), max_size=60))
def test_pieces_of_any_size_come_out_as_the_same_words(pieces: list[str]) -> None:
    out = io.StringIO()
    demo.Screen(out).stream("memchat", pieces)
    assert out.getvalue().split() == ["memchat", *"".join(pieces).split()]
    longest = max((len(word) for word in out.getvalue().split()), default=0)
    assert max(map(len, out.getvalue().splitlines())) <= max(demo.WIDTH, longest + 10)


def test_a_reply_cannot_drive_the_terminal() -> None:
    out = io.StringIO()
    demo.Screen(out).stream("memchat", ["\033[2J gone \x07"])
    assert "\033" not in out.getvalue()
    assert "\x07" not in out.getvalue()


def test_the_conversations_are_told_in_order_with_aware_times() -> None:
    stories = demo.conversations()
    assert [story.at for story in stories] == sorted(story.at for story in stories)
    assert all(story.at.tzinfo is not None and story.turns for story in stories)
