"""The forms in which a note is written, pasted or changed."""

from __future__ import annotations

from hashlib import sha256

import streamlit as st

from memchat.errors import InputError, NotFound
from memchat.types import Note
from ui import components as ui
from ui.notes import place, row, search
from ui.notes.place import LIST, Place

HEIGHT = 280
TITLE_LIMIT = 200
KINDS = ("memo", "document")
_EDITED = "edited note"
"""The note as it was when its form was opened."""
STALE = (
    '<p class="memchat-stale-draft" role="alert" data-note="{}">'
    "This note was changed after you wrote this draft. "
    "Save puts the draft in the place of what the note says now; Cancel drops the draft.</p>"
)
"""Hidden; ``scripts/note_drafts.js`` shows it over a draft of another text than the one named."""
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


def edited(note_id: int) -> Note | None:
    """The note as it was when it was opened for editing, if that is what this tab edits."""
    before: Note | None = st.session_state.get(_EDITED)
    here = before is not None and (before.id, before.app) == (note_id, ui.app_name())
    return before if here else None


def leave() -> None:
    """Edit no note any more."""
    st.session_state.pop(_EDITED, None)


def edit_form(note: Note) -> None:
    """Title and text of a note, to be changed."""
    before = edited(note.id) or note
    st.session_state[_EDITED] = before
    with st.form("note-form", border=False):
        title, text = _fields(str(note.id), before.title or "", before.text)
        digest = sha256(f"{before.title or ''}\n{before.text}".encode()).hexdigest()
        st.html(STALE.format(digest))
        ui.show_problem(ERRORS)
        saved, left = _buttons("Save")
    if saved and ui.attempt(lambda: _update(before, note, title.strip(), text), at=ERRORS):
        search.forget_found()
        place.go(Place(note.id))
    if left:
        place.go(Place(note.id))
    if saved or left:
        st.rerun()


def _fields(number: str, title: str, text: str) -> tuple[str, str]:
    """The two boxes; ``scripts/note_drafts.js`` keeps what is written in them."""
    number += "" if number.isdecimal() else ui.who().mark
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


def _update(before: Note, now: Note, title: str, text: str) -> None:
    """Save what was changed since ``before``, where the note is still so ``now``.

    Raises InputError for what cannot be kept.
    """
    notes = ui.person().notes
    words = None if text == before.text else text
    name = None if title == (before.title or "") else title
    replaced = words is not None and now.text not in (before.text, words)
    if replaced or (name is not None and now.title not in (before.title, name or None)):
        st.session_state[_EDITED] = now
        raise InputError(
            "this note was changed elsewhere since you opened it; Save again puts your words in "
            "the place of the new ones, Cancel shows them"
        )
    if words is None and name is None:
        return
    try:
        # Its vectors may take long, and are made meanwhile.
        notes.update(before.id, text=words, title=name, wait=False)
    except NotFound as error:
        raise InputError("this note was deleted elsewhere; copy your words to a new one") from error
    ui.desk().wake()
