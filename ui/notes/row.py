"""A note in a list: its title or first words, what it is, and the passage that a search found."""

from __future__ import annotations

from functools import partial

import streamlit as st

from memchat.config.providers import WORDS_ONLY
from memchat.types import Job, Note, NoteHit
from ui import components as ui
from ui.marks import excerpt, marked
from ui.notes import place
from ui.notes.place import Place

TYPES = {
    "memo": "Memo",
    "document": "Document",
    "file": "File",
    "upload": "Upload",
    "paste": "From a chat",
}
"""The types that the app itself gives, in words; others are shown as they are."""
TITLE = 90
"""Characters of a title, or of the first words where there is none."""
EXCERPT = 320
"""Characters of a passage that are shown."""


def show(note: Note, job: Job | None) -> None:
    """One note of the list; ``job`` is what is still to be done for its vectors."""
    with st.container(key=f"row-note-{note.id}"):
        go = partial(place.go, Place(note.id))
        st.button(
            ui.literal(title_of(note)),
            key=f"note-{note.id}",
            type="tertiary",
            wrap=True,
            on_click=go,
        )
        st.markdown(f":small[:gray[{described(note, job)}]]")


def hit(found: NoteHit, words: str) -> None:
    """One passage that a search for these words found."""
    title = ui.shorten(found.title, TITLE) if found.title else "Untitled note"
    with st.container(key=f"row-hit-{found.chunk_id}"):
        st.button(
            marked(title, words),
            key=f"hit-{found.chunk_id}",
            type="tertiary",
            wrap=True,
            on_click=_open,
            args=(found,),
        )
        about = ui.literal(f"{kind(found.source_type)} · {ui.day(found.created_at)}")
        said = marked(excerpt(found.text or "", words, EXCERPT), words)
        st.markdown(f"{said}\n\n:small[:gray[{about}]]")


def kind(type: str) -> str:
    """A note's type in words."""
    return TYPES.get(type, type)


def title_of(note: Note) -> str:
    """Its title, or its first words."""
    if note.title:
        return ui.shorten(note.title, TITLE)
    text = note.text or ui.person().notes.get(note.id).text  # a list leaves the texts out
    return ui.shorten(text[: 10 * TITLE], TITLE)


def described(note: Note, job: Job | None) -> str:
    """What a note is besides its words, for Markdown."""
    parts = [ui.literal(kind(note.type)), ui.literal(ui.day(note.created_at))]
    if note.missing:
        parts.append(":orange[the file is gone]")
    if job is not None and job.status == "failed":
        parts.append(":orange[not indexed]")
    elif job is not None and ui.desk().mc.settings.embed_model != WORDS_ONLY:
        parts.append("being indexed")
    return " · ".join(parts)


def _open(found: NoteHit) -> None:
    ui.attempt(lambda: ui.person().notes.mark_as_read([found.chunk_id]))
    place.go(Place(found.note_id, (found.offset, found.size)))
