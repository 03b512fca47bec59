"""The space that a tab is in: what the library calls an app. Choosing one, making one, and what can
be done with it."""

from __future__ import annotations

import streamlit as st

from memchat.api.user import INSTRUCTIONS_LIMIT
from memchat.errors import InputError, ScopeError
from memchat.types import clean_name
from ui import components as ui
from ui.settings import transfer

NEW = "A space has chats, memories and notes of its own, apart from the other spaces."
PLACE = "space"
"""The place of errors about a space."""
FIRST = "default"
"""The space that is always there, under this name."""


def named(name: str) -> str:
    """The space that an address names, or the first one where it cannot be used."""
    try:
        return _usable(name)
    except ScopeError as error:
        ui.problem(str(error))
        return FIRST


def show() -> str | None:
    """The list of spaces, and what can be done with them. Gives the one that was just chosen, made
    or renamed."""
    there, state = names(), st.session_state
    with st.container(key="space", horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.selectbox("Space", there, index=there.index(ui.app_name()))
        st.button("New", key="new-space", on_click=_ask, args=("new",), help=NEW)
        st.button("More: this space", key="more-space", on_click=_ask, args=("this",))
    if state.get("space dialog"):
        (_make if state["space dialog"] == "new" else _this)()
    made: str | None = state.pop("made space", None)
    return made or (chosen if chosen != ui.app_name() else None)


def why_off() -> str:
    """Why nothing is remembered here, or an empty text."""
    person = ui.person()
    if not person.memory_switch(all_apps=True).on:
        return f"memory is off for {ui.who().shown}"
    return "" if person.memory_switch().on else f"memory is off in the space “{ui.app_name()}”"


def memory_switch(key: str) -> None:
    """Whether things are remembered in this space; what a chat of its own does is said there."""
    person = ui.person()

    def keep() -> None:
        ui.attempt(lambda: person.set_memory(bool(st.session_state[key])))

    apps = {app.name: app.memory for app in person.apps.list()}
    st.session_state[key] = apps.get(ui.app_name(), True)
    st.toggle(
        f"Remember things in the space “{ui.literal(ui.app_name())}”",
        key=key,
        on_change=keep,
        disabled=not person.memory_switch(all_apps=True).on,
    )


def instructions(label: str, key: str, *, all_apps: bool = False) -> None:
    """What every reply should be like, in this space or in all of them."""
    person = ui.person()

    def keep() -> None:
        words = st.session_state[key]
        ui.attempt(lambda: person.set_instructions(words, all_apps=all_apps), at=PLACE)

    st.text_area(
        label,
        value=person.instructions(all_apps=all_apps),
        key=key,
        max_chars=INSTRUCTIONS_LIMIT,
        placeholder="Answer in short sentences. Call me Ana.",
        on_change=keep,
    )


def names() -> list[str]:
    """The spaces there are."""
    return sorted({FIRST, ui.app_name(), *(app.name for app in ui.person().apps.list())})


def _usable(name: str) -> str:
    """The name as it is kept. Raises ScopeError for one that cannot be used."""
    name, desk = clean_name(name, "space"), ui.desk()
    try:
        desk.mc.user(desk.user, app=name).memory_switch()
    except ScopeError as error:
        raise ScopeError(str(error).replace("the app name", "the space name")) from None
    return name


def _ask(dialog: str | None = None) -> None:
    st.session_state["space dialog"] = dialog


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


@st.dialog("This space", on_dismiss=_ask)
def _this() -> None:
    person, name = ui.person(), ui.app_name()
    ui.show_problem(PLACE)
    if name != FIRST:
        with st.form("rename-space", border=False):
            new = st.text_input("Name", value=name, key="space-new-name")
            if st.form_submit_button("Rename", key="space-rename"):
                if ui.attempt(lambda: _rename(name, new), at=PLACE):
                    _ask()
                st.rerun()
    instructions("Instructions for this space", "space-instructions")
    memory_switch("space-memory")
    held = next((app for app in person.apps.list() if app.name == name), None)
    transfer.button("Export this space", person, "export-space", all_apps=False, disabled=not held)
    if held is None or name == FIRST:
        return
    what = ui.plural(held.memories, "memory", "memories")
    what += f", {ui.plural(held.sessions, 'chat')} and {ui.plural(held.notes, 'note')}"
    sure = st.checkbox(f"Delete this space with {what}, for good", key="space-sure")
    if st.button("Delete this space", key="delete-space", type="primary", disabled=not sure):
        ui.desk().drop_all(name)
        if ui.attempt(lambda: person.apps.delete(name), at=PLACE):
            st.session_state["made space"] = FIRST
            _ask()
        st.rerun()


def _begin(name: str) -> None:
    name = _new(name)
    desk = ui.desk()
    # It is made now, and not with its first chat: it stays in the list when it is left before.
    desk.mc.user(desk.user, app=name).set_memory(True)
    st.session_state["made space"] = name


def _rename(name: str, new: str) -> None:
    if new.strip() == name:
        return
    new = _new(new)
    ui.desk().end_all(name)
    ui.person().apps.rename(name, new)
    st.session_state["made space"] = new


def _new(name: str) -> str:
    """A name that no space has yet. Raises InputError or ScopeError."""
    if not name.strip():
        raise InputError("give the space a name")
    name = _usable(name)
    if name in names():
        raise InputError(f"there is a space “{name}” already; choose it in the list")
    return name
