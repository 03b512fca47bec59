"""What the settings page begins and what may take a while: it goes on without the page."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from ui import components as ui
from ui.desk import Task


def begin(name: str, words: str, work: Callable[..., object]) -> None:
    """Begin it, unless the last one of this name is still under way. Its tabs show how far it is,
    and so does a tab that is opened meanwhile."""
    tasks = ui.desk().tasks
    if name not in tasks or not tasks[name].running:
        tasks[name] = Task(words, 0, work)


def ended(name: str) -> Task | None:
    """The last task of this name, once it is over; while it is under way its progress is drawn.

    The page asks ``running`` before it draws what the task changes: where it ended meanwhile, all
    of that is drawn anew.
    """
    task = ui.desk().tasks.get(name)
    if task is not None and task.running:
        st.fragment(_bar, run_every=0.3)(task)
        return None
    if st.session_state.get(f"{name} runs"):
        st.rerun()
    if task is not None and task.error is not None:
        st.error(ui.sentence(task.error))
    return task


def running(name: str) -> bool:
    """Whether the last task of this name is under way."""
    task = ui.desk().tasks.get(name)
    found = task is not None and task.running
    st.session_state[f"{name} runs"] = found
    return found


def _bar(task: Task) -> None:
    if not task.running:
        st.rerun()
    done = f": {task.done:,} of {task.total:,}" if task.total else " …"
    st.progress(task.share, task.words + done)
