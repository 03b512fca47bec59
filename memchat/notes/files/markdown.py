"""Markdown, with the title and date that may stand in front of it."""

from __future__ import annotations

import re
from datetime import datetime

from memchat.notes.files.document import Document
from memchat.notes.files.plain_text import decode

_FRONT = re.compile(r"\A---[ \t]*\n(?P<fields>(?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FIELD = re.compile(r"^(?P<name>title|date)[ \t]*:[ \t]*(?P<value>.*)$", re.I | re.M)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.S | re.M)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<title>.*)$", re.M)
_UNDERLINED = re.compile(r"^(?P<title>\S.*)\n {0,3}(?:=+|-{3,})[ \t]*$", re.M)
_MOST_FRONT = 20_000
"""Characters in which front matter has to end."""


def read(data: bytes) -> Document:
    """A Markdown file: its text is kept as it is written, without the front matter.

    The title is that of the front matter, or the first heading. Raises InputError for a file that
    is no text.
    """
    text = decode(data)
    fields: dict[str, str] = {}
    if front := _FRONT.match(text, 0, _MOST_FRONT):
        fields = {
            m["name"].lower(): _unquoted(m["value"]) for m in _FIELD.finditer(front["fields"])
        }
        text = text[front.end() :].lstrip("\n")
    title = fields.get("title") or _first_heading(text)
    return Document(text, title, _time(fields.get("date", "")))


def _first_heading(text: str) -> str | None:
    plain = _FENCED.sub("", text)
    found = [one for pattern in (_HEADING, _UNDERLINED) if (one := pattern.search(plain))]
    first = min(found, key=lambda match: match.start(), default=None)
    return first["title"].rstrip(" \t#") if first else None


def _unquoted(value: str) -> str:
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _time(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
