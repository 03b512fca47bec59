"""Forgetting memories in the app: each time can be undone by itself while it is held."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Elsewhere, InboxItem, Memory, WorkflowRun
from ui import components as ui
from ui import hold, old_backups
from ui.desk import Task
from ui.hold import Hold

UNDO_SECONDS = 10.0
LOOKED_FOR = 20
"""Memories forgotten at once of which it is told what else speaks of them."""
SLOWEST = 100
"""Memories a second that are forgotten even on a busy machine."""
NAME_LENGTH = 36
GONE = "Gone for good in"


def undo_seconds(count: int) -> float:
    """How long the forgetting of so many can be undone: so long it may take itself, and more."""
    return UNDO_SECONDS + count / SLOWEST


def forget(ids: Sequence[int]) -> None:
    """Forget memories; for some seconds it can be undone."""
    user = ui.person()
    seconds = undo_seconds(len(ids))
    leave_elsewhere()
    if len(ids) <= LOOKED_FOR:
        found = user.mentions.find(ids)
        st.session_state.update({"elsewhere": found, "elsewhere of": ui.app_name()})
    st.session_state.get("chosen", set()).difference_update(ids)
    back = f"row-{ids[0]}" if len(ids) == 1 else ""
    name = _name(ids)
    what = f": {ui.literal(name)}" if name else f" {ui.plural(len(ids), 'memory', 'memories')}"
    words = f"Forgot{what}.{_unproved(ids)} {GONE}"
    held = hold.keep(words, seconds, _undo, memory_ids=ids, back=back)
    held.name = name
    old_backups.look()
    work = partial(user.memories.delete_many, ids, hold=seconds)
    hold.begin(Task("Forgetting", len(ids), work), held)
    if held not in hold.alive():
        leave_elsewhere()


def _unproved(ids: Sequence[int]) -> str:
    """What no words prove any more without these, to be undone while there is time."""
    lost = ui.person().mentions.unproved(ids) if len(ids) <= LOOKED_FOR else ()
    if not lost:
        return ""
    more = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
    return f" No words prove “{ui.literal(_words(lost[0]))}”{more} any longer."


def forget_as_asked(item: InboxItem) -> None:
    """Forget the memory that a program asked to forget; for some seconds it can be undone."""
    user, done = ui.person(), list[Memory | WorkflowRun]()
    if not ui.attempt(lambda: done.append(user.inbox.accept(item.id, hold=UNDO_SECONDS))):
        return
    name = _words(*(one for one in done if isinstance(one, Memory)))
    ids = [done[0].id]
    words = f"Forgot: {ui.literal(name)}. {GONE}"
    held = hold.keep(words, UNDO_SECONDS, _undo, memory_ids=ids, back=f"item-{item.id}")
    held.name = name
    old_backups.look()


def _name(ids: Sequence[int]) -> str:
    """The words of one memory; those of many are not named."""
    if len(ids) != 1:
        return ""
    try:
        memory = ui.person().memories.get(ids[0])
    except NotFound:
        return ""  # another tab has forgotten it
    return _words(memory)


def _words(memory: Memory) -> str:
    return ui.shorten(memory.told, NAME_LENGTH).removesuffix(".")


def blank(found: Elsewhere) -> None:
    """Blank what else speaks of what was forgotten; for some seconds both can be undone."""
    app, desk = st.session_state["elsewhere of"], ui.desk()
    mentions = desk.mc.user(desk.user, app=app).mentions
    if not ui.attempt(lambda: mentions.blank(found, hold=UNDO_SECONDS)):
        return
    leave_elsewhere()
    ids = [found.memory_id]
    if (held := hold.of_memory(found.memory_id)) is not None:
        ids = held.memory_ids
        hold.drop(held)
    words = f"Blanked {found.counted}. {GONE}"
    hold.keep(words, UNDO_SECONDS, _undo, app=app, memory_ids=ids)


def leave_elsewhere() -> None:
    """Speak no more of what else speaks of what was forgotten."""
    for name in ("elsewhere", "left out", "listing"):
        st.session_state.pop(name, None)


def can_restore(memory_id: int) -> bool:
    """Whether this memory was forgotten here, and that can be undone."""
    return hold.of_memory(memory_id) is not None


def restore(memory_id: int) -> None:
    """Undo the forgetting of one memory."""
    if (held := hold.of_memory(memory_id)) is not None:
        held.memory_ids.remove(memory_id)
        if not held.memory_ids:
            hold.drop(held)
        _bring_back(held, [memory_id])


def _undo(held: Hold) -> None:
    _bring_back(held, held.memory_ids)


def _bring_back(held: Hold, ids: Sequence[int]) -> None:
    leave_elsewhere()
    st.session_state["undone"] = True
    work = partial(held.person.memories.restore_many, ids)
    hold.begin(Task("Bringing back", len(ids), work))
