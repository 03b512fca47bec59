"""Files that are attached to a message in the browser: by keyboard, dropped and pasted."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from memchat import MemChat
from memchat.config import Settings
from tests.support.ui.browser import becomes, findings, needs_browser, opened, say
from tests.support.wire import Fail, Pieces, Say
from tests.ui.test_chat_in_a_browser import BOX, answering

pytestmark = [needs_browser, pytest.mark.xdist_group("browser"), pytest.mark.slow]
WORDS = "The heron count was nineteen."
REPORT = {"name": "report.txt", "mimeType": "text/plain", "buffer": WORDS.encode()}
GIVE = """([at, kind, name, text]) => {
  const given = new DataTransfer();
  given.items.add(new File([text], name));
  const how = { bubbles: true, cancelable: true };
  const event = kind === "paste"
    ? new ClipboardEvent(kind, { clipboardData: given, ...how })
    : new DragEvent(kind, { dataTransfer: given, ...how });
  return document.querySelector(at).dispatchEvent(event);
}"""


def photo() -> bytes:
    written = BytesIO()
    Image.new("RGB", (40, 20), "green").save(written, "JPEG")
    return written.getvalue()


def test_a_file_is_attached_by_keyboard_sent_shown_and_kept_as_a_note(
    browser: Any, tmp_path: Path
) -> None:
    with answering(tmp_path, Say("Nineteen.")) as (server, model):
        page, loud = opened(browser.new_page(), server.url), list[str]()
        page.on("console", lambda told: loud.append(told.text) if told.type == "error" else None)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Attach files").focus()
            page.keyboard.press("Enter")
        chooser.value.set_files([REPORT])
        page.get_by_text("report.txt: 29 characters").wait_for()
        assert [one for one in findings(page) if "memchat-composer" in one] == []
        becomes(page, "document.activeElement.id === 'memchat-message'")
        page.keyboard.type("How many?")
        page.keyboard.press("Enter")
        page.get_by_text("Nineteen.").wait_for()
        page.get_by_text("Attached: report.txt (29 characters)").wait_for()
        assert page.locator(".memchat-files").inner_text() == ""
        page.get_by_role("button", name="Keep as a note: report.txt").click()
        page.locator(".st-key-told").get_by_text("Kept as the note “report.txt”.").wait_for()
        assert findings(page) == [] and loud == []
        asked = model.requests[-1].body["messages"][-1]["content"]
        assert asked == f"How many?\n\n[Attached: report.txt]\n{WORDS}"
    with MemChat(settings=Settings(tmp_path / "store", embed_model="none")) as mc:
        (user,) = mc.users.list()
        notes = mc.user(user.name, app="default").notes
        (note,) = notes.list()
        assert (note.title, notes.get(note.id).text) == ("report.txt", WORDS)


def test_files_are_dropped_and_pasted_and_one_that_cannot_be_read_says_why(
    browser: Any, tmp_path: Path
) -> None:
    with answering(tmp_path, Say("A heron."), Say("Two.")) as (server, model):
        page = opened(browser.new_page(), server.url)
        assert not page.evaluate(GIVE, [".memchat-box", "drop", "a.txt", "One heron."])
        page.get_by_text("a.txt: 10 characters").wait_for()
        page.evaluate(GIVE, [BOX, "paste", "b.png", "no picture"])
        told = page.locator(".memchat-files [role=alert]")
        told.get_by_text("b.png: It is no picture that can be read").wait_for()
        page.locator(BOX).fill("What is it?")
        send = page.get_by_role("button", name="Send", exact=True)
        assert send.is_disabled(), "what cannot be sent is not left out in silence"
        page.get_by_role("button", name="Remove: b.png").click()
        send.click()
        page.get_by_text("A heron.").wait_for()
        content = model.requests[-1].body["messages"][-1]["content"]
        assert re.search("One heron", content) and "b.png" not in content
        page.evaluate(GIVE, [".memchat-box", "drop", "c.txt", "Two herons."])
        page.get_by_text("c.txt: 11 characters").wait_for()
        page.locator(BOX).press("Enter")  # without a word beside it
        page.get_by_text("Two.").wait_for()
        content = model.requests[-1].body["messages"][-1]["content"]
        assert content.startswith("c.txt") and "Two herons" in content


def test_a_picture_waits_with_its_message_and_comes_back_with_it_when_the_reply_before_it_fails(
    browser: Any, tmp_path: Path
) -> None:
    steps = (Pieces(("Half",), silence=2), Fail(401, "no such key"))
    with answering(tmp_path, *steps) as (server, _):
        page = opened(browser.new_page(), server.url)
        say(page, "Hello.")
        page.locator(".memchat-coming").get_by_text("Half").wait_for()
        say(page, "And this.")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Attach files").click()
        chooser.value.set_files([{"name": "a.jpg", "mimeType": "image/jpeg", "buffer": photo()}])
        page.get_by_text("a.jpg: 1 kB").wait_for()
        say(page, "And that.")
        page.locator(".memchat-error").wait_for()
        becomes(page, "document.querySelector('#memchat-message').value", "And that.")
        page.get_by_text("a.jpg: 1 kB").wait_for()
