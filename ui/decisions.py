"""A person's yes or no to what waits in the inbox, wherever it is asked."""

from __future__ import annotations

import streamlit as st

from memchat.types import InboxItem
from ui import components as ui


def label(item: InboxItem) -> str:
    """What a yes does, as its button says."""
    if item.memory_id is not None:
        return "Replace it" if item.related_id else "It is over"
    return {"updates": "Replace it", "ends": "It is over"}.get(item.relation, "Keep")


def buttons(item: InboxItem) -> None:
    """A yes and a no. A hidden secret has to be written again, which the Inbox page asks for."""
    key = f"chat-{item.id}"
    if item.masked and item.relation != "ends":
        st.page_link("views/inbox.py", label="Write it again in the Inbox")
    else:
        st.button(label(item), key=f"accept-{key}", on_click=accept, args=(item.id,))
    no = "Leave both" if item.related_id else "Reject"
    st.button(no, key=f"reject-{key}", type="tertiary", on_click=reject, args=(item.id,))


def accept(item_id: int) -> None:
    """Say yes."""
    if ui.attempt(lambda: ui.person().inbox.accept(item_id)):
        ui.desk().wake()
        st.toast("Done.")


def reject(item_id: int) -> None:
    """Say no."""
    if ui.attempt(lambda: ui.person().inbox.reject(item_id)):
        st.toast("Rejected. The same is not asked again.")
