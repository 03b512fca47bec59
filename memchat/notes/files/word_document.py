"""Word documents (DOCX), read by python-docx."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import docx
from docx.document import Document as WordDocument
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from memchat.errors import InputError
from memchat.notes.files.document import Document

ENCRYPTED = "it is encrypted, or of Word before 2007; save it as DOCX without a password"
BOMB = "it unpacks to far more than a document holds"
MOST_UNPACKED = 300_000_000
"""Bytes, pictures included."""
_OLD_WORD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Begins documents of Word before 2007, and encrypted ones."""
_MARKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_TEXT = qn("w:t")


def read(data: bytes) -> Document:
    """The paragraphs and tables of a Word document, its headings and lists as in Markdown. Raises
    InputError for one that is encrypted or unpacks to too much; what the libraries raise for one
    that is damaged passes."""
    if data.startswith(_OLD_WORD):
        raise InputError(ENCRYPTED)
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        if sum(part.file_size for part in package.infolist()) > MOST_UNPACKED:
            raise InputError(BOMB)
    document = docx.Document(io.BytesIO(data))
    text = "\n\n".join(_blocks(document))
    return Document(text, document.core_properties.title or _first_heading(text))


def _blocks(document: WordDocument) -> Iterator[str]:
    items: list[str] = []
    for block in document.iter_inner_content():
        text = _table(block) if isinstance(block, Table) else _paragraph(block)
        if text.startswith("- "):
            items.append(text)
            continue
        if items:
            yield "\n".join(items)
            items = []
        if text:
            yield text
    if items:
        yield "\n".join(items)


def _table(table: Table) -> str:
    rows = ([" ".join(cell.text.split()) for cell in row.cells] for row in table.rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows if any(cells))


def _paragraph(paragraph: Paragraph) -> str:
    text = _text(paragraph).strip()
    style = (paragraph.style.name if paragraph.style is not None else None) or ""
    name, _, level = style.rpartition(" ")
    if not text:
        return ""
    if style == "Title":
        return f"# {text}"
    if name == "Heading" and level.isdigit():
        return f"{'#' * min(int(level), 6)} {text}"
    return f"- {text}" if style.startswith("List") else text


def _text(paragraph: Paragraph) -> str:
    """The text as it stands: with what was inserted and links, without what was deleted."""
    return "".join(
        (node.text or "") if node.tag == _TEXT else _MARKS.get(node.tag, "")
        for node in paragraph._p.iter()
    )


def _first_heading(text: str) -> str | None:
    first = next((line for line in text.splitlines() if line.startswith("#")), "")
    return first.lstrip("# ") or None
