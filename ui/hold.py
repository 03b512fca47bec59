"""What was just done and can be undone for some seconds, with the lines at the foot of the window
that say so."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import streamlit as st

from memchat.api import User
from ui import components as ui
from ui.desk import Task

AT_ONCE_SECONDS = 0.2
"""What takes longer tells how far it is."""
_numbers = itertools.count(1)


@dataclass(eq=False)
class Hold:
    """One action that can still be undone."""

    words: str
    """What was done, up to the number of seconds that are left."""
    until: datetime
    undo: Callable[[Hold], object]
    app: str
    """The app in which it was done."""
    memory_ids: list[int]
    """The memories that it forgot, if any."""
    back: str = ""
    """The part of the page that has the keyboard once it is undone (``scripts/focus.js``)."""
    name: str = ""
    """The one memory that it forgot, in words."""
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def person(self) -> User:
        """The person in that app; asked for anew, as the store may have been opened anew."""
        desk = ui.desk()
        return desk.mc.user(desk.user, app=self.app)

    @property
    def left(self) -> float:
        """Seconds in which it can be undone."""
        return (self.until - ui.desk().mc.now).total_seconds()


def keep(
    words: str,
    seconds: float,
    undo: Callable[[Hold], object],
    *,
    app: str | None = None,
    memory_ids: Iterable[int] = (),
    back: str = "",
) -> Hold:
    """Let something that was just done, here or in another ``app``, be undone for so many
    seconds. ``words`` end before the number of seconds."""
    until = ui.desk().mc.now + timedelta(seconds=seconds)
    hold = Hold(words, until, undo, app or ui.app_name(), list(memory_ids), back)
    _holds().append(hold)
    return hold


def drop(hold: Hold) -> bool:
    """Let it be undone no longer; whether it could be until now."""
    there = hold in _holds()
    if there:
        _holds().remove(hold)
    return there


def of_memory(memory_id: int) -> Hold | None:
    """The action that forgot this memory, if it can be undone."""
    return next((hold for hold in alive() if memory_id in hold.memory_ids), None)


def alive() -> list[Hold]:
    """All that can be undone now, the oldest first."""
    held = [hold for hold in _holds() if hold.left > 0]
    st.session_state["held"] = held
    return held


def undo(hold: Hold) -> None:
    """Undo one action, if that is still possible."""
    if drop(hold):
        st.session_state["undone"] = True
        hold.undo(hold)


def begin(task: Task, hold: Hold | None = None) -> None:
    """Wait for a task that is over at once; the bar tells how far a longer one is. Where it fails,
    there is nothing to undo, and ``hold`` is dropped."""
    if task.wait(AT_ONCE_SECONDS):
        _end(task, hold)
    else:
        st.session_state["task"] = (task, hold)


def bars() -> None:
    """The lines at the foot of the window, while there are any."""
    if "task" in st.session_state:
        st.fragment(_progress_bar, run_every=0.25)(*st.session_state["task"])
    elif alive():
        st.fragment(_undo_bars, run_every=1.0)()


def _holds() -> list[Hold]:
    found: list[Hold] = st.session_state.setdefault("held", [])
    return found


def _end(task: Task, hold: Hold | None) -> None:
    if task.error is not None:
        if hold is not None:
            drop(hold)
        ui.problem(task.error)


def _progress_bar(task: Task, hold: Hold | None) -> None:
    if not task.running:
        st.session_state.pop("task", None)
        _end(task, hold)
        st.rerun()
    with st.container(key="undo-bar"):
        st.progress(task.share, f"{task.words}: {task.done:,} of {task.total:,}")


def _undo_bars() -> None:
    if st.session_state.pop("undone", False):
        st.rerun()  # the page, and not these bars alone
    held = alive()
    if not held:
        st.rerun()
    with st.container(key="undo-bar"):
        for hold in reversed(held):  # the latest is in sight where not all have room
            row = f"undo-row-{hold.number}"
            with st.container(key=row, horizontal=True, vertical_alignment="center"):
                st.markdown(f"{hold.words} {hold.left:.0f} s.")
                key = f"undo-{hold.number}" + (f"-{hold.back}" if hold.back else "")
                st.button("Undo", key=key, on_click=undo, args=(hold,), type="primary")
