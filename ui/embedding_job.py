"""A memory or note that has no vector yet: that it waits, or why the last try failed."""

from __future__ import annotations

import streamlit as st

from memchat.config.providers import WORDS_ONLY
from memchat.types import Job
from ui import components as ui


def words(job: Job) -> str:
    """What is said of it; without an embedding model nothing waits."""
    if job.error_message:
        return f"⚠ Not embedded ({job.status}): {job.error_message}"
    waits = ui.desk().mc.settings.embed_model != WORDS_ONLY
    return "Waits to be embedded; found by its words meanwhile." if waits else ""


def show(job: Job) -> None:
    """Draw it below what it is about."""
    if not words(job):
        return
    with st.container(key=f"late-{job.target_id}", horizontal=True, vertical_alignment="center"):
        st.caption(ui.literal(words(job)))
        if job.error_message:
            st.button("Retry", key=f"embed-{job.target_id}", on_click=retry, args=(job.id,))


def retry(job_id: int) -> None:
    """Try once more."""
    desk = ui.desk()
    ui.attempt(lambda: desk.mc.jobs.retry(user=desk.user, job_id=job_id))
    desk.wake()
