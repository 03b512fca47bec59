"""The sidebar: which space, and its conversations; and which conversation a tab is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import streamlit as st
from streamlit.navigation.page import Page
from streamlit.runtime.scriptrunner import get_script_run_ctx

from memchat.types import Message, Session
from ui import components as ui
from ui import keyboard, old_backups, reading, space
from ui.desk import Talk
from ui.marks import excerpt, marked

LISTED = 30
EXCERPT = 90
"""Characters of a message that are shown where it was found."""
TAUGHT = 8
"""Memories that are named before a chat is deleted with them."""


def arrive() -> None:
    """What a tab's address says, at its first run: the space, and the conversation."""
    state = st.session_state
    if "arrived" in state:
        return
    state["arrived"] = True
    state["app"], state["here"] = _addressed()
    state["listed"] = LISTED


def follow_history(*, chats: bool) -> None:
    """Be in the space and, on the page of ``chats``, in the conversation of the address where the
    browser's Back or Forward led there."""
    ctx = get_script_run_ctx()
    if ctx is None or not ctx.is_history_navigation:
        return
    app, number = _addressed()
    current = here()
    shown = current.session_id if current is not None else st.session_state["here"]
    if app != ui.app_name() or (chats and number != shown):
        go(number)
        st.session_state["app"] = app


def address(session_id: int | None = None, more: Mapping[str, str] | None = None) -> None:
    """Keep space, conversation and what ``more`` a page has in the address, for a reload or a
    bookmark."""
    wanted = {"app": ui.app_name()} if ui.app_name() != "default" else {}
    if session_id is not None:
        wanted["c"] = str(session_id)
    wanted |= more or {}
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)


def _addressed() -> tuple[str, int | None]:
    """The space and the conversation that the address names."""
    app = space.named(st.query_params.get("app", "").strip() or "default")
    number = st.query_params.get("c", "")
    return app, int(number) if number.isdecimal() and len(number) < 15 else None


def lead_to(page: str | Page) -> NoReturn:
    """Go to another page, which writes its own address. That of this page stays as it is until
    then: without it, the browser's Back would lead to the page in the first space."""
    st.switch_page(page, query_params=st.query_params.to_dict())


def here() -> Talk | None:
    """The open conversation this tab is in: incognito or begun here, or found by its number."""
    talk: Talk | None = st.session_state.get("talk")
    if talk is not None:
        return talk
    number = st.session_state.get("here")
    return ui.desk().find(ui.app_name(), number) if number is not None else None


def go(session_id: int | None, *, message_id: int | None = None) -> None:
    """Be in this conversation from now on, or in none; the one before is left for good."""
    state = st.session_state
    before = here()
    if before is not None and before.session_id != session_id:
        state["taught"] = before.session_id
        ui.desk().leave(before, state.get("tab", ""))
    state["talk"], state["here"], state["mark"] = None, session_id, message_id
    state.update(incognito=False, editing=None, unsent=None, shown=None, told=None)


def begin(*, incognito: bool = False) -> None:
    """A conversation of its own: nothing is opened before the first word."""
    go(None)
    st.session_state.update({"incognito": incognito, "to chat": True})


def show() -> None:
    """Draw it."""
    with st.sidebar:
        if (chosen := space.show()) is not None:
            begin()
            st.session_state["app"] = chosen
            st.rerun()
        with st.container(horizontal=True, gap="small"):
            st.button("New chat", key="new", on_click=begin, type="primary")
            st.button(
                "Incognito",
                key="new-incognito",
                on_click=begin,
                kwargs={"incognito": True},
                help="A chat that uses no memory and leaves nothing on this disk.",
            )
        _talks()
        keyboard.button()


@st.fragment
def _talks() -> None:
    """The chats, or those that a search finds while it is typed."""
    state, sessions = st.session_state, ui.person().sessions
    words = st.text_input(
        "Search chats",
        key="search-chats",
        type="search",
        placeholder="Search chats",
        label_visibility="collapsed",
        live=True,
        persist_state="session",
    )
    found = sessions.list(words, limit=state["listed"])
    if not found:
        st.caption(_none(words))
        return
    talk = here()
    current = talk.session_id if talk else state["here"]
    unread = reading.failures(found)
    with st.container(key="talks"):
        openings = sessions.first_words([one.id for one in found if not one.title])
        said = sessions.found_words(words, [session.id for session in found])
        for session in found:
            job = unread.get(session.id)
            read = session.status == "pending" and job is None
            title = title_of(session, openings.get(session.id, ""))
            _talk(session, title, words, here=session.id == current, read=read)
            if session.id in said:
                _hit(said[session.id], words)
            if job is not None:
                reading.badge(session.id, job)
        if found.cursor:
            st.button("Show more", key="earlier-talks", on_click=_more, type="tertiary")
        reading.watch(found)


