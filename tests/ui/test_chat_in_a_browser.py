"""The chat in the browser: words as they come, the box to write in, and the place on the page."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.testing import ScriptedModel
from tests.support.ui.browser import WAIT, Server, becomes, needs_browser, opened, say, settled
from tests.support.wire import Endless, Fail, OpenAIServer, Pieces, Say

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
BOX = "#memchat-message"
AT_BOX = "document.activeElement.id === 'memchat-message'"
CHAT = ".st-key-talks a.memchat-link"
AT_END = """(() => { const main = document.querySelector('.stMain');
  return main.scrollHeight - main.scrollTop - main.clientHeight < 2; })()"""
PARAGRAPHS = tuple(f"Paragraph {n} of a long story.\n\n" for n in range(60))


@contextmanager
def answering(home: Path, *steps: Any) -> Iterator[tuple[Server, OpenAIServer]]:
    """The app over an endpoint that answers so, in turn."""
    model = OpenAIServer()
    model.script(*steps)
    with (
        model,
        Server(
            home,
            MEMCHAT_CHAT_MODEL="openai/gpt-test",
            OPENAI_API_KEY=model.key,
            OPENAI_BASE_URL=model.base,
        ) as server,
    ):
        yield server, model


def talked(home: Path, replies: list[str]) -> None:
    """A chat in which the model said this."""
    settings = Settings(home / "store", embed_model="none")
    with MemChat(settings=settings, chat_model=ScriptedModel(replies)) as mc:
        chat = mc.user("ana", app="default").chat()
        for n in range(len(replies)):
            chat.send(f"Question {n}").read()
        chat.abandon()


@pytest.mark.slow
def test_the_keyboard_is_in_the_box_on_load_in_a_new_chat_in_another_and_after_escape(
    browser: Any, tmp_path: Path
) -> None:
    talked(tmp_path, ["Fine."])
    with Server(tmp_path) as server:
        page = opened(browser.new_page(), server.url)
        becomes(page, AT_BOX)
        page.locator(CHAT).first.click()
        page.get_by_text("Fine.").wait_for()
        becomes(page, AT_BOX)
        page.get_by_role("button", name="New chat").click()
        page.get_by_role("heading", name="What is on your mind?").wait_for()
        becomes(page, AT_BOX)
        settled(page)
        page.locator(CHAT).first.focus()
        page.keyboard.press("Escape")
        becomes(page, AT_BOX)


@pytest.mark.slow
def test_who_scrolls_up_while_a_reply_comes_stays_there(browser: Any, tmp_path: Path) -> None:
    with answering(tmp_path, Pieces(PARAGRAPHS, silence=60)) as (server, _):
        page = opened(browser.new_page(), server.url)
        say(page, "Tell me a long story.")
        page.locator(".memchat-coming").get_by_text("Paragraph 59").wait_for()
        becomes(page, AT_END)
        page.mouse.move(640, 300)
        page.mouse.wheel(0, -60)
        becomes(page, AT_END, False)
        page.wait_for_timeout(500)  # the wheel turns softly
        at = page.evaluate("document.querySelector('.stMain').scrollTop")
        page.keyboard.press("Escape")
        page.get_by_text("Stopped before its end.").wait_for()
        settled(page)
        assert page.evaluate("document.querySelector('.stMain').scrollTop") == at


@pytest.mark.slow
def test_a_long_chat_is_at_its_end_at_once_and_its_last_message_is_edited_in_sight(
    browser: Any, tmp_path: Path
) -> None:
    talked(tmp_path, ["".join(PARAGRAPHS)] * 12 + ["Fine."])
    with Server(tmp_path) as server:
        opened(browser.new_page(), server.url)
        page = browser.new_page()
        page.set_default_timeout(WAIT)
        page.goto(server.url + "?c=1")
        page.locator(".memchat-said").first.wait_for()
        assert page.evaluate(AT_END)
        settled(page)
        assert page.evaluate(AT_END)
        assert page.evaluate("document.querySelector('.stMain').scrollHeight") > 20_000
        page.get_by_role("button", name="Edit: Question 12").click()
        seen = """(() => { const box = document.activeElement.getBoundingClientRect();
          const below = document.querySelector('.memchat-composer').getBoundingClientRect().top;
          return document.activeElement.value === 'Question 12'
            && box.top > 0 && box.bottom < below; })()"""
        becomes(page, seen)
        page.wait_for_timeout(500)
        assert page.evaluate(seen)
        page.keyboard.press("Escape")
        becomes(page, AT_BOX)


@pytest.mark.slow
def test_a_hit_of_the_search_scrolls_the_transcript_alone(browser: Any, tmp_path: Path) -> None:
    talked(tmp_path, ["".join(PARAGRAPHS), "A lighthouse.", *["".join(PARAGRAPHS)] * 3])
    with Server(tmp_path) as server:
        page = opened(browser.new_page(), server.url)
        page.get_by_label("Search chats").fill("lighthouse")
        page.locator("a.memchat-hit").click()
        page.locator(".memchat-answer-marked").get_by_text("A lighthouse.").wait_for()
        page.wait_for_timeout(3500)  # until nothing lands any more
        slid = "[...document.querySelectorAll('html, body, .stApp')].map(e => e.scrollTop)"
        assert page.evaluate(slid) == [0, 0, 0]
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
        assert page.locator(".memchat-answer-marked").evaluate(
            "e => e.getBoundingClientRect().top > 0"
        )


@pytest.mark.slow
def test_what_waits_in_the_box_is_kept_with_the_queue_over_a_reload(
    browser: Any, tmp_path: Path
) -> None:
    with answering(tmp_path, Endless()) as (server, _):
        page = opened(browser.new_page(), server.url)
        say(page, "Tell me a long story.")
        page.locator(".memchat-coming").get_by_text("word 5 ").first.wait_for()
        say(page, "And then?")
        page.locator(BOX).fill("half a thought")
        page.reload()
        becomes(page, "document.querySelector('#memchat-message')?.value", "half a thought")
        page.get_by_text("Sent when the reply is there: And then?").wait_for()
        ((_, kept),) = json.loads(page.evaluate("sessionStorage.getItem('memchat drafts')"))
        queue = [{"words": "And then?", "files": []}]
        assert kept == {"words": "half a thought", "queue": queue, "files": []}


@pytest.mark.slow
def test_own_words_are_seen_at_once(browser: Any, tmp_path: Path) -> None:
    with answering(tmp_path, Endless()) as (server, _):
        page = opened(browser.new_page(), server.url)
        page.locator(BOX).wait_for()
        page.evaluate(
            """() => {
              const turns = document.querySelector('.memchat-turns');
              addEventListener('keydown', () => { window.began = performance.now(); }, true);
              new MutationObserver(() => { window.seen ??= performance.now(); })
                .observe(turns, {childList: true});
            }"""
        )
        say(page, "Tell me a long story.")
        page.locator(".memchat-coming").get_by_text("word 5 ").first.wait_for()
        assert page.evaluate("window.seen - window.began") < 150
        began = time.monotonic()
        page.keyboard.press("Escape")
        page.get_by_text("Stopped before its end.").wait_for()
        assert time.monotonic() - began < 10


def test_a_block_that_is_whole_is_not_touched_while_the_reply_goes_on(
    browser: Any, tmp_path: Path
) -> None:
    with answering(tmp_path, Pieces(("First **one**.\n\nSecond", *[" word"] * 20), silence=60)) as (
        server,
        _,
    ):
        page = opened(browser.new_page(), server.url)
        say(page, "Tell me a story.")
        page.locator(".memchat-coming").get_by_text("Second").wait_for()
        page.evaluate(
            """() => {
              window.whole = document.querySelector('.memchat-coming .memchat-block');
              getSelection().selectAllChildren(window.whole);
            }"""
        )
        page.get_by_text("word word word").wait_for()
        page.keyboard.press("Escape")
        page.get_by_text("Stopped before its end.").wait_for()
        assert page.evaluate("window.whole.isConnected && getSelection().toString().trim()") == (
            "First one."
        )


@pytest.mark.slow
def test_a_reply_comes_many_times_a_second_and_each_block_is_sent_once(
    browser: Any, tmp_path: Path
) -> None:
    with answering(tmp_path, Endless()) as (server, _):
        page = opened(browser.new_page(), server.url)
        page.locator(BOX).wait_for()
        page.evaluate(
            """() => { window.updates = 0;
              new MutationObserver(() => { window.updates += 1; }).observe(
                document.querySelector('.memchat-turns'), {childList: true, subtree: true}); }"""
        )
        say(page, "Tell me a long story.")
        page.locator(".memchat-coming").get_by_text("word 5 ").first.wait_for()
        before = page.evaluate("window.updates")
        page.wait_for_timeout(3000)
        assert (page.evaluate("window.updates") - before) / 3 >= 8  # 20 on a quiet machine
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped before its end.").wait_for()


@pytest.mark.slow
def test_a_message_that_is_written_meanwhile_waits_for_the_reply(
    browser: Any, tmp_path: Path
) -> None:
    first = Pieces(("One ", "two."), finish=True, silence=3)
    with answering(tmp_path, first, Say("Three.")) as (server, model):
        page = opened(browser.new_page(), server.url)
        say(page, "Count to two.")
        page.locator(".memchat-coming").get_by_text("One").wait_for()
        say(page, "And then?")
        page.get_by_text("Sent when the reply is there: And then?").wait_for()
        page.get_by_text("Three.").wait_for()
        assert page.locator(".memchat-queue").inner_text() == ""
        assert page.locator(".memchat-reply").first.inner_text() == "One two."
        assert len(model.requests) == 2


@pytest.mark.slow
def test_what_waits_is_put_back_into_the_box_when_the_reply_before_it_fails(
    browser: Any, tmp_path: Path
) -> None:
    with answering(tmp_path, Pieces(("Half",), silence=2), Fail(401, "no such key")) as (server, _):
        page = opened(browser.new_page(), server.url)
        say(page, "Hello.")
        page.locator(".memchat-coming").get_by_text("Half").wait_for()
        say(page, "And this.")
        say(page, "And that.")
        page.locator(".memchat-error").wait_for()
        becomes(page, "document.querySelector('#memchat-message').value", "And that.")


@pytest.mark.slow
def test_two_tabs_on_one_chat_show_the_same(browser: Any, tmp_path: Path) -> None:
    with answering(tmp_path, Say("Good."), Endless()) as (server, _):
        one = opened(browser.new_page(), server.url)
        say(one, "Hello.")
        one.get_by_role("button", name="Why this answer").wait_for()
        two = opened(browser.new_page(), one.url)
        say(one, "Tell me a long story.")
        two.locator(".memchat-said").get_by_text("Tell me a long story.").wait_for()
        two.locator(".memchat-coming").get_by_text("word 5 ").first.wait_for()
        two.get_by_role("button", name="Stop").click()
        for page in (one, two):
            page.get_by_text("Stopped before its end.").wait_for()


@pytest.mark.slow
def test_an_open_editor_keeps_what_is_typed_while_the_chat_goes_on_in_another_tab(
    browser: Any, tmp_path: Path
) -> None:
    with answering(tmp_path, Say("Good."), Say("Later.")) as (server, _):
        one = opened(browser.new_page(), server.url)
        say(one, "Hello.")
        one.locator("[data-key=edit-0]:enabled").click()
        one.locator(".memchat-editor textarea").fill("half a thought")
        two = opened(browser.new_page(), one.url)
        say(two, "And now?")
        one.get_by_text("Later.").wait_for()
        assert one.locator(".memchat-editor textarea").input_value() == "half a thought"


@pytest.mark.slow
def test_an_incognito_reply_is_seen_as_it_comes(browser: Any, tmp_path: Path) -> None:
    with answering(tmp_path, Endless()) as (server, _):
        page = opened(browser.new_page(), server.url)
        page.get_by_role("button", name="Incognito").click()
        page.get_by_text("No memory is used").wait_for()
        say(page, "Tell me a long story.")
        page.locator(".memchat-coming").get_by_text("word 5 ").first.wait_for()
        page.keyboard.press("Escape")
        page.get_by_text("Stopped before its end.").wait_for()
        assert "c=" not in page.url


@pytest.mark.slow
def test_nobody_hears_a_reply_without_the_secret_of_its_tab(browser: Any, tmp_path: Path) -> None:
    with answering(tmp_path, Endless()) as (server, _):
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        say(opened(page, server.url), "Tell me a long story.")
        page.locator(".memchat-coming").get_by_text("word 5 ").first.wait_for()
        (own, *_) = [url for url in asked if "/memchat/live/" in url]
        secret = own.rpartition("/")[2]
        assert len(secret) == 32
        status = "at => fetch(at, {method: 'GET'}).then(answer => answer.status)"
        assert page.evaluate(status, own.replace(secret, secret[::-1])) == 404
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped before its end.").wait_for()
