"""A reply as HTML: its words and how they are set, and nothing that acts."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.ui import hostile
from ui import reply_html as module
from ui.reply_html import (
    LONGEST,
    MATH_ATTRIBUTES,
    ComingReply,
    copy_button,
    reply_blocks,
    reply_html,
)

PIECES = [
    "![a](b)",
    "!",
    "[a](b)",
    "\\",
    "`",
    "```",
    "~~~",
    "~",
    "$",
    "$$",
    " ",
    "    ",
    "\n",
    "\r\n",
]
PIECES += [
    "> ",
    "- ",
    "<!--",
    "-->",
    "<div>",
    "a",
    "\n\n",
    "\n```",
    "\n```\n",
    ":::",
    "*",
    "http://a/",
]
TAGS = {
    *("div", "p", "a", "button", "span", "pre", "code", "em", "strong", "s", "br", "hr"),
    *("ul", "ol", "li", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("table", "thead", "tbody", "tr", "th", "td", "sup"),
}
ATTRIBUTES = {
    "class",
    "dir",
    "tabindex",
    "type",
    "href",
    "title",
    "rel",
    "target",
    "style",
    "start",
}
ATTRIBUTES |= {"data-mathml"}


class Page(HTMLParser):
    """The elements, attributes and words of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.words = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.tags.add(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        """Words."""
        self.words += data

    def values(self, name: str) -> list[str]:
        """The values of an attribute."""
        return [value or "" for found, value in self.attributes if found == name]


def page(words: str) -> Page:
    return Page(reply_html(words))


def check(words: str) -> None:
    found = page(words)
    assert found.tags <= TAGS
    assert {name for name, _ in found.attributes} <= ATTRIBUTES
    assert all(url.startswith(("http://", "https://", "mailto:")) for url in found.values("href"))
    assert set(found.values("style")) <= {
        f"text-align:{side}" for side in ("left", "center", "right")
    }
    for formula in found.values("data-mathml"):
        drawn = Page(formula)
        assert all(tag.startswith("m") for tag in drawn.tags)
        assert {name for name, _ in drawn.attributes} <= MATH_ATTRIBUTES


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("\\\\![a](b)")
@example("a ``` ![a](b)")
@example("- a\n\n  ```\n![a](b)")
@example("<div>\n```\n\n![a](b)")
def test_no_words_make_anything_but_text_links_and_tables(words: str) -> None:
    check(words)


@pytest.mark.parametrize("words", hostile.replies("http://localhost:1/"))
def test_no_hostile_reply_makes_anything_but_text_links_and_tables(words: str) -> None:
    check(words)


@settings(max_examples=200)
@given(st.text(alphabet="ab ${}[]()^_\\~\n<>&*fracsqthe", max_size=60))
def test_whatever_stands_between_dollars_is_drawn_or_shown_as_it_is(words: str) -> None:
    check(f"${words}$ and $${words}$$ and \\({words}\\)")


@given(st.text(alphabet="abc <>&\"'äß日本🎉:/@.,!?5", max_size=60))
def test_plain_words_can_be_read_as_they_were_written(words: str) -> None:
    assert "".join(page(f"a{words}a").words.split()) == "".join(f"a{words}a".split())


def test_formulas_are_drawn_and_prices_are_not() -> None:
    drawn = page("$x^2$, \\(y_1\\) and $$\\frac{a}{b}$$ cost $5 to $10, or $5.").values(
        "data-mathml"
    )
    assert len(drawn) == 3
    assert page("It costs $5 to $10, or $ 5.").values("data-mathml") == []
    assert "\\bad{" in page("$\\bad{$").words


def test_the_signs_of_a_formula_are_drawn_as_signs() -> None:
    drawn = page("$a + \\alpha < \\infty$ \\(\\text{<img src=x>}\\)").values("data-mathml")
    assert {Page(formula).words for formula in drawn} == {"a+α<∞", "<img\xa0src=x>"}
    assert all(tag.startswith("m") for formula in drawn for tag in Page(formula).tags)


def test_a_link_says_where_it_leads_and_opens_apart() -> None:
    found = page("[my bank](https://evil.example/x)")
    assert found.values("title") == ["https://evil.example/x"]
    assert found.values("target") == ["_blank"]
    assert found.values("rel") == ["noopener noreferrer nofollow"]
    assert page("[a](/settings) [b](javascript:x) [c](data:text/html,x)").values("href") == []
    assert page("see https://example.org/a.").values("href") == ["https://example.org/a"]


@given(
    st.lists(st.sampled_from(["a ", "**b** ", "\n", "\n\n", "- c\n", "1. d\n", "> e\n", "# f\n"]))
)
def test_a_reply_drawn_as_it_comes_in_has_all_its_words(pieces: list[str]) -> None:
    drawing, text = ComingReply(), ""
    for piece in pieces:
        text += piece
        words = Page(drawing.html(text)).words.replace("▍", "")
        assert "".join(words.split()) == "".join(page(text).words.split())


def test_a_long_reply_that_comes_in_is_not_read_from_its_beginning_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawing, text, read = ComingReply(), "", []
    reader = module._reader()
    parse = reader.parse
    monkeypatch.setattr(
        reader, "parse", lambda given, *env: read.append(len(given)) or parse(given, *env)
    )
    for n in range(100):
        text += f"Paragraph {n}.\n\n"
        drawing.html(text)
    assert sum(read) < 5 * len(text)


def test_a_very_long_reply_is_shown_as_plain_text() -> None:
    found = page("**" + "a" * LONGEST + "**")
    assert found.tags == {"div", "p"}
    assert found.words.startswith("**a")


def test_what_is_copied_is_the_reply_as_the_model_wrote_it() -> None:
    words = 'a "b" <c> &amp;\n**d**'
    ((_, kept),) = [one for one in Page(copy_button(words)).attributes if one[0] == "data-text"]
    assert kept == words


def test_a_number_of_a_source_is_a_button_outside_of_links_and_code() -> None:
    said = "Call [1][2], [3] and [99]. `[1]` [two [2]](https://x.org) **[2]** [01]"
    html = reply_html(said, (1, 2))
    assert html.count("memchat-cite") == 3
    assert '<button type="button" class="memchat-cite" data-source="1"' in html
    assert "[3] and [99]" in html and "<code>[1]</code>" in html and "two [2]</a>" in html
    assert html.count("<strong><button") == 1
    assert "memchat-cite" not in reply_html(said)


@pytest.mark.parametrize("name", ["aligned", "gathered"])
def test_lines_of_a_formula_stand_below_each_other(name: str) -> None:
    (drawn,) = page(f"$$\\begin{{{name}}} a &= b \\\\ c &= d \\end{{{name}}}$$").values(
        "data-mathml"
    )
    assert drawn.count("<mtr>") == 2 and "&amp;" not in drawn


def test_a_formula_in_brackets_is_drawn_within_a_line_as_well() -> None:
    found = page("So \\[ x^2 \\] holds, and \\( y \\) too.")
    assert [drawn.count("<mi>") for drawn in sorted(found.values("data-mathml"))] == [1, 1]
    assert found.words.startswith("So ") and "\\[" not in found.words


def test_a_list_of_tasks_shows_what_is_done() -> None:
    assert "☐ buy bread\n☑ write" in page("- [ ] buy bread\n- [x] write").words
    assert "other [x] sign" in page("- other [x] sign").words


def test_a_footnote_stands_below_with_its_number() -> None:
    blocks = reply_blocks("So it is.[^a]\n\n[^a]: Said *Nora*.\n\nThe end.")
    assert len(blocks) == 3 and "<sup>1</sup>" in blocks[0] and "<em>Nora</em>" in blocks[2]
    assert all(block.count("<li>") == block.count("</li>") for block in blocks)


def test_code_of_a_known_language_is_coloured_once_it_is_whole() -> None:
    text = "```python\ndef f(): return '<a>'\n```"
    assert '<span class="c-k">def</span>' in reply_html(text)
    assert "def f(): return '<a>'\n" in page(text).words
    assert "c-k" not in ComingReply().html(text)
    assert "<span class=" not in reply_html("```no-such-language\ndef f()\n```")
