"""What the chat is made of: plain data for its component, which draws it, and what its buttons do.

``chat.js`` puts a reply's own blocks into the page as HTML, which ``reply_html`` made, and all else
as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui.reply_html import reply_blocks

Part = dict[str, Any]
ROOM = "room"
"""The key of the component."""


def clear() -> None:
    """Begin to draw the chat."""
    st.session_state["acts"] = {}


def show(data: Mapping[str, Any]) -> None:
    """Draw it. ``taken`` is the last thing done in it that was heard here."""
    draw = st.components.v2.component("memchat.chat", js="chat.js", isolate_styles=False)
    taken = st.session_state.get("taken", 0)
    draw(key=ROOM, data={**data, "taken": taken}, on_did_change=_did)


def acts(key: str, act: Callable[..., object]) -> None:
    """What is done when the component names this key; words that it sends with it are given."""
    st.session_state["acts"][key] = act


def words(text: str) -> Part:
    """A reply's words."""
    return {"blocks": reply_blocks(text)}


def note(text: str) -> Part:
    """A quiet line."""
    return {"note": text}


def row(*inside: Part, key: str = "") -> Part:
    """Parts side by side."""
    return {"row": inside, "key": key}


def button(label: str, key: str, act: Callable[..., object], *args: object, **look: object) -> Part:
    """A button; ``look``: ``off``, ``plain`` (as a link), ``names`` (what it is for, unseen)."""
    acts(key, lambda: act(*args))
    return {"button": label, "key": key, **look}


def _did() -> None:
    state = st.session_state
    for did in state[ROOM]["did"]:
        if did["n"] <= state.get("taken", 0):
            continue  # sent once more, as it was not known whether it was heard
        state["taken"] = did["n"]
        act = state["acts"].get(did["key"])
        if act is not None:
            act(*(did[given] for given in ("words", "files") if given in did))
