"""A memory or note that has no vector yet: that it waits, or why the last try failed."""

from __future__ import annotations

import streamlit as st

from memchat.config.providers import WORDS_ONLY
from memchat.types import Job
from ui import components as ui


def show(job: Job) -> None:
    """Draw it below what it is about; without an embedding model nothing waits."""
    key = f"late-{job.target_id}"
    if job.error_message:
        with st.container(key=key, horizontal=True, vertical_alignment="center"):
            st.caption(f"⚠ Not embedded ({job.status}): {ui.literal(job.error_message)}")
            st.button("Retry", key=f"embed-{job.target_id}", on_click=_retry, args=(job.id,))
    elif ui.desk().mc.settings.embed_model != WORDS_ONLY:
        with st.container(key=key):
            st.caption("Waits to be embedded; found by its words meanwhile.")


def _retry(job_id: int) -> None:
    desk = ui.desk()
    ui.attempt(lambda: desk.mc.jobs.retry(user=desk.user, job_id=job_id))
    desk.wake()
