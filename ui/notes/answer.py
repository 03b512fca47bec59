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

from memchat.errors import InputError, MemChatError
from memchat.types import NoteSource, Progress
from ui import components as ui
from ui.notes import place
from ui.notes.place import Place
from ui.reply_html import ComingReply, copy_button, reply_html

if TYPE_CHECKING:
    from memchat.notes.ask import NotesAnswer

log = logging.getLogger(__name__)

STREAM_SECONDS = 0.15
WAIT_SECONDS = 0.15
"""How long an answer is waited for before the page shows that it is coming."""
MANY_CALLS = 5
"""Calls of a model above which the person is asked before they are made."""
QUOTED = 200
"""Characters of a note that are shown below the answer."""
PASSAGES = 6
"""Passages of one note that are offered to open."""
NotesAsk = Callable[..., "NotesAnswer"]
"""``Notes.ask`` with all but ``on_progress``."""


class _StoppedError(Exception):
    """Ends the calls of a summary that was stopped."""


class Asked:
    """One question, answered in a thread of its own."""

    def __init__(self, question: str, app: str, ask: NotesAsk) -> None:
        self.question = question
        self.app = app
        self.drawing = ComingReply()
        self.answer: NotesAnswer | None = None
        """None until the notes are found."""
        self.progress: Progress | None = None
        """How many calls of a summary are done."""
        self.error: str | None = None
        self.waits = False
        """Whether the person is to say yes before many calls are made."""
        self.stopped = False
        self._ask = ask
        self._begin(self._find)

    @property
    def running(self) -> bool:
        """Whether more is to come, and is wanted."""
        return self._thread.is_alive() and not self.stopped

    @property
    def text(self) -> str:
        """What came so far."""
        return self.answer.text if self.answer is not None else ""

    def go_on(self) -> None:
        """Make the calls that were waited with."""
        self.waits = False
        self._begin(self._read)

    def stop(self) -> None:
        """Take nothing more, and make no further call. A provider that is silent just now is left
        with its next piece."""
        self.stopped = True

    def wait(self, seconds: float) -> None:
        """Wait for its end, but no longer than that."""
        self._thread.join(seconds)

    def _begin(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(
            target=self._safely, args=(work,), name="memchat-notes", daemon=True
        )
        self._thread.start()

    def _find(self) -> None:
        self.answer = self._ask(on_progress=self._note)
        self.waits = self.answer.plan.calls > MANY_CALLS
        if not self.waits:
            self._read()

    def _read(self) -> None:
        for _ in self.answer or ():
            if self.stopped:
                return

    def _note(self, progress: Progress) -> None:
        self.progress = progress
        if self.stopped:
            raise _StoppedError

    def _safely(self, work: Callable[[], None]) -> None:
        try:
            work()
        except _StoppedError:
            log.info("a summary of notes was stopped")
        except MemChatError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001
            # A thread has nobody to raise to: the page shows that it failed.
            log.error("an answer from notes failed: %s", type(error).__name__)
            self.error = f"unexpected {type(error).__name__}; try again, or see memchat doctor"


def begin(
    question: str,
    mode: str,
    type: str | None,
    since: datetime | None,
    until: datetime | None,
    topic: int | None = None,
) -> None:
    """Ask the notes, or those of a topic. Raises InputError for an empty question."""
    if not question:
        raise InputError("the question is empty; write what you want to know")
    leave()
    notes = ui.person().notes
    period = partial(notes.ask, since=since, until=until, topic=topic)
    work = partial(period, question, mode=mode, type=type)
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
        elif asked.waits and asked.answer is not None:
            _before_many_calls(asked, asked.answer)
        else:
            ui.announce(_ended(asked))
            _whole(asked)


def _ended(asked: Asked) -> str:
    if asked.error is not None or (asked.answer is not None and asked.answer.cut):
        return "The answer could not be completed"
    return "Answer stopped" if asked.stopped else "Answer complete"


def _coming(asked: Asked) -> None:
    if not asked.running:
        st.rerun()
    with st.container(key="answer-coming"):
        drawn = asked.drawing.html(asked.text) if asked.text else reply_html(_waiting(asked))
        st.html(drawn)
    st.button("Stop", key="stop-notes", on_click=asked.stop, shortcut="Esc")


def _waiting(asked: Asked) -> str:
    told = asked.progress
    parts = f": {told.done:,} of {told.total:,} parts" if told is not None else ""
    return f"*Reading your notes{parts} …*"


def _before_many_calls(asked: Asked, answer: NotesAnswer) -> None:
    found = ui.plural(len(answer.sources), "note")
    st.markdown(
        ui.literal(f"{found} may speak of it. To read them all takes {answer.plan.effort}.")
    )
    with st.container(horizontal=True):
        st.button("Read them all", key="read-notes", type="primary", on_click=asked.go_on)
        st.button("Cancel", key="leave-notes", on_click=leave)


def _whole(asked: Asked) -> None:
    answer = asked.answer
    cited = answer.cited if answer is not None else ()
    if asked.text:
        st.html(reply_html(asked.text, tuple(source.number for source in cited)))
    if asked.error is not None:
        st.error(ui.sentence(asked.error))
    elif asked.stopped:
        st.caption("Stopped before its end.")
    if answer is not None:
        for told in (answer.cut, answer.degraded):
            if told:
                st.caption(ui.sentence(told))
    if cited:
        st.markdown("Sources")
    for source in cited:
        _source(source)
    with st.container(key="under-notes-answer", horizontal=True):
        if asked.text:
            st.html(copy_button(asked.text), width="content")
        st.button("Close", key="close-answer", type="tertiary", on_click=leave)


def _source(source: NoteSource) -> None:
    """A note under its number, which opens at the passage that was read."""
    title = ui.shorten(source.title or "Untitled note", 80)
    with st.container(key=f"row-source-{source.number}"):
        label = ui.literal(f"[{source.number}] {title}, {ui.day(source.created_at)}")
        _open_button(label, source, 0)
        st.markdown(f":small[:gray[{ui.literal(ui.shorten(source.text, QUOTED))}]]")
    if len(source.passages) > 1:
        with st.container(key=f"passages-{source.number}", horizontal=True):
            for n in range(1, min(len(source.passages), PASSAGES)):
                _open_button(f"Passage {n + 1}", source, n)


def _open_button(label: str, source: NoteSource, n: int) -> None:
    passage = source.passages[n]
    st.button(
        label,
        key=f"source-{source.number}-{n}",
        type="tertiary",
        wrap=True,
        on_click=place.go,
        args=(Place(source.note_id, (passage.offset, passage.size)),),
    )
