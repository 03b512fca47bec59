"""What the reading of a chat did not keep: the reason, and a way to keep it anyway."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from memchat.types import Refusal
from ui import components as ui


def show(refusals: Sequence[Refusal]) -> None:
    """What was proposed from a conversation and not kept, line by line."""
    told = [refusal for refusal in refusals if not refusal.repeats]
    for refusal in told:
        _one(refusal)
    repeats = len(refusals) - len(told)
    if repeats:
        known = "1 that only repeats" if repeats == 1 else f"{repeats} that only repeat"
        st.caption(f"{'And ' if told else ''}{known} what is known.")


def _one(refusal: Refusal) -> None:
    reason = ui.literal(refusal.reason)
    row = f"row-refused-{refusal.id}"
    with st.container(key=row, horizontal=True, vertical_alignment="center"):
        if not refusal.proposes:
            st.markdown(f"Not kept: {reason}", width="stretch")
            return
        words = refusal.proposes.replace("_", " ")
        st.markdown(f"Not kept: **{ui.literal(words)}**: {reason}", width="stretch")
        st.button(
            "Keep it anyway",
            type="tertiary",
            key=f"keep-refused-{refusal.id}",
            on_click=_keep,
            args=(refusal.id,),
        )


def _keep(refusal_id: int) -> None:
    if ui.attempt(lambda: ui.person().inbox.keep_refused(refusal_id)):
        ui.desk().wake()
        st.toast("Kept. It counts as your own word; Memories can forget it again.")
