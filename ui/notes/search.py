"""The box in which notes are searched and asked, the filters beside it, and what a search finds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time

import streamlit as st

from memchat.types import NotesFound
from ui import components as ui
from ui import search_service
from ui.notes import answer, place, row

PAGE = 10
"""Passages that a search shows at first, and how many more each time."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What the list, a search and a question are limited to."""

    type: str | None = None
    first: date | None = None
    last: date | None = None
    topic: int | None = None

    @property
    def since(self) -> datetime | None:
        """The beginning of the first day, in the person's zone."""
        return _at(self.first, time.min)

    @property
    def until(self) -> datetime | None:
        """The end of the last day."""
        return _at(self.last, time.max)


def _at(day: date | None, of_day: time) -> datetime | None:
    zone = ui.desk().mc.settings.zone
    return None if day is None else datetime.combine(day, of_day, zone)


@dataclass(frozen=True, slots=True)
class _Search:
    """One search, which is made once: each counts what it finds."""

    words: str
    filters: Filters
    app: str
    limit: int


def words() -> str:
    """What is searched for, or empty."""
    return str(st.session_state.get("searched notes", ""))


def box() -> None:
    """The box with its buttons. A model on this machine is asked while one types; a remote one by
    Enter or a button, since each question costs something and tells it the words."""
    remote = search_service.is_remote(search_service.name())
    with st.form("notes-box", border=False) if remote else st.container(key="notes-box"):
        _asking(remote)
    ui.show_problem("notes-box")


def _asking(remote: bool) -> None:
    button = st.form_submit_button if remote else st.button
    with st.container(key="notes-asking", horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Search or ask your notes",
            key="notes-words",
            type="search",
            live=not remote,
            placeholder="Search or ask your notes",
            label_visibility="collapsed",
            persist_state="session",
            on_change=None if remote else _search,
        )
        if remote:
            button("Search", key="search-notes", type="primary", on_click=_search)
        button("Ask", key="ask-notes", on_click=_ask, args=("answer",))
        button(
            "Summarize",
            key="sum-up-notes",
            on_click=_ask,
            args=("summary",),
            help="Reads all that your notes say about it, which may take several calls.",
        )


def filters() -> Filters:
    """What was chosen beside the box."""
    with st.container(key="notes-filters"):
        kind, first, last = st.columns(3)
    chosen = kind.selectbox(
        "Type",
        ["", *row.TYPES],
        format_func=lambda name: row.TYPES.get(name, "Any"),
        key="notes-type",
        persist_state="session",
    )
    return Filters(
        chosen or None,
        first.date_input("From", value=None, key="notes-from", persist_state="session"),
        last.date_input("Until", value=None, key="notes-until", persist_state="session"),
        place.here().topic,
    )


def forget_found() -> None:
    """Search anew when results are shown again: a note has changed."""
    st.session_state.pop("found notes", None)


def leave() -> None:
    """Show the list again."""
    st.session_state.update({"searched notes": "", "notes-words": ""})


def _search() -> None:
    state = st.session_state
    state.update({"searched notes": state["notes-words"].strip(), "notes most": PAGE})
    forget_found()


def _ask(mode: str) -> None:
    state = st.session_state
    question = state["notes-words"].strip()
    days, topic = (state["notes-from"], state["notes-until"]), place.here().topic
    chosen = Filters(state["notes-type"] or None, *days, topic)
    begun = ui.attempt(
        lambda: answer.begin(question, mode, chosen.type, chosen.since, chosen.until, topic),
        at="notes-box",
    )
    if begun:
        state["searched notes"] = ""


def results(chosen: Filters) -> None:
    """The passages that were found: what surely fits, then what may."""
    state = st.session_state
    wanted = _Search(words(), chosen, ui.app_name(), state["notes most"])
    found = _found(wanted)
    if found is None:
        return
    if found.degraded:
        st.caption(ui.sentence(found.degraded))
    sure = [one for one in found.hits if one.confident]
    if found.hits and not sure:
        st.subheader("Less sure", anchor=False)
    for one in sure or found.hits:
        row.hit(one, wanted.words)
    if not found.hits:
        ui.empty("No note speaks of that", "Try other words, or fewer filters.", "notes")
    with st.container(horizontal=True):
        if len(sure or found.hits) == wanted.limit:
            st.button("Show more", key="more-hits", type="tertiary", on_click=_more)
        st.button("Back to all notes", key="leave-search", type="tertiary", on_click=leave)


def _found(wanted: _Search) -> NotesFound | None:
    known: tuple[_Search, NotesFound] | None = st.session_state.get("found notes")
    if known is not None and known[0] == wanted:
        return known[1]
    found: list[NotesFound] = []
    ui.attempt(lambda: found.append(_searched(wanted)))
    ui.show_problem()
    if not found:
        return None
    st.session_state["found notes"] = (wanted, found[0])
    return found[0]


def _searched(wanted: _Search) -> NotesFound:
    return ui.person().notes.search(
        wanted.words,
        limit=wanted.limit,
        type=wanted.filters.type,
        since=wanted.filters.since,
        until=wanted.filters.until,
        topic=wanted.filters.topic,
        include_text=True,
    )


def _more() -> None:
    st.session_state["notes most"] += PAGE
