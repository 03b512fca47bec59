"""What the reading of a chat did not keep: the reason, and a way to keep it anyway."""

from __future__ import annotations

import streamlit as st

from memchat.types import Refusal
from ui import components as ui


def show(session_id: int) -> None:
    """Under a conversation: what was proposed from it and not kept."""
    refusals = ui.person().inbox.refusals(session_id=session_id)
    told = [refusal for refusal in refusals if not refusal.repeats]
    repeats = len(refusals) - len(told)
    if not refusals:
        return
    with st.expander(f"Not kept ({len(refusals)})", key=f"not-kept-{session_id}"):
        for refusal in told:
            _one(refusal)
        if repeats:
            known = "1 that only repeats" if repeats == 1 else f"{repeats} that only repeat"
            st.caption(f"{'And ' if told else ''}{known} what is known.")


def _one(refusal: Refusal) -> None:
    reason = ui.literal(refusal.reason)
    with st.container(horizontal=True, vertical_alignment="center"):
        if not refusal.proposes:
            st.markdown(reason)
            return
        words = refusal.proposes.replace("_", " ")
        st.markdown(f"**{ui.literal(words)}**: {reason}", width="stretch")
        st.button(
            "Keep it anyway",
            key=f"keep-refused-{refusal.id}",
            on_click=_keep,
            args=(refusal.id,),
        )


def _keep(refusal_id: int) -> None:
    if ui.attempt(lambda: ui.person().inbox.keep_refused(refusal_id)):
        ui.desk().wake()
        st.toast("Kept. It counts as your own word; Memories can forget it again.")
