"""What the pages share: the desk, safe text, small pieces with one look."""

from __future__ import annotations

import getpass
import os
import re
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from html import escape
from typing import Any

import streamlit as st

from memchat.api import MemChat, User
from memchat.errors import MemChatError, ScopeError, SecretError
from memchat.types import CreatedBy, Memory
from ui import launch, people
from ui.desk import Desk
from ui.launch import USER
from ui.people import Person

CREATED: dict[CreatedBy, str] = {
    "manual": "entered by you",
    "auto": "learnt in chat",
    "import": "imported",
    "mcp": "through MCP",
}
TYPES = {"profile": "About you", "preference": "Preference", "fact": "Fact", "other": "Other"}
_ICON = re.compile(r"(https?://\S+)|:(?=material/|(?!\d+:)[\w+-]+:|100:|1234:)")
_JOINER = "\u2060"
"""Unseen; behind a colon it keeps ``:name:`` from becoming an icon, which no escape does. What is
copied from the page is copied without it (``scripts/copy.js``)."""
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$~:])")


# The desk and the person


def who() -> Person:
    """The person of this tab, as long as they are let in. Raises ScopeError for anybody else."""
    if not launch.auth():
        user = os.environ.get(USER) or getpass.getuser()
        return Person(user, user)
    found = people.person_of(st.user.to_dict(), launch.home())
    # What this tab holds is that person's, and what it shows is what they could do then.
    if st.session_state.setdefault("signed in", found) != found:
        raise ScopeError("what you may do here has changed; reload the page")
    return found


def sign_out() -> None:
    """Sign the person of this tab out, in every tab of this browser."""
    people.ended.add(str(st.user.get("nonce")))
    st.logout()


def desk() -> Desk:
    """The person's desk: one in the whole server, whatever tab they are in."""
    return _desk(who().name)


_desks: list[Desk] = []
"""Those of everybody who came, at one store: its models are in memory once."""
_lock = threading.Lock()
"""Held while a desk gets its store, or all get another."""


@st.cache_resource(show_spinner="Opening your memory …", on_release=lambda found: _leave(found))
def _desk(user: str) -> Desk:
    with _lock:
        mc = _desks[0].mc if _desks else MemChat(settings=launch.settings())
        _desks.append(Desk(mc, user, _close))
        return _desks[-1]


def _leave(desk: Desk) -> None:
    _desks.remove(desk)
    desk.close()


def _close(mc: MemChat) -> None:
    if not any(desk.holds(mc) for desk in _desks):
        mc.close()


def app_name() -> str:
    """The app that is chosen in the sidebar."""
    return str(st.session_state.get("app") or "default")


def person() -> User:
    """The person in the app that is chosen: every verb on their memory."""
    return desk().mc.user(desk().user, app=app_name())


def reopen() -> None:
    """Have everybody's desk work with the settings as they are now, in every tab.

    Raises ConfigError where they cannot be used; all stays as it was then.
    """
    with _lock:
        mc = MemChat(settings=launch.settings())
        for desk in _desks:
            desk.change(mc)
            for found in ("check", "model list"):
                desk.tasks.pop(found, None)  # it is no longer so


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


def announce(text: str) -> None:
    """Say something to a screen reader, once: the app's one polite live region."""
    with st.container(key="announcer"):
        st.html(f'<span class="memchat-hidden">{escape(text)}</span>')


def tab_title(name: str) -> None:
    """Name the browser's tab."""
    st.set_page_config(page_title=f"{name} · memchat")


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


def attempt(work: Callable[[], Any], *, at: str = "") -> bool:
    """Do something; an error is shown with what to do about it, in the place ``at``, or else above
    the page. Whether it went well."""
    try:
        work()
    except MemChatError as error:
        st.session_state["secret"] = error.kind if isinstance(error, SecretError) else None
        problem(str(error), at=at)
        return False
    st.session_state["secret"] = None
    return True


def anyway() -> bool:
    """Ask whether to keep what looks like a secret, where it was not saved for that reason."""
    kind = st.session_state.get("secret")
    return bool(kind) and st.checkbox(f"This looks like a {kind}. Keep it anyway.", key="anyway")


def problem(text: str, *, at: str = "") -> None:
    """Keep an error on the page, in the place ``at``, until the next thing is done."""
    st.session_state["problem"] = (at, text)


def show_problem(at: str = "") -> None:
    """The last error, once, if this is its place."""
    place, text = st.session_state.get("problem", (at, ""))
    if place == at and text:
        del st.session_state["problem"]
        st.error(sentence(text))


def say_next(text: str) -> None:
    """Say something in passing, in the next run: a dialog that closes takes its own words along."""
    st.session_state["to say"] = text


def say() -> None:
    """What waits to be said."""
    if text := st.session_state.pop("to say", ""):
        st.toast(text)


def sentence(text: str) -> str:
    """An error's line as a sentence of the page."""
    return literal(as_sentence(text))


def as_sentence(text: str) -> str:
    """A line with a capital letter and a full stop. A name like ``openai/gpt`` keeps its letter."""
    named = "/" in text.partition(" ")[0]
    return (text if named else text[:1].upper() + text[1:]) + (
        "" if text.endswith((".", "!", "?")) else "."
    )


# Memories in words


def type_name(kind: str) -> str:
    """What a type of memories is called."""
    return TYPES.get(kind) or kind.replace("_", " ").capitalize()


def named(memory: Memory) -> str:
    """A memory's words in one line."""
    return literal(f"{memory.key.replace('_', ' ')}: {memory.value}")


def described(memory: Memory) -> str:
    """What a memory is besides its words, for Markdown."""
    return literal(about(memory))


def about(memory: Memory) -> str:
    """What a memory is besides its words: type, when, whence, until when."""
    return " · ".join([type_name(memory.memory_type), *origin_of(memory), *span_of(memory)])


def span_of(memory: Memory) -> list[str]:
    """From when, until when and where a memory is used, or why no longer."""
    parts = [f"from {memory.starts_at:%-d %B %Y}"] if memory.starts_at is not None else []
    if memory.expires_at is not None:
        parts.append(f"until {memory.expires_at:%-d %B %Y}")
    if not memory.app:
        parts.append("in every space")
    if memory.inactive_reason:
        parts.append(memory.inactive_reason)
    return parts


def origin_of(memory: Memory) -> list[str]:
    """Where a memory comes from, and when it was said or stored."""
    at = day(memory.said_at)
    if memory.created_by != "mcp":
        return [CREATED[memory.created_by], f"said {at}"]
    client = person().clients.of_memories([memory.id]).get(memory.id)
    return [f"stored by {client or 'a program'} over MCP", at]
