"""The notes page: the list, one note, and its forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from memchat.notes import rows
from memchat.types import Note
from tests.support import private
from tests.support.ui.tab import ANA, app, buttons, press, text, until
from ui.desk import Desk
from ui.notes import upload
from ui.notes.note_text import LONG, drawn_html, note_html, place_of, window
from ui.notes.place import Place
from ui.notes.upload import File


def keep(mc: MemChat, words: str, title: str | None = None, **more: object) -> Note:
    note = mc.user(**ANA).notes.add(words, title=title, **more)  # type: ignore[arg-type]
    assert note is not None
    return note


def shown(at: AppTest) -> str:
    """The note's text as it is drawn, with its marks."""
    (found,) = [h.proto.body for h in at.get("html") if 'dir="auto"' in h.proto.body]
    return found


def address(at: AppTest) -> dict[str, str]:
    found = {
        name: at.query_params[name] for name in ("note", "at", "do") if name in at.query_params
    }
    return {name: one if isinstance(one, str) else one[0] for name, one in found.items()}


# --- the list


def test_no_notes_yet_says_what_they_are_and_offers_both_ways_in(desk: Desk) -> None:
    at = app("notes")
    assert "A note is a memo or a document" in text(at)
    assert buttons(at, "notes-") == ["notes-add", "notes-upload"]


def test_notes_are_listed_by_the_page_the_newest_first_by_title_or_first_words(mc: MemChat) -> None:
    begun = datetime(2024, 5, 1, 12, tzinfo=UTC)
    for n in range(13):
        keep(mc, f"Memo {n} *says* so", created_at=begun + timedelta(days=n))
    named = keep(mc, "Words", "A *title*", type="document", created_at=begun + timedelta(days=20))
    at = app("notes")
    titles = [at.button(key=key).label.replace("\\", "") for key in buttons(at, "note-")]
    assert titles[:2] == ["A *title*", "Memo 12 *says* so"] and len(titles) == 12
    assert buttons(at, "note-")[0] == f"note-{named.id}"
    assert "Document · 21 May 2024" in text(at)
    press(at, "next")
    assert len(buttons(at, "note-")) == 2 and at.button(key="next").disabled
    press(at, "before")
    assert len(buttons(at, "note-")) == 12


def test_the_list_is_limited_to_a_type_and_to_days_that_both_count(mc: MemChat) -> None:
    for day, kind in ((1, "memo"), (2, "document"), (3, "memo")):
        # 23:30 of that day in Lisbon
        keep(mc, f"Day {day}", type=kind, created_at=datetime(2024, 5, day, 22, 30, tzinfo=UTC))
    at = app("notes")
    at.selectbox(key="notes-type").set_value("memo").run()
    assert len(buttons(at, "note-")) == 2
    at.selectbox(key="notes-type").set_value("").run()
    at.date_input(key="notes-from").set_value(datetime(2024, 5, 2)).run()
    at.date_input(key="notes-until").set_value(datetime(2024, 5, 2)).run()
    assert [at.button(key=key).label for key in buttons(at, "note-")] == ["Day 2"]
    at.date_input(key="notes-from").set_value(datetime(2024, 6, 1)).run()
    at.date_input(key="notes-until").set_value(None).run()
    assert "Choose another type or other days." in text(at)


class TestIndexing:
    """With an embedding model."""

    @pytest.fixture
    def models(self) -> dict[str, str]:
        return {"MEMCHAT_EMBED_MODEL": "hash", "MEMCHAT_CHAT_MODEL": "offline/chat"}

    def test_a_note_is_said_to_be_indexed_until_it_is(self, mc: MemChat) -> None:
        note = keep(mc, "The kiln is hot.")
        with private.database(mc).write() as tx:  # as a service that is busy leaves it
            tx.connection.exec_driver_sql(
                "UPDATE passages SET status = -1, run_at = '2999-01-01T00:00:00Z'"
            )
        at = app("notes")
        assert "being indexed" in text(at)
        press(at, f"note-{note.id}")
        assert "Waits to be embedded; found by its words meanwhile." in text(at)
        with private.database(mc).write() as tx:
            tx.connection.exec_driver_sql(
                "UPDATE passages SET status = 1, error_message = 'the key was refused'"
            )
        at.run()
        assert "not indexed" in text(at) and "Not embedded (failed): the key was refused" in text(
            at
        )
        press(at, f"embed-{note.id}")
        until(at, lambda: "embedded" not in text(at))


