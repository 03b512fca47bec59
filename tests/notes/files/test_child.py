"""PDF and Word documents: read in a process of their own, whatever strangers put into them."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import datetime

import pytest

from memchat.errors import InputError
from memchat.notes import files
from tests.support import documents

pytest.importorskip("pypdfium2", reason="the extra memchat[files] is not installed")
pytest.importorskip("docx", reason="the extra memchat[files] is not installed")


def refused(name: str, data: bytes) -> str:
    with pytest.raises(InputError) as error:
        files.read(name, data)
    return str(error.value)


def test_the_pages_of_a_pdf_are_one_text() -> None:
    pages = ["Budget plan\nIt is infor-\nmation that goes", "on over the page.", "The next."]

    found = files.read("plan.pdf", documents.pdf(pages, title="Apollo"))

    assert found.title == "Apollo"
    assert found.text == (
        "Budget plan\nIt is information that goes\non over the page.\n\nThe next."
    )


def test_a_word_document_keeps_its_headings_lists_and_tables() -> None:
    document = documents.word(
        ("Title", "Apollo"),
        ("Heading 2", "Budget"),
        ("Normal", "It is 5,000 euros."),
        ("List Bullet", "rent"),
        ("List Number", "travel"),
        rows=[["year", "sum"], ["2025", "9"]],
    )
    changed = documents.with_body(
        document,
        b"<w:p><w:ins><w:r><w:t>Put in.</w:t></w:r></w:ins>"
        b"<w:del><w:r><w:delText>Left out.</w:delText></w:r></w:del></w:p>",
    )

    found = files.read("plan.docx", changed)

    assert found.title == "Apollo"
    assert found.text == (
        "Put in.\n\n# Apollo\n\n## Budget\n\nIt is 5,000 euros.\n\n- rent\n- travel\n\n"
        "| year | sum |\n| 2025 | 9 |"
    )


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (
            "<w:p><w:moveFrom><w:r><w:t>Moved.</w:t></w:r></w:moveFrom></w:p>"
            "<w:p><w:moveTo><w:r><w:t>Moved.</w:t></w:r></w:moveTo></w:p>",
            "Moved.",
        ),
        (
            '<w:p><w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/'
            'markup-compatibility/2006"><mc:Choice><w:txbxContent><w:p><w:r><w:t>Box.</w:t></w:r>'
            "</w:p></w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent><w:p><w:r><w:t>Box."
            "</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r>"
            "<w:r><w:t>Below.</w:t></w:r></w:p>",
            "Box.\nBelow.",
        ),
        (
            "<w:sdt><w:sdtContent><w:p><w:r><w:t>Controlled.</w:t></w:r></w:p></w:sdtContent>"
            "</w:sdt>",
            "Controlled.",
        ),
        (
            "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr><w:p><w:ins><w:r><w:t>Put"
            "</w:t></w:r></w:ins></w:p><w:p><w:r><w:t>in</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p>"
            "<w:r><w:t>deep</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>",
            "| Put in deep |",
        ),
    ],
    ids=["moved", "text box", "content control", "table"],
)
def test_each_word_of_a_word_document_is_read_once(xml: str, words: str) -> None:
    document = documents.with_body(documents.word(), xml.encode())

    assert files.read("a.docx", document).text == words


def test_text_behind_an_entity_is_kept() -> None:
    document = documents.with_part(
        documents.with_body(
            documents.word(), b"<w:p><w:r><w:t>Before &x; after.</w:t></w:r></w:p>"
        ),
        "word/document.xml",
        lambda xml: xml.replace(b"?>", b'?><!DOCTYPE d [<!ENTITY x "it">]>', 1),
    )

    assert files.read("a.docx", document).text == "Before &x; after."


def test_a_word_document_without_properties_has_no_title() -> None:
    document = documents.with_part(
        documents.word(("Normal", "Words.")),
        "_rels/.rels",
        lambda xml: re.sub(rb"<Relationship [^>]*core-properties[^>]*>", b"", xml),
    )

    assert files.read("a.docx", document).title is None


def test_what_cannot_be_read_is_refused_with_the_reason() -> None:
    old_word = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)

    assert "no text" in refused("scan.pdf", documents.pdf([""]))
    assert "encrypted" in refused("a.pdf", documents.pdf(["Words."], extra=documents.ENCRYPTED))
    assert "damaged" in refused("a.pdf", b"%PDF-1.7 rubbish")
    assert "before 2007" in refused("a.docx", old_word)
    assert "damaged" in refused("a.docx", documents.word(("Normal", "Words."))[:-300])


def test_a_bomb_costs_one_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = documents.with_body(documents.word(), b"<w:p/>" * 9_000_000)

    assert "too large" in refused("bomb.docx", bomb)
    monkeypatch.setattr(files, "SECONDS", 0.01)
    assert "takes longer" in refused("slow.pdf", documents.pdf(["Words."]))
    assert "takes longer" in refused("slow.html", b"<!--" * 100_000)


def test_one_process_reads_file_after_file_until_one_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[None] = []
    begin = files._begun

    def counted() -> subprocess.Popen[bytes]:
        begun.append(None)
        return begin()

    monkeypatch.setattr(files, "_begun", counted)
    files.end()
    long = "A sentence of a long text.\n" * 20_000

    assert files.read("a.html", b"<p>One").text == "One"
    assert files.read("a.md", f"---\ndate: 2024-05-01\n---\n{long}".encode()).written_at == (
        datetime(2024, 5, 1)
    )
    assert "damaged" in refused("a.docx", b"PK rubbish")
    assert files.read("a.txt", long.encode()).text == long
    assert files.read("talk.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\nHi.").text == "Hi."
    assert "save it as" in refused("a.org", bytes(300_000))

    assert len(begun) == 3  # what ends the one that waits is tried once more in a new one


def test_a_process_that_was_ended_meanwhile_is_begun_anew() -> None:
    files.read("a.html", b"<p>One")
    assert files._idle is not None
    files._idle.kill()

    assert files.read("a.html", b"<p>Two").text == "Two"


def test_a_process_for_which_no_file_comes_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", f"import {files.__name__} as c; c.IDLE_SECONDS = 0; c.main()"],
        stdin=subprocess.PIPE,
        check=False,
    )
    assert ended.returncode == 0
