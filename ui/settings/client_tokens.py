"""The tokens of programs that call the MCP server over HTTP: making one, deleting one.

A token is shown once, right after it was made.
"""

from __future__ import annotations

import streamlit as st

from memchat.config import keys
from memchat.config.keys import ClientToken
from memchat.errors import MemChatError
from memchat.types import ClientMode, one_line
from ui import components as ui

MODES: dict[ClientMode, str] = {
    "ask": "What it remembers waits in my Inbox",
    "trust": "What it remembers is stored",
}
NAME_LIMIT = 60


def show() -> None:
    """Draw them."""
    home, state = ui.desk().mc.settings.home, st.session_state
    st.markdown("**Tokens for HTTP**")
    st.caption("For a program that calls memchat mcp --http on this machine.")
    try:
        found = keys.read_tokens(home)
    except MemChatError as error:
        st.error(ui.sentence(str(error)))
        return
    for number, token in enumerate(found.values()):
        _row(token, number)
    with st.form("client-token", border=True, clear_on_submit=True):
        st.text_input("Name of the program", key="token-name", max_chars=NAME_LIMIT)
        modes = list(MODES)
        st.selectbox("What it may do", modes, key="token-mode", format_func=lambda m: MODES[m])
        st.form_submit_button("Make a token", key="make-token", on_click=_make)
    if problem := state.pop("token problem", None):
        st.error(ui.sentence(problem))
    if made := state.pop("new token", None):
        st.success(f"The token of {ui.literal(made.name)}. Copy it now: it is not shown again.")
        st.code(made.token, language=None, wrap_lines=True)


def _row(token: ClientToken, number: int) -> None:
    with st.container(key=f"token-{number}", horizontal=True, vertical_alignment="center"):
        words = f"**{ui.literal(token.name)}** :small[:gray[{MODES[token.mode]}]]"
        st.markdown(words, width="stretch")
        delete = f"Delete the token of {ui.literal(token.name)}"
        st.button(delete, key=f"delete-token-{number}", on_click=_delete, args=(token.name,))


def _make() -> None:
    state = st.session_state
    try:
        name = one_line(state["token-name"], "name of the program", NAME_LIMIT)
        home = ui.desk().mc.settings.home
        state["new token"] = keys.create_token(home, name, state["token-mode"])
    except MemChatError as error:
        state["token problem"] = str(error)


def _delete(name: str) -> None:
    try:
        keys.remove_token(ui.desk().mc.settings.home, name)
    except MemChatError as error:
        st.session_state["token problem"] = str(error)