# --- one note


def test_a_note_is_read_whole_and_its_address_leads_to_it(mc: MemChat) -> None:
    note = keep(mc, "The <kiln> is *hot*.\n\n:smile: Wait.")
    at = app("notes")
    press(at, f"note-{note.id}")
    assert address(at) == {"note": str(note.id)}
    assert "<p>The &lt;kiln&gt; is <em>hot</em>.</p>\n<p>:smile: Wait.</p>" in shown(at)
    press(at, "note-source")
    assert "The &lt;kiln&gt; is *hot*.\n\n:smile: Wait." in shown(at)
    press(at, "all-notes")
    assert address(at) == {} and buttons(at, "note-") == [f"note-{note.id}"]


def test_a_note_that_is_not_there_is_told_and_the_list_is_shown(mc: MemChat) -> None:
    keep(mc, "Something")
    theirs = mc.user("ana", app="work").notes.add("Elsewhere")
    assert theirs is not None
    at = app("notes")
    for number in (theirs.id, 999, 10**14 - 1):
        at.query_params["note"] = str(number)
        at.run()
        assert not at.exception
        assert "This note is not in the space “default”" in text(at)
        assert "Elsewhere" not in text(at) and len(buttons(at, "note-")) == 1


def test_a_note_whose_file_is_gone_is_marked(mc: MemChat) -> None:
    note = keep(mc, "From a file")
    with private.database(mc).write() as tx:
        rows.change(tx, [note.id], missing=1)
    at = app("notes")
    assert "the file is gone" in text(at)
    press(at, f"note-{note.id}")
    assert "the file is gone" in text(at)


def test_of_a_long_note_the_part_around_the_passage_is_drawn_and_all_on_request(
    mc: MemChat,
) -> None:
    words = " ".join(f"word{n}" for n in range(20_000))
    note = keep(mc, words)
    offset = words.index("word15000")
    at = app("notes")
    at.query_params["note"], at.query_params["at"] = str(note.id), f"{offset}-9"
    at.run()
    assert '<mark class="memchat-passage-marked">word15000</mark>' in shown(at)
    assert "word14500" in shown(at) and "word100 " not in shown(at)
    assert f"of {len(words):,}." in text(at)
    press(at, "whole-note")
    assert "word0 " in shown(at) and "word19999" in shown(at)


@pytest.mark.parametrize("passage", [None, (0, 10), (60_000, 500), (99_990, 10), (10**12, 5)])
def test_the_part_that_is_drawn_holds_the_passage_and_is_the_text_as_it_is(
    passage: tuple[int, int] | None,
) -> None:
    text = "abcd fghi\n" * 10_000
    start, end = window(text, passage)
    assert 0 < end - start < LONG
    if passage is not None and passage[0] < len(text):
        assert start <= passage[0] and sum(passage) <= end
    drawn = note_html(text, (start, end), passage)
    plain = drawn.replace('<mark class="memchat-passage-marked">', "").replace("</mark>", "")
    assert plain == f'<div class="memchat-note" dir="auto">{text[start:end]}</div>'


def test_the_words_of_a_search_are_lit_in_the_passage() -> None:
    drawn = note_html("São Paulo & Łódź. São", (0, 21), (0, 17), "sao lodz")
    assert '<b class="memchat-found-marked">São</b> Paulo &amp; ' in drawn
    assert '<b class="memchat-found">Łódź</b>.</mark> São' in drawn
    whole = note_html("São Paulo", (0, 9), (0, 9), "sao")
    assert '<b class="memchat-found-marked">São</b> Paulo' in whole and "<mark" not in whole
    # Its accent is a character of its own, as no place of a search is counted in.
    assert "</b>" not in note_html("Sa\u0303o", (0, 4), (0, 4), "sao")


