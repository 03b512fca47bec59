"""The shortcuts of the app (``scripts/shortcuts.js`` hears them), and the list of them."""

from __future__ import annotations

from html import escape

import streamlit as st

KEYS = (
    ("Alt + N", "Begin a new chat"),
    ("Ctrl + K", "Search: the memories and the notes on their pages, the chats on all others"),
    ("Alt + M", "Write a message"),
    ("Alt + Y, Alt + X, Alt + E", "In the inbox: yes or no to the first question, or edit it"),
    ("Esc", "Stop a reply, close an editor or a dialog, write a message"),
    ("Ctrl + /", "Show this list"),
)
"""Each shortcut, or several, and what it does. A letter alone is always a letter."""


def button() -> None:
    """What opens the list, at the foot of the sidebar."""
    if st.button("Shortcuts", key="shortcuts", type="tertiary"):
        _list()


@st.dialog("Shortcuts")
def _list() -> None:
    rows = "".join(
        f"<tr><td>{' '.join(f'<kbd>{key}</kbd>' for key in keys.split(', '))}</td>"
        f"<td>{escape(what)}</td></tr>"
        for keys, what in KEYS
    )
    st.html(f'<table class="memchat-keys"><tbody>{rows}</tbody></table>')
    st.caption("On a Mac it is ⌘ in the place of Ctrl, and ⌥ in that of Alt.")
