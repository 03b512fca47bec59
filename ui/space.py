"""The space that a tab is in: what the library calls an app. Choosing one, and making one."""

from __future__ import annotations

import streamlit as st

from memchat.errors import InputError, ScopeError
from memchat.types import clean_name
from ui import components as ui

NEW = "A space has chats, memories and notes of its own, apart from the other spaces."
PLACE = "space"
"""The place of errors about a new space's name."""


def named(name: str) -> str:
    """The space that an address names, or the first one where it cannot be used."""
    try:
        return _usable(name)
    except ScopeError as error:
        ui.problem(str(error))
        return "default"


def show() -> str | None:
    """The list of spaces, and the way to a new one. Gives the one that was just chosen or made."""
    names = _names()
    with st.container(key="space", horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.selectbox("Space", names, index=names.index(ui.app_name()))
        st.button("New", key="new-space", on_click=_ask, args=(True,), help=NEW)
    if st.session_state.get("new space"):
        _make()
    made: str | None = st.session_state.pop("made space", None)
    return made or (chosen if chosen != ui.app_name() else None)


def why_off() -> str:
    """Why nothing is remembered here, or an empty text."""
    person = ui.person()
    if not person.memory_switch(all_apps=True).on:
        return f"memory is off for {ui.desk().user}"
    return "" if person.memory_switch().on else f"memory is off in the space “{ui.app_name()}”"


def _names() -> list[str]:
    return sorted({"default", ui.app_name(), *(app.name for app in ui.person().apps.list())})


def _usable(name: str) -> str:
    """The name as it is kept. Raises ScopeError for one that cannot be used."""
    name, desk = clean_name(name, "space"), ui.desk()
    try:
        desk.mc.user(desk.user, app=name).memory_switch()
    except ScopeError as error:
        raise ScopeError(str(error).replace("the app name", "the space name")) from None
    return name


def _ask(asked: bool = False) -> None:
    st.session_state["new space"] = asked


@st.dialog("New space", on_dismiss=_ask)
def _make() -> None:
    st.write(f"{NEW} Memories that you keep in all spaces are used in it, too.")
    with st.form("new-space-form", border=False, enter_to_submit=True):
        name = st.text_input("Name", key="space-name")
        ui.show_problem(PLACE)
        with st.container(horizontal=True):
            made = st.form_submit_button("Make it", type="primary")
            left = st.form_submit_button("Cancel")
    if made and ui.attempt(lambda: _begin(name), at=PLACE):
        _ask()
    if left:
        _ask()
    if made or left:
        st.rerun()


def _begin(name: str) -> None:
    if not name.strip():
        raise InputError("give the space a name")
    name = _usable(name)
    if name in _names():
        raise InputError(f"there is a space “{name}” already; choose it in the list")
    desk = ui.desk()
    # It is made now, and not with its first chat: it stays in the list when it is left before.
    desk.mc.user(desk.user, app=name).set_memory(True)
    st.session_state["made space"] = name
