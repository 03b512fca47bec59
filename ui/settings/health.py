"""Whether the models answer, and whether the store is sound."""

from __future__ import annotations

from functools import partial

import streamlit as st

from ui import components as ui
from ui.settings import tasks

TASK = "check"
MARKS = {"ok": "✓", "problem": "✗"}


def show() -> None:
    """Draw it."""
    st.subheader("Connection and health", anchor=False)
    busy = tasks.running(TASK)
    with st.container(horizontal=True):
        st.button(
            "Test the connection",
            key="probe",
            on_click=_check,
            args=(True,),
            disabled=busy,
            help="Asks each model one word over the network.",
        )
        st.button("Check without network", key="doctor", on_click=_check, disabled=busy)
    task = tasks.ended(TASK)
    if task is None or task.error is not None:
        return
    for check in sorted(task.result, key=lambda check: check.name != "probe"):
        name = "Connection" if check.name == "probe" else check.name
        mark = MARKS.get(check.state, "·")
        st.markdown(f"{mark} **{ui.literal(name)}**: {ui.literal(check.detail)}")
        if check.remedy:
            st.caption(f"→ {ui.literal(check.remedy)}")


def _check(probe: bool = False) -> None:
    words = "Asking the models" if probe else "Checking"
    tasks.begin(TASK, words, partial(ui.desk().mc.doctor, probe=probe))
