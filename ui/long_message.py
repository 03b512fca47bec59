"""A long message in a chat: drawn short, with the question what of it is read for memories, and
whether to keep it as a note."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from memchat.types import LongMessage, Message
from memchat.types.conversations import PASTE_LENGTH
from ui import components as ui

LONG = 8_000
"""Characters of a message that is drawn whole."""
DRAWN = 2_000
"""Characters that are drawn of a longer one, unless all of it is asked for."""
HEIGHT = 480
"""Pixels in which the whole text scrolls."""


def draw(turn: Message, n: int) -> None:
    """The text of a message, of a very long one the beginning."""
    text = turn.content
    if len(text) <= LONG:
        st.text(text)
        return
    whole = st.session_state.get("whole") == n
    with st.container(height=HEIGHT if whole else "content", border=False, key=f"long-text-{n}"):
        st.text(text if whole else f"{text[:DRAWN].rstrip()} …")
    words = "Show less" if whole else f"Show all ({len(text):,} characters)"
    args = (None if whole else n,)
    st.button(words, key=f"whole-{n}", type="tertiary", on_click=_show, args=args)


def _show(n: int | None) -> None:
    st.session_state["whole"] = n


def ask(turn: Message) -> None:
    """Ask what of a very long message is read for memories, or say it where that is chosen."""
    if not turn.id or len(turn.content) <= LONG:
        return
    long = _planned(turn)
    if long is None:
        return
    settled = turn.id in st.session_state.setdefault("settled", set())
    with st.container(key=f"long-{turn.id}"):
        if long.read_all:
            st.caption("All of this message is read for memories.")
        elif settled:
            st.caption("The beginning and the end of this message are read for memories.")
        else:
            st.caption(
                "This message is very long. What of it is to be read for memories? "
                "Its beginning and end, if you choose nothing."
            )
        if not long.read_all:
            with st.container(horizontal=True):
                if not settled:
                    st.button(
                        "Read beginning and end",
                        key=f"read-ends-{turn.id}",
                        on_click=_settle,
                        args=(turn.id,),
                    )
                st.button(
                    f"Read all of it ({ui.literal(long.effort)})",
                    key=f"read-all-{turn.id}",
                    type="tertiary" if settled else "secondary",
                    on_click=_read_all,
                    args=(long,),
                )


def keep(turn: Message) -> None:
    """Offer to keep a long message as a note, or say that it is kept."""
    if not turn.id or len(turn.content) < PASTE_LENGTH:
        return
    kept: dict[int, str] = st.session_state.setdefault("kept as notes", {})
    with st.container(key=f"keep-{turn.id}", horizontal=True, horizontal_alignment="right"):
        if turn.id in kept:
            st.caption(
                f"Kept as the note “{ui.literal(kept[turn.id])}”. Nothing is learned about you "
                "from it."
            )
        else:
            st.button(
                "Keep as a note",
                key=f"keep-note-{turn.id}",
                type="tertiary",
                on_click=_keep,
                args=(turn,),
            )
    ui.show_problem(f"keep-{turn.id}")


def _keep(turn: Message) -> None:
    def work() -> None:
        note = ui.person().sessions.keep_as_note(turn.id)
        st.session_state["kept as notes"][turn.id] = note.title or ""
        st.session_state.get("long", {}).pop((turn.id, len(turn.content)), None)

    ui.attempt(work, at=f"keep-{turn.id}")


def _planned(turn: Message) -> LongMessage | None:
    """What it takes to read all of it; looked up once in a tab, as it takes a while."""
    known: dict[tuple[int, int], LongMessage | None] = st.session_state.setdefault("long", {})
    key = (turn.id, len(turn.content))
    if key not in known:
        found = ui.person().sessions.long_messages(turn.session_id)
        known[key] = next((one for one in found if one.message_id == turn.id), None)
    return known[key]


def _settle(message_id: int) -> None:
    st.session_state["settled"].add(message_id)


def _read_all(long: LongMessage) -> None:
    if ui.attempt(lambda: ui.person().sessions.read_all(long.message_id)):
        key = (long.message_id, long.characters)
        st.session_state["long"][key] = replace(long, read_all=True)
        ui.desk().wake()