def test_a_note_is_drawn_as_what_it_is_by_the_renderer_of_replies() -> None:
    def drawn(text: str) -> str:
        return drawn_html(text, (0, len(text)), None)

    table = drawn("# Kiln\n\n| part | heat |\n|---|---|\n| lid | 900 |\n\n![x](http://a/b.png)")
    assert "<h1>Kiln</h1>" in table and "<td>900</td>" in table and "<img" not in table
    page = drawn("<h2>Kiln</h2><p onclick='x()'>It is <script>y()</script>hot.</p>")
    assert "<h2>Kiln</h2>" in page and "<p>It is hot.</p>" in page
    assert "script" not in page and "onclick" not in page


@pytest.mark.parametrize(
    ("text", "passage", "words", "lit"),
    [
        (
            "# Kiln\n\nIt was cold. It is *hot* now. Wait.\n",
            "It is *hot* now.",
            "is it hot?",
            '<p>It was cold. <mark class="memchat-passage">It is <em>'
            '<b class="memchat-found-marked">hot</b></em> now.</mark> Wait.</p>',
        ),
        (
            "Before.\n\n- the kiln\n- the lid\n\nAfter.",
            "the kiln\n- the lid",
            "",
            '<p>Before.</p>\n<div class="memchat-passage-marked"><ul>\n<li>the kiln</li>\n'
            "<li>the lid</li>\n</ul>\n</div><p>After.</p>",
        ),
        (
            "See http://a.org/kiln for it. Wait.",
            "See http://a.org/kiln for it.",
            "kiln",
            'href="http://a.org/kiln"',
        ),
    ],
)
def test_the_passage_and_the_words_of_a_search_are_lit_in_what_is_drawn(
    text: str, passage: str, words: str, lit: str
) -> None:
    span = (text.index(passage), len(passage))
    assert lit in drawn_html(text, (0, len(text)), span, words)


