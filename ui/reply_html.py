"""A model's reply as HTML that cannot do anything: no image, script, frame or form, and links only
to what a person chooses to open.

Markdown is read by markdown-it-py with HTML switched off; formulas become MathML by latex2mathml,
which ``scripts/formulas.js`` puts in. Streamlit's own Markdown is not used for replies: it draws
diagrams, icons and pictures, and what they name is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from html import escape, unescape
from typing import Any
from xml.etree.ElementTree import tostring

from latex2mathml import exceptions
from latex2mathml.converter import convert_to_element
from linkify_it import LinkifyIt  # type: ignore[import-untyped]
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.texmath import texmath_plugin
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

COLOURED = 20_000
"""Characters of a block of code that is coloured."""
_COLOURS = HtmlFormatter(nowrap=True, classprefix="c-")
_OPEN = "open"
"""Set for a block that still grows: it is drawn again and again, and coloured when it is whole."""
SOURCES = "sources"
"""The numbers that may be cited, in what the reader of Markdown is given besides a text."""
_ALIGNED = re.compile(r"\\(begin|end)\{(aligned|gathered)\}(?:\[[bct]\])?")
_ALIKE = {"aligned": "split", "gathered": "matrix"}
"""What the converter of formulas knows, for what it does not know and looks the same."""
_DISPLAYED = re.compile(r"\\\[(.+?)\\\]", re.DOTALL)
_TASK = re.compile(r"\[([ xX])\](?=\s)")
_CITATION = re.compile(r"\[([1-9][0-9]{0,2})\]")
LINKS = ("http://", "https://", "mailto:")
LONGEST = 200_000
"""Characters of a reply that are read as Markdown; a longer one is shown as plain text."""
FORMULA_LIMIT = 2_000
"""Characters of a formula that are set; a longer one is shown as it is written."""
MATH_ATTRIBUTES = {
    *("display", "displaystyle", "scriptlevel", "mathvariant", "stretchy", "symmetric"),
    *("fence", "separator", "form", "lspace", "rspace", "minsize", "maxsize"),
    *("movablelimits", "largeop", "accent", "accentunder", "linethickness", "columnalign"),
    *("columnspacing", "columnlines", "rowspacing", "rowlines", "width", "height", "depth"),
    *("voffset", "notation", "xmlns"),
}
"""What of a formula's elements stays: how they are drawn, and no link, style or class."""
_FAULTS = (
    *(one for one in vars(exceptions).values() if isinstance(one, type)),
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    StopIteration,
)
"""What the converter raises for a formula that it cannot read."""


def reply_html(text: str, sources: tuple[int, ...] = ()) -> str:
    """The reply as HTML. Whatever the text, every word of it can be read."""
    return _framed("".join(reply_blocks(text, sources)))


@lru_cache(maxsize=256)
def reply_blocks(text: str, sources: tuple[int, ...] = ()) -> tuple[str, ...]:
    """The reply as HTML, block by block: paragraphs, lists, tables.

    The numbers of ``sources`` in square brackets become buttons that lead to the source of this
    number on the page (``scripts/citations.js``).
    """
    if len(text) > LONGEST:
        return (f"<p>{escape(text)}</p>",)
    return tuple(_blocks(text, sources))


def _blocks(text: str, sources: tuple[int, ...] = (), *, still: bool = True) -> Iterator[str]:
    reader, env, begin, depth = _reader(), {SOURCES: sources, _OPEN: not still}, 0, 0
    tokens = reader.parse(text, env)
    for n, token in enumerate(tokens, 1):
        depth += token.nesting
        if depth == 0:
            yield reader.renderer.render(tokens[begin:n], reader.options, env)
            begin = n


def placed_blocks(text: str) -> Iterator[tuple[range, str]]:
    """A text's blocks of Markdown as HTML, each with the lines that it is written on."""
    reader, env, begin = _reader(), dict[str, Any](), 0
    tokens = reader.parse(text, env)
    for n, token in enumerate(tokens, 1):
        if token.level == 0 and token.nesting <= 0:
            lines = range(*(tokens[begin].map or (0, 0)))
            yield lines, reader.renderer.render(tokens[begin:n], reader.options, env)
            begin = n