def _none(words: str) -> str:
    if words.strip():
        return f"No chat has “{ui.literal(ui.shorten(words))}” in its title or in one message."
    return "Your conversations will be listed here."


def _more() -> None:
    st.session_state["listed"] += LISTED


def title_of(session: Session, opening: str) -> str:
    """A conversation's title, or its first words."""
    return session.title or ui.shorten(opening, 60) or "New chat"


def _talk(session: Session, title: str, words: str, *, here: bool, read: bool) -> None:
    """One chat of the list; ``here``: it is shown; ``read``: it is being read for memories."""
    label = marked(ui.shorten(title), words) + (" · *being read*" if read else "")
    args = (session.id,)
    with st.container(key=f"talk-{'here-' if here else ''}{session.id}", horizontal=True):
        st.button(
            label,
            key=f"open-{session.id}",
            type="tertiary",
            width="stretch",
            on_click=_open,
            args=args,
        )
        more = f"More: {ui.literal(ui.shorten(title, 30))}"
        st.button(more, key=f"more-{session.id}", type="tertiary", on_click=_choose, args=args)
    if st.session_state.get("chosen talk") == session.id:
        _menu(session.id, title)


def _hit(message: Message, words: str) -> None:
    """The message of a chat in which the words were found, which leads to it."""
    st.button(
        marked(excerpt(message.content, words, EXCERPT), words),
        key=f"found-{message.id}",
        type="tertiary",
        width="stretch",
        wrap=True,
        on_click=_open,
        args=(message.session_id, message.id),
    )


def _open(session_id: int, message_id: int | None = None) -> None:
    go(session_id, message_id=message_id)
    st.session_state["to chat"] = True
    st.rerun()  # the page, and not the list of chats alone


def _choose(session_id: int | None = None) -> None:
    st.session_state.update({"chosen talk": session_id, "deleting": False})


@st.dialog("This chat", on_dismiss=_choose)
def _menu(session_id: int, title: str) -> None:
    if st.session_state.get("deleting"):
        _delete(session_id, title)
        return
    st.text_input("Title", value=title, key=f"title-{session_id}", max_chars=80)
    ui.show_problem("title")
    with st.container(horizontal=True):
        if st.button("Rename", key=f"rename-{session_id}", type="primary"):
            words = st.session_state[f"title-{session_id}"]
            if ui.attempt(lambda: ui.person().sessions.rename(session_id, words), at="title"):
                _choose()
            st.rerun()
        open_yet = ui.person().sessions.get(session_id).ended_at is None
        if st.button(
            "Read again",
            key=f"read-again-{session_id}",
            disabled=open_yet,
            help="It is read when you leave it."
            if open_yet
            else "Reads this chat for memories once more, from its beginning. Nothing is stored "
            "twice, and what was forgotten stays forgotten.",
        ):
            _read_again(session_id)
        st.button("Delete this chat …", key=f"delete-{session_id}", on_click=_ask)
    ui.show_problem("read-again")


def _read_again(session_id: int) -> None:
    """Have a chat read anew; how that goes and what it taught stands under the chat."""
    sessions = ui.person().sessions
    if ui.attempt(lambda: sessions.read_again(session_id, wait=False), at="read-again"):
        ui.desk().wake()
        _choose()
        _open(session_id)
    st.rerun()


def _ask() -> None:
    st.session_state["deleting"] = True


def _delete(session_id: int, title: str) -> None:
    state = st.session_state
    st.write(f"“{ui.literal(title)}” is deleted for good, with all its messages.")
    what = ui.person().sessions.delete(session_id, dry_run=True)
    keep = False
    if what.gone:
        st.write(f"It alone taught {ui.plural(len(what.gone), 'memory', 'memories')}:")
        st.markdown(
            "\n".join(f"- {ui.named(m)}" for m in what.gone[:TAUGHT])
            + (f"\n- and {len(what.gone) - TAUGHT} more" if len(what.gone) > TAUGHT else "")
        )
        keep = not st.checkbox("Forget all that was learnt from this chat", value=True)
    with st.container(horizontal=True):
        if st.button("Delete for good", key="delete-talk", type="primary"):
            ui.desk().drop(ui.app_name(), session_id)
            if ui.attempt(lambda: ui.person().sessions.delete(session_id, keep_memories=keep)):
                old_backups.look()
            state["here"] = None if state["here"] == session_id else state["here"]
            talk: Talk | None = state.get("talk")
            if talk is not None and talk.session_id == session_id:
                state["talk"] = None
            _choose()
            st.rerun()
        if st.button("Cancel", key="delete-talk-no", on_click=_choose):
            st.rerun()
