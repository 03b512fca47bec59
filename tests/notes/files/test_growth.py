"""Reading and cutting take time in proportion to the text, whatever stands in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import process_time

import pytest

from memchat import MemChat
from memchat.errors import InputError
from memchat.notes import files
from memchat.notes.chunking import DOCUMENT, MEMO, Profile, chunks, most_tokens
from tests.support.mcp import call
from tests.support.slow import slow_but

SIZE = 12_000
MEGABYTE = 1_000_000
PROSE = (
    "On Monday we met Carla in the harbour to speak about the boat, which needs a new mast by May. "
    "She thinks that 4,500 euros will do; I am not so sure, since wood has become dear.\n\n"
)
TABLES = [
    "12;5571;83;20417;9;",
    'a,code,4471,"x",12.5,2024-01-02\n',
    '{"pin": 12},',
    "http://a.b/c ",
    "ก",
]
FORMATS = {
    "text": (".txt", ""),
    "Markdown": (".md", ""),
    "front matter": (".md", "---\n"),
    "subtitles": (".vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n"),
    "a speaker": (".vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n<v"),
    "web page": (".html", ""),
    "title": (".html", "<title>"),
    "hidden": (".html", "<div hidden><!-- >"),
}
REPEATED = [
    *" \n`~#-=*_|<>&.!?(\"'a1é。",
    "a ", "a\n", "a. ", "a\n=\n", "<v ", "<a ", "</", "<!--", "<? ", "<![x", "&#", "<p>", "<div>",
    "<h1>", "<object>", "e\u0301", "\u2028", "00:01.000 --> 00:02.000\na\n",
]  # fmt: skip


def grows_in_proportion(work: Callable[[str], object], unit: str) -> bool:
    """Whether four times the text takes far less than sixteen times as long, measured again where
    a busy machine may have been in the way."""
    return any(_less_than_nine_times(work, unit) for _ in range(3))


def _less_than_nine_times(work: Callable[[str], object], unit: str) -> bool:
    spent = []
    for size in (SIZE, 4 * SIZE):
        began = process_time()
        work(unit * (size // len(unit)) + "x")
        spent.append(process_time() - began)
    return spent[1] < 9 * max(spent[0], 0.01)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_one_thing_again_and_again_is_read_in_time_in_proportion(format: str) -> None:
    ending, before = FORMATS[format]

    def read(text: str) -> None:
        with suppress(InputError):  # what is no cue
            files.read_here(ending, (before + text + "</div>").encode())

    assert [unit for unit in REPEATED if not grows_in_proportion(read, unit)] == []


@pytest.mark.parametrize("profile", slow_but([MEMO], [MEMO, DOCUMENT]))
def test_a_note_of_one_thing_again_and_again_is_cut_in_time_in_proportion(profile: Profile) -> None:
    def cut(text: str) -> object:
        return chunks(text, profile, most_tokens)

    assert [unit for unit in REPEATED if not grows_in_proportion(cut, unit)] == []


def added(mc: MemChat, content: str) -> None:
    mc.user("ana").notes.add(content, wait=False)


def indexed(mc: MemChat, content: str) -> None:
    memo = {"memoId": "m", "transcript": content, "createdAt": "2026-05-01"}
    assert not call(mc, mc.user("ana"), "index_memo", **memo).is_error


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "part"), [(added, 0), (indexed, 1)])
def test_a_note_of_a_megabyte_of_anything_is_kept_with_the_work_of_a_few_of_prose(
    mc: MemChat, keep: Callable[[MemChat, str], None], part: int
) -> None:
    # As processor time beside that of prose: seconds would tell of the machine.
    def spent(unit: str) -> float:
        text = (
            (unit * (MEGABYTE // len(unit.encode()) + 1))
            .encode()[:MEGABYTE]
            .decode("utf-8", "ignore")
        )
        began = process_time()
        keep(mc, text)
        return process_time() - began

    keep(mc, "To begin with, what is loaded at the first note.")
    prose = spent(PROSE)
    slow = {unit: spent(unit) / prose for unit in (*REPEATED, *TABLES)[part::2]}
    # What holds 80,000 secrets takes longer than what holds none, and was 11 times the work.
    assert {unit: n for unit, n in slow.items() if n > (5 if "pin" in unit else 3)} == {}


def test_a_cue_whose_hours_or_references_are_no_numbers_is_read() -> None:
    digits = "9" * 5_000
    subtitles = f"WEBVTT\n\n{digits}:00:01.000 --> 00:02.000\nNo.\n\n00:01.000 --> 00:02.000\n"

    found = files.read_here(".vtt", f"{subtitles}Yes &#{digits}; sir.".encode())
    page = files.read_here(".html", f"<p>Yes &#{digits}; sir.<![x[Sure]]>".encode())

    assert found.text == "Yes \ufffd sir."
    assert page.text.startswith("Yes \ufffd sir.")