class ComingReply:
    """A reply that is still coming in, drawn many times: of what was drawn before, only the last
    block of Markdown is read again."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        """The blocks that are whole, and stay as they are."""
        self._length = 0
        """How much of the text is in them."""

    def html(self, text: str) -> str:
        """The text so far as HTML."""
        last = self.last(text)
        return _framed("".join((*self.blocks, last)))

    def last(self, text: str) -> str:
        """The block that still grows. Each text is as long as the one before, or longer."""
        rest = text[self._length :]
        lines = rest.splitlines(keepends=True)
        blocks = [token.map for token in _reader().parse(rest) if token.level == 0 and token.map]
        whole = sum(map(len, lines[: blocks[-1][0]])) if blocks else 0
        self.blocks += _blocks(rest[:whole])
        self._length += whole
        return "".join(_blocks(f"{rest[whole:]} ▍", still=False))


def _framed(body: str) -> str:
    return f'<div class="memchat-reply" dir="auto">{body}</div>'


def copy_button(text: str) -> str:
    """A button that copies the reply as the model wrote it (``scripts/copy.js``)."""
    return f'<button type="button" class="memchat-copy" data-text="{escape(text)}">Copy</button>'


@lru_cache(maxsize=1)
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "linkify": True, "breaks": True})
    reader.enable(["table", "strikethrough", "linkify"]).disable("image")
    # Only what is written with http:// or https:// becomes a link of itself.
    reader.linkify = LinkifyIt(options={"fuzzy_link": False, "fuzzy_email": False})
    reader.validateLink = _may_be_opened  # type: ignore[method-assign]
    reader.core.ruler.push("citations", _cite)
    reader.use(dollarmath_plugin, allow_digits=False, allow_space=False, double_inline=True)
    reader.use(texmath_plugin, delimiters="brackets")
    reader.inline.ruler.before("escape", "displayed", _displayed)
    reader.use(footnote_plugin, inline=False)
    reader.core.ruler.after("inline", "tasks", _tick)
    rules: dict[str, Any] = {
        "link_open": _link,
        "citation": _citation,
        "fence": _code,
        "code_block": _code,
        "table_open": _table,
        "table_close": _table,
        "footnote_ref": _footnote_sign,
        "footnote_block_open": lambda *_: '<hr><ol class="memchat-footnotes">',
        "footnote_block_close": lambda *_: "</ol>",
        "footnote_open": lambda *_: "<li>",
        "footnote_close": lambda *_: "</li>",
        "footnote_anchor": lambda *_: "",
    }
    formulas = ("inline", "inline_double", "block", "block_label", "single", "block_eqno")
    for name, rule in (rules | {f"math_{kind}": _formula for kind in formulas}).items():
        reader.add_render_rule(name, rule)
    return reader


def _displayed(state: StateInline, silent: bool) -> bool:
    """A formula in ``\\[`` and ``\\]`` that begins within a line."""
    found = _DISPLAYED.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("math_inline_double", "math", 0)
        token.content, token.markup = found[1], "$$"
    state.pos = found.end()
    return True


def _tick(state: StateCore) -> None:
    """Draw the boxes of a list of tasks, as signs."""
    for item, _, words in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        box = _TASK.match(words.content) if item.type == "list_item_open" else None
        if box is not None and words.children and words.children[0].type == "text":
            sign = "☐" if box[1] == " " else "☑"
            words.children[0].content = sign + words.children[0].content[box.end() :]
            item.attrSet("class", "memchat-task")


def _footnote_sign(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any
) -> str:
    # Not a link: its target would be one for all replies of the page.
    return f"<sup>{tokens[at].meta['id'] + 1}</sup>"


def _cite(state: StateCore) -> None:
    """Put a button in the place of each citation of a source, outside of links and code."""
    sources = state.env.get(SOURCES, ())
    for block in state.tokens if sources else ():
        pieces: list[Token] = []
        links = 0
        for token in block.children or ():
            links += token.nesting if token.type.startswith("link_") else 0
            cites = token.type == "text" and not links
            pieces += _with_citations(token, sources) if cites else [token]
        if block.children:
            block.children = pieces


def _with_citations(token: Token, sources: tuple[int, ...]) -> list[Token]:
    pieces = []
    for n, words in enumerate(_CITATION.split(token.content)):
        cited = n % 2 == 1 and int(words) in sources
        said = words if cited or n % 2 == 0 else f"[{words}]"
        pieces.append(Token("citation" if cited else "text", "", 0, content=said))
    return pieces


def _citation(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    number = escape(tokens[at].content)
    return (
        f'<button type="button" class="memchat-cite" data-source="{number}"'
        f' aria-label="Source {number}">[{number}]</button>'
    )


def _may_be_opened(url: str) -> bool:
    return url.lower().startswith(LINKS)


def _link(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    # Where a link leads is said when it is pointed at, as its words may say another place.
    token = tokens[at]
    token.attrs |= {
        "target": "_blank",
        "rel": "noopener noreferrer nofollow",
        "title": str(token.attrs.get("href", "")),
    }
    return self.renderToken(tokens, at, options, env)


def _code(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    button = '<button type="button" class="memchat-copy">Copy</button>'
    language = tokens[at].info.split()[0] if tokens[at].info.strip() else ""
    source = tokens[at].content
    drawn = escape(source)
    if language and not env.get(_OPEN) and len(source) <= COLOURED:
        with suppress(ClassNotFound):
            lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
            drawn = highlight(source, lexer, _COLOURS)
    return (
        f'<div class="memchat-code"><div><span>{escape(language)}</span>{button}</div>'
        f'<pre dir="ltr" tabindex="0"><code>{drawn}</code></pre></div>\n'
    )


def _table(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    if tokens[at].nesting == 1:
        return '<div class="memchat-table" tabindex="0"><table>'
    return "</table></div>"


def _formula(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    block = token.type.startswith("math_block") or token.type == "math_inline_double"
    source = token.content.strip()
    if len(source) <= FORMULA_LIMIT:
        with suppress(*_FAULTS):
            drawn = escape(_mathml(source, "block" if block else "inline"))
            return f'<span class="memchat-math" data-mathml="{drawn}">{escape(source)}</span>'
    return f"<code>{escape(token.markup + source + token.markup)}</code>"


def _mathml(source: str, display: str) -> str:
    known = _ALIGNED.sub(lambda found: f"\\{found[1]}{{{_ALIKE[found[2]]}}}", source)
    math = convert_to_element(known, display=display)
    for element in math.iter():
        element.attrib = {k: v for k, v in element.attrib.items() if k in MATH_ATTRIBUTES}
        # The converter writes a sign as the text "&#x0002B;", which would be escaped once more.
        element.text = unescape(element.text or "") or None
    return tostring(math, encoding="unicode")
