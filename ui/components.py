"""What the pages share: the desk, safe text, small pieces with one look."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from memchat.app import MemChat, User
from memchat.errors import MemChatError, SecretError
from memchat.types import CreatedBy, Elsewhere, Memory
from ui import launch, server
from ui.desk import Desk, Task
from ui.launch import USER

STYLE = Path(__file__).with_name("style.css")
UNDO_SECONDS = 10.0
LOOKED_FOR = 20
"""Memories forgotten at once of which it is told what else speaks of them."""
SLOWEST = 100
"""Memories a second that are forgotten even on a busy machine."""
AT_ONCE_SECONDS = 0.2
"""What takes longer tells how far it is."""
CREATED: dict[CreatedBy, str] = {
    "manual": "entered by you",
    "auto": "learnt in chat",
    "import": "imported",
    "mcp": "through MCP",
}
TYPES = {
    "profile": "About you",
    "preference": "Preference",
    "fact": "Fact",
    "other": "Other",
}
_ICON = re.compile(r"(https?://\S+)|:(?=material/|(?!\d+:)[\w+-]+:|100:|1234:)")
_JOINER = "\u2060"
"""Unseen; behind a colon it keeps ``:name:`` from becoming an icon, which no escape does. What is
copied from the page is copied without it (``scripts/copy.js``)."""
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$~:])")


# The desk and the person


def desk() -> Desk:
    """The person's desk: one for the whole server."""
    return _desk()


@st.cache_resource(show_spinner="Opening your memory …", on_release=lambda found: found.close())
def _desk() -> Desk:
    return Desk(MemChat(settings=launch.settings()), os.environ.get(USER) or getpass.getuser())


def app_name() -> str:
    """The app that is chosen in the sidebar."""
    return str(st.session_state.get("app") or "default")


def person() -> User:
    """The person in the app that is chosen: every verb on their memory."""
    return desk().mc.user(desk().user, app=app_name())


# Text


def literal(text: str) -> str:
    """Any text to stand in Markdown just as it is."""
    return _PUNCTUATION.sub(r"\\\1", _still(" ".join(text.split())))


def _still(text: str) -> str:
    return _ICON.sub(lambda found: found[1] or ":" + _JOINER, text)


def shorten(text: str, length: int = 44) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def day(at: datetime) -> str:
    """A moment's day in the person's zone, as people say it: today, yesterday, 3 May."""
    zone = desk().mc.settings.zone
    there, today = at.astimezone(zone).date(), desk().mc.now.astimezone(zone).date()
    if there == today:
        return "today"
    if there == today - timedelta(days=1):
        return "yesterday"
    return f"{there.day} {there:%B}" + (f" {there.year}" if there.year != today.year else "")


def moment(at: datetime) -> str:
    """Day and time in the person's zone."""
    return f"{day(at)}, {at.astimezone(desk().mc.settings.zone):%H:%M}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 memory``, ``2 memories``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


# Pieces


def style() -> None:
    """The app's own rules, beside the theme, and its scripts."""
    st.html(f"<style>{STYLE.read_text('utf-8')}</style>")
    with st.container(key="heard"):
        own = "".join(f'<script src="/memchat/{name}"></script>' for name in server.SCRIPT_NAMES)
        st.html(own, unsafe_allow_javascript=True)


def announce(text: str) -> None:
    """Say something to a screen reader, once: the app's one polite live region."""
    with st.container(key="announcer"):
        st.html(f'<span class="memchat-hidden">{escape(text)}</span>')


def heading(title: str, lead: str = "") -> None:
    """A page's name, and one line on what it is for."""
    st.title(title, anchor=False)
    if lead:
        st.caption(lead)


def empty(title: str, text: str, key: str) -> None:
    """What stands where nothing is yet."""
    with st.container(key=f"empty-{key}"):
        st.subheader(title, anchor=False)
        st.write(text)


def attempt(work: Callable[[], Any]) -> bool:
    """Do something; an error is shown with what to do about it. Whether it went well."""
    try:
        work()
    except MemChatError as error:
        st.session_state["secret"] = error.kind if isinstance(error, SecretError) else None
        problem(str(error))
        return False
    st.session_state["secret"] = None
    return True


def anyway() -> bool:
    """Ask whether to keep what looks like a secret, where it was not saved for that reason."""
    kind = st.session_state.get("secret")
    return bool(kind) and st.checkbox(f"This looks like a {kind}. Keep it anyway.", key="anyway")


def problem(text: str) -> None:
    """Keep an error on the page until the next thing is done."""
    st.session_state["problem"] = text


