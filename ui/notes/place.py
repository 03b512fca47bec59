"""Where the notes page is: at the list, at one note and a passage in it, or in an editor.

The address says it, so that a reload, a bookmark and the browser's Back and Forward find it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import streamlit as st

from memchat.errors import NotFound
from ui import components as ui
from ui import sidebar
from ui.notes.note_text import place_of

PAGE = "views/notes.py"
EDITORS = ("add", "upload", "edit", "topics")
_COMING = "coming note place"
"""The place that was chosen and is not in the address yet."""


@dataclass(frozen=True, slots=True)
class Place:
    """A note that is read, or none; the passage to show in it; the editor that is open."""

    note_id: int | None = None
    passage: tuple[int, int] | None = None
    """Offset and size in characters of the note's text."""
    editor: str = ""
    """One of ``EDITORS``, or empty."""
    topic: int | None = None
    """The topic whose notes are listed, or None for all."""

    @property
    def address(self) -> dict[str, str]:
        """The query of the address, besides the space."""
        parts = {"note": str(self.note_id)} if self.note_id is not None else {}
        if self.passage is not None:
            parts["at"] = "{}-{}".format(*self.passage)
        if self.topic is not None:
            parts["topic"] = str(self.topic)
        return parts | ({"do": self.editor} if self.editor else {})


LIST = Place()


def here() -> Place:
    """Where this run of the notes page is."""
    place: Place = st.session_state["note place"]
    return place


def settle() -> None:
    """Be where the person just went, else where the address says, and keep it in the address."""
    state = st.session_state
    place: Place = state.get(_COMING) or _addressed(st.query_params.to_dict())
    state["note place"] = place
    sidebar.address(more=place.address)
    state.pop(_COMING, None)


def go(place: Place = LIST) -> None:
    """Be there from the next run of the notes page on."""
    st.session_state[_COMING] = place


def lead_to_passage(note_id: int, given: str) -> NoReturn:
    """From another page, or a dialog of it: open a note at a passage that a prompt was given."""
    try:
        text = ui.person().notes.get(note_id).text
    except NotFound:
        text = ""  # the page says that it is gone
    go(Place(note_id, place_of(text, given)))
    st.rerun()


def awaited() -> bool:
    """Whether the person went to a place of the notes page that is not shown yet."""
    return _COMING in st.session_state


def _addressed(query: Mapping[str, str]) -> Place:
    editor = query.get("do", "")
    return Place(
        _number(query.get("note", "")),
        _passage(query.get("at", "")),
        editor if editor in EDITORS else "",
        _number(query.get("topic", "")),
    )


def _passage(text: str) -> tuple[int, int] | None:
    offset, size = map(_number, text.partition("-")[::2])
    return None if offset is None or size is None else (offset, size)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 15 else None
