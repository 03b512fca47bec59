"""Deleting everything that is kept of the person."""

from __future__ import annotations

import streamlit as st

from ui import components as ui
from ui import old_backups, sidebar
from ui.notes import answer, editor, search


def show() -> None:
    """Draw it."""
    st.subheader("Wipe everything", anchor=False)
    st.write("All that is kept of you in every space leaves this disk, and nothing brings it back.")
    st.button("Wipe everything …", key="wipe", on_click=_ask, args=(True,))
    if st.session_state.get("wiping"):
        _confirm()


def _ask(wiping: bool = False) -> None:
    st.session_state["wiping"] = wiping


@st.dialog("Wipe everything?", on_dismiss=_ask)
def _confirm() -> None:
    user = ui.who().shown
    agree = f"Type your name, {ui.literal(user)}, to agree"
    # Live: the button can be pressed, and reached with Tab, once the name is there.
    typed = st.text_input(agree, key="wipe-name", live=True)
    with st.container(horizontal=True):
        sure = st.button(
            "Wipe everything", key="wipe-yes", type="primary", disabled=typed.strip() != user
        )
        if st.button("Cancel", key="wipe-no", on_click=_ask):
            st.rerun()
    if sure and typed.strip() == user:
        _ask()
        ui.desk().drop_all()
        if ui.attempt(lambda: ui.person().delete_all()):
            st.session_state.update(talk=None, here=None, taught=None, audited=None)
            _leave_notes()
            sidebar.go(None)
            old_backups.look()
            ui.say_next("Everything is gone.")
        st.rerun()


def _leave_notes() -> None:
    """Show nothing any more that this tab has of notes."""
    answer.leave()
    editor.leave()
    search.forget_found()
    search.leave()
    st.session_state.pop("kept as notes", None)
