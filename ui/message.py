"""Saying something in a chat: a new message, an answer to a question, other words for the last."""

from __future__ import annotations

import streamlit as st

from ui import components as ui
from ui import sidebar
from ui.desk import Talk

WAIT_SECONDS = 0.15
"""How long a reply is waited for before the page shows that it is coming."""


def say() -> None:
    """Send what stands in the box at the foot of the chat."""
    text = st.session_state["say"]
    if not send(text):
        st.session_state["say"] = text  # back in its box


def suggested() -> None:
    """Send the suggestion that was chosen."""
    text = st.session_state.get("suggestion")
    st.session_state["suggestion"] = None
    if text:
        send(text)


def answer(words: str) -> None:
    """Send the answer to a question of the reply before."""
    send(words)


def send(text: str) -> bool:
    """Send a message; whether it could be."""
    state, desk = st.session_state, ui.desk()

    def work() -> None:
        talk = sidebar.here() or desk.open(
            ui.app_name(), incognito=bool(state.get("incognito")), session_id=state["here"]
        )
        desk.seen(state["tab"], talk)
        state["talk"] = talk
        _follow(talk, text)

    return ui.attempt(work, at="say")


def _follow(talk: Talk, text: str) -> None:
    turn = ui.desk().say(talk, text)
    st.session_state["mark"] = None
    if talk.session_id is not None:
        st.session_state["here"], st.session_state["talk"] = talk.session_id, None
    turn.wait(WAIT_SECONDS)


def redo(text_key: str | None = None) -> None:
    """Have the last message answered anew, or say it in the words of that field."""
    state, desk = st.session_state, ui.desk()
    text = state[text_key] if text_key else None

    def work() -> None:
        talk = sidebar.here() or desk.open(ui.app_name(), session_id=state["here"])
        desk.seen(state["tab"], talk)
        desk.redo(talk, text).wait(WAIT_SECONDS)
        state.update(editing=None, unsent=None)

    ui.attempt(work, at=text_key or "")
