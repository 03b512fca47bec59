"""The sidebar: pages, spaces and chats; and which chat a tab is in, as its address says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from itertools import groupby
from typing import Any, NoReturn
from urllib.parse import urlencode

import streamlit as st
from streamlit.navigation.page import Page
from streamlit.runtime.scriptrunner import get_script_run_ctx

from memchat.config.providers import WORDS_ONLY
from memchat.types import Hit, Session
from ui import components as ui
from ui import keyboard, old_backups, reading, search_service, space
from ui.desk import Talk
from ui.marks import excerpt, lit

LISTED = 30
EXCERPT = 90
"""Characters of a message that are shown where it was found."""
LOOKED_AT = 40
"""Results of a search by meaning among which chats are: it finds memories, too."""
MEANT = 5
"""Chats that are found by meaning."""
PATIENCE_SECONDS = 0.5
TAUGHT = 8
"""Memories that are named before a chat is deleted with them."""
RENAME, MOVE, READ_AGAIN, DELETE = "Rename …", "Move …", "Read again", "Delete …"
SHELVES = {"Pin": "pinned", "Unpin": "", "Archive": "archived", "Put back": ""}
OFFERED = {None: ("Pin", "Archive"), "pinned": ("Unpin", "Archive"), "archived": ("Put back",)}
"""What can be done with a chat, by where it is."""


# Where a tab is


def arrive() -> None:
    """What a tab's address says, at its first run: the space, the chat, and a message in it."""
    state = st.session_state
    if "arrived" in state:
        return
    state.update(arrived=True, listed=LISTED)
    state["app"], state["here"], state["mark"] = _addressed()


def follow_history(*, chats: bool) -> None:
    """Be in the space and, on the page of ``chats``, in the chat of the address where a link or the
    browser's Back or Forward led there."""
    ctx = get_script_run_ctx()
    if ctx is None or not ctx.is_history_navigation:
        return
    app, number, mark = _addressed()
    current = here()
    shown = current.session_id if current is not None else st.session_state["here"]
    if app != ui.app_name() or (chats and (number != shown or mark)):
        leave_for(app=app, session_id=number, message_id=mark)


def address(session_id: int | None = None, more: Mapping[str, str] | None = None) -> None:
    """Keep space, chat, message and what ``more`` a page has in the address, for a reload or a
    bookmark."""
    mark = st.session_state.get("mark") if session_id is not None else None
    wanted = _place(ui.app_name(), session_id, mark) | dict(more or {})
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)


def _place(
    app: str, session_id: int | None = None, message_id: int | None = None
) -> dict[str, str]:
    """What an address says behind the page."""
    said = {"app": app if app != "default" else "", "c": session_id, "m": message_id}
    return {name: str(value) for name, value in said.items() if value}


def link(
    path: str = "", session_id: int | None = None, message_id: int | None = None, **more: str
) -> str:
    """The address of a page, a chat, or a message in it."""
    query = urlencode(_place(ui.app_name(), session_id, message_id) | more)
    return f"/{path}" + (f"?{query}" if query else "")


def _addressed() -> tuple[str, int | None, int | None]:
    """The space, the chat and the message that the address names."""
    app = space.named(st.query_params.get("app", "").strip() or "default")
    numbers = (st.query_params.get(name, "") for name in ("c", "m"))
    chat, message = (int(n) if n.isdecimal() and len(n) < 15 else None for n in numbers)
    return app, chat, message


def lead_to(page: str | Page) -> NoReturn:
    """Go to another page, which writes its own address. That of this page stays as it is until
    then: without it, the browser's Back would lead to the page in the first space."""
    st.switch_page(page, query_params=st.query_params.to_dict())


def here() -> Talk | None:
    """The open chat this tab is in: incognito or begun here, or found by its number."""
    talk: Talk | None = st.session_state.get("talk")
    if talk is not None:
        return talk
    number = st.session_state.get("here")
    return ui.desk().find(ui.app_name(), number) if number is not None else None


def go(session_id: int | None, *, message_id: int | None = None) -> None:
    """Be in this chat from now on, or in none; the one before is left for good."""
    state = st.session_state
    before = here()
    if before is not None and before.session_id != session_id:
        state["taught"] = before.session_id
        ui.desk().leave(before, state.get("tab", ""))
    state["talk"], state["here"], state["mark"] = None, session_id, message_id
    state.update(incognito=False, editing=None, unsent=None, shown=None, told=None)


def leave_for(
    app: str | None = None, *, incognito: bool = False, sure: bool = False, **to: Any
) -> None:
    """Go ``to`` another chat, or begin one. An incognito chat in which something was said is asked
    about first, as nothing brings it back."""
    state = st.session_state
    if _would_be_lost() and not sure:
        state["leaving"] = {"app": app, "incognito": incognito, **to}
        return
    go(to.get("session_id"), message_id=to.get("message_id"))
    state.update(leaving=None, incognito=incognito, app=app or ui.app_name())


