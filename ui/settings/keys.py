"""The providers' keys: which are set and where from, entering one, removing one.

A key goes from its field into keys.toml and is not kept in the page's state. None is ever shown.
"""

from __future__ import annotations

import streamlit as st

from memchat.config import keys
from memchat.config.keys import KeyInfo
from memchat.config.providers import KEYS
from memchat.errors import MemChatError
from ui import components as ui


def show() -> None:
    """Draw them."""
    settings = ui.desk().mc.settings
    st.subheader("Keys", anchor=False)
    found = keys.listed(settings.home, settings.keys)
    for key in found:
        _row(key)
    if not found:
        st.write("No provider's key is set.")
    with st.form("key", border=True):
        st.selectbox("Provider", list(KEYS), key="key-provider")
        st.text_input("Key", type="password", key="key-value", autocomplete="new-password")
        st.form_submit_button("Keep this key", key="keep-key", on_click=_keep)
    state = st.session_state
    if problem := state.pop("keys problem", None):
        st.error(ui.sentence(problem))
    if said := state.pop("keys said", None):
        st.success(said)
    st.caption(
        "A key is kept in keys.toml in the data folder, which this account alone can read. It is "
        "sent to its provider and is never shown again."
    )


def _row(key: KeyInfo) -> None:
    with st.container(key=f"key-{key.name}-{key.origin}", horizontal=True):
        note = "" if key.used else ", not used: another comes before it"
        st.markdown(
            f"**{ui.literal(key.name)}** :small[:gray[from {ui.literal(key.origin)}{note}]]",
            width="stretch",
        )
        if key.origin == keys.FILE:
            remove = f"Remove {ui.literal(key.name)}"
            st.button(remove, key=f"remove-{key.name}", on_click=_remove, args=(key.name,))


def _keep() -> None:
    state, desk = st.session_state, ui.desk()
    value, state["key-value"] = state["key-value"], ""
    before = desk.mc.settings
    try:
        name = keys.set_key(before.home, state["key-provider"], value)
        ui.reopen(desk)
    except MemChatError as error:
        state["keys problem"] = str(error)
        return
    after = desk.mc.settings
    said = f"{ui.literal(name)} is kept."
    if after.keys.origin(name) != keys.FILE:
        said += f" The one of the {ui.literal(after.keys.origin(name) or '')} comes before it."
    if after.chat_model != before.chat_model:
        said += f" From now on {ui.literal(after.chat_model)} answers."
    state["keys said"] = said


def _remove(name: str) -> None:
    state, desk = st.session_state, ui.desk()
    try:
        keys.remove_key(desk.mc.settings.home, name)
        ui.reopen(desk)
    except MemChatError as error:
        state["keys problem"] = str(error)
    else:
        state["keys said"] = f"{ui.literal(name)} is removed."
