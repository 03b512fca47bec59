"""An answer from the notes as it comes in, with the passages that it is taken from. It is shown
until another is asked for or the tab is closed, and is kept nowhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from memchat.errors import InputError, MemChatError, NotFound
from ui import components as ui
from ui.notes import place
from ui.notes.place import Place
from ui.reply_html import ComingReply, copy_button, reply_html

if TYPE_CHECKING:
    from memchat.notes.ask import NotesAnswer
    from memchat.notes.passages import Passage

log = logging.getLogger(__name__)

STREAM_SECONDS = 0.15
WAIT_SECONDS = 0.15
"""How long an answer is waited for before the page shows that it is coming."""
QUOTED = 200
"""Characters of a passage that are shown below the answer."""


class Asked:
    """One question, answered in a thread of its own."""

    def __init__(self, question: str, app: str, ask: Callable[[], NotesAnswer]) -> None:
        self.question = question
        self.app = app
        self.drawing = ComingReply()
        self.answer: NotesAnswer | None = None
        """None until the passages are found."""
        self.error: str | None = None
        self.stopped = False
        self._ask = ask
        self._thread = threading.Thread(target=self._read, name="memchat-notes", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether more is to come, and is wanted."""
        return self._thread.is_alive() and not self.stopped

    @property
    def text(self) -> str:
        """What came so far."""
        return self.answer.text if self.answer is not None else ""

    def stop(self) -> None:
        """Take nothing more. A provider that is silent just now is left with its next piece."""
        self.stopped = True

    def wait(self, seconds: float) -> None:
        """Wait for its end, but no longer than that."""
        self._thread.join(seconds)

    def _read(self) -> None:
        try:
            answer = self.answer = self._ask()
            for _ in answer:
                if self.stopped:
                    return
        except MemChatError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001
            # A thread has nobody to raise to: the page shows that it failed.
            log.error("an answer from notes failed: %s", type(error).__name__)
            self.error = f"unexpected {type(error).__name__}; try again, or see memchat doctor"


def begin(
    question: str, mode: str, type: str | None, since: datetime | None, until: datetime | None
) -> None:
    """Ask the notes. Raises InputError for an empty question."""
    if not question:
        raise InputError("the question is empty; write what you want to know")
    leave()
    notes = ui.person().notes
    work = partial(notes.ask, question, mode=mode, type=type, since=since, until=until)
    asked = Asked(question, ui.app_name(), work)
    asked.wait(WAIT_SECONDS)
    st.session_state["asked notes"] = asked


def leave() -> None:
    """Show no answer any more; one that is coming in is stopped."""
    asked = st.session_state.pop("asked notes", None)
    if asked is not None:
        asked.stop()


def last() -> Asked | None:
    """The question that was asked last in this tab and space."""
    asked: Asked | None = st.session_state.get("asked notes")
    return asked if asked is not None and asked.app == ui.app_name() else None


def show(asked: Asked) -> None:
    """Draw the answer, or what came of it so far."""
    with st.container(key="notes-answer", border=True):
        st.markdown(f"**{ui.literal(asked.question)}**")
        if asked.running:
            ui.announce("Responding")
            st.fragment(_coming, run_every=STREAM_SECONDS)(asked)
            return
        ui.announce("Answer complete")
        _whole(asked)


def _coming(asked: Asked) -> None:
    if not asked.running:
        st.rerun()
    with st.container(key="answer-coming"):
        waiting = "*Reading your notes …*"
        st.html(asked.drawing.html(asked.text) if asked.text else reply_html(waiting))
    st.button("Stop", key="stop-notes", on_click=asked.stop, shortcut="Esc")


def _whole(asked: Asked) -> None:
    answer = asked.answer
    if asked.text:
        st.html(reply_html(asked.text))
    if asked.error is not None:
        st.error(ui.sentence(asked.error))
    elif asked.stopped:
        st.caption("Stopped before its end.")
    if answer is not None and answer.degraded:
        st.caption(ui.sentence(answer.degraded))
    if answer is not None and answer.cited:
        st.markdown("Sources")
        for passage in answer.cited:
            _source(passage)
    with st.container(key="under-notes-answer", horizontal=True):
        if asked.text:
            st.html(copy_button(asked.text), width="content")
        st.button("Close", key="close-answer", type="tertiary", on_click=leave)


def _source(passage: Passage) -> None:
    """A passage under its number, which opens the note there."""
    title = passage.title or "Untitled note"
    with st.container(key=f"row-source-{passage.number}"):
        st.button(
            ui.literal(f"[{passage.number}] {ui.shorten(title, 80)}, {ui.day(passage.created_at)}"),
            key=f"source-{passage.number}",
            type="tertiary",
            wrap=True,
            on_click=_open,
            args=(passage,),
        )
        st.markdown(f":small[:gray[{ui.literal(ui.shorten(passage.text, QUOTED))}]]")


def _open(passage: Passage) -> None:
    try:
        found = ui.person().notes.get(passage.note_id).text.find(passage.text)
    except NotFound:
        found = -1  # the page says that it is gone
    size = len(passage.text)
    place.go(Place(passage.note_id, (found, size) if found >= 0 else None))
