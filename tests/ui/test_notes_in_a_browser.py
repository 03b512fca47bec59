"""The notes page as a person meets it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat
from memchat.config import Settings
from tests.support.ui.browser import Server, becomes, findings, needs_browser, opened, settled
from tests.support.wire import OpenAIServer, Pieces, Say

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]
LEDGER = "The zanzibar ledger lies in the green box."
SEEN = """(() => {
  const box = document.querySelector('[class*=-marked]')?.getBoundingClientRect();
  return Boolean(box) && box.top >= 0 && box.top < innerHeight / 2; })()"""
TEXT = "document.querySelector('[class*=st-key-draft-text-] textarea')?.value"
TITLE = "document.querySelector('[class*=st-key-draft-title-] input')?.value"
FOCUS = "document.activeElement.getAttribute('aria-label')"
KEPT = "(sessionStorage.getItem('memchat note drafts') ?? '').includes('half a thought')"


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: OpenAIServer) -> Iterator[Server]:
    """A store with a note of a megabyte and two short ones."""
    home: Path = tmp_path_factory.mktemp("notes")
    lines = [f"Paragraph {n}. {'The river rose in the night. ' * 16}" for n in range(2_200)]
    lines[1_500] = LEDGER
    settings = Settings(home=home / "store", embed_model="none")
    with MemChat(settings=settings) as mc:
        notes = mc.user("ana", app="default").notes
        notes.add("\n\n".join(lines), title="The river book", type="document", profile="document")
        notes.add("Call John back about the gravel.", title="Gravel")
        notes.add("The herons are back on the weir.")
    env = {
        "MEMCHAT_CHAT_MODEL": "openai/gpt-test",
        "OPENAI_API_KEY": model.key,
        "OPENAI_BASE_URL": model.base,
    }
    with Server(home, **env) as found:
        yield found


def at_notes(page: Any, server: Server) -> Any:
    """The list of notes, drawn and listening to keys."""
    opened(page, server.url + "notes")
    row(page, "Gravel").wait_for()
    becomes(page, "window.memchatShortcuts && window.memchatNoteDrafts")
    return page


def row(page: Any, title: str) -> Any:
    return page.locator("[class*=st-key-row-note-] button").get_by_text(title)


def ask(page: Any, question: str) -> None:
    page.get_by_label("Search or ask your notes").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()


@pytest.mark.slow
def test_the_file_of_a_note_is_downloaded_byte_by_byte(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "kiln.html"
    file.write_bytes(b"<title>Kiln</title>\r\n<p>It is hot.</p>\r\n")
    with MemChat(settings=Settings(home=tmp_path / "store", embed_model="none")) as mc:
        mc.user("ana", app="default").notes.add_files([file])
    with Server(tmp_path) as server:
        page = opened(browser.new_page(), server.url + "notes")
        row(page, "Kiln").click()
        with page.expect_download() as given:
            page.get_by_role("button", name="Download the file").click()
        assert given.value.suggested_filename == "kiln.html"
        assert Path(given.value.path()).read_bytes() == file.read_bytes()


@pytest.mark.slow
def test_what_is_found_opens_lit_and_in_sight_and_back_leads_to_the_results(
    page: Any, server: Server
) -> None:
    at_notes(page, server)
    page.keyboard.press("Control+k")
    becomes(page, FOCUS, "Search or ask your notes")
    page.keyboard.type("ZANZIBAR ledger")
    hit = page.locator("[class*=st-key-row-hit-]")
    hit.locator(".stMarkdownColoredBackground").get_by_text("ledger").wait_for()
    settled(page)
    assert page.evaluate(FOCUS) == "Search or ask your notes", "it is found while one types"
    hit.get_by_role("button").click()
    found = page.locator(".memchat-passage b")
    found.get_by_text("ledger").wait_for()
    becomes(page, SEEN)
    page.get_by_text("Paragraph 2.").first.wait_for(state="detached")
    page.reload()
    page.locator("[class^=memchat-passage]").get_by_text(LEDGER).wait_for()
    becomes(page, SEEN)
    settled(page)
    page.get_by_role("button", name="All notes").click()
    row(page, "Gravel").wait_for()
    settled(page)
    page.evaluate("history.back()")
    page.locator("[class^=memchat-passage]").get_by_text(LEDGER).wait_for()
    settled(page)
    page.evaluate("history.back()")
    row(page, "Gravel").wait_for()
    settled(page)
    page.evaluate("history.forward()")
    page.locator("[class^=memchat-passage]").get_by_text(LEDGER).wait_for()
    page.get_by_role("button", name="Show all").click()
    page.locator(".memchat-note").get_by_text("Paragraph 2199.").wait_for()
    becomes(page, SEEN)


@pytest.mark.slow
def test_what_is_written_stays_over_other_pages_and_a_reload_until_it_is_kept_or_left(
    page: Any, server: Server
) -> None:
    at_notes(page, server)
    page.get_by_role("button", name="Write or paste").click()
    becomes(page, FOCUS, "Text")
    page.keyboard.type("half a thought")
    page.get_by_label("Title").fill("Thoughts")
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("heading", name="Memories").wait_for()
    settled(page)
    page.get_by_role("link", name="Notes").click()
    page.get_by_role("button", name="Write or paste").click()
    becomes(page, TEXT, "half a thought")
    page.reload()
    becomes(page, TEXT, "half a thought")
    becomes(page, TITLE, "Thoughts")
    settled(page)
    page.get_by_role("button", name="Keep").click()
    row(page, "Thoughts").wait_for()
    becomes(page, KEPT, False)
    row(page, "Thoughts").click()
    page.locator(".memchat-text").get_by_text("half a thought").wait_for()
    page.get_by_role("button", name="Edit").click()
    becomes(page, TEXT, "half a thought")
    page.get_by_label("Text").fill("half a thought more")
    becomes(page, KEPT)
    settled(page)  # a key on what is being drawn anew is lost
    page.keyboard.press("Escape")
    page.locator(".memchat-text").get_by_text("half a thought", exact=True).wait_for()
    becomes(page, KEPT, False)
    settled(page)
    page.get_by_role("button", name="Edit").click()
    becomes(page, TEXT, "half a thought")
    page.get_by_label("Text").fill("half a thought less")
    becomes(page, KEPT)
    settled(page)
    page.evaluate("history.back()")
    page.get_by_role("button", name="Delete", exact=True).click()
    becomes(page, KEPT, False)
    row(page, "Gravel").wait_for()
    row(page, "Thoughts").wait_for(state="detached")


@pytest.mark.slow
def test_the_keyboard_goes_to_the_undo_of_a_deleted_note_and_to_the_note_it_brings_back(
    page: Any, server: Server
) -> None:
    at_notes(page, server)
    becomes(page, "window.memchatFocus")
    row(page, "Gravel").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    becomes(page, "document.activeElement.closest('.st-key-undo-bar') !== null")
    page.keyboard.press("Enter")
    becomes(page, "document.activeElement.textContent.trim()", "Gravel")


@pytest.mark.slow
def test_of_a_draft_it_is_said_that_the_note_was_changed_since(
    page: Any, browser: Any, server: Server
) -> None:
    at_notes(page, server)
    row(page, "herons").click()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("The herons left.")
    stale = page.get_by_text("This note was changed after you wrote this draft.")
    becomes(page, "sessionStorage.getItem('memchat note drafts').includes('left')")
    page.reload()
    becomes(page, TEXT, "The herons left.")
    assert not stale.is_visible(), "the note is as it was"
    other = browser.new_context().new_page()
    opened(other, page.url)
    becomes(other, TEXT, "The herons are back on the weir.")
    other.get_by_label("Text").fill("The herons are three.")
    other.get_by_role("button", name="Save").click()
    other.locator(".memchat-text").get_by_text("The herons are three.").wait_for()
    other.context.close()
    for _ in range(2):
        page.reload()
        becomes(page, TEXT, "The herons left.")
        stale.wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.locator(".memchat-text").get_by_text("The herons are three.").wait_for()


def test_several_files_are_uploaded_and_the_bad_one_is_named(page: Any, server: Server) -> None:
    at_notes(page, server)
    page.get_by_role("button", name="Upload files").click()
    box = page.get_by_test_id("stFileUploaderDropzoneInput")
    box.wait_for(state="attached")
    box.set_input_files(
        [
            {"name": "kiln.md", "mimeType": "text/markdown", "buffer": b"# The kiln\n\nIt is hot."},
            {"name": "plain.txt", "mimeType": "text/plain", "buffer": b"Nothing but words."},
            {"name": "blank.txt", "mimeType": "text/plain", "buffer": b"  "},
        ]
    )
    page.get_by_role("button", name="Add 3 files").click()
    page.get_by_text("2 files kept as notes.").wait_for()
    page.get_by_text("blank.txt was not kept").wait_for()
    row(page, "The kiln").wait_for()
    row(page, "plain").wait_for()
    page.get_by_role("button", name="OK", exact=True).click()
    page.get_by_text("blank.txt was not kept").wait_for(state="detached")


@pytest.mark.slow
def test_an_answer_streams_is_stopped_and_names_sources_that_open(
    page: Any, server: Server, model: OpenAIServer
) -> None:
    at_notes(page, server)
    model.script(Pieces(("John has ", "gravel "), silence=60))
    ask(page, "What about the gravel?")
    page.locator(".st-key-notes-answer").get_by_text("John has gravel").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped before its end.").wait_for()
    model.script(Say("You want to call John [1]."))
    ask(page, "Whom do I call about the gravel?")
    source = page.locator("[class*=st-key-row-source-]").get_by_role("button")
    source.get_by_text("[1] Gravel, today").wait_for()
    page.get_by_text("You want to call John [1].").wait_for()
    settled(page)
    assert findings(page) == []
    page.get_by_role("button", name="Source 1").click()
    becomes(page, "document.activeElement.closest('.st-key-row-source-1') !== null")
    page.keyboard.press("Enter")
    page.locator(".memchat-text").get_by_text("Call John back").wait_for()
    page.get_by_role("button", name="All notes").click()
    page.get_by_text("You want to call John [1].").wait_for()
    page.reload()
    row(page, "Gravel").wait_for()
    settled(page)
    assert page.get_by_text("You want to call John").count() == 0
    assert page.locator("[class*=st-key-talk-]").count() == 0
