"""What is in a file, by its format: the words as they are read, and nothing else."""

from __future__ import annotations

import codecs
from datetime import datetime

import pytest

from memchat.errors import ConfigError, InputError
from memchat.notes import files

PAGE = """<!DOCTYPE html><html><head><meta charset="iso-8859-2"><title>Plans &amp; costs</title>
<style>p { color: red }</style><script>document.write("<p>never</p>");</script></head>
<body><div hidden>Unseen<div>either</div></div><h1>The <em>budget</em></h1>
<p>It is   <b>5</b>,000&nbsp;euros, says Łukasz.<br>More
to come.<ul><li><p>rent</p></li><li>travel</li></ul>
<table><tr><th>year<th>sum<tr><td>2025<td>9</table>
<pre>def cost():
    return 9
</pre></body></html>"""
VTT = """WEBVTT - A talk

NOTE nobody says this

1
00:00:01.000 --> 00:00:02.000 align:start
<v Ann>Hello <i>Bob</i>, how

2
00:00:02.100 --> 00:00:03.000
<v Ann>are you?

00:03.000 --> 00:04.000
<v Bob>Fine &amp; well.
So we go on

00:10.000 --> 00:11.000
with it.

00:20.000 --> 00:21.000
A new thought.
"""
SRT = """1
00:00:01,000 --> 00:00:02,500
{\\an8}- Hi there.
- Hello!

2
00:00:02,600 --> 00:00:04,000
Hello!

3
00:00:04,100 --> 00:00:05,000
JOHN: We start if 3 < 4.
"""


def text(name: str, given: str, encoding: str = "utf-8") -> str:
    return files.read(name, given.encode(encoding)).text


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("utf-8", "Zażółć gęślą jaźń 🙂"),
        ("utf-8-sig", "Zażółć"),
        ("utf-16", "Zażółć"),
        ("utf-32", "Zażółć"),
        ("cp1252", "Schöne Grüße aus München – wir treffen uns später in der Straße."),
        ("cp1252", "Ça va très bien, à bientôt."),
        ("cp1250", "Zażółć gęślą jaźń, proszę."),
        ("cp1251", "Привет, мы встречаемся завтра в Москве и обсудим бюджет."),
        ("shift_jis", "明日の会議で予算について話し合います。よろしくお願いします。"),
    ],
)
def test_a_text_is_read_in_whatever_encoding_it_was_written(encoding: str, words: str) -> None:
    assert text("a.txt", f"{words}\r\nEnd.", encoding) == f"{words}\nEnd."


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n" + bytes(40), bytes(range(1, 32)) * 9, codecs.BOM_UTF8 + b"\xff"]
)
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="no text that can be read"):
        files.read("a.txt", data)


def test_an_unknown_ending_is_tried_as_text() -> None:
    assert text("README", "Words.") == text("notes.org", "Words.") == "Words."
    for data in (b"{\\rtf1\\ansi Words.}", b"PK\3\4" + bytes(40)):
        with pytest.raises(InputError, match="save it as PDF, DOCX, HTML or plain text"):
            files.read("letter.odt", data)


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 3 * files.MB)
    with pytest.raises(InputError, match="it has 4 MB; at most 3 MB are read"):
        files.read("a.txt", b"a" * 4 * files.MB)


@pytest.mark.parametrize(
    ("given", "title", "kept"),
    [
        ("# Apollo #\n\nWords.", "Apollo", "# Apollo #\n\nWords."),
        ("Apollo\n======\nWords.", "Apollo", "Apollo\n======\nWords."),
        ("```\n# no heading\n```\n## Yes\n", "Yes", "```\n# no heading\n```\n## Yes\n"),
        ('---\ntitle: "A: b"\ntags: [x]\n---\n\n# Other\n', "A: b", "# Other\n"),
        ("---\nAn open rule.", None, "---\nAn open rule."),
    ],
)
def test_markdown_stays_as_written_and_gives_its_title(
    given: str, title: str | None, kept: str
) -> None:
    found = files.read("a.md", given.encode())

    assert (found.title, found.text) == (title, kept)


@pytest.mark.parametrize(
    ("date", "at"),
    [
        ("2024-05-01", datetime(2024, 5, 1)),
        ("'2024-05-01 10:30'", datetime(2024, 5, 1, 10, 30)),
        ("03/04/2024", None),  # which of them is the month cannot be told
    ],
)
def test_markdown_gives_its_date_where_it_can_be_told(date: str, at: datetime | None) -> None:
    assert files.read("a.md", f"---\nDate: {date}\n---\nWords.".encode()).written_at == at


@pytest.mark.parametrize("line", ["#  ", "# a #", "~~~", "---\ndate:     "])
def test_no_markdown_takes_long(line: str) -> None:
    files.read("a.md", (line * 100_000 + "x").encode())  # the limit of the test is its time


def test_a_web_page_is_read_as_it_is_seen() -> None:
    found = files.read("a.html", PAGE.encode("iso-8859-2"))

    assert found.title == "Plans & costs"
    assert found.text == (
        "# The budget\n\nIt is 5,000 euros, says Łukasz.\nMore to come.\n\n- rent\n\n- travel\n\n"
        "year sum\n2025 9\n\ndef cost():\n    return 9"
    )


@pytest.mark.parametrize(
    "page, read",
    [
        ("<p>One<object data=a.pdf>No viewer</object><p>Two", "One\n\nTwo"),
        ("<p>One<object data=a.pdf>No viewer<p>Two", "OneNo viewer\n\nTwo"),
        ("<p>One<select><option>A<p>Two<svg><p>Three", "One\nA\n\nTwo\n\nThree"),
        ("<div hidden>One<div>Two", ""),
        ("<script>One</p><p>Two", ""),
    ],
)
def test_an_element_that_does_not_end_hides_nothing_that_a_browser_shows(
    page: str, read: str
) -> None:
    found = files.read("a.html", f"<h1>Top</h1>{page}".encode()).text
    assert found == f"# Top\n\n{read}".strip()


def test_an_empty_heading_or_item_makes_nothing_of_what_follows() -> None:
    page = "<h2> </h2><p>One<h2><div>Two</div></h2><ul><li></li></ul><p>Three"
    found = files.read("a.html", page.encode())
    assert (found.text, found.title) == ("One\n\n## Two\n\nThree", "Two")


def test_subtitles_are_joined_to_sentences_and_keep_who_speaks() -> None:
    found = files.read("talk.vtt", VTT.encode())

    assert found.profile == "memo"
    assert found.text == (
        "Ann: Hello Bob, how are you?\n\nBob: Fine & well. So we go on with it.\n\nA new thought."
    )


def test_subtitles_say_a_line_that_rolls_on_once() -> None:
    assert text("talk.srt", SRT) == "Hi there.\n\nHello!\n\nJOHN: We start if 3 < 4."


def test_subtitles_in_which_nothing_is_said_are_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match="it holds no subtitles"):
        files.read("talk.vtt", b"WEBVTT")


def test_a_format_whose_package_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "PACKAGES", ("no_such_package",))
    with pytest.raises(ConfigError, match=r"run pip install 'memchat\[files\]'"):
        files.read("a.pdf", b"%PDF-1.7")
