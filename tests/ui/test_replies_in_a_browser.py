"""What a reply may do in the browser: be read, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.testing import ScriptedModel
from tests.support.ui import hostile
from tests.support.ui.browser import Server, needs_browser, opened, settled

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
A_PAGE = 17
"""Replies in a chat that are drawn at once, without a click on those before."""
TEXT = (
    "a, button, code, pre, p, div, span, ul, ol, li, table, thead, tbody, tr, th, td, br, hr,"
    " strong, em, s, sup, blockquote, h1, h2, h3, h4, h5, h6, math, math *"
)
NOT_TEXT = f".memchat-reply :not({TEXT}), .memchat-reply math :is(a, img, svg, script, [href])"
ALL_KINDS = """Here is **bold**, `code` and a [link](https://example.org/a).

| left | centre | right |
|:--|:-:|--:|
| a | bb | 1 |

```python
print("git@github.com:org/repo")
```

The area is $\\pi r^2$, and

$$\\frac{a}{b}$$

It costs $5 to $10 at 10:30:20, from git@github.com:org/repo.

مرحبا بالعالم
"""


class Trap(ThreadingHTTPServer):
    """An address that must not be asked; it keeps what was."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Keep)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/"


class _Keep(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Keep the path."""
        assert isinstance(self.server, Trap)
        self.server.asked.append(self.path)
        body = b"<p>another page of this machine</p>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def listening() -> Iterator[Trap]:
    """A trap that answers."""
    with Trap() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    yield from listening()


@pytest.fixture
def another_page() -> Iterator[Trap]:
    """Apart from ``trap``: a browser asks for a page's icon whenever it likes."""
    yield from listening()


def talked(home: Path, replies: list[str]) -> None:
    """A conversation in which the model said this."""
    with MemChat(settings=Settings(home / "store"), chat_model=ScriptedModel(replies)) as mc:
        chat = mc.user("ana").chat()
        for n in range(len(replies)):
            "".join(chat.send(f"Question {n}"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, trap: Trap) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("replies")
    bad = hostile.replies(trap.url)
    assert len(bad) >= 60
    talked(home, [ALL_KINDS])
    for at in range(0, len(bad), A_PAGE):
        talked(home, bad[at : at + A_PAGE])
    with Server(home) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("without_policy", [True, False])
def test_no_reply_makes_the_browser_ask_another_address(
    browser: Any, server: Server, trap: Trap, without_policy: bool
) -> None:
    page = browser.new_page(bypass_csp=without_policy)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    bad = hostile.replies("")
    for chat, first in enumerate(range(0, len(bad), A_PAGE), 2):
        opened(page, f"{server.url}?c={chat}")
        drawn = page.locator(".memchat-reply")
        # A busy machine draws the conversation after the heading.
        drawn.nth(len(bad[first : first + A_PAGE]) - 1).wait_for(state="attached")
        settled(page)
        drawn.evaluate_all("them => them.forEach(it => it.scrollIntoView())")
        assert page.locator(NOT_TEXT).evaluate_all("them => them.map(it => it.outerHTML)") == []
    settled(page)
    page.close()
    assert [url for url in asked if not url.startswith((server.url, "data:", "blob:"))] == []
    assert trap.asked == []


def test_the_browser_refuses_what_a_script_in_the_page_would_fetch_from_elsewhere(
    browser: Any, server: Server, trap: Trap
) -> None:
    page = opened(browser.new_page(), f"{server.url}?c=1")
    tried = page.evaluate(
        """async trap => {
          const done = [];
          await fetch(trap).catch(() => done.push("fetch"));
          for (const [tag, name] of [["img", "src"], ["script", "src"], ["iframe", "src"],
                                     ["object", "data"], ["video", "src"]]) {
            const made = document.createElement(tag);
            made.onerror = () => done.push(tag);
            made.setAttribute(name, trap);
            document.body.append(made);
          }
          const sheet = document.createElement("style");
          sheet.textContent = `@import url(${trap}); body { background: url(${trap}) }`;
          document.head.append(sheet);
          const inline = document.createElement("script");
          inline.textContent = "window.inlineRan = true";
          document.body.append(inline);
          await new Promise(over => setTimeout(over, 500));
          return {done, ran: window.inlineRan === true};
        }""",
        trap.url,
    )
    assert trap.asked == []
    assert not tried["ran"]
    assert {"fetch", "img", "script"} <= set(tried["done"])


@pytest.mark.slow
def test_another_page_of_this_machine_can_neither_open_the_socket_nor_ask(
    browser: Any, server: Server, another_page: Trap
) -> None:
    page = browser.new_page()
    page.goto(another_page.url)
    at = server.url.replace("http", "ws")
    socket = """at => new Promise(over => {
      const socket = new WebSocket(at, ["streamlit"]);
      socket.onopen = () => over("open");
      socket.onerror = () => over("refused");
    })"""
    assert page.evaluate(socket, f"{at}_stcore/stream") == "refused"
    ask = "at => fetch(at).then(answer => answer.status, () => 'refused')"
    assert page.evaluate(ask, f"{server.url}_stcore/health") == "refused"
    own = opened(browser.new_page(), server.url)
    assert own.evaluate(socket, f"{at}_stcore/stream") == "open"


def test_a_reply_is_drawn_as_it_was_written_and_copied_whole(browser: Any, server: Server) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = opened(context.new_page(), f"{server.url}?c=1")
    reply = page.locator(".memchat-reply")
    style = "(cell, name) => getComputedStyle(cell)[name]"
    cells = [reply.locator("td").nth(n).evaluate(style, "textAlign") for n in range(3)]
    assert cells == ["left", "center", "right"]
    reply.locator("math").nth(1).wait_for()  # a script draws them
    assert reply.locator("math").count() == 2
    link = reply.get_by_role("link", name="link")
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert link.get_attribute("target") == "_blank"
    text = reply.inner_text()
    assert "It costs $5 to $10 at 10:30:20, from git@github.com:org/repo." in text
    assert "\u2060" not in text
    arabic = reply.locator("p").last
    assert (
        arabic.evaluate("p => p.getBoundingClientRect().right - p.getClientRects()[0].right") == 0
    )
    assert arabic.evaluate(style, "unicodeBidi") == "plaintext"
    clipboard = "navigator.clipboard.readText()"
    reply.get_by_role("button", name="Copy").click()
    reply.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate(clipboard) == 'print("git@github.com:org/repo")\n'
    reply.locator(".memchat-copy").evaluate("button => { button.click(); button.click(); }")
    reply.get_by_role("button", name="Copied").wait_for(state="detached")
    page.locator(".memchat-row").get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").last.wait_for()
    assert page.evaluate(clipboard) == ALL_KINDS.strip()