def open_chat(session_id: int, message_id: int | None = None) -> NoReturn:
    """Lead to a chat, or to a message in it."""
    leave_for(session_id=session_id, message_id=message_id)
    st.session_state["to chat"] = True
    st.rerun()


def begin(*, incognito: bool = False) -> None:
    """A chat of its own: nothing is opened before the first word."""
    leave_for(incognito=incognito)
    st.session_state["to chat"] = True


def _would_be_lost() -> bool:
    talk: Talk | None = st.session_state.get("talk")
    return talk is not None and talk.chat.incognito and bool(talk.chat.turns)


def _stay() -> None:
    st.session_state["leaving"] = None


@st.dialog("Leave the incognito chat?", on_dismiss=_stay)
def _ask_to_leave(to: dict[str, Any]) -> None:
    st.write("Nothing of it was kept, and nothing brings it back.")
    with st.container(horizontal=True):
        left = st.button("Leave it", key="leave-incognito", type="primary")
        stays = st.button("Stay", key="stay-incognito")
    if left:
        leave_for(**to, sure=True)
        st.session_state["to chat"] = True
    if stays:
        _stay()
    if left or stays:
        st.rerun()


# What it shows


def show(pages: Sequence[Page], page: Page) -> None:
    """Draw it; ``page`` is the one of these pages that is shown."""
    with st.sidebar:
        with st.container(key="top"), st.container(horizontal=True, gap="small"):
            st.button("New chat", key="new", on_click=begin, type="primary")
            st.button(
                "Incognito",
                key="new-incognito",
                on_click=begin,
                kwargs={"incognito": True},
                help="A chat that uses no memory and leaves nothing on this disk.",
            )
        st.html(f'<nav aria-label="Pages">{"".join(_pages(pages, page))}</nav>')
        if (chosen := space.show()) is not None:
            leave_for(app=chosen)
            st.session_state["to chat"] = True
            st.rerun()
        _talks()
        keyboard.button()
        if (person := ui.who()).signed_in:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(person.shown, width="stretch")
                st.button("Sign out", key="sign-out", on_click=ui.sign_out)
    if st.session_state.get("leaving"):
        _ask_to_leave(st.session_state["leaving"])


def _pages(pages: Iterable[Page], shown: Page) -> Iterable[str]:
    talk = here()
    number = talk.session_id if talk else st.session_state["here"]
    for page in pages:
        chat = not page.url_path
        lost = chat and _would_be_lost()
        yield anchor(
            link(page.url_path, number if chat else None),
            escape("Incognito chat" if lost else page.title),
            "memchat-incognito" if lost else "",
            here=page is shown,
        )


def anchor(href: str, html: str, kind: str = "", *, here: bool = False) -> str:
    """A link that leads on within the page (``scripts/shell.js``); ``here``: it leads to what is
    shown."""
    current = ' aria-current="page"' if here else ""
    return f'<a class="memchat-link {kind}" href="{escape(href)}"{current}>{html}</a>'


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
    ).strip()
    shelf = None if words else "archived" if state.get("archive") else ""
    found = sessions.list(words, shelf=shelf, limit=state["listed"])
    pinned = sessions.list(shelf="pinned", limit=LISTED) if shelf == "" else []
    every = [*pinned, *found]
    unread = reading.failures(every)
    openings = sessions.first_words([one.id for one in every if not one.title])
    said = sessions.found_words(words, [session.id for session in found])
    with st.container(key="talks"):
        if not every:
            st.caption(_none(words))
        for label, chats in groupby(every, lambda one: "" if words else _group(one)):
            if label:
                st.html(f'<h2 class="memchat-day">{label}</h2>')
            for session in chats:
                job = unread.get(session.id)
                read = session.status == "pending" and job is None
                _talk(session, title_of(session, openings.get(session.id, "")), words, read=read)
                if session.id in said:
                    hit = said[session.id]
                    _hit(hit.session_id, hit.id, excerpt(hit.content, words, EXCERPT), words)
                if job is not None:
                    reading.badge(session.id, job)
        if found.cursor:
            st.button("Show more", key="earlier-talks", on_click=_more, type="tertiary")
        if words:
            _by_meaning(words, {session.id for session in found})
        else:
            st.toggle("Archived chats", key="archive", persist_state="session")
        reading.watch(every)


def _group(session: Session) -> str:
    """Under which heading a chat stands."""
    if session.shelf:
        return session.shelf.capitalize()
    zone = ui.desk().mc.settings.zone
    at, now = session.last_activity_at.astimezone(zone), ui.desk().mc.now.astimezone(zone)
    days = (now.date() - at.date()).days
    steps = {0: "Today", 1: "Yesterday", 7: "The last 7 days", 30: "The last 30 days"}
    return next((name for most, name in steps.items() if days <= most), f"{at:%B %Y}")


def _none(words: str) -> str:
    if words:
        return f"No chat has “{ui.literal(ui.shorten(words))}” in its title or in one message."
    return "Your chats will be listed here."


