"""PDF, read by PDFium."""

from __future__ import annotations

import re

import pypdfium2  # type: ignore[import-untyped]
from pypdfium2 import raw

from memchat.errors import InputError
from memchat.notes.files.document import Document

ENCRYPTED = "it is encrypted; save it without its password"
SCANNED = "it holds pictures of pages and no text; run it through text recognition (OCR) first"
_HYPHEN = re.compile(r"(?<=[^\W\d_])[\x02\ufffe\u00ad]\n?|(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
"""A word that was divided at the end of a line; PDFium marks most with a control character."""
_SENTENCE_END = re.compile(r"[.!?…:。！？।]\W*\Z")
_LAST = 20
"""Characters in which that is looked for: all of the pages before would be searched for each."""


def read(data: bytes) -> Document:
    """The text of a PDF's pages. Raises InputError for one that is encrypted or has no text;
    PdfiumError for one that is damaged."""
    try:
        pdf = pypdfium2.PdfDocument(data)
        pages = [page.get_textpage().get_text_bounded() for page in pdf]
        title = pdf.get_metadata_value("Title")
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
            raise InputError(ENCRYPTED) from error
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
