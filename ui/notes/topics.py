"""What the notes and chats are about: a list of topics, the page of one, and tags for a note."""

from __future__ import annotations

from datetime import date

import streamlit as st

from memchat.types import Note, Topic
from ui import charts, sidebar
from ui import components as ui
from ui.notes import answer, place, search
from ui.notes.place import LIST, Place

CHATS = 10
"""Chats of a topic that are listed, the newest ones."""
MONTHS = 3
"""Months before a chart of them is worth drawing."""


def overview() -> None:
    """All topics, the largest first; where there are none yet they are looked for."""
    st.button("← All notes", key="all-notes", type="tertiary", on_click=place.go, args=(LIST,))
    st.subheader("Topics", anchor=False)
    found = ui.person().notes.topics() or _found()
    ui.show_problem()
    if not found:
        ui.empty(
            "No topics yet",
            "Once there are ten notes or chats that can be found by meaning, those that speak of "
            "the same are grouped here, with the words that set them apart.",
            "topics",
        )
        return
    for one in found:
        with st.container(key=f"row-topic-{one.id}"):
            link(one)
            st.markdown(f":small[:gray[{_described(one)}]]")
    with st.container(key="topic-ways", horizontal=True):
        if st.button("Look again", key="find-topics", type="tertiary"):
            _found()
            st.rerun()
        unnamed = any(one.name is None for one in found)
        if unnamed and st.button("Name them", key="name-topics", type="tertiary", help=_NAMING):
            _found(name=True)
            st.rerun()


_NAMING = "Asks the model that reads chats, once, with their words and the titles of some notes."


def link(topic: Topic) -> None:
    """A way to the page of a topic, from any page."""
    title, key = ui.literal(topic.title), f"topic-{topic.id}"
    if st.button(title, key=key, type="tertiary", wrap=True):
        place.go(Place(topic=topic.id))
        st.rerun()


def _found(*, name: bool = False) -> list[Topic]:
    found: list[Topic] = []
    with st.spinner("Looking for topics …"):
        ui.attempt(lambda: found.extend(ui.person().notes.find_topics(name=name)))
    return found


def _described(topic: Topic) -> str:
    parts = [ui.plural(topic.notes, "note")] if topic.notes else []
    parts += [ui.plural(topic.sessions, "chat")] if topic.sessions else []
    words = ", ".join(topic.words) if topic.name else ", ".join(topic.words[3:])
    return " · ".join(
        [*parts, f"last {ui.day(topic.last)}", *([ui.literal(words)] if words else [])]
    )


def head(topic_id: int) -> None:
    """What stands above the notes of a topic."""
    back = Place(editor="topics")
    st.button("← All topics", key="all-topics", type="tertiary", on_click=place.go, args=(back,))
    topic = next((one for one in ui.person().notes.topics() if one.id == topic_id), None)
    if topic is None:
        st.caption("This topic is there no more: its notes were deleted, or belong to others now.")
        return
    st.subheader(ui.literal(topic.title), anchor=False)
    st.markdown(f":small[:gray[{_described(topic)}]]")
    first, last = (at.year * 12 + at.month - 1 for at in _ends(topic))
    every = [date(n // 12, n % 12 + 1, 1) for n in range(first, last + 1)]
    days = [(at, topic.months.get(f"{at:%Y-%m}", 0)) for at in every]
    if len(days) >= MONTHS:
        charts.columns(days, "notes and chats")
        st.caption("Notes and chats of each month.")
    st.button("Summarize this topic", key="sum-up-topic", on_click=_sum_up, args=(topic,))
    for session in ui.person().sessions.list(topic=topic_id, limit=CHATS):
        name = ui.literal(session.title or f"Chat of {ui.day(session.started_at)}")
        if st.button(f"Chat: {name}", key=f"topic-chat-{session.id}", type="tertiary", wrap=True):
            sidebar.open_chat(session.id)


def _ends(topic: Topic) -> tuple[date, date]:
    """The first days of its first and of its last month."""
    return date.fromisoformat(f"{min(topic.months)}-01"), date.fromisoformat(
        f"{max(topic.months)}-01"
    )


def _sum_up(topic: Topic) -> None:
    question = f"What do my notes say about {topic.title}?"
    ui.attempt(lambda: answer.begin(question, "summary", None, None, None, topic.id))
    search.leave()


def tags(note: Note) -> None:
    """The tags of a note, and others to take over."""
    suggested = [one for one in ui.person().notes.suggested_tags(note.id) if one not in note.tags]
    if not note.tags and not suggested:
        return
    with st.container(key="note-tags", horizontal=True):
        for tag in note.tags:
            gone = [one for one in note.tags if one != tag]
            _tag(note, gone, f"{tag} ✕", f"untag-{tag}", "Take this tag away")
        for tag in suggested:
            _tag(
                note, [*note.tags, tag], f"+ {tag}", f"tag-{tag}", "Suggested: tag the note with it"
            )


def _tag(note: Note, then: list[str], words: str, key: str, told: str) -> None:
    if st.button(ui.literal(words), key=key, type="tertiary", help=told):
        ui.attempt(lambda: ui.person().notes.update(note.id, tags=then, wait=False))
        st.rerun()
