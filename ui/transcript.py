"""The turns of a chat: what was said, the replies, and what can be done with each."""

from __future__ import annotations

from functools import partial

import streamlit as st

from memchat.types import Message
from ui import components as ui
from ui import long_message, memory_reply, message, why
from ui.desk import Talk
from ui.reply_html import copy_button, reply_html

SHOWN = 40
"""Turns drawn at once; earlier ones on request, so that a long conversation stays quick."""
STREAM_SECONDS = 0.15


def show(talk: Talk | None, turns: list[Message], *, answering: bool) -> None:
    """Draw the last turns, and what went wrong with the latest."""
    state = st.session_state
    mark = state.get("mark")
    first, end = _window(turns, mark)
    if first:
        shown = end - first
        st.button(
            f"Show earlier messages ({first:,} more)",
            key="earlier",
            on_click=lambda: state.update(shown=shown + SHOWN),
        )
    asked = max((n for n, turn in enumerate(turns) if turn.role == "user"), default=-1)
    for n, turn in enumerate(turns[first:end], first):
        marked = mark is not None and turn.id == mark
        if turn.role == "user":
            _said(talk, turn, n, last=n == asked, answering=answering, marked=marked)
        else:
            last = n == len(turns) - 1 and not answering
            _answer(talk, turn, n, last=last, marked=marked)
    if end < len(turns):
        st.button(
            f"Show the latest messages ({len(turns) - end:,} more)",
            key="latest",
            on_click=lambda: state.update(mark=None, shown=None),
        )
    elif not answering:
        _trouble(talk, turns, asked)


def _window(turns: list[Message], mark: int | None) -> tuple[int, int]:
    """The first turn that is drawn, and the one behind the last: the latest, or those around the
    message that was looked for."""
    shown = st.session_state.get("shown") or SHOWN
    end = len(turns)
    place = next((n for n, turn in enumerate(turns) if turn.id == mark), end)
    if place < end - shown:
        end = place + SHOWN // 2
    return max(end - shown, 0), end


def _said(
    talk: Talk | None, turn: Message, n: int, *, last: bool, answering: bool, marked: bool
) -> None:
    """What the person said; ``last``: nothing of theirs came after it, ``marked``: it was looked
    for."""
    editing = st.session_state.get("editing") == n and not answering
    with st.container(key=_key(f"said-{n}", marked)):
        if marked:
            st.caption("→ the message that was looked for")
        if editing:
            _editor(talk, turn, n, last=last)
            return
        with st.chat_message("user"):
            long_message.draw(turn, n)
        long_message.ask(turn)
        long_message.keep(turn)
    with st.container(key=f"edit-said-{n}", horizontal=True, horizontal_alignment="right"):
        edit = partial(_edit, n)
        # Drawn also while it does nothing, so that no turn moves when a reply has come in.
        st.button("Edit", key=f"edit-{n}", type="tertiary", on_click=edit, disabled=answering)


def _key(name: str, marked: bool) -> str:
    """The key of a turn's container; the scripts know by it which turn was looked for."""
    return f"{name}-marked" if marked else name


def _editor(talk: Talk | None, turn: Message, n: int, *, last: bool) -> None:
    """The last message is said anew in its place, an earlier one in a copy of the chat."""
    field = f"edited-{n}"
    words = st.session_state.get("unsent") or turn.content
    st.text_area("Say it in other words", value=words, key=field)
    ui.show_problem(field)
    with st.container(horizontal=True):
        send, args = (
            (message.redo, (turn, field)) if last else (message.say_in_copy, (field, n, turn))
        )
        st.button("Send", key="resend", type="primary", on_click=send, args=args)
        st.button("Cancel", key="unedit", on_click=_edit, args=(None,))
    if last:
        st.caption("What only the old words taught is taken back.")
    elif talk is not None and talk.chat.incognito:
        st.caption("This opens a new incognito chat with what was said before; this one is lost.")
    else:
        st.caption("This opens a copy of the chat up to here. This one stays as it is.")


def _edit(n: int | None) -> None:
    st.session_state.update(editing=n, unsent=None)


def _cut(talk: Talk | None, turn: Message) -> str | None:
    """Why the reply that came in last ended before its time, where nobody stopped it."""
    reply = talk.turn.reply if talk is not None and talk.turn is not None else None
    return reply.cut if reply is not None and (reply.message_id or 0) == turn.id else None


def _dropped(talk: Talk | None, turn: Message) -> int:
    """How many turns did not fit the model's window for the reply that came in last."""
    reply = talk.turn.reply if talk is not None and talk.turn is not None else None
    same = reply is not None and (reply.message_id or 0) == turn.id
    return reply.dropped_turns if reply is not None and same else 0


def _answer(talk: Talk | None, turn: Message, n: int, *, last: bool, marked: bool) -> None:
    with st.container(key=_key(f"answer-{n}", marked)), st.chat_message("assistant"):
        memory_reply.show(turn)
        if turn.status == "partial":
            cut = _cut(talk, turn) if last else None
            st.caption(cut or "Stopped before its end.")
        if last and (dropped := _dropped(talk, turn)):
            st.caption(
                f"The model was sent this chat without its first {ui.plural(dropped, 'turn')}."
            )
    if last and talk is not None and talk.chat.question is not None:
        memory_reply.answers(talk.chat.question, turn)
    with st.container(key=f"under-{n}", horizontal=True):
        st.html(copy_button(turn.content), width="content")
        if turn.id and st.button("Why this answer", key=f"why-{n}", type="tertiary"):
            why.ask(turn.id)
        if last:
            redo, args = message.redo, (turn,)
            st.button("Try again", key=f"redo-{n}", type="tertiary", on_click=redo, args=args)
    if st.session_state.get("why") == turn.id and turn.id:
        why.show(turn.id)


def come_in(talk: Talk) -> None:
    """The reply that is coming in, drawn anew several times a second."""
    st.fragment(_coming, run_every=STREAM_SECONDS)(talk)


def _coming(talk: Talk) -> None:
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
        st.button("Try again", key="retry", on_click=message.redo, args=(turns[-1],))
