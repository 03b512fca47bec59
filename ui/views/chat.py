"""Chat: one conversation, its replies as they come, and what they did to the memory."""

from __future__ import annotations

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Message, Session
from ui import components as ui
from ui import (
    learned,
    memory_details,
    message,
    model_choice,
    reading,
    sidebar,
    space,
    transcript,
    why,
)
from ui.desk import Talk

SUGGESTIONS = (
    "What do you remember about me?",
    "Remember that I prefer short answers.",
    "Help me plan a quiet weekend.",
)
STAND_IN = "No model is set up: an offline stand-in answers, with patterns and no understanding."


def page() -> None:
    """One run."""
    state = st.session_state
    talk = sidebar.here()
    session = _session(talk)
    incognito = talk.chat.incognito if talk else bool(state.get("incognito"))
    if page := state.pop("to page", None):
        sidebar.lead_to(page)
    sidebar.address(session.id if session is not None else None)
    # Asked once, and before the turns are read: a reply that ends meanwhile is then still waited
    # for, and seen by the next look.
    answering = talk is not None and talk.answering
    turns = _turns(talk, session, answering=answering)
    _header(talk, session, incognito=incognito)
    ui.show_problem()
    if not turns and not answering:
        _empty(incognito=incognito)
    transcript.show(talk, turns, answering=answering, incognito=incognito)
    told = state.get("told")
    if told:
        ui.announce(told.replace("**", "").replace("\\", ""))
    elif talk is not None and (answering or (turns and talk.turn is not None)):
        ui.announce("Responding" if answering else "Answer complete")
    if session is not None and turns and not answering:
        _taught(session)
    if told:
        with st.container(key="told"):
            st.markdown(told)
    ui.show_problem("say")
    if state.get("why"):
        why.show(state["why"])
    elif state.get(model_choice.ASKED):
        model_choice.show()
    elif state.get("details"):
        memory_details.show(state["details"])
    if talk is None and session is None and not incognito:
        _last_lesson(state.get("taught"))


def _session(talk: Talk | None) -> Session | None:
    """The stored conversation this tab is in, if any."""
    number = talk.session_id if talk else st.session_state["here"]
    if number is None:
        return None
    try:
        return ui.person().sessions.get(number)
    except NotFound:
        st.session_state["here"] = None
        ui.problem(
            f"this chat is not in the space “{ui.app_name()}”; it was deleted, or is another's"
        )
        return None


# The head


def _header(talk: Talk | None, session: Session | None, *, incognito: bool) -> None:
    title = "New chat"
    if session is not None:
        title = sidebar.title_of(session, _opening(session.id))
    if incognito:
        title = "Incognito chat"
    ui.tab_title(ui.shorten(title, 60))
    key = "head-incognito" if incognito else "head"
    with st.container(key=key, horizontal=True, vertical_alignment="center"):
        st.subheader(ui.literal(ui.shorten(title, 60)), anchor=False, width="stretch")
        if not incognito:
            _switch(talk, session)
    if incognito:
        st.caption("No memory is used, and nothing of this chat is kept on this disk.")


def _opening(session_id: int) -> str:
    return ui.person().sessions.first_words([session_id]).get(session_id, "")


def _switch(talk: Talk | None, session: Session | None) -> None:
    """The chat's own switch of memory; where it is off for the space or the person, that counts."""
    off = space.why_off()
    own = session.memory if session is not None else talk is None or talk.chat.memory.on
    st.session_state["memory"] = own and not off
    st.toggle(
        "Memory",
        key="memory",
        on_change=_toggle,
        disabled=bool(off),
        help="What you say of yourself here is kept when the chat ends, and used in later ones.",
    )
    if off or not own:
        st.caption(f"Nothing is remembered: {ui.literal(off or 'memory is off for this chat')}.")


def _toggle() -> None:
    state, desk, on = st.session_state, ui.desk(), bool(st.session_state["memory"])

    def work() -> None:
        talk = sidebar.here()
        if talk is None and state["here"] is not None:
            ui.person().sessions.set_memory(state["here"], on)
            return
        if talk is None:
            talk = state["talk"] = desk.open(ui.app_name())
        desk.seen(state["tab"], talk)
        talk.chat.set_memory(on)

    ui.attempt(work)


def _empty(*, incognito: bool) -> None:
    with st.container(key="empty-chat"):
        st.title("What is on your mind?", anchor=False)
        _notices()
        off = incognito or not st.session_state.get("memory", True)
        suggestions = SUGGESTIONS[2:] if off else SUGGESTIONS
        st.pills(
            "Suggestions",
            suggestions,
            key="suggestion",
            on_change=message.suggested,
            label_visibility="collapsed",
        )


def _notices() -> None:
    mc = ui.desk().mc
    for notice in mc.address_notices():
        st.caption(ui.literal(notice))
    if mc.settings.chat_model.startswith("offline/"):
        with st.container(key="stand-in", horizontal=True, vertical_alignment="center"):
            st.caption(STAND_IN, width="content")
            if ui.who().is_admin and st.button("Choose a model", key="to-settings"):
                sidebar.lead_to("views/settings.py")


def _turns(talk: Talk | None, session: Session | None, *, answering: bool) -> list[Message]:
    if session is not None:
        aside = talk.chat.left_out if talk else ()
        found = ui.person().sessions.messages(session.id)
        turns = [turn for turn in found if turn.id not in aside]
    else:
        turns = list(talk.chat.turns) if talk is not None else []
    if answering:
        # What comes in stands below already, also in the moment after it was kept.
        while turns and turns[-1].role == "assistant":
            turns.pop()
    return turns


# What it taught


def _taught(session: Session, *, announced: bool = False) -> None:
    """How the reading of a chat stands, and what came of it."""
    if reading.unfinished(session):
        reading.show(session)
    else:
        learned.show(session, announced=announced)


def _last_lesson(session_id: int | None) -> None:
    """On the way into a new chat: what the one before it taught."""
    if session_id is None:
        return
    try:
        session = ui.person().sessions.get(session_id)
    except NotFound:
        return
    with st.container(key="last-lesson"):
        st.caption(f"From “{ui.literal(session.title or 'your last chat')}”")
        _taught(session, announced=True)


page()
