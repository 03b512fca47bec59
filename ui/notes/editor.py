"""The forms in which a note is written, pasted or changed."""

from __future__ import annotations

import streamlit as st

from memchat.errors import InputError
from memchat.types import Note
from ui import components as ui
from ui.desk import Task
from ui.notes import place, row, search
from ui.notes.place import LIST, Place

HEIGHT = 280
TITLE_LIMIT = 200
KINDS = ("memo", "document")
SAVED_SECONDS = 0.5
"""How long saving is waited for; the vectors of a long text take longer, and are made meanwhile."""
ERRORS = "note-form"
"""The place of errors about what was written."""


def add_form() -> None:
    """A new note: a text, with a title if wanted."""
    with st.form("note-form", border=True):
        title, text = _fields("new", "", "")
        kind = st.radio(
            "Kind",
            KINDS,
            format_func=lambda name: row.TYPES[name],
            key="note-kind",
            horizontal=True,
            help="A memo is spoken or jotted down, and found in shorter parts than a document.",
        )
        ui.show_problem(ERRORS)
        saved, left = _buttons("Keep")
    if saved and ui.attempt(lambda: _add(title, text, kind), at=ERRORS):
        place.go(LIST)
    if left:
        place.go(LIST)
    if saved or left:
        st.rerun()


def edit_form(note: Note) -> None:
    """Title and text of a note, to be changed."""
    with st.form("note-form", border=False):
        title, text = _fields(str(note.id), note.title or "", note.text)
        ui.show_problem(ERRORS)
        saved, left = _buttons("Save")
    if saved and ui.attempt(lambda: _update(note, title, text), at=ERRORS):
        search.forget_found()
        place.go(Place(note.id))
    if left:
        place.go(Place(note.id))
    if saved or left:
        st.rerun()


def _fields(number: str, title: str, text: str) -> tuple[str, str]:
    """The two boxes; ``scripts/note_drafts.js`` keeps what is written in them."""
    written = st.text_input(
        "Title (may be empty)", value=title, key=f"draft-title-{number}", max_chars=TITLE_LIMIT
    )
    return written, st.text_area("Text", value=text, key=f"draft-text-{number}", height=HEIGHT)


def _buttons(save: str) -> tuple[bool, bool]:
    with st.container(horizontal=True):
        saved = st.form_submit_button(save, key="save-note", type="primary")
        return saved, st.form_submit_button("Cancel", key="leave-note")


def _add(title: str, text: str, kind: str) -> None:
    kept = ui.person().notes.add(
        text, title=title.strip() or None, type=kind, profile=kind, wait=False
    )
    if kept is None:
        raise InputError("the text is empty; write or paste something first")
    ui.desk().wake()


def _update(note: Note, title: str, text: str) -> None:
    """Save what was changed. Raises InputError for what cannot be kept."""
    notes = ui.person().notes
    task = Task("Saving", 0, lambda progress: notes.update(note.id, text=text, title=title.strip()))
    if task.wait(SAVED_SECONDS) and task.error is not None:
        raise InputError(task.error)
