"""“Why this answer”: the receipt of a reply, and what can be done about each line of it."""

from __future__ import annotations

import streamlit as st


def ask(message_id: int) -> None:
    """Open the explanation of a reply."""
    st.session_state["why"] = message_id


def show(message_id: int) -> None:
    """Draw it."""
