"""The dialogs in which a memory is added or changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import streamlit as st

from memchat.types import MEMORY_TYPES, Draft, Memory
from ui import components as ui


def close() -> None:
    """Leave the dialog."""
    st.session_state.update({"opened": None, "secret": None})


@st.dialog("Edit", on_dismiss=close)
def edit(memory: Memory) -> None:
    """The fields of a memory, to be changed."""
    memories, number = ui.person().memories, str(memory.id)
    _form(number, memory, "Save", lambda fields: memories.update(memory.id, **fields))


@st.dialog("Remember", on_dismiss=close)
def add(read: Draft | str) -> None:
    """The fields of a new memory, as far as the person's words fill them in."""
    more: dict[str, Any] = {}
    if isinstance(read, Draft):
        more = {"starts_at": read.starts_at, "sentence": read.sentence}
    _form("new", read, "Keep", lambda fields: ui.person().memories.add(**fields, **more))


def _form(
    number: str, known: Memory | Draft | str, save: str, keep: Callable[[dict[str, Any]], object]
) -> None:
    with st.form(f"form-of-{number}", border=False):
        fields = _fields(number, known) | {"keep_secret": ui.anyway()}
        with st.container(horizontal=True):
            saved = st.form_submit_button(save, type="primary", key=f"save-{number}")
            left = st.form_submit_button("Cancel", key=f"leave-{number}")
    if saved and ui.attempt(lambda: keep(fields), at=f"form-{number}"):
        ui.desk().wake()
        st.session_state["rows"] = []  # they are put in order anew
        left = True
    if left:
        close()
    if saved or left:
        st.rerun()


def _fields(number: str, known: Memory | Draft | str) -> dict[str, Any]:
    memory = known if isinstance(known, Memory) else None
    read = None if isinstance(known, str) else known
    value = st.text_area(
        "Value",
        value=known if isinstance(known, str) else known.value,
        key=f"value-{number}",
        max_chars=280,
        height=80,
    )
    left, right = st.columns([2, 1])
    name = left.text_input(
        "Name",
        value=read.key.replace("_", " ") if read else "",
        key=f"key-{number}",
        placeholder="e.g. favourite tea",
    )
    now = read.memory_type if read else "fact"
    kinds = [*dict.fromkeys([*MEMORY_TYPES, *ui.person().memories.own_types, now])]
    kind = right.selectbox(
        "Type", kinds, index=kinds.index(now), format_func=ui.type_name, key=f"type-{number}"
    )
    ui.show_problem(f"form-{number}")
    left, right = st.columns(2, vertical_alignment="bottom")
    until: date | None = left.date_input(
        "Last day it holds (empty: no end)",
        value=read.expires_at if read else None,
        key=f"until-{number}",
    )
    everywhere = right.checkbox(
        "In every space", value=bool(memory and not memory.app), key=f"everywhere-{number}"
    )
    # A box with a list drops a word that was typed and not yet chosen with Enter.
    tags = st.text_input(
        "Tags (with commas between them)",
        value=", ".join(memory.tags) if memory else "",
        key=f"tags-{number}",
        placeholder="Words to group it by",
    )
    return {
        "type": kind,
        "key": name,
        "value": value,
        "expires_at": until,
        "all_apps": everywhere,
        "tags": [tags] if tags.strip() else [],
    }
