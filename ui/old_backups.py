"""Backups that still hold what was forgotten: said once after a forgetting, with a way to delete
them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from ui import components as ui
from ui import hold

NAMED = 5
"""Backups that are named; more are counted."""


def look() -> None:
    """Look at the backups once what was just forgotten can no longer be brought back."""
    st.session_state["look at backups"] = True


def bar() -> None:
    """The line above the page, until the person decided."""
    state = st.session_state
    if state.get("look at backups") and not hold.alive() and "task" not in state:
        state["look at backups"] = False
        left: set[Path] = state.get("backups left", set())
        found = ui.desk().mc.backups.perhaps_forgotten()
        state["old backups"] = [path for path in found if path not in left]
    if state.get("old backups"):
        _show(state["old backups"])


def _show(found: Sequence[Path]) -> None:
    one = len(found) == 1
    names = ", ".join(ui.literal(path.name) for path in found[:NAMED])
    names += f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    with st.container(key="old-backups", border=True):
        st.markdown(
            f"{ui.plural(len(found), 'backup')} of your memory, made before, still "
            f"{'holds' if one else 'hold'} words that were forgotten: {names}."
        )
        with st.container(horizontal=True):
            st.button(
                "Delete this backup" if one else f"Delete these {len(found):,} backups",
                key="old-backups-delete",
                on_click=_delete,
                args=(found,),
            )
            st.button("Leave it" if one else "Leave them", key="old-backups-leave", on_click=_leave)
        st.caption("A deleted backup cannot be brought back. It holds all that was kept then.")


def _delete(found: Sequence[Path]) -> None:
    backups = ui.desk().mc.backups
    there = {each.file for each in backups.list()}
    if ui.attempt(lambda: backups.delete([path for path in found if path in there])):
        st.toast(f"Deleted {ui.plural(len(found), 'backup')}.")
    st.session_state["old backups"] = []


def _leave() -> None:
    state = st.session_state
    state["backups left"] = state.get("backups left", set()) | set(state["old backups"])
    state["old backups"] = []
