"""Chat: one conversation, its replies as they come, and what they did to the memory."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Change, Message, Session
from ui import components as ui
from ui import refused, sidebar, why
from ui.desk import Talk
from ui.reply_html import copy_button, reply_html

SHOWN = 40
"""Turns drawn at once; earlier ones on request, so that a long conversation stays quick."""
STREAM_SECONDS = 0.15
SUGGESTIONS = (
    "What do you remember about me?",
    "Remember that I prefer short answers.",
    "Help me plan a quiet weekend.",
)
STAND_IN = "No model is set up: an offline stand-in answers, with patterns and no understanding."
WHAT = {"added": "Remembered", "revived": "Remembered again", "superseded": "Changed"}
WHAT |= {"ended": "No longer holds", "merged": "Merged with what was known"}


def page() -> None:
    """One run."""
    state = st.session_state
    talk = sidebar.here()
    session = _session(talk)
    incognito = talk.chat.incognito if talk else bool(state.get("incognito"))
    _address(session)
    # Asked once, and before the turns are read: a reply that ends meanwhile is then still waited
    # for, and seen by the next look.
    answering = talk is not None and talk.answering
    turns = _turns(talk, session, answering=answering)
    _header(session, turns, incognito=incognito)
    ui.show_problem()
    if turns:
        _transcript(talk, session, turns, answering=answering)
    elif not answering:
        _empty(incognito=incognito)
    if talk is not None and answering:
        st.fragment(_coming, run_every=STREAM_SECONDS)(talk)
        ui.announce("Responding")
    elif turns and talk is not None and talk.turn is not None:
        ui.announce("Answer complete")
    st.chat_input("Write a message", key="say", on_submit=_say)
    if talk is None and session is None:
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
            f"this chat is not in the app “{ui.app_name()}”; it was deleted, or is another's"
        )
        return None


def _address(session: Session | None) -> None:
    """Keep app and conversation in the address, for a reload or a bookmark."""
    wanted = {"app": ui.app_name()} if ui.app_name() != "default" else {}
    if session is not None:
        wanted["c"] = str(session.id)
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)


# The head


def _header(session: Session | None, turns: list[Message], *, incognito: bool) -> None:
    title = "New chat"
    if session is not None:
        title = sidebar.title_of(session, turns[0].content if turns else "")
    if incognito:
        title = "Incognito chat"
    with st.container(key="head", horizontal=True, vertical_alignment="center"):
        st.subheader(ui.literal(ui.shorten(title, 60)), anchor=False, width="stretch")
        if not incognito:
            _switch()
    if incognito:
        st.caption("No memory is used, and nothing of this chat is kept on this disk.")


def _switch() -> None:
    person = ui.person()
    switch = person.memory_switch()
    own = next((app.memory for app in person.apps.list() if app.name == ui.app_name()), True)
    closed = own and not switch.on
    if st.session_state.get("memory") != (own and not closed):
        st.session_state["memory"] = own and not closed
    st.toggle(
        "Memory",
        key="memory",
        on_change=_toggle,
        disabled=closed,
        help=f"Off: {switch.reason}."
        if not switch.on
        else "What you say about yourself is kept "
        "when a chat ends, and used in later ones. See Memories.",
    )
    if not switch.on:
        st.caption(f"Nothing is remembered: {ui.literal(switch.reason)}.")


def _toggle() -> None:
    on = bool(st.session_state["memory"])
    ui.attempt(lambda: ui.person().set_memory(on))


def _empty(*, incognito: bool) -> None:
    with st.container(key="empty-chat"):
        st.title("What is on your mind?", anchor=False)
        _notices()
        suggestions = SUGGESTIONS[2:] if incognito else SUGGESTIONS
        st.pills(
            "Suggestions",
            suggestions,
            key="suggestion",
            on_change=_suggested,
            label_visibility="collapsed",
        )


def _notices() -> None:
    mc = ui.desk().mc
    for notice in mc.address_notices():
        st.caption(ui.literal(notice))
    if mc.settings.chat_model.startswith("offline/"):
        with st.container(key="stand-in", horizontal=True, vertical_alignment="center"):
            st.caption(STAND_IN, width="content")
            if st.button("Choose a model", key="to-settings"):
                st.switch_page("views/settings.py")


# What is said


def _say() -> None:
    text = st.session_state["say"]
    if not _send(text):
        st.session_state["say"] = text  # back in its box


def _suggested() -> None:
    text = st.session_state.get("suggestion")
    st.session_state["suggestion"] = None
    if text:
        _send(text)


def _send(text: str) -> bool:
    state, desk = st.session_state, ui.desk()

    def work() -> None:
        talk = sidebar.here() or desk.open(
            ui.app_name(), incognito=bool(state.get("incognito")), session_id=state["here"]
        )
        desk.seen(state["tab"], talk)
        state["talk"] = talk
        _follow(talk, text)

    return ui.attempt(work)


def _follow(talk: Talk, text: str) -> None:
    turn = ui.desk().say(talk, text)
    if talk.session_id is not None:
        st.session_state["here"], st.session_state["talk"] = talk.session_id, None
    turn.wait(STREAM_SECONDS)


def _redo(text_key: str | None = None) -> None:
    state, desk = st.session_state, ui.desk()
    text = state[text_key] if text_key else None

    def work() -> None:
        talk = sidebar.here() or desk.open(ui.app_name(), session_id=state["here"])
        desk.seen(state["tab"], talk)
        desk.redo(talk, text).wait(STREAM_SECONDS)
        state.update(editing=None, unsent=None)

    ui.attempt(work)


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


# The transcript


def _transcript(
    talk: Talk | None, session: Session | None, turns: list[Message], *, answering: bool
) -> None:
    state = st.session_state
    lessons = ui.person().sessions.learned(session.id) if session else {}
    shown = state.get("shown") or SHOWN
    mark = state.get("mark")
    places = [n for n, turn in enumerate(turns) if turn.id == mark]
    if places:
        shown = max(shown, len(turns) - places[0])
    if len(turns) > shown:
        st.button(
            f"Show earlier messages ({len(turns) - shown:,} more)",
            key="earlier",
            on_click=lambda: state.update(shown=shown + SHOWN),
        )
    first = max(len(turns) - shown, 0)
    asked = max((n for n, turn in enumerate(turns) if turn.role == "user"), default=-1)
    taught: list[tuple[int, Sequence[Change]]] = []
    for n, turn in enumerate(turns[first:], first):
        if turn.role == "user":
            _said(turn, n, last=n == asked and not answering, marked=turn.id == mark)
            taught = [(turn.id, lessons[turn.id])] if turn.id in lessons else []
        else:
            last = n == len(turns) - 1 and not answering
            _answer(turn, n, last=last, cut=_cut(talk, turn) if last else None)
        follows = turns[n + 1 : n + 2]
        if not follows or follows[0].role == "user":
            for message_id, changes in taught:
                lesson(message_id, changes)
            taught = []
    if not answering:
        _trouble(talk, turns, asked)
    if session is not None and not answering:
        _reading(session)
        refused.show(session.id)


def _said(turn: Message, n: int, *, last: bool, marked: bool) -> None:
    editing = st.session_state.get("editing") == n
    with st.container(key=f"said-{n}"):
        if marked:
            st.caption("→ the message that was looked for")
        if editing:
            words = st.session_state.get("unsent") or turn.content
            st.text_area("Say it in other words", value=words, key=f"edited-{n}")
            with st.container(horizontal=True):
                args = (f"edited-{n}",)
                st.button("Send", key="resend", type="primary", on_click=_redo, args=args)
                st.button("Cancel", key="unedit", on_click=_edit, args=(None,))
            st.caption("What only the old words taught is taken back.")
            return
        with st.chat_message("user"):
            st.text(turn.content)
    if last:
        with st.container(key=f"edit-said-{n}", horizontal=True, horizontal_alignment="right"):
            st.button("Edit", key=f"edit-{n}", type="tertiary", on_click=_edit, args=(n,))


def _edit(n: int | None) -> None:
    st.session_state.update(editing=n, unsent=None)


def _cut(talk: Talk | None, turn: Message) -> str | None:
    """Why the reply that came in last ended before its time, where nobody stopped it."""
    reply = talk.turn.reply if talk is not None and talk.turn is not None else None
    return reply.cut if reply is not None and (reply.message_id or 0) == turn.id else None


def _answer(turn: Message, n: int, *, last: bool, cut: str | None) -> None:
    with st.container(key=f"answer-{n}"), st.chat_message("assistant"):
        st.html(reply_html(turn.content))
        if turn.status == "partial":
            st.caption(cut or "Stopped before its end.")
    with st.container(key=f"under-{n}", horizontal=True):
        st.html(copy_button(turn.content), width="content")
        if turn.id and st.button("Why this answer", key=f"why-{n}", type="tertiary"):
            why.ask(turn.id)
        if last:
            st.button("Try again", key=f"redo-{n}", type="tertiary", on_click=_redo)
    if st.session_state.get("why") == turn.id and turn.id:
        why.show(turn.id)


def _coming(talk: Talk) -> None:
    """The reply that is coming in, drawn anew several times a second."""
    turn = talk.turn
    if turn is None or not turn.running:
        st.rerun()
    with st.container(key="answer-coming"), st.chat_message("assistant"):
        st.html(turn.drawing.html(turn.text) if turn.text else reply_html("*Thinking …*"))
    with st.container(key="under-coming", horizontal=True):
        st.button("Stop", key="stop", on_click=turn.stop, shortcut="Esc")


def _trouble(talk: Talk | None, turns: list[Message], asked: int) -> None:
    """A reply that failed, or a message that never got one."""
    turn = talk.turn if talk is not None else None
    error = turn.error if turn is not None else None
    if turn is not None and error is not None and turn.instead is not None:
        # The old turn stands as it did; the new words wait in its place for another try.
        st.session_state.update(editing=asked, unsent=turn.instead)
        turn.instead = None
        st.rerun()
    if error is not None:
        st.error(ui.sentence(error))
    elif turns[-1].role == "user":
        st.caption("This message has no reply.")
    if turns[-1].role == "user":
        st.button("Try again", key="retry", on_click=_redo)


# What it taught


def lesson(message_id: int, changes: Sequence[Change], *, session_id: int | None = None) -> None:
    """What a turn did to the memory, with a way back."""
    if not changes:
        return
    with st.expander(f"Memory updated ({len(changes)})", key=f"lesson-{message_id}"):
        for change in changes:
            assert change.memory is not None
            was = f", before: {ui.literal(change.before)}" if change.before else ""
            st.markdown(f"{WHAT[change.kind]}: **{ui.named(change.memory)}**{was}")
        st.button("Undo", key=f"unlearn-{message_id}", on_click=_unlearn, args=(message_id,))


def _unlearn(message_id: int) -> None:
    if ui.attempt(lambda: ui.person().sessions.unlearn(message_id)):
        st.toast("Taken back. Your words stay in the chat; nothing is learnt from them again.")


def _reading(session: Session) -> None:
    """How the reading for memories stands: silent where there is nothing to say."""
    mc = ui.desk().mc
    if session.status not in ("pending", "failed") and not _ending(session.id):
        return
    jobs = [
        job
        for job in mc.jobs.list(user=session.user)
        if job.kind == "extract" and job.target_id == session.id and job.status != "completed"
    ]
    error = next((job.error_message for job in jobs if job.error_message), None)
    if error is None:
        st.fragment(_wait_for, run_every=1.0)(session.id)
        return
    st.warning(f"This chat was not read for memories yet: {ui.literal(error)}")
    st.button("Read it again", key="reread", on_click=_reread, args=(jobs[0].id,))


def _reread(job_id: int) -> None:
    desk = ui.desk()
    ui.attempt(lambda: desk.mc.jobs.retry(user=desk.user, job_id=job_id))
    desk.wake()


def _wait_for(session_id: int) -> None:
    try:
        status = ui.person().sessions.get(session_id).status
    except NotFound:
        st.rerun()
    if status != "pending" and not _ending(session_id):
        st.rerun()
    st.caption("Reading this chat for what matters …")


def _ending(session_id: int) -> bool:
    talk = ui.desk().find(ui.app_name(), session_id)
    return talk is not None and talk.ends_at is not None


def _last_lesson(session_id: int | None) -> None:
    """On the way into a new chat: what the one before it taught."""
    if session_id is None:
        return
    sessions = ui.person().sessions
    try:
        session = sessions.get(session_id)
    except NotFound:
        return
    with st.container(key="last-lesson"):
        if session.status in ("pending", "failed") or _ending(session_id):
            _reading(session)
            return
        changes = sessions.learned(session_id)
        if changes:
            st.caption(f"From “{ui.literal(session.title or 'your last chat')}”")
            count = sum(map(len, changes.values()))
            ui.announce(f"Memory updated, {count}")
        for message_id, found in changes.items():
            lesson(message_id, found)
        refused.show(session_id)


page()
