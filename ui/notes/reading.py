"""One note, whole, with a passage of it lit where one was looked for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Note
from ui import components as ui
from ui import embedding_job, forgetting, hold, old_backups
from ui.hold import Hold
from ui.notes import answer, editor, place, row, search, topics, waiting
from ui.notes.note_text import drawn_html, note_html, window
from ui.notes.place import LIST, Place

NAME_LENGTH = 36
"""Characters of a deleted note's title that are shown while it can be undone."""


def find(note_id: int) -> Note | None:
    """The note, or None where it is not in this space; then the page says so. One that was deleted
    while this tab edits it is as it was, so that what was written is not lost."""
    try:
        return ui.person().notes.get(note_id)
    except NotFound:
        edited = editor.edited(note_id)
        if edited is not None and place.here().editor == "edit":
            return edited
        ui.problem(
            f"this note is not in the space “{ui.app_name()}”; it was deleted, or is another's"
        )
        return None


def show(note: Note) -> None:
    """Draw it."""
    st.button("← All notes", key="all-notes", type="tertiary", on_click=place.go)
    if place.here().editor == "edit":
        st.subheader("Edit this note", anchor=False)
        editor.edit_form(note)
        return
    jobs = waiting.jobs([note.id])
    job = jobs.get(note.id)
    st.subheader(ui.literal(row.title_of(note)), anchor=False)
    size = ui.plural(len(note.text), "character")
    st.markdown(f":small[:gray[{row.described(note, job)} · {size}]]")
    if job is not None:
        embedding_job.show(job)
    ui.show_problem()
    with st.container(key="under-note", horizontal=True):
        edit = partial(place.go, Place(note.id, editor="edit"))
        st.button("Edit", key="edit-note", type="tertiary", on_click=edit)
        delete = partial(_delete, note)
        st.button("Delete", key="delete-note", type="tertiary", on_click=delete)
        _download(note)
        source = bool(st.session_state.get("note source"))
        turn = partial(st.session_state.update, {"note source": not source})
        label = "As text" if source else "Source"
        st.button(label, key="note-source", type="tertiary", on_click=turn)
    topics.tags(note)
    _text(note)
    waiting.watch([note.id], jobs)


def _download(note: Note) -> None:
    """A way to get the file that a note was read from, where it is still there: of one that was
    uploaded the text alone is kept, as forgotten words could not be blanked in its bytes. An import
    may name any file of this machine, so it is for admins."""
    if note.type != "file" or not ui.who().is_admin:
        return
    file = Path(str(note.external_id))
    if file.is_file():
        st.download_button(
            "Download the file",
            file.read_bytes,
            file.name,
            key="download-note",
            type="tertiary",
            on_click="ignore",
        )


def _text(note: Note) -> None:
    here = place.here()
    span = (0, len(note.text))
    whole = st.session_state.get("whole note") == note.id
    if not whole:
        span = window(note.text, here.passage)
    draw = note_html if st.session_state.get("note source") else drawn_html
    st.html(draw(note.text, span, here.passage, search.words()))
    if span != (0, len(note.text)):
        st.caption(f"Characters {span[0] + 1:,} to {span[1]:,} of {len(note.text):,}.")
        show_all = partial(st.session_state.update, {"whole note": note.id})
        st.button("Show all", key="whole-note", on_click=show_all)


def _delete(note: Note) -> None:
    """Delete the note; for some seconds it can be undone."""
    seconds = forgetting.UNDO_SECONDS
    if not ui.attempt(lambda: ui.person().notes.delete(note.id, hold=seconds)):
        return
    stays = " Its file stays." if note.type == "file" and not note.missing else ""
    words = f"Deleted: {ui.literal(ui.shorten(row.title_of(note), NAME_LENGTH))}.{stays}"
    undo = partial(_bring_back, note.id)
    hold.keep(f"{words} {forgetting.GONE}", seconds, undo, back=f"note-{note.id}")
    old_backups.look()
    search.forget_found()
    answer.leave()  # it may quote the note
    place.go(LIST)


def _bring_back(note_id: int, held: Hold) -> None:
    ui.attempt(lambda: held.person.notes.restore(note_id))
    search.forget_found()
