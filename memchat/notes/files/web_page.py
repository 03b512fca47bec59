"""HTML, as it is read: without scripts, styles and what is hidden; headings and lists as in
Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

from memchat.notes.files.document import Document
from memchat.notes.files.plain_text import decode, unescapable

_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_CHARSET_WITHIN = 4_096
"""Bytes of a page that may name its encoding."""
_UNSEEN = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select"}
_MAY_LACK_END = {"svg", "math", "object", "select"}
"""Those of them that a browser ends by itself where their end tag is missing."""
_MAY_HIDE = {"div", "span", "section", "article", "aside", "nav", "header", "footer", "main", "a"}
"""Elements that need an end tag: the end of what they hide is known."""
_HEADINGS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
_MARKS = {**_HEADINGS, "li": "- "}
_PARAGRAPHS = {
    "address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p",
    "pre", "section", "summary", "table", "ul", *_HEADINGS,
}  # fmt: skip
_LINES = {"br", "li", "option", "tr"}
_CELLS = {"td", "th"}
_MOST_UNENDED = 100
"""Tags and comments without an end: each is looked for up to the end of the page."""
_KEPT_SPACE = "\x01"
_PARTED_MARK = re.compile(r"^(-|#{1,6})\n+(?=[^\s#-])", re.MULTILINE)
_BARE_MARK = re.compile(r"^(?:-|#{1,6})(?:\n|\Z)", re.MULTILINE)
"""The mark of a list item or a heading, apart from its text or without any."""


def read(data: bytes) -> Document:
    """The text of a web page. Its title is that of its head, or its first heading."""
    named = _CHARSET.search(data, 0, _CHARSET_WITHIN)
    text = unescapable(decode(data, named[1].decode("ascii") if named else None))
    last = text.rfind(">") + 1
    text = text[:last] + text[last:].replace("<", "&lt;")  # no tag ends there
    page = _Page(text)
    while page.unended in _MAY_LACK_END:
        # Better the text of such elements as well than nothing of what follows.
        page = _Page(text, shown=page.shown | {page.unended})
    return Document(page.text(), page.title() or page.first_heading())


class _Page(HTMLParser):
    """Collects the text of a page."""

    def __init__(self, page: str, shown: frozenset[str] = frozenset()) -> None:
        """Reads the page. ``shown`` are elements whose text is kept though it is not seen."""
        super().__init__(convert_charrefs=True)
        self.shown = shown
        self._marks: dict[str, int] = {}
        """The place of the last mark of each heading and list item that is open."""
        self._parts: list[str] = []
        self._title: list[str] = []
        self._unended = 0
        self._preformatted = 0
        self._in_title = False
        self._hidden: list[str] = []
        """The hidden element that is open, with those of the same name in it."""
        self.feed(page)
        self.close()

    @property
    def unended(self) -> str:
        """The hidden element that the page did not end; empty if it ended all."""
        return self._hidden[0] if self._hidden else ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden:
            if tag == self._hidden[0]:
                self._hidden.append(tag)
        elif tag in _UNSEEN - self.shown or (tag in _MAY_HIDE and _is_hidden(dict(attrs))):
            self._hidden = [tag]
        elif tag == "title":
            self._in_title = True
        else:
            self._break(tag)
            self._preformatted += tag == "pre"
            if mark := _MARKS.get(tag):
                self._marks[tag] = len(self._parts)
                self._parts.append(mark)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._hidden:
            self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag == self._hidden[0]:
                self._hidden.pop()
        elif tag == "title":
            self._in_title = False
        else:
            at = self._marks.pop(tag, None)
            if at is not None and not "".join(self._parts[at + 1 :]).strip():
                self._parts[at] = ""  # else what follows would become the heading or the item
            self._break(tag)
            self._preformatted -= tag == "pre" and self._preformatted > 0

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._in_title:
            self._title.append(data)
        else:
            self._parts.append(_kept(data) if self._preformatted else re.sub(r"\s+", " ", data))

    def parse_starttag(self, i: int) -> int:
        return self._tried(super().parse_starttag, i)

    def parse_endtag(self, i: int) -> int:
        return self._tried(super().parse_endtag, i)

    def parse_comment(self, i: int, report: bool = True) -> int:
        return self._tried(super().parse_comment, i)

    def parse_html_declaration(self, i: int) -> int:
        return self._tried(super().parse_html_declaration, i)

    def parse_pi(self, i: int) -> int:
        return self._tried(super().parse_pi, i)

    def _tried(self, parse: Callable[[int], int], i: int) -> int:
        """Where a tag ends that begins here; negative, and its text is kept, where it does not."""
        if self._unended >= _MOST_UNENDED:
            return -1
        try:
            end = parse(i)
        except AssertionError:  # an unknown declaration
            end = -1
        self._unended += end < 0
        return end

    def title(self) -> str:
        """The title in the head; empty if there is none."""
        return "".join(self._title).strip()

    def text(self) -> str:
        """The text so far, with an empty line between paragraphs."""
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        joined = "\n".join(lines).replace(_KEPT_SPACE, " ")
        marked = _BARE_MARK.sub("", _PARTED_MARK.sub(r"\1 ", joined))
        return re.sub(r"\n\s*\n", "\n\n", marked).strip()

    def first_heading(self) -> str | None:
        """The first heading of the text."""
        lines = self.text().splitlines()
        return next((line.lstrip("# ") for line in lines if line.startswith("#")), None)

    def _break(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._parts.append("\n\n")
        elif tag in _LINES:
            self._parts.append("\n")
        elif tag in _CELLS:
            self._parts.append(" ")


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style


def _kept(data: str) -> str:
    """Preformatted text: its spaces stay."""
    return data.expandtabs(4).replace(" ", _KEPT_SPACE)
