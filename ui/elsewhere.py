"""What else speaks of a memory that was just forgotten: counted, shown, blanked where wanted."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from memchat.types import Elsewhere, Place
from ui import components as ui
from ui import forgetting

SHOWN = 50
"""Places that are listed, each to be left out."""


def bar() -> None:
    """One line above the page until the person decided, and the places themselves where asked."""
    found: Elsewhere | None = st.session_state.get("elsewhere")
    if found is None:
        return
    left_out: set[Place] = st.session_state.setdefault("left out", {*found.notes})
    with st.container(key="elsewhere", border=True):
        st.markdown(f"It is also spoken of elsewhere: {ui.literal(found.counted)}.")
        if st.session_state.get("listing"):
            _list(found, left_out)
        count = len(found.places) - len(left_out)
        with st.container(horizontal=True):
            if not st.session_state.get("listing"):
                st.button("Show", key="elsewhere-show", on_click=_show)
            st.button(
                "Blank these too" if left_out <= {*found.notes} else f"Blank {count:,}",
                key="elsewhere-blank",
                type="primary",
                disabled=not count,
                on_click=_blank,
                args=(found,),
            )
            st.button("Leave them", key="elsewhere-leave", on_click=forgetting.leave_elsewhere)


def _show() -> None:
    st.session_state["listing"] = True


def _list(found: Elsewhere, left_out: set[Place]) -> None:
    st.caption(
        "As they read once they are blanked. A memory is forgotten, and a proposal dropped, as a "
        "whole. Untick what is to stay. A note stays as it is, unless you tick it."
    )
    if any(place.has_file for place in found.notes):
        st.caption(
            "The file of a note still has the words: they come back if it is read again after a "
            "change."
        )
    for number, place in enumerate(found.places[:SHOWN]):
        st.checkbox(
            f"{place.kind.capitalize()}, {ui.day(place.at)}: {ui.literal(place.text)}",
            value=place not in left_out,
            key=f"elsewhere-{number}",
            on_change=left_out.symmetric_difference_update,
            args=({place},),
        )
    if len(found.places) > SHOWN:
        st.caption(f"And {len(found.places) - SHOWN:,} more, which are blanked with them.")


def _blank(found: Elsewhere) -> None:
    left_out: set[Place] = st.session_state["left out"]
    places = tuple(place for place in found.places if place not in left_out)
    forgetting.blank(replace(found, places=places))
