"""The keys that the app listens to (``scripts/shortcuts.js``), and the list of them."""

from __future__ import annotations

from html import escape

import streamlit as st

KEYS = (
    ("N", "Begin a new chat"),
    ("S", "Search: the memories and the notes on their pages, the chats on all others"),
    ("M", "Write a message"),
    ("K, X, E", "In the inbox: say yes or no to the first proposal, or edit it"),
    ("Esc", "Stop a reply, close an editor or a dialog, write a message"),
    ("?", "Show this list"),
)
"""Each key, or keys, and what it does."""


def button() -> None:
    """What opens the list, at the foot of the sidebar."""
    if st.button("Keyboard", key="keyboard", type="tertiary"):
        _list()


@st.dialog("Keyboard")
def _list() -> None:
    rows = "".join(
        f"<tr><td>{' '.join(f'<kbd>{key}</kbd>' for key in keys.split(', '))}</td>"
        f"<td>{escape(what)}</td></tr>"
        for keys, what in KEYS
    )
    st.html(f'<table class="memchat-keys"><tbody>{rows}</tbody></table>')
    st.caption("Letters work while the keyboard is in no box.")