def test_another_page_opens_a_note_at_a_passage(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot. Wait for it.")

    at = app("memories")
    at.session_state["coming note place"] = Place(
        note.id, (17, 12)
    )  # as ``place.lead_to_words`` does
    at.run()
    assert '<mark class="memchat-passage-marked">Wait for it.</mark>' in shown(at)
    assert address(at) == {"note": str(note.id), "at": "17-12"}


# --- its forms


def test_a_pasted_note_is_kept_as_it_is_and_a_blank_one_is_refused(mc: MemChat) -> None:
    at = app("notes")
    press(at, "notes-add")
    assert address(at) == {"do": "add"}
    press(at, "save-note")
    assert "The text is empty; write or paste something first." in text(at)
    at.text_input(key="draft-title-new").set_value("Kiln")
    at.text_area(key="draft-text-new").set_value("  The kiln is *hot*.\n\nWait.")
    at.radio(key="note-kind").set_value("document")
    press(at, "save-note")
    (found,) = mc.user(**ANA).notes.list()
    note = mc.user(**ANA).notes.get(found.id)
    assert (note.title, note.type, note.profile) == ("Kiln", "document", "document")
    assert note.text == "  The kiln is *hot*.\n\nWait." and address(at) == {}
    assert buttons(at, "note-") == [f"note-{note.id}"]


def test_a_note_is_changed_and_an_error_keeps_the_form_open(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot.", "Kiln")
    at = app("notes")
    press(at, f"note-{note.id}")
    press(at, "edit-note")
    at.text_area(key=f"draft-text-{note.id}").set_value(" ")
    press(at, "save-note")
    assert "The text has no words; give some text." in text(at)
    at.text_area(key=f"draft-text-{note.id}").set_value("The kiln is cold.")
    at.text_input(key=f"draft-title-{note.id}").set_value("Old kiln")
    press(at, "save-note")
    assert "The kiln is cold." in shown(at) and address(at) == {"note": str(note.id)}
    kept = mc.user(**ANA).notes.get(note.id)
    assert (kept.title, kept.text) == ("Old kiln", "The kiln is cold.")
    press(at, "edit-note")
    at.text_input(key=f"draft-title-{note.id}").set_value(" ")
    press(at, "save-note")
    assert mc.user(**ANA).notes.get(note.id).title is None


def test_a_deleted_note_can_be_brought_back_for_some_seconds(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot.", "*Kiln*")
    at = app("notes")
    press(at, f"note-{note.id}")
    press(at, "delete-note")
    assert not mc.user(**ANA).notes.list()
    assert "No notes yet" in text(at) and address(at) == {}
    assert "Kiln" in text(at) and "Gone for good in 10 s." in text(at)
    press(at, buttons(at, "undo-")[0])
    assert mc.user(**ANA).notes.get(note.id) == note
    assert buttons(at, "note-") == [f"note-{note.id}"] and not buttons(at, "undo-")


def test_of_a_deleted_note_that_is_a_file_it_is_said_that_the_file_stays(
    mc: MemChat, tmp_path: Path
) -> None:
    file = tmp_path / "kiln.md"
    file.write_text("# Kiln\n\nIt is hot.")
    (note,) = mc.user(**ANA).notes.add_files([file]).added
    at = app("notes")
    press(at, f"note-{note.id}")
    press(at, "delete-note")
    assert "Its file stays." in text(at) and file.exists()


def test_the_file_of_a_note_is_offered_while_it_is_there_and_of_an_upload_there_is_none(
    mc: MemChat, tmp_path: Path
) -> None:
    file = tmp_path / "kiln.md"
    file.write_text("# Kiln\n\nIt is hot.")
    (note,) = mc.user(**ANA).notes.add_files([file]).added
    uploaded = mc.user(**ANA).notes.add_upload(str(file), b"# Kiln\n\nIt is cold.")
    at = app("notes")
    press(at, f"note-{note.id}")
    (offered,) = at.get("download_button")
    assert offered.proto.label == "Download the file"
    file.unlink()
    assert not at.run().get("download_button")
    press(at, "all-notes")
    press(at, f"note-{uploaded.id}")
    assert not at.get("download_button")


def test_a_note_that_was_kept_anew_since_is_not_brought_back_over_it(mc: MemChat) -> None:
    note = keep(mc, "The kiln is hot.", external_id="kiln")
    at = app("notes")
    press(at, f"note-{note.id}")
    press(at, "delete-note")
    keep(mc, "The kiln is cold.", external_id="kiln")
    press(at, buttons(at, "undo-")[0])
    assert "cannot be undone" in text(at)
    assert [one.id for one in mc.user(**ANA).notes.list()] != [note.id]


def test_uploaded_files_are_kept_and_those_that_fail_are_named_with_the_reason(mc: MemChat) -> None:
    files = [File("kiln.md", b"# Kiln\n\nIt is hot."), File("broken.bin", bytes(range(256)) * 9)]
    files.append(File("empty.txt", b" "))
    told = []
    done = upload.add_all(mc.user(**ANA), files, progress=lambda p: told.append((p.done, p.total)))
    assert done.added == 1 and [name for name, _ in done.failed] == ["broken.bin", "empty.txt"]
    assert told == [(0, 3), (1, 3), (2, 3)]
    (note,) = mc.user(**ANA).notes.list()
    assert note.title == "Kiln"


def test_what_came_of_an_upload_is_shown_until_it_is_put_away(mc: MemChat) -> None:
    at = app("notes")
    press(at, "notes-upload")
    box = at.get("file_uploader")[0]
    box.set_value(
        [("kiln.md", b"# Kiln\n\nIt is hot.", "text/markdown"), ("no.txt", b"", "text/plain")]
    )
    at.run()
    assert at.button(key="add-files").label == "Add 2 files"
    press(at, "add-files")
    until(at, lambda: buttons(at, "put-away"))
    assert "1 file kept as notes." in text(at) and "no.txt was not kept:" in text(at).replace(
        "*", ""
    )
    press(at, "put-away")
    assert "was not kept" not in text(at) and len(buttons(at, "note-")) == 1


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("“A ”, title”, 2026-11-22: Mind the ‹b›door‹/b›.", "Mind the <b>door</b>."),
        (
            "“Kiln”, 2026-11-22: The code is [password] now. And …",
            "The code is 4711 now.\r\n\r\nAnd",
        ),
        ("more", "more"),
        ("“Kiln”, 2026-11-22: Nothing of it.", None),
        ("“Kiln”, 2026-11-22: …", None),
    ],
)
def test_a_passage_that_a_prompt_was_given_is_found_in_the_note(
    given: str, found: str | None
) -> None:
    said = "Mind the <b>door</b>.\tThe code is 4711 now.\r\n\r\nAnd more (or not)."
    place = place_of(said, given)
    assert (said[place[0] : sum(place)] if place else None) == found
