"""Notes: memos and documents, to read, to search and to ask."""

from __future__ import annotations

from functools import partial

import streamlit as st

from memchat import Page
from memchat.types import Note
from ui import components as ui
from ui.notes import answer, editor, place, reading, row, search, topics, upload, waiting
from ui.notes.place import Place
from ui.notes.search import Filters

PAGE = 12


def page() -> None:
    """One run."""
    here = place.here()
    if here.editor != "edit":
        editor.leave()
    note = reading.find(here.note_id) if here.note_id is not None else None
    if note is not None:
        reading.show(note)
        return
    ui.heading("Notes", "Voice memos and documents, to read, to search and to ask.")
    upload.progress()
    if here.editor == "topics":
        topics.overview()
        return
    ui.show_problem()
    if here.topic is not None:
        topics.head(here.topic)
    _ways_in(here.editor)
    if ui.person().notes.list(limit=1):
        _notes()
    else:
        ui.empty(
            "No notes yet",
            "A note is a memo or a document that is kept whole: what you said into a recorder, "
            "wrote down, or have as a file. You find it by meaning and by its words, and ask "
            "about it. Nothing in a note becomes a memory about you by itself.",
            "notes",
        )


def _ways_in(opened: str) -> None:
    if opened == "add":
        editor.add_form()
    elif opened == "upload":
        upload.form()
    else:
        with st.container(key="add-notes", horizontal=True):
            for name, words in (("add", "Write or paste"), ("upload", "Upload files")):
                st.button(words, key=f"notes-{name}", on_click=place.go, args=(Place(editor=name),))


def _notes() -> None:
    search.box()
    chosen = search.filters()
    if search.words():
        search.results(chosen)  # an answer is shown again when nothing is searched for
        return
    if chosen.topic is None:
        every = Place(editor="topics")
        st.button("Topics", key="topics", type="tertiary", on_click=place.go, args=(every,))
    asked = answer.last()
    if asked is not None:
        answer.show(asked)
    _list(chosen)


def _list(chosen: Filters) -> None:
    state = st.session_state
    view = (chosen, ui.app_name())
    if state.get("notes view") != view:
        state.update({"notes view": view, "notes pages": [None]})
    found = _listed(chosen)
    while not found and len(state["notes pages"]) > 1:
        _newer()  # the last notes of this page were deleted
        found = _listed(chosen)
    jobs = waiting.jobs([note.id for note in found])
    for note in found:
        row.show(note, jobs.get(note.id))
    if not found:
        ui.empty("Nothing fits", "Choose another type or other days.", "notes")
    _pages(found.cursor)
    waiting.watch([note.id for note in found], jobs)


def _listed(chosen: Filters) -> Page[Note]:
    return ui.person().notes.list(
        type=chosen.type,
        since=chosen.since,
        until=chosen.until,
        topic=chosen.topic,
        limit=PAGE,
        cursor=st.session_state["notes pages"][-1],
    )


def _pages(following: str | None) -> None:
    pages: list[str | None] = st.session_state["notes pages"]
    if following is None and len(pages) == 1:
        return
    with st.container(key="pages", horizontal=True, vertical_alignment="center"):
        st.button("← Newer", key="before", disabled=len(pages) == 1, on_click=_newer)
        st.markdown(f"Page {len(pages):,}")
        older = partial(pages.append, following)
        st.button("Older →", key="next", disabled=following is None, on_click=older)


def _newer() -> None:
    st.session_state["notes pages"].pop()


page()