def show_problem() -> None:
    """The last error, once."""
    text = st.session_state.pop("problem", None)
    if text:
        st.error(sentence(text))


def sentence(text: str) -> str:
    """An error's line as a sentence of the page."""
    return literal(text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else "."))


# Forgetting, with a way back


def forget(ids: Sequence[int]) -> None:
    """Forget memories; for some seconds it can be undone."""
    user = person()
    hold = UNDO_SECONDS + len(ids) / SLOWEST  # so long it may take itself
    until = desk().mc.now + timedelta(seconds=hold)
    leave_elsewhere()
    if len(ids) <= LOOKED_FOR:
        found = user.mentions.find(ids)
        st.session_state.update({"elsewhere": found, "elsewhere of": user})
    words = f"Forgot {plural(len(ids), 'memory', 'memories')}."
    st.session_state.update({"held": (list(ids), until, user), "held words": words})
    _begin(Task("Forgetting", len(ids), partial(user.memories.delete_many, ids, hold=hold)))


def blank(found: Elsewhere) -> None:
    """Blank what else speaks of what was forgotten; for some seconds both can be undone."""
    user: User = st.session_state["elsewhere of"]
    if not attempt(lambda: user.mentions.blank(found, hold=UNDO_SECONDS)):
        return
    leave_elsewhere()
    ids = st.session_state["held"][0] if _undo_left() > 0 else [found.memory_id]
    until = desk().mc.now + timedelta(seconds=UNDO_SECONDS)
    words = f"Blanked {found.counted}."
    st.session_state.update({"held": (ids, until, user), "held words": words})


def leave_elsewhere() -> None:
    """Speak no more of what else speaks of what was forgotten."""
    for name in ("elsewhere", "left out", "listing"):
        st.session_state.pop(name, None)


def can_restore(memory_id: int) -> bool:
    """Whether the last forgetting was this memory's, and can be undone."""
    return _undo_left() > 0 and memory_id in st.session_state["held"][0]


def restore() -> None:
    """Undo the last forgetting."""
    ids, _, user = st.session_state.pop("held")
    leave_elsewhere()
    st.session_state["undone"] = True
    _begin(Task("Bringing back", len(ids), partial(user.memories.restore_many, ids)))


def _begin(task: Task) -> None:
    """What is over at once is not spoken of; of anything longer the bar tells how far it is."""
    if not task.wait(AT_ONCE_SECONDS):
        st.session_state["task"] = task
    elif task.error is not None:
        st.session_state.pop("held", None)
        leave_elsewhere()
        problem(task.error)


def undo_bar() -> None:
    """The way back, at the foot of the window, while there is one."""
    if "task" in st.session_state:
        st.fragment(_progress_bar, run_every=0.25)(st.session_state["task"])
    elif _undo_left() > 0:
        st.fragment(_undo_bar, run_every=1.0)()


def _undo_left() -> float:
    held = st.session_state.get("held")
    return 0.0 if held is None else float((held[1] - desk().mc.now).total_seconds())


def _progress_bar(task: Task) -> None:
    if not task.running:
        st.session_state.pop("task", None)
        if task.error is not None:
            problem(task.error)
        st.rerun()
    with st.container(key="undo-bar"):
        st.progress(task.share, f"{task.words}: {task.done:,} of {task.total:,}")


def _undo_bar() -> None:
    left = _undo_left()
    if st.session_state.pop("undone", False):
        st.rerun()  # the page, and not this bar alone
    if left <= 0:
        st.session_state.pop("held", None)
        return
    with st.container(key="undo-bar", horizontal=True, vertical_alignment="center"):
        words = st.session_state["held words"]
        st.markdown(f"{words} Gone for good in {left:.0f} s.")
        st.button("Undo", key="undo", on_click=restore, type="primary")


def named(memory: Memory) -> str:
    """A memory's words in one line."""
    return literal(f"{memory.key.replace('_', ' ')}: {memory.value}")


def described(memory: Memory) -> str:
    """What a memory is besides its words: type, when, whence, until when."""
    parts = [TYPES[memory.memory_type], CREATED[memory.created_by], f"said {day(memory.said_at)}"]
    if memory.starts_at is not None:
        parts.append(f"from {memory.starts_at:%-d %B %Y}")
    if memory.expires_at is not None:
        parts.append(f"until {memory.expires_at:%-d %B %Y}")
    if not memory.app:
        parts.append("in every app")
    if memory.inactive_reason:
        parts.append(memory.inactive_reason)
    return literal(" · ".join(parts))
