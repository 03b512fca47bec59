"""The app's script: navigation, the sidebar that every page has, and the page itself."""

from __future__ import annotations

import logging
import os
from uuid import uuid4

import streamlit as st
from streamlit.errors import FragmentHandledException

from memchat.errors import MemChatError, ScopeError
from ui import components as ui
from ui import elsewhere, hold, launch, live, old_backups, people, sidebar
from ui.desk import Desk
from ui.notes import place

log = logging.getLogger(__name__)


@st.cache_resource(scope="session", on_release=lambda found: _gone(*found))
def _tab() -> tuple[str, Desk]:
    """This browser tab, at its person's desk; let go of when it closes, reloads or loses its
    line."""
    return uuid4().hex, ui.desk()


def _gone(tab: str, desk: Desk) -> None:
    live.leave(tab)
    desk.gone(tab)


def _admit() -> None:
    """Show whoever is not let in how to sign in, or why they are not, and nothing else."""
    if not launch.auth():
        return
    if not st.user.get("is_logged_in"):
        with st.container(key="sign-in"):
            st.title("memchat", anchor=False)
            st.write("Sign in to go on.")
            for name in people.providers(launch.auth()):
                label = f"Sign in with {ui.literal(name.capitalize())}" if name else "Sign in"
                st.button(label, on_click=st.login, args=(name or None,), type="primary")
        st.stop()
    try:
        ui.who()
    except ScopeError as error:
        with st.container(key="not-let-in"):
            st.title("Not let in", anchor=False)
            st.write(ui.sentence(str(error)))
            st.caption("Your provider knows you as")
            names = st.user.get("email"), f"{st.user.get('iss')} {st.user.get('sub')}"
            st.code("\n".join(str(one) for one in names if one), language=None, wrap_lines=True)
            st.button("Sign out", key="sign-out", on_click=ui.sign_out)
        st.stop()


def _draw(desk: Desk) -> None:
    """The sidebar and the page that was chosen."""
    sidebar.arrive()
    waiting = len(ui.person().inbox.list())
    chat = st.Page("views/chat.py", title="Chat", default=True)
    notes = st.Page(place.PAGE, title="Notes")
    pages = [
        chat,
        st.Page("views/memories.py", title="Memories"),
        notes,
        st.Page("views/inbox.py", title=f"Inbox ({waiting})" if waiting else "Inbox"),
        st.Page("views/insights.py", title="Insights"),
        st.Page("views/settings.py", title="Settings"),
    ]
    page = st.navigation(pages, position="hidden")
    state = st.session_state
    sidebar.follow_history(chats=page is chat)
    if state.pop("to chat", False) and page is not chat:
        sidebar.lead_to(chat)
    if place.awaited() and page is not notes:
        sidebar.lead_to(notes)
    if page is notes:
        place.settle()
    elif page not in (chat, pages[-1]):
        sidebar.address()
    if state.get("page path") != page.url_path:
        state.update({"page path": page.url_path, "rows of": None, "opened": None})
    if page is not chat:
        ui.tab_title(page.title)
    state["tab"], _ = _tab()
    sidebar.show(pages, page)
    desk.seen(state["tab"], sidebar.here())
    elsewhere.bar()
    if ui.who().is_admin:  # a backup holds what is kept of everybody
        old_backups.bar()
    page.run()


def main() -> None:
    """One run."""
    st.set_page_config(page_title="memchat", layout="centered", initial_sidebar_state="auto")
    try:
        _admit()
        desk = ui.desk()
    except MemChatError as error:
        st.error(f"memchat could not open its store. {ui.sentence(str(error))}")
        st.stop()
    try:
        _draw(desk)
    except MemChatError as error:
        ui.problem(str(error))
        ui.show_problem()
    except FragmentHandledException:
        raise  # a part of the page failed, and has said so in its place
    except Exception as error:
        # Only its class: the text of a library's error may hold people's words.
        log.error("a page failed: %s", type(error).__name__)
        if os.environ.get("MEMCHAT_DEBUG") == "1":
            raise
        st.error(
            f"This page failed ({type(error).__name__}), and nothing was lost. Reload it; if it "
            "fails again, start with MEMCHAT_DEBUG=1 and report what the terminal says."
        )
    hold.bars()
    ui.say()


main()