def _more() -> None:
    st.session_state["listed"] += LISTED


def title_of(session: Session, opening: str) -> str:
    """A chat's title, or its first words."""
    return session.title or ui.shorten(opening, 60) or "New chat"


def _talk(session: Session, title: str, words: str, *, read: bool) -> None:
    """One chat of the list; ``read``: it is being read for memories."""
    talk = here()
    shown = session.id == (talk.session_id if talk else st.session_state["here"])
    ended = session.ended_at is not None
    with st.container(key=f"talk-{'here-' if shown else ''}{session.id}", horizontal=True):
        html = lit(ui.shorten(title, 60), words) + ("<i> · being read</i>" if read else "")
        st.html(anchor(link(session_id=session.id), html, here=shown), width="stretch")
        st.menu_button(
            f"More: {ui.literal(ui.shorten(title, 30))}",
            [RENAME, *OFFERED[session.shelf], MOVE, *([READ_AGAIN] * ended), DELETE],
            key=f"more-{session.id}",
            type="tertiary",
            on_click=_choose,
            args=(session.id,),
        )
    asked, what = st.session_state.get("chosen talk") or (None, "")
    if asked == session.id:
        dialogs = {RENAME: _rename, MOVE: _move, READ_AGAIN: _read_again, DELETE: _delete}
        dialogs[what](session.id, title)


def _hit(session_id: int, message_id: int, text: str, words: str) -> None:
    """The message of a chat that was found, which leads to it."""
    st.html(anchor(link("", session_id, message_id), lit(text, words), "memchat-hit"))


def _by_meaning(words: str, shown: set[int]) -> None:
    """The chats that have to do with the words, and do not hold them. A service that costs, and
    learns the words, is asked with a button alone."""
    service = search_service.name()
    if service == WORDS_ONLY:
        return
    if search_service.is_remote(service) and not st.button(
        "Search by meaning", key="chats-by-meaning", help=f"Sends these words to {service}."
    ):
        return
    best: dict[int, Hit] = {}

    def search() -> None:
        found = ui.person().search(words, limit=LOOKED_AT, timeout=PATIENCE_SECONDS)
        for hit in found.confident:
            number = hit.session_id
            if number is not None and number not in shown and hit.cosine is not None:
                best.setdefault(number, hit)

    ui.attempt(search)
    if best:
        st.html('<h2 class="memchat-day">By meaning</h2>')
    openings = ui.person().sessions.first_words([*best])
    for number, hit in [*best.items()][:MEANT]:
        title = hit.session_title or openings.get(number, "")
        st.html(anchor(link(session_id=number), lit(ui.shorten(title, 60), words)))
        _hit(number, hit.id, ui.shorten(hit.text, EXCERPT), words)


# What can be done with one


def _choose(session_id: int) -> None:
    """What was chosen in the menu of a chat."""
    what = st.session_state[f"more-{session_id}"]
    if what in SHELVES:
        ui.attempt(lambda: ui.person().sessions.put(session_id, SHELVES[what]))
    else:
        st.session_state["chosen talk"] = (session_id, what)


def _done() -> None:
    st.session_state["chosen talk"] = None


@st.dialog("Rename this chat", on_dismiss=_done)
def _rename(session_id: int, title: str) -> None:
    with st.form("rename-talk", border=False):
        words = st.text_input("Title", value=title, key=f"title-{session_id}", max_chars=80)
        ui.show_problem("title")
        renamed = st.form_submit_button("Rename", key=f"rename-{session_id}", type="primary")
    if renamed:
        if ui.attempt(lambda: ui.person().sessions.rename(session_id, words), at="title"):
            _done()
        st.rerun()


@st.dialog("Move this chat", on_dismiss=_done)
def _move(session_id: int, _: str) -> None:
    others = [name for name in space.names() if name != ui.app_name()]
    to = st.selectbox("To the space", others, key="move-to")
    st.caption("What only this chat taught leaves this space, and is learnt there.")
    ui.show_problem("move")
    if st.button("Move", key="move-talk", type="primary", disabled=not to):
        ui.desk().drop(ui.app_name(), session_id)
        moved: list[Session] = []
        work = partial(ui.person().sessions.move, session_id, to)
        if ui.attempt(lambda: moved.append(work()), at="move"):
            ui.desk().wake()
            _done()
            leave_for(to, session_id=moved[0].id)
            st.session_state["to chat"] = True
        st.rerun()


def _read_again(session_id: int, _: str) -> None:
    """Have a chat read anew; how that goes and what it taught stands under the chat."""
    _done()
    sessions = ui.person().sessions
    if ui.attempt(lambda: sessions.read_again(session_id, wait=False)):
        ui.desk().wake()
        open_chat(session_id)
    st.rerun()


@st.dialog("Delete this chat?", on_dismiss=_done)
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
            _done()
            st.rerun()
        if st.button("Cancel", key="delete-talk-no"):
            _done()
            st.rerun()
