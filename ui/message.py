"""Saying something in a chat: a new message, an answer to a question, other words for the last."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from memchat.api.sessions import keep_note, last_reply
from memchat.chat.command_words import helped, typed
from memchat.errors import InputError, MemChatError
from memchat.types import Attachment, Message
from ui import attached, sidebar, why
from ui import components as ui
from ui.desk import Talk

WAIT_SECONDS = 0.15
"""How long a reply is waited for before the page shows that it is coming."""


def suggested() -> None:
    """Send the suggestion that was chosen."""
    text = st.session_state.get("suggestion")
    st.session_state["suggestion"] = None
    if text:
        send(text)


def send(text: str, files: Sequence[str] = ()) -> None:
    """Send a message with the files of these keys, or do what it says behind a slash. One that
    could not be sent stands in the box at the foot of the chat."""
    state = st.session_state
    state["told"] = None

    def work() -> None:
        command = typed(text)
        name = command.name if command is not None else ""
        if name == "help":
            lines = (f"- **{ui.literal(line)}** · {does}" for line, does in helped())
            state["told"] = "\n".join(lines)
            return
        if name in ("exit", "incognito"):
            sidebar.begin(incognito=name == "incognito")
            return
        talk = state["talk"] = opened()
        if name == "why":
            why.ask(last_reply(ui.person(), talk.chat))
        elif command is not None and name == "note":
            note = keep_note(ui.person(), talk.chat, command.words)
            state["told"] = f"Kept as the note “{ui.literal(note.title or '')}”."
        else:
            _follow(talk, text, attached.held(files))
            attached.drop(files)

    if not ui.attempt(work, at="say"):
        state["unsent"] = text


def answer(text: str, turn: Message) -> None:
    """Send an answer to the question that the reply ``turn`` ends with."""
    if ui.attempt(lambda: _refuse_if_gone_on(turn), at="say"):
        send(text)


def _follow(talk: Talk, text: str, attachments: Sequence[Attachment]) -> None:
    turn = ui.desk().say(talk, text, attachments)
    st.session_state["mark"] = None
    if talk.session_id is not None:
        st.session_state["here"], st.session_state["talk"] = talk.session_id, None
    turn.wait(WAIT_SECONDS)


def keep_file(file: Attachment) -> None:
    """Keep a document that was attached to a message as a note."""

    def work() -> None:
        ui.person().notes.add(file.text, title=file.name)
        st.session_state["told"] = f"Kept as the note “{ui.literal(file.name)}”."

    ui.attempt(work)


def edit(n: int, words: str) -> None:
    """Have the chat's ``n``-th message in the editor, as it is whole."""
    st.session_state["editing"] = (n, words, None)


def say_anew(n: int, turn: Message, last: bool, text: str) -> None:
    """Say the chat's ``n``-th message in other words, in its place. What goes wrong is told in the
    editor."""
    state = st.session_state
    try:
        talk = _ready(turn) if last else opened()
        ui.desk().redo(talk, text, None if last else turn).wait(WAIT_SECONDS)
    except MemChatError as error:
        state["editing"] = (n, text, str(error))
        return
    state["editing"] = None


def redo(turn: Message) -> None:
    """Have the last message answered anew. ``turn`` is the message or its reply, as this tab shows
    it."""
    ui.attempt(lambda: ui.desk().redo(_ready(turn)).wait(WAIT_SECONDS))


def redo_with(turn: Message, model: str | None) -> None:
    """Have another model answer the last message, this once. Raises as ``Chat.redo``."""
    ui.desk().redo(_ready(turn), model=model).wait(WAIT_SECONDS)


def show_version(session_id: int, message_id: int) -> None:
    """Show another version of a message, with what followed it."""
    ui.desk().drop(ui.app_name(), session_id)  # what it was asked last is asked no more
    ui.attempt(lambda: ui.person().sessions.show_version(message_id))
    ui.desk().wake()


def go_on(turn: Message) -> None:
    """Have the reply ``turn`` go on where it ended."""
    ui.attempt(lambda: ui.desk().go_on(_ready(turn)).wait(WAIT_SECONDS))


def _ready(turn: Message) -> Talk:
    """The chat, open in this tab, where ``turn`` is still the last in it."""
    _refuse_if_gone_on(turn)
    return opened()


def opened() -> Talk:
    """The chat, open in this tab; a new one where there is none."""
    state, desk = st.session_state, ui.desk()
    talk = sidebar.here() or desk.open(
        ui.app_name(), incognito=bool(state.get("incognito")), session_id=state["here"]
    )
    desk.seen(state["tab"], talk)
    state["talk"] = talk if talk.session_id is None else None
    return talk


def _refuse_if_gone_on(turn: Message) -> None:
    """Raise InputError where something was said after a turn, in another tab: a yes would answer
    another question, and new words would take the place of another message."""
    if not turn.id:
        return  # an incognito chat has one tab
    said = ui.person().sessions.messages(turn.session_id)
    if any(other.role == "user" and other.id > turn.id for other in said):
        raise InputError(
            "this chat went on in another tab, so nothing was sent; you see it as it is now"
        )
