"""Reading files into documents: plain text in any encoding, Markdown, subtitles and web pages, PDF
by PDFium, and Word documents by python-docx.

A document has the text of a file as a note keeps it, with the file's own title and date."""

from __future__ import annotations

import codecs
import html
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from memchat.errors import InputError
from memchat.types import clean_text

if TYPE_CHECKING:
    from docx.oxml.xmlchemy import BaseOxmlElement
    from docx.text.paragraph import Paragraph

TITLE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a file, as a note keeps it.

    ``title`` and ``written_at`` are the document's own, None where it has none; a time without a
    zone is in that of the person. ``profile`` is how it is cut into chunks: memo or document.
    """

    text: str
    title: str | None = None
    written_at: datetime | None = None
    profile: str = "document"


def short_title(text: str | None) -> str | None:
    """A title on one line, cut off where it is too long; None for one without words."""
    title = " ".join(clean_text(text or "").split())
    if len(title) > TITLE_LIMIT:
        title = f"{title[: TITLE_LIMIT - 1]}…"
    return title or None


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


def plain_text(data: bytes) -> Document:
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


_FRONT = re.compile(r"\A---[ \t]*\n(?P<fields>(?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FIELD = re.compile(r"^(?P<name>title|date)[ \t]*:[ \t]*(?P<value>.*)$", re.I | re.M)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.S | re.M)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<title>.*)$", re.M)
_UNDERLINED = re.compile(r"^(?P<title>\S.*)\n {0,3}(?:=+|-{3,})[ \t]*$", re.M)
_MOST_FRONT = 20_000
"""Characters in which front matter has to end."""


def markdown(data: bytes) -> Document:
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
    title = fields.get("title") or _markdown_heading(text)
    return Document(text, title, _written_at(fields.get("date", "")))


def _markdown_heading(text: str) -> str | None:
    plain = _FENCED.sub("", text)
    found = [one for pattern in (_HEADING, _UNDERLINED) if (one := pattern.search(plain))]
    first = min(found, key=lambda match: match.start(), default=None)
    return first["title"].rstrip(" \t#") if first else None


def _unquoted(value: str) -> str:
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _written_at(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


_STAMP = r"(?:(\d{1,6}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_TIMES = re.compile(rf"^\s*{_STAMP}\s*-->\s*{_STAMP}")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|</?[\d:.]+>|\{\\[^{}\n]*\}")
_VOICE = re.compile(r"<v(?:\.[\w.-]+)?\s([^<>\n]+)>")
_DASH = re.compile(r"^[-–—]\s*(?=\S)")
_CHANGE = re.compile(rf"{_DASH.pattern}|^[^\W\d_a-z][\w.'’-]*(?: [\w.'’-]+){{0,2}}: ")
"""Another speaker begins: with a dash, or with their name."""
_END = re.compile(r"[.!?…。！？।؟][\"'”’»)\]]*$")
_PAUSE = 2.0
"""Seconds of silence, after the end of a sentence, that begin a paragraph."""


def subtitles(data: bytes) -> Document:
    """What is said in subtitles, without numbers, times and tags. Cues are joined, so that
    sentences are whole; a paragraph begins where the speaker changes, who is named where the
    file does, and after a pause. Raises InputError for a file without cues."""
    text = "\n\n".join(_paragraphs(_lines(decode(data))))
    if not text:
        raise InputError("it holds no subtitles")
    return Document(text, profile="memo")


def _lines(text: str) -> Iterator[tuple[str, str, float]]:
    """The lines of cues in plain words, each with its speaker, empty where the file names none, and
    the seconds of silence before it. Captions that roll repeat the line above: once is kept."""
    before, pause, ended_at = "", 0.0, 0.0
    in_cue = False
    for line in text.split("\n"):
        if match := _TIMES.match(line):
            times = match.groups()
            pause, ended_at = _seconds(*times[:4]) - ended_at, _seconds(*times[4:])
            in_cue = True
        elif not line.strip():
            in_cue = False  # what follows is the next one's number, or a comment
        elif in_cue:
            voice = _VOICE.search(line)
            words = " ".join(html.unescape(unescapable(_TAG.sub("", line))).split())
            bare = _DASH.sub("", words)
            if bare and bare != before:
                yield words, voice[1].strip() if voice else "", pause
                before, pause = bare, 0.0


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def _paragraphs(lines: Iterable[tuple[str, str, float]]) -> Iterator[str]:
    said: list[str] = []
    speaker = ""
    for words, named, pause in lines:
        ended = bool(said) and _END.search(said[-1]) is not None
        other = named not in ("", speaker) or (ended and _CHANGE.match(words))
        if said and (other or (ended and pause >= _PAUSE)):
            yield " ".join(said)
            said = []
        name = f"{named}: " if named and not said else ""
        said.append(f"{name}{_DASH.sub('', words)}")
        speaker = named or speaker
    if said:
        yield " ".join(said)


_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_CHARSET_WITHIN = 4_096
"""Bytes of a page that may name its encoding."""
_UNSEEN = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select"}
_MAY_LACK_END = {"svg", "math", "object", "select"}
"""Those of them that a browser ends by itself where their end tag is missing."""
_MAY_HIDE = {"div", "span", "section", "article", "aside", "nav", "header", "footer", "main", "a"}
"""Elements that need an end tag: the end of what they hide is known."""
_HEADING_MARKS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
_WRITTEN = {**_HEADING_MARKS, "li": "- "}
_PARAGRAPHS = {
    "address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p",
    "pre", "section", "summary", "table", "ul", *_HEADING_MARKS,
}  # fmt: skip
_LINES = {"br", "li", "option", "tr"}
_CELLS = {"td", "th"}
_MOST_UNENDED = 100
"""Tags and comments without an end: each is looked for up to the end of the page."""
_KEPT_SPACE = "\x01"
_PARTED_MARK = re.compile(r"^(-|#{1,6})\n+(?=[^\s#-])", re.MULTILINE)
_BARE_MARK = re.compile(r"^(?:-|#{1,6})(?:\n|\Z)", re.MULTILINE)
"""The mark of a list item or a heading, apart from its text or without any."""


def web_page(data: bytes) -> Document:
    """The text of a web page. Its title is that of its head, or its first heading."""
    named = _CHARSET.search(data, 0, _CHARSET_WITHIN)
    text = unescapable(decode(data, named[1].decode("ascii") if named else None))
    last = text.rfind(">") + 1
    text = text[:last] + text[last:].replace("<", "&lt;")  # no tag ends there
    page = _Page(text)
    while page.unended in _MAY_LACK_END:
        # Better the text of such elements as well than nothing of what follows.
        page = _Page(text, shown=page.shown | {page.unended})
    text = page.text()
    return Document(text, page.title() or _first_heading(text))


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
            if mark := _WRITTEN.get(tag):
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

    def _break(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._parts.append("\n\n")
        elif tag in _LINES:
            self._parts.append("\n")
        elif tag in _CELLS:
            self._parts.append(" ")


def _first_heading(text: str) -> str | None:
    first = next((line for line in text.splitlines() if line.startswith("#")), "")
    return first.lstrip("# ") or None


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style


def _kept(data: str) -> str:
    """Preformatted text: its spaces stay."""
    return data.expandtabs(4).replace(" ", _KEPT_SPACE)


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
    import pypdfium2  # type: ignore[import-untyped]

    try:
        opened = pypdfium2.PdfDocument(data)
        pages = [page.get_textpage().get_text_bounded() for page in opened]
        title = opened.get_metadata_value("Title")
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise InputError(PDF_ENCRYPTED) from error
        raise
    text = _joined_pages(pages)
    if not text:
        raise InputError(SCANNED)
    return Document(text, title)


def _joined_pages(pages: list[str]) -> str:
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
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_WRITTEN_AS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_TEXT, _PARAGRAPH, _TABLE = f"{_W}t", f"{_W}p", f"{_W}tbl"
_AROUND = {f"{_W}sdt", f"{_W}sdtContent", f"{_W}customXml"}
"""Content controls may stand around paragraphs, tables, rows and cells."""
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_LEFT_OUT = {f"{_W}pPr", f"{_W}del", f"{_W}moveFrom", f"{_COMPATIBILITY}Fallback"}
"""Properties, what was deleted or is moved elsewhere, and the second form of a text box."""


def word(data: bytes) -> Document:
    """The paragraphs and tables of a Word document, its headings and lists as in Markdown. Raises
    InputError for one that is encrypted or unpacks to too much; what the libraries raise for one
    that is damaged passes."""
    import docx
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.text.paragraph import Paragraph

    if data.startswith(_OLD_WORD):
        raise InputError(WORD_ENCRYPTED)
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        if sum(part.file_size for part in package.infolist()) > MOST_UNPACKED:
            raise InputError(BOMB)
    document = docx.Document(io.BytesIO(data))
    blocks = (
        _table(block) if block.tag == _TABLE else _paragraph(Paragraph(block, document))
        for block in _inner(document.element.body, _PARAGRAPH, _TABLE)
    )
    text = "\n\n".join(_lists_joined(blocks))
    # For a document without properties python-docx makes some, with a title of its own.
    has_properties = any(
        rel.reltype == RELATIONSHIP_TYPE.CORE_PROPERTIES
        for rel in document.part.package.rels.values()
    )
    title = document.core_properties.title if has_properties else None
    return Document(text, title or _first_heading(text))


def _lists_joined(blocks: Iterable[str]) -> Iterator[str]:
    """The blocks that have words, the items of a list as one."""
    items: list[str] = []
    for text in blocks:
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
        [" ".join(_text(cell).split()) for cell in _inner(row, f"{_W}tc")]
        for row in _inner(table, f"{_W}tr")
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
        elif node.tag in _WRITTEN_AS:
            yield _WRITTEN_AS[node.tag]
        elif node.tag not in _LEFT_OUT:
            yield from _pieces(node)
            if node.tag == _PARAGRAPH:
                yield "\n"


READERS = {
    ".txt": plain_text,
    ".text": plain_text,
    ".md": markdown,
    ".markdown": markdown,
    ".srt": subtitles,
    ".vtt": subtitles,
    ".html": web_page,
    ".htm": web_page,
    ".pdf": pdf,
    ".docx": word,
}
