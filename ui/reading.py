"""How the reading of chats for memories stands: under way, done, or failed and to be done again."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Job, Session
from ui import components as ui

SECONDS = 1.0
"""How often it is looked whether a reading is done."""
JOBS_MOST = 1_000


def unfinished(session: Session) -> bool:
    """Whether a chat is still to be read: it is being left, waits for its reading, or that
    failed."""
    return session.status in ("pending", "failed") or _is_left(session.id)


def failures(sessions: Iterable[Session]) -> dict[int, Job]:
    """The readings of these chats that failed, or did so last time, by the chat's id."""
    waiting = {session.id for session in sessions if session.status in ("pending", "failed")}
    if not waiting:
        return {}
    desk = ui.desk()
    jobs = [
        job
        for status in ("failed", "pending")
        for job in desk.mc.jobs.list(user=desk.user, status=status, limit=JOBS_MOST)
    ]
    return {
        job.target_id: job
        for job in jobs
        if job.kind == "extract" and job.error_message and job.target_id in waiting
    }


def show(session: Session) -> None:
    """Say that a chat is being read, or why it could not be."""
    job = failures([session]).get(session.id)
    if job is None:
        st.caption("This chat is being read for what matters …")
        watch([session])
        return
    st.warning(f"This chat was not read for memories yet: {ui.literal(job.error_message or '')}")
    st.button("Read it again", key="reread", on_click=again, args=(job.id,))


def badge(session_id: int, job: Job) -> None:
    """In the sidebar: that a chat was not read, with the reason and a way to read it again."""
    with st.container(key=f"unread-{session_id}", horizontal=True, vertical_alignment="center"):
        st.badge("Not read", color="orange", help=ui.sentence(job.error_message or ""))
        st.button(
            "Read it again",
            key=f"reread-{session_id}",
            type="tertiary",
            on_click=again,
            args=(job.id,),
        )


def again(job_id: int) -> None:
    """Have a chat read again, now."""
    desk = ui.desk()
    ui.attempt(lambda: desk.mc.jobs.retry(user=desk.user, job_id=job_id))
    desk.wake()


def watch(sessions: Iterable[Session]) -> None:
    """Draw the page anew when the reading of one of these chats is done or has failed."""
    waiting = [session.id for session in sessions if unfinished(session)]
    if waiting:
        st.fragment(_look, run_every=SECONDS)(waiting, _states(waiting))


def _look(waiting: list[int], before: list[tuple[str, bool]]) -> None:
    if _states(waiting) != before:
        st.rerun()


def _states(session_ids: list[int]) -> list[tuple[str, bool]]:
    """Where each of these readings stands, and whether it failed last time."""
    found = []
    for session_id in session_ids:
        try:
            session = ui.person().sessions.get(session_id)
        except NotFound:
            found.append(("deleted", False))
            continue
        status = "left" if _is_left(session_id) else session.status
        found.append((status, session_id in failures([session])))
    return found


def _is_left(session_id: int) -> bool:
    """Whether nobody comes back to a chat; one whose tab reloads waits a while."""
    desk = ui.desk()
    talk = desk.find(ui.app_name(), session_id)
    return talk is not None and talk.ends_at is not None and talk.ends_at <= desk.mc.now
