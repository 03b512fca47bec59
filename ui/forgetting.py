"""Forgetting memories in the app: each time can be undone by itself while it is held."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import streamlit as st

from memchat.app import User
from memchat.types import Elsewhere
from ui import components as ui
from ui.desk import Task

UNDO_SECONDS = 10.0
LOOKED_FOR = 20
"""Memories forgotten at once of which it is told what else speaks of them."""
SLOWEST = 100
"""Memories a second that are forgotten even on a busy machine."""
AT_ONCE_SECONDS = 0.2
"""What takes longer tells how far it is."""
_numbers = itertools.count(1)


@dataclass
class Hold:
    """Memories that were forgotten at once, and are not purged yet."""

    ids: list[int]
    until: datetime
    user: User
    words: str
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def left(self) -> float:
        """Seconds until they are purged."""
        return (self.until - ui.desk().mc.now).total_seconds()


def forget(ids: Sequence[int]) -> None:
    """Forget memories; for some seconds it can be undone."""
    user = ui.person()
    seconds = UNDO_SECONDS + len(ids) / SLOWEST  # so long it may take itself
    leave_elsewhere()
    if len(ids) <= LOOKED_FOR:
        found = user.mentions.find(ids)
        st.session_state.update({"elsewhere": found, "elsewhere of": user})
    words = f"Forgot {ui.plural(len(ids), 'memory', 'memories')}."
    hold = _hold(ids, seconds, user, words)
    work = partial(user.memories.delete_many, ids, hold=seconds)
    _begin(Task("Forgetting", len(ids), work), hold)


def blank(found: Elsewhere) -> None:
    """Blank what else speaks of what was forgotten; for some seconds both can be undone."""
    user: User = st.session_state["elsewhere of"]
    if not ui.attempt(lambda: user.mentions.blank(found, hold=UNDO_SECONDS)):
        return
    leave_elsewhere()
    ids = [found.memory_id]
    if (held := _held(found.memory_id)) is not None:
        ids = held.ids
        _holds().remove(held)
    _hold(ids, UNDO_SECONDS, user, f"Blanked {found.counted}.")


def leave_elsewhere() -> None:
    """Speak no more of what else speaks of what was forgotten."""
    for name in ("elsewhere", "left out", "listing"):
        st.session_state.pop(name, None)


def can_restore(memory_id: int) -> bool:
    """Whether this memory was forgotten here, and that can be undone."""
    return _held(memory_id) is not None


def restore(memory_id: int) -> None:
    """Undo the forgetting of one memory."""
    if (hold := _held(memory_id)) is not None:
        hold.ids.remove(memory_id)
        if not hold.ids:
            _holds().remove(hold)
        _bring_back([memory_id], hold.user)


def bars() -> None:
    """The ways back, at the foot of the window, while there are any."""
    if "task" in st.session_state:
        st.fragment(_progress_bar, run_every=0.25)(st.session_state["task"])
    elif _alive():
        st.fragment(_undo_bars, run_every=1.0)()


def _hold(ids: Sequence[int], seconds: float, user: User, words: str) -> Hold:
    hold = Hold(list(ids), ui.desk().mc.now + timedelta(seconds=seconds), user, words)
    _holds().append(hold)
    return hold


def _holds() -> list[Hold]:
    found: list[Hold] = st.session_state.setdefault("held", [])
    return found


def _alive() -> list[Hold]:
    alive = [hold for hold in _holds() if hold.left > 0]
    st.session_state["held"] = alive
    return alive


def _held(memory_id: int) -> Hold | None:
    return next((hold for hold in _alive() if memory_id in hold.ids), None)


def _undo(hold: Hold) -> None:
    if hold in _holds():
        _holds().remove(hold)
        _bring_back(hold.ids, hold.user)


def _bring_back(ids: Sequence[int], user: User) -> None:
    leave_elsewhere()
    st.session_state["undone"] = True
    _begin(Task("Bringing back", len(ids), partial(user.memories.restore_many, ids)))


def _begin(task: Task, hold: Hold | None = None) -> None:
    """What is over at once is not spoken of; of anything longer the bar tells how far it is."""
    if not task.wait(AT_ONCE_SECONDS):
        st.session_state["task"] = task
    elif task.error is not None:
        if hold is not None:
            _holds().remove(hold)
        leave_elsewhere()
        ui.problem(task.error)


def _progress_bar(task: Task) -> None:
    if not task.running:
        st.session_state.pop("task", None)
        if task.error is not None:
            ui.problem(task.error)
        st.rerun()
    with st.container(key="undo-bar"):
        st.progress(task.share, f"{task.words}: {task.done:,} of {task.total:,}")


def _undo_bars() -> None:
    if st.session_state.pop("undone", False):
        st.rerun()  # the page, and not these bars alone
    alive = _alive()
    if not alive:
        st.rerun()
    with st.container(key="undo-bar"):
        for hold in alive:
            row = f"undo-row-{hold.number}"
            with st.container(key=row, horizontal=True, vertical_alignment="center"):
                st.markdown(f"{hold.words} Gone for good in {hold.left:.0f} s.")
                st.button(
                    "Undo",
                    key=f"undo-{hold.number}",
                    on_click=_undo,
                    args=(hold,),
                    type="primary",
                )
