"""Plain text, in whatever encoding it was written."""

from __future__ import annotations

import codecs
import re

from memchat.errors import InputError
from memchat.notes.files.document import Document

NO_TEXT = "it holds no text that can be read"
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks; those of UTF-32 first, as one begins like that of UTF-16."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROL_SHARE = 0.01
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_NO_CHARACTER = re.compile("&#[0-9]{20,};?")
_WESTERN, _WESTERN_SHARE = "cp1252", 0.25
"""The encoding of Western European languages, which have less than this share beyond ASCII."""


def read(data: bytes) -> Document:
    """A text file as it is. Raises InputError for one that is no text."""
    return Document(decode(data))


def decode(data: bytes, declared: str | None = None) -> str:
    """Bytes as text with "\\n" between lines: by their byte order mark, as UTF-8, as the
    ``declared`` encoding, or as the one that is most likely. Raises InputError for bytes that are
    no text."""
    text = _decoded(data, declared)
    if len(_CONTROL.findall(text)) > len(text) * _CONTROL_SHARE:
        raise InputError(NO_TEXT)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unescapable(text: str) -> str:
    """A text of which ``html.unescape`` takes every reference: one to a character of so high a
    number that Python reads no such number stands for none."""
    return _NO_CHARACTER.sub("\ufffd", text)


def _decoded(data: bytes, declared: str | None) -> str:
    marked = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    for encoding in [marked] if marked else ["utf-8", declared]:
        try:
            if encoding is not None:
                return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    if marked or b"\0" in data:
        raise InputError(NO_TEXT)
    from charset_normalizer import from_bytes

    found = from_bytes(data)
    best = found.best()
    if best is None:
        raise InputError(NO_TEXT)
    if len(_BEYOND_ASCII.findall(data)) < len(data) * _WESTERN_SHARE:
        # A short text gives no hint: several encodings are as likely, in the order of their names.
        rank = (best.chaos, best.coherence)
        equals = (one for one in found if (one.chaos, one.coherence) == rank)
        best = next((one for one in equals if one.encoding == _WESTERN), best)
    return str(best)
