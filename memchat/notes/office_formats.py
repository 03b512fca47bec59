"""Reading PDF, by PDFium, and Word documents, by python-docx."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import docx
import pypdfium2  # type: ignore[import-untyped]
from docx.document import Document as WordDocument
from docx.opc.constants import RELATIONSHIP_TYPE as RT
from docx.oxml.ns import qn
from docx.oxml.xmlchemy import BaseOxmlElement
from docx.text.paragraph import Paragraph
from pypdfium2 import raw

from memchat.errors import InputError
from memchat.notes.text_formats import Document

PDF_ENCRYPTED = "it is encrypted; save it without its password"
SCANNED = "it holds pictures of pages and no text; run it through text recognition (OCR) first"
_HYPHEN = re.compile(r"(?<=[^\W\d_])[\x02\ufffe\u00ad]\n?|(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
"""A word that was divided at the end of a line; PDFium marks most with a control character."""
_SENTENCE_END = re.compile(r"[.!?…:。！？।]\W*\Z")
_LAST = 20
"""Characters in which that is looked for: all of the pages before would be searched for each."""


def pdf(data: bytes) -> Document:
    """The text of a PDF's pages. Raises InputError for one that is encrypted or has no text;
    PdfiumError for one that is damaged."""
    try:
        opened = pypdfium2.PdfDocument(data)
        pages = [page.get_textpage().get_text_bounded() for page in opened]
        title = opened.get_metadata_value("Title")
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
            raise InputError(PDF_ENCRYPTED) from error
        raise
    text = _joined(pages)
    if not text:
        raise InputError(SCANNED)
    return Document(text, title)


def _joined(pages: list[str]) -> str:
    """The pages as one text. A sentence that goes on over a page is not torn apart."""
    text = ""
    for page in pages:
        lines = (line.rstrip() for line in page.replace("\r\n", "\n").splitlines())
        words = _HYPHEN.sub("", "\n".join(lines)).strip()
        if words:
            between = "\n\n" if _SENTENCE_END.search(text, max(0, len(text) - _LAST)) else "\n"
            text += f"{between if text else ''}{words}"
    return text


WORD_ENCRYPTED = "it is encrypted, or of Word before 2007; save it as DOCX without a password"
BOMB = "it unpacks to far more than a document holds"
MOST_UNPACKED = 300_000_000
"""Bytes, pictures included."""
_OLD_WORD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Begins documents of Word before 2007, and encrypted ones."""
_MARKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_TEXT, _PARAGRAPH, _TABLE = qn("w:t"), qn("w:p"), qn("w:tbl")
_AROUND = {qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml")}
"""Content controls may stand around paragraphs, tables, rows and cells."""
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_LEFT_OUT = {qn("w:pPr"), qn("w:del"), qn("w:moveFrom"), f"{_COMPATIBILITY}Fallback"}
"""Properties, what was deleted or is moved elsewhere, and the second form of a text box."""


def word(data: bytes) -> Document:
    """The paragraphs and tables of a Word document, its headings and lists as in Markdown. Raises
    InputError for one that is encrypted or unpacks to too much; what the libraries raise for one
    that is damaged passes."""
    if data.startswith(_OLD_WORD):
        raise InputError(WORD_ENCRYPTED)
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        if sum(part.file_size for part in package.infolist()) > MOST_UNPACKED:
            raise InputError(BOMB)
    document = docx.Document(io.BytesIO(data))
    text = "\n\n".join(_blocks(document))
    # For a document without properties python-docx makes some, with a title of its own.
    has_properties = any(
        rel.reltype == RT.CORE_PROPERTIES for rel in document.part.package.rels.values()
    )
    title = document.core_properties.title if has_properties else None
    return Document(text, title or _first_heading(text))


def _blocks(document: WordDocument) -> Iterator[str]:
    items: list[str] = []
    for block in _inner(document.element.body, _PARAGRAPH, _TABLE):
        is_table = block.tag == _TABLE
        text = _table(block) if is_table else _paragraph(Paragraph(block, document))
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


def _inner(element: BaseOxmlElement, *tags: str) -> Iterator[Any]:
    """The elements of these names that are directly in another, or in a content control there."""
    for inner in element:
        if inner.tag in tags:
            yield inner
        elif inner.tag in _AROUND:
            yield from _inner(inner, *tags)


def _table(table: BaseOxmlElement) -> str:
    rows = (
        [" ".join(_text(cell).split()) for cell in _inner(row, qn("w:tc"))]
        for row in _inner(table, qn("w:tr"))
    )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows if any(cells))


def _paragraph(paragraph: Paragraph) -> str:
    text = _text(paragraph._p).strip()
    style = (paragraph.style.name if paragraph.style is not None else None) or ""
    name, _, level = style.rpartition(" ")
    if not text:
        return ""
    if style == "Title":
        return f"# {text}"
    if name == "Heading" and level.isdigit():
        return f"{'#' * min(int(level), 6)} {text}"
    return f"- {text}" if style.startswith("List") else text


def _text(element: BaseOxmlElement) -> str:
    """The text as it stands: with what was inserted and links, without what was deleted. Each
    paragraph of a cell or a text box is a line."""
    return "".join(_pieces(element))


def _pieces(element: BaseOxmlElement) -> Iterator[str]:
    for node in element:
        if node.tag == _TEXT:
            # Not its text alone, which ends at the first entity. An entity stays as its name.
            yield "".join(node.itertext())
        elif node.tag in _MARKS:
            yield _MARKS[node.tag]
        elif node.tag not in _LEFT_OUT:
            yield from _pieces(node)
            if node.tag == _PARAGRAPH:
                yield "\n"


def _first_heading(text: str) -> str | None:
    first = next((line for line in text.splitlines() if line.startswith("#")), "")
    return first.lstrip("# ") or None


READERS = {".pdf": pdf, ".docx": word}
