"""The forms in which a memory is added or changed."""

from __future__ import annotations

from datetime import date

import streamlit as st

from memchat.types import MEMORY_TYPES, Memory
from ui import components as ui


def change(memory_id: int | None) -> None:
    """Open the form of a memory, or close the one that is open."""
    st.session_state["changing"] = memory_id


def edit_form(memory: Memory) -> None:
    """The fields of a memory, to be changed."""
    with st.form(f"form-{memory.id}", border=False):
        fields, anyway = _fields(memory), ui.anyway()
        with st.container(horizontal=True):
            saved = st.form_submit_button("Save", type="primary")
            left = st.form_submit_button("Cancel")
    if saved:
        kind, key, value, until, everywhere, tags = fields
        changed = ui.attempt(
            lambda: ui.person().memories.update(
                memory.id,
                type=kind,
                key=key,
                value=value,
                expires_at=until,
                all_apps=everywhere,
                tags=tags,
                keep_secret=anyway,
            ),
            at=f"form-{memory.id}",
        )
        if changed:
            change(None)
    if left:
        st.session_state["secret"] = None
        change(None)
    if saved or left:
        st.rerun()


def begin_adding() -> None:
    """Open the form of a new memory."""
    st.session_state["adding"] = True


def add_form() -> None:
    """The fields of a new memory."""
    with st.form("add-form"):
        (kind, key, value, until, everywhere, tags), anyway = _fields(None), ui.anyway()
        with st.container(horizontal=True):
            saved = st.form_submit_button("Keep", type="primary")
            left = st.form_submit_button("Cancel")
    if saved:
        desk = ui.desk()
        kept = ui.attempt(
            lambda: ui.person().memories.add(
                kind,
                key,
                value,
                expires_at=until,
                all_apps=everywhere,
                tags=tags,
                keep_secret=anyway,
            ),
            at="form-new",
        )
        desk.wake()
        st.session_state.update({"adding": not kept, "rows of": None})
    if left:
        st.session_state.update(adding=False, secret=None)
    if saved or left:
        st.rerun()


def _fields(memory: Memory | None) -> tuple[str, str, str, date | None, bool, list[str]]:
    number = memory.id if memory else "new"
    left, right = st.columns([1, 2])
    kind = left.selectbox(
        "Type",
        MEMORY_TYPES,
        index=MEMORY_TYPES.index(memory.memory_type if memory else "fact"),
        format_func=lambda kind: ui.TYPES[kind],
        key=f"type-{number}",
    )
    key = right.text_input(
        "Key",
        value=memory.key if memory else "",
        key=f"key-{number}",
        placeholder="e.g. favourite tea",
    )
    value = st.text_area(
        "Value",
        value=memory.value if memory else "",
        key=f"value-{number}",
        max_chars=280,
        height=80,
    )
    ui.show_problem(f"form-{number}")
    left, right = st.columns(2, vertical_alignment="bottom")
    until = left.date_input(
        "Last day it holds (empty: no end)",
        value=memory.expires_at if memory else None,
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
    return kind, key, value, until, everywhere, [tags] if tags.strip() else []
