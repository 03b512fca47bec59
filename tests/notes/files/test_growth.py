"""Reading and cutting take time in proportion to the text, whatever stands in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import process_time

import pytest

from memchat.errors import InputError
from memchat.notes import files
from memchat.notes.chunking import DOCUMENT, MEMO, Profile, chunks, most_tokens

SIZE = 12_000
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
    """Whether four times the text takes far less than sixteen times as long."""
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


@pytest.mark.parametrize("profile", [MEMO, DOCUMENT])
def test_a_note_of_one_thing_again_and_again_is_cut_in_time_in_proportion(profile: Profile) -> None:
    def cut(text: str) -> object:
        return chunks(text, profile, most_tokens)

    assert [unit for unit in REPEATED if not grows_in_proportion(cut, unit)] == []


def test_a_cue_whose_hours_or_references_are_no_numbers_is_read() -> None:
    digits = "9" * 5_000
    subtitles = f"WEBVTT\n\n{digits}:00:01.000 --> 00:02.000\nNo.\n\n00:01.000 --> 00:02.000\n"

    found = files.read_here(".vtt", f"{subtitles}Yes &#{digits}; sir.".encode())
    page = files.read_here(".html", f"<p>Yes &#{digits}; sir.<![x[Sure]]>".encode())

    assert found.text == "Yes \ufffd sir."
    assert page.text.startswith("Yes \ufffd sir.")
