"""What a search of the memories finds, best fit first: by their words and by what they mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from memchat.config.providers import WORDS_ONLY
from memchat.types import Recalled, Wanted
from ui import components as ui
from ui import search_service

LOOKED_AT = 60
"""Results of a search among which the memories are: it finds messages too."""
AT_ONCE_SECONDS = 0.3
"""How long a model on this machine is waited for while one types."""
PATIENCE_SECONDS = 5.0
"""How long a service is waited for, which is asked with Enter."""


@dataclass(frozen=True, slots=True)
class _Search:
    """One search; it is made once, as a service's answer costs something."""

    words: str
    app: str
    found: Recalled


def remote() -> bool:
    """Whether a search asks another machine: then it is made with Enter, and not at each letter."""
    return search_service.is_remote(search_service.name())


def ids(wanted: Wanted) -> list[int]:
    """The ids of the memories that fit best, before all others that have the words. Only those in
    use are searched by meaning."""
    if not wanted.search or wanted.status not in ("active", "all"):
        return []
    memories = ui.person().memories
    found = _found(wanted.search)
    words, every = (
        set(memories.browse_ids(wanted)),
        set(memories.browse_ids(replace(wanted, search=""))),
    )
    return [
        hit.memory.id
        for hit in found.hits
        if hit.memory is not None
        and (
            hit.memory.id in words
            or (hit.memory.id in every and hit.confident and hit.cosine is not None)
        )
    ]


def notes(wanted: Wanted) -> None:
    """Say it where only words were searched."""
    last: _Search | None = st.session_state.get("by meaning")
    if last is None or not wanted.search or last.words != wanted.search:
        return
    if search_service.name() == WORDS_ONLY:
        st.caption("Only words are searched. To search by meaning, choose a service in Settings.")
    elif last.found.degraded:
        st.caption(ui.sentence(last.found.degraded))
        st.button("Search again", key="search-again", on_click=_forget)


def _forget() -> None:
    st.session_state.pop("by meaning", None)


def _found(words: str) -> Recalled:
    last: _Search | None = st.session_state.get("by meaning")
    if last is None or (last.words, last.app) != (words, ui.app_name()):
        seconds = PATIENCE_SECONDS if remote() else AT_ONCE_SECONDS
        found = ui.person().search(words, limit=LOOKED_AT, timeout=seconds)
        last = _Search(words, ui.app_name(), found)
        st.session_state["by meaning"] = last
    return last.found
