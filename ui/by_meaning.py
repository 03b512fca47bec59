"""What a search of the memories finds by meaning, beside those that hold its words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import streamlit as st

from memchat.config.providers import WORDS_ONLY
from memchat.errors import NotFound
from memchat.language.text import folded, holds_all
from memchat.types import Memory, Recalled, Wanted
from ui import components as ui
from ui import memory_row, search_service
from ui.desk import Task

MOST = 10
"""Memories that are shown."""
LOOKED_AT = 40
"""Results of a search among which they are: it finds messages too, and those with the words."""
PATIENCE_SECONDS = 5.0
"""How long the embedding service is waited for."""
AT_ONCE_SECONDS = 0.1
"""How long the page waits for what is found; after that it comes when it is there."""
LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class _Found:
    """The ids of the memories that were found."""

    ids: tuple[int, ...]
    degraded: str | None
    """Why nothing was searched by meaning, or None."""


@dataclass(frozen=True, slots=True)
class _Search:
    """A search for these words of a person in an app, in a thread of its own: a model that loads
    keeps nobody from typing."""

    words: str
    app: str
    task: Task
    drawn: set[int] = field(default_factory=set)
    """The memories that were listed; those forgotten since keep their places."""


def show(wanted: Wanted) -> None:
    """Draw it below the memories that hold the words.

    A model on this machine is asked while one types. A remote one is asked only with a button,
    since each question costs something and tells it the words.
    """
    if not wanted.search or wanted.status not in ("active", "all"):
        return
    search, service = _last(wanted.search), None
    if search is None:
        service = search_service.name()
        if service == WORDS_ONLY:
            text = "Only words are searched. To search by meaning, choose a service in Settings."
            st.caption(text)
            return
        if not search_service.is_remote(service):
            _begin(wanted.search)
            search = _last(wanted.search)
    if search is None:
        _button("Search by meaning", wanted.search, service or search_service.name())
    elif search.task.running:
        st.fragment(_wait, run_every=LOOK_SECONDS)(search)
    else:
        _over(search, wanted)


def _wait(search: _Search) -> None:
    if not search.task.running:
        st.rerun()
    st.caption("Searching by meaning …")


def _over(search: _Search, wanted: Wanted) -> None:
    found: _Found | None = search.task.result
    why = search.task.error if found is None else found.degraded
    if why:
        st.caption(ui.sentence(why))
    if found is not None:
        _list(found, wanted, search.drawn)
    if why:
        _button("Search again", wanted.search, search_service.name())


def _last(words: str) -> _Search | None:
    """The last search, if it was for these words."""
    last: _Search | None = st.session_state.get("by meaning")
    same = last is not None and (last.words, last.app) == (words, ui.app_name())
    return last if same else None


def _button(label: str, words: str, service: str) -> None:
    remote = search_service.is_remote(service)
    sends = f"Sends these words to {ui.literal(service)}." if remote else None
    key = "search-by-meaning"
    st.button(label, key=key, help=sends, on_click=_begin, args=(words,))


def _begin(words: str) -> None:
    person = ui.person()

    def work(**_: object) -> _Found:
        recalled = person.search(words, limit=LOOKED_AT, timeout=PATIENCE_SECONDS)
        vectors = any(hit.cosine is not None for hit in recalled.hits)
        return _Found(tuple(_memories(recalled)), None if vectors else recalled.degraded)

    search = _Search(words, ui.app_name(), Task("Searching by meaning", 0, work))
    st.session_state["by meaning"] = search
    search.task.wait(AT_ONCE_SECONDS)


def _memories(recalled: Recalled) -> list[int]:
    """The ids of the memories that surely have to do with the words in meaning."""
    return [
        hit.memory.id
        for hit in recalled.confident
        if hit.memory is not None and hit.cosine is not None
    ]


def _list(found: _Found, wanted: Wanted, drawn: set[int]) -> None:
    rows = list(islice(_rows(found, wanted, drawn), MOST))
    if not rows:
        if not found.degraded:
            st.caption("Nothing else was found by meaning.")
        return
    with st.container(key="by-meaning"):
        st.subheader("By meaning", anchor=False)
        for memory_id, memory in rows:
            drawn.add(memory_id)
            if memory is None:
                memory_row.gone(memory_id)
            else:
                memory_row.show(memory, choosable=False)


def _rows(found: _Found, wanted: Wanted, drawn: set[int]) -> Iterator[tuple[int, Memory | None]]:
    """The memories, and None for the place of one that was forgotten since it was drawn."""
    above: list[int] = st.session_state["rows"]
    for memory_id in found.ids:
        memory = _memory(memory_id)
        if memory is None:
            if memory_id in drawn and memory_id not in above:
                yield memory_id, None
        elif _fits(memory, wanted):
            yield memory_id, memory


def _memory(memory_id: int) -> Memory | None:
    try:
        return ui.person().memories.get(memory_id)
    except NotFound:
        return None  # it was forgotten since


def _fits(memory: Memory, wanted: Wanted) -> bool:
    """Whether it is not among those that hold the words, and passes the other filters."""
    return (
        not holds_all(folded(wanted.search), memory.key, memory.value)
        and (memory.active or wanted.status == "all")
        and memory.memory_type in (wanted.memory_types or (memory.memory_type,))
        and memory.created_by in (wanted.created_by or (memory.created_by,))
        and set(wanted.tags) <= {*memory.tags}
    )
