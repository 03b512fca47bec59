"""The app as a person meets it: real Chromium, real server, real store."""

from __future__ import annotations

import functools
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.testing import ScriptedModel
from tests.support.slow import slow_but
from tests.support.ui.browser import WAIT, Server, findings, needs_browser, opened, say, settled
from tests.support.ui.seed import seed
from tests.support.wire import Endless, Hang, OpenAIServer, Pieces, Say

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
PAGES = ("?c=1", "memories", "notes", "notes?note=3&at=185-110", "inbox", "insights", "settings")
NARROWEST = 320
"""Pixels, of the smallest phones."""
ANA = {"user": "ana"}
FOCUSED = """(() => {
  const at = document.activeElement;
  return at === document.body ? "" : (at.getAttribute("aria-label") || at.innerText);
})()"""


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over some weeks of chats, begun as a person does; tests only look at it."""
    home = tmp_path_factory.mktemp("seeded")
    seed(home / "store")
    command = [sys.executable, "-m", "memchat", "ui", "--user", "ana", "--port"]
    with Server(home, command=command) as server:
        yield server


def rows(home: Path, query: str) -> list[Any]:
    """What stands in the store just now."""
    store = sqlite3.connect(f"file:{home}/store/memchat.db?mode=ro", uri=True)
    try:
        return store.execute(query).fetchall()
    finally:
        store.close()


def write(home: Path, query: str) -> None:
    """Change the store behind the back of its processes."""
    with closing(sqlite3.connect(home / "store" / "memchat.db")) as store, store:
        store.execute(query)


def until(holds: Callable[[], object], seconds: float = WAIT / 1000) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def answering(*steps: Any) -> OpenAIServer:
    """An endpoint that answers so, in turn."""
    model = OpenAIServer()
    model.script(*steps)
    return model


def openai(model: OpenAIServer) -> dict[str, str]:
    """How a server is told to ask this endpoint."""
    return {
        "MEMCHAT_CHAT_MODEL": "openai/gpt-test",
        "OPENAI_API_KEY": model.key,
        "OPENAI_BASE_URL": model.base,
    }


# --- one long way


def test_the_way_from_the_first_word_to_forgetting_and_back(browser: Any, tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "I live in Lisbon and I play the cello.")
        page.get_by_role("button", name="Why this answer").wait_for()
        page.reload()
        page.locator(".memchat-said").get_by_text("I live in Lisbon").wait_for()
        page.get_by_role("button", name="New chat").click()
        page.get_by_text("Remembered: You live in Lisbon").first.wait_for()
        say(page, "Where do I live?")
        page.get_by_role("button", name="Why this answer").click()
        why = page.get_by_role("dialog")
        line = why.locator("[class*=st-key-given-]").filter(has_text="Lisbon")
        line.get_by_role("button", name="Edit").click()
        why.get_by_label("New value").fill("Porto")
        why.get_by_label("New value").press("Enter")
        why.get_by_role("button", name="Save").click()
        why.get_by_text("changed, now city: Porto").wait_for()
        settled(page)  # a key that comes while the dialog is drawn anew is lost
        page.keyboard.press("Escape")
        why.wait_for(state="detached")
        page.get_by_role("link", name="Memories").click()
        memory = page.get_by_role("listitem").filter(has_text="Porto")
        memory.get_by_role("button", name="What can be done").click()
        page.get_by_role("menuitem", name="Forget").click()
        memory.get_by_text("Forgotten: You live in Porto").wait_for()
        page.locator(".st-key-undo-bar").get_by_role("button", name="Undo").click()
        memory.get_by_role("button", name="What can be done: You live in Porto").wait_for()
        assert rows(tmp_path, "SELECT value FROM memories WHERE key = 'city' AND active")


@pytest.mark.slow
def test_a_reply_is_stopped_and_its_part_is_kept(browser: Any, tmp_path: Path) -> None:
    model = answering(Endless())
    with model, Server(tmp_path, **openai(model)) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "Tell me a long story.")
        page.get_by_role("button", name="Stop").wait_for()
        page.locator(".memchat-coming").get_by_text("word 5 ").first.wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped before its end.").wait_for()
        assert model.client_left.wait(WAIT / 1000)
        stored = "SELECT status FROM messages WHERE role = 'assistant' AND content LIKE '%word 5 %'"
        until(lambda: rows(tmp_path, stored) == [("partial",)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "kept"), [(Hang(60), None), (Pieces(("One ", "two"), silence=60), "One two")]
)
def test_stop_ends_a_reply_at_once_while_the_provider_is_silent(
    browser: Any, tmp_path: Path, step: Any, kept: str | None
) -> None:
    with answering(step) as model, Server(tmp_path, **openai(model)) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "Tell me a story.")
        page.get_by_text(kept or "Thinking").first.wait_for()
        until(lambda: model.requests)
        page.get_by_role("button", name="Stop").click()
        page.get_by_text(
            "Stopped before its end." if kept else "This message has no reply."
        ).wait_for()
        replies = "SELECT content, status FROM messages WHERE role = 'assistant'"
        assert rows(tmp_path, replies) == ([(kept, "partial")] if kept else [])


@pytest.mark.slow
def test_a_reply_that_its_provider_did_not_end_is_said_to_be_cut(
    browser: Any, tmp_path: Path
) -> None:
    model = answering(Pieces(("One ", "two")))
    with model, Server(tmp_path, **openai(model)) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "Tell me a story.")
        page.get_by_text("The reply was cut off: the provider ended it").wait_for()
        assert rows(tmp_path, "SELECT content, status FROM messages WHERE role = 'assistant'") == [
            ("One two", "partial")
        ]


@pytest.mark.slow
def test_a_reply_goes_on_while_its_tab_reloads_or_looks_elsewhere(
    browser: Any, tmp_path: Path
) -> None:
    model = answering(Endless())
    with model, Server(tmp_path, **openai(model)) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "Tell me a long story.")
        page.locator(".memchat-coming").get_by_text("word 5 ").first.wait_for()
        page.reload()
        page.get_by_role("button", name="Stop").wait_for()
        page.get_by_role("link", name="Memories").click()
        page.get_by_role("heading", name="Memories").wait_for()
        assert not model.client_left.is_set()
        page.get_by_role("link", name="Chat", exact=True).click()
        page.get_by_role("button", name="Stop").wait_for()
        settled(page)  # or the run that draws the page may swallow the click
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped before its end.").wait_for()


# --- how a conversation ends


@pytest.mark.slow
def test_a_closed_tab_ends_its_conversation_once(browser: Any, tmp_path: Path) -> None:
    with Server(tmp_path, grace=2.0) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "I live in Lisbon.")
        page.get_by_role("button", name="Why this answer").wait_for()
        page.close()
        until(lambda: rows(tmp_path, "SELECT 1 FROM sessions WHERE ended_at IS NOT NULL"))
        until(lambda: rows(tmp_path, "SELECT 1 FROM memories WHERE value = 'Lisbon'"))
        ended = rows(tmp_path, "SELECT ended_at FROM sessions")
        time.sleep(4)  # twice the grace: nothing tells when it does not end again
        assert rows(tmp_path, "SELECT ended_at FROM sessions") == ended
        assert rows(tmp_path, "SELECT count(*) FROM jobs WHERE kind = 'extract'") == [(1,)]


@pytest.mark.slow
def test_a_reload_does_not_end_the_conversation(browser: Any, tmp_path: Path) -> None:
    with Server(tmp_path, grace=12.0) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "I live in Lisbon.")
        page.get_by_role("button", name="Why this answer").wait_for()
        reloaded = time.monotonic()
        page.reload()
        settled(page)
        time.sleep(max(0.0, reloaded + 14 - time.monotonic()))  # the grace is over
        assert rows(tmp_path, "SELECT ended_at FROM sessions") == [(None,)]


@pytest.mark.slow
def test_a_server_killed_in_mid_answer_loses_no_word_of_the_persons(
    browser: Any, tmp_path: Path
) -> None:
    model = answering(Endless(), Say("Here I am again."))
    with model, Server(tmp_path, **openai(model)) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "I live in Lisbon. Tell me a long story.")
        page.locator(".memchat-coming").get_by_text("▍").wait_for()
        server.stop(signal.SIGKILL)
        server.start()
        page = opened(browser.new_page(), server.url + "?c=1")
        page.get_by_text("This message has no reply.").wait_for()
        page.get_by_role("button", name="Try again").click()
        page.get_by_text("Here I am again.").wait_for()
        page.get_by_role("button", name="New chat").click()
        until(lambda: rows(tmp_path, "SELECT 1 FROM memories WHERE value = 'Lisbon'"))


# --- whose it is


@pytest.mark.slow
def test_two_people_over_one_store_never_see_each_other(browser: Any, tmp_path: Path) -> None:
    with Server(tmp_path) as anas, Server(tmp_path, user="bob") as bobs:
        page = opened(browser.new_page(), anas.url)
        say(page, "Remember that I keep herons.")
        page.get_by_role("button", name="Why this answer").wait_for()
        for path in ("?c=1", "memories", "inbox", "insights"):
            other = opened(browser.new_page(), bobs.url + path)
            assert "heron" not in other.locator("body").inner_text()
            other.close()


@pytest.mark.slow
def test_an_incognito_chat_leaves_no_byte(browser: Any, tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        page = opened(browser.new_page(), server.url)
        page.get_by_role("button", name="Incognito").click()
        page.get_by_text("No memory is used").wait_for()
        say(page, "My code word is zanzibarquark.")
        page.get_by_role("button", name="Try again").wait_for()
        assert "c=" not in page.url
        page.reload()
        settled(page)
        assert "zanzibarquark" not in page.locator("body").inner_text()
        page.close()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"zanzibarquark" not in path.read_bytes(), path


# --- how it feels


@dataclass(frozen=True)
class Look:
    """What was seen of all pages, one after the other."""

    findings: list[str]
    """What axe finds, each with the page."""
    too_wide: list[str]
    """The pages that scroll sideways."""
    asked: list[str]
    """The addresses that the browser asked."""


@pytest.fixture(scope="module")
def look(module_browser: Any, seeded: Server) -> Callable[[str, int], Look]:
    """Looks at every page in a theme, in a window so wide; once for all tests."""

    @functools.cache
    def at(theme: str, width: int) -> Look:
        context = module_browser.new_context(color_scheme=theme, reduced_motion="reduce")
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 844})
        seen = Look([], [], [])
        page.on("request", lambda request: seen.asked.append(request.url))
        page.on("websocket", lambda socket: seen.asked.append(socket.url))
        for path in ("", *PAGES):
            opened(page, seeded.url + path)
            wide = page.evaluate(
                "[...document.querySelectorAll('html, .stMain, [data-testid=stMain]')]"
                ".map(e => e.scrollWidth - e.clientWidth)"
            )
            if max(wide) > 0:
                seen.too_wide.append(path)
            if width != NARROWEST:
                seen.findings.extend(f"{path} {one}" for one in findings(page))
        if width != NARROWEST:
            opened(page, seeded.url + "?c=3")
            page.get_by_role("button", name="Why this answer").click()
            page.get_by_role("dialog").wait_for()
            page.wait_for_timeout(600)
            seen.findings.extend(f"why {one}" for one in findings(page))
        context.close()
        return seen

    return at


@pytest.mark.parametrize(
    ("theme", "width"),
    [
        pytest.param("light", 1280, marks=pytest.mark.slow),
        pytest.param("dark", 1280, marks=pytest.mark.slow),
        ("dark", 390),
    ],
)
def test_axe_finds_nothing_serious_on_any_page(
    look: Callable[[str, int], Look], theme: str, width: int
) -> None:
    assert look(theme, width).findings == []


@pytest.mark.parametrize("width", slow_but((390,), [NARROWEST, 390, 1280]))
def test_no_page_scrolls_sideways(look: Callable[[str, int], Look], width: int) -> None:
    assert look("dark", width).too_wide == []


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(
    look: Callable[[str, int], Look], seeded: Server
) -> None:
    asked = look("dark", 1280).asked
    here = (seeded.url, seeded.url.replace("http", "ws"), "data:", "blob:")
    assert asked
    assert [url for url in asked if not url.startswith(here)] == []


@pytest.mark.slow
def test_a_models_picture_is_not_fetched(browser: Any, tmp_path: Path) -> None:
    told = "See ![it](http://127.0.0.1:9/leak.png) and $x$ and :material/home: :red[now]."
    told += r" Or \![it](http://127.0.0.1:9/leak.png), \`![it](http://127.0.0.1:9/leak.png)\`,"
    told += " ``` ![it](http://127.0.0.1:9/leak.png)"
    model = answering(Say(told))
    with model, Server(tmp_path, **openai(model)) as server:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        say(opened(page, server.url), "Show me.")
        page.get_by_role("button", name="Why this answer").wait_for()
        shown = page.locator(".memchat-answer").inner_text()
        assert page.locator(".memchat-reply math").count() == 1
        assert ":material/home:" in shown.replace("\u2060", "")
        assert ":red[now]" in shown
        assert page.locator(".memchat-reply :is([role=img], img)").count() == 0
        assert not [url for url in asked if "leak" in url]


@pytest.mark.slow
def test_on_a_phone_the_sidebar_folds_when_a_chat_was_chosen_in_it(
    browser: Any, tmp_path: Path
) -> None:
    with Server(tmp_path) as server:
        context = browser.new_context(viewport={"width": 390, "height": 800})
        page = opened(context.new_page(), server.url)
        say(page, "I live in Lisbon.")
        page.get_by_role("button", name="Why this answer").wait_for()
        for chosen in (".st-key-new button", "[class*=st-key-talk-] a"):
            page.get_by_role("button", name="Menu").click()
            page.locator(chosen).first.click()
            page.locator("[data-testid=stSidebar][data-collapsed=true]").wait_for(state="attached")
            settled(page)
        context.close()


@pytest.mark.slow
def test_the_keyboard_alone_goes_the_whole_way(browser: Any, tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        page = opened(browser.new_page(), server.url)

        def tab_to(name: str) -> None:
            for _ in range(60):
                page.keyboard.press("Tab")
                at = page.evaluate(FOCUSED)
                if at.partition(":")[0].strip() == name:  # a row's button also names its memory
                    return
            raise AssertionError(f"{name} cannot be reached")

        tab_to("Write a message")
        page.keyboard.type("I live in Lisbon.")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Why this answer").wait_for()
        tab_to("New chat")
        page.keyboard.press("Enter")
        page.get_by_text("Remembered: You live in Lisbon").first.wait_for()
        tab_to("Memories")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="What can be done: You live in Lisbon").wait_for()
        tab_to("What can be done")
        page.keyboard.press("Enter")
        tab_to("Forget")
        page.keyboard.press("Enter")
        page.get_by_text("Nothing is remembered yet").wait_for()
        tab_to("Undo")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="What can be done: You live in Lisbon").wait_for()


@pytest.mark.slow
def test_one_polite_region_speaks_at_the_turns_of_a_reply(browser: Any, tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        page = opened(browser.new_page(), server.url)
        say(page, "I live in Lisbon.")
        page.get_by_role("button", name="Why this answer").wait_for()
        said = page.locator("#memchat-status").filter(has_text="Answer complete")
        said.wait_for(state="attached")
        assert page.locator("#memchat-status[aria-live=polite]").count() == 1


# --- how much it holds


@pytest.mark.slow
def test_a_conversation_of_a_thousand_messages_opens_at_its_end(
    browser: Any, tmp_path: Path
) -> None:
    model = ScriptedModel(["Fine."])
    settings = Settings(home=tmp_path / "store", embed_model="none")
    with MemChat(settings=settings, chat_model=model, extract_model=ScriptedModel()) as mc:
        talk = mc.user(**ANA).chat()
        talk.send("Turn 0").read()
        talk.abandon()
    write(
        tmp_path,
        """WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
        INSERT INTO messages (session_id, role, content, created_at, status, memory)
        SELECT session_id, iif(i % 2, 'assistant', 'user'),
        iif(i % 2, 'Fine.', 'Turn ' || (i / 2)), created_at, status, 0
        FROM n, (SELECT * FROM messages WHERE role = 'user')""",
    )
    with Server(tmp_path) as server:
        opened(browser.new_page(), server.url)
        page = browser.new_page()
        opened(page, server.url + "?c=1").get_by_text("Turn 499", exact=True).wait_for()
        assert page.get_by_text("Turn 470", exact=True).count() == 0
        page.get_by_role("button", name="Show earlier messages (960 more)").click()
        page.get_by_text("Turn 470", exact=True).wait_for()
