"""A long message in a chat: shown short, with the question what of it is read for memories, and
whether to keep it as a note."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from memchat.types import LongMessage, Message
from memchat.types.conversations import PASTE_LENGTH
from ui import components as ui
from ui import parts
from ui.parts import Part

LONG = 8_000
"""Characters of a message that is drawn whole."""
DRAWN = 2_000
"""Characters that are drawn of a longer one, unless all of it is asked for."""


def shown(turn: Message, n: int) -> tuple[str, Part | None]:
    """The text of a message, of a very long one the beginning, and a way to the rest."""
    text = turn.content
    if len(text) <= LONG:
        return text, None
    whole = st.session_state.get("whole") == n
    words = "Show less" if whole else f"Show all ({len(text):,} characters)"
    more = parts.button(words, f"whole-{n}", _show, None if whole else n, plain=True)
    return text if whole else f"{text[:DRAWN].rstrip()} …", more


def _show(n: int | None) -> None:
    st.session_state["whole"] = n


def ask(turn: Message) -> list[Part]:
    """The question what of a very long message is read for memories, or what was chosen."""
    if not turn.id or len(turn.content) <= LONG:
        return []
    long = _planned(turn)
    if long is None:
        return []
    if long.read_all:
        return [parts.note("All of this message is read for memories.")]
    every = f"Read all of it ({long.effort})"
    settled = turn.id in st.session_state.setdefault("settled", set())
    read_all = parts.button(every, f"read-all-{turn.id}", _read_all, long, plain=settled)
    if settled:
        told = parts.note("The beginning and the end of this message are read for memories.")
        return [told, read_all]
    asked = parts.note(
        "This message is very long. What of it is to be read for memories? "
        "Its beginning and end, if you choose nothing."
    )
    ends = parts.button("Read beginning and end", f"read-ends-{turn.id}", _settle, turn.id)
    return [asked, parts.row(ends, read_all)]


def keep(turn: Message) -> list[Part]:
    """The offer to keep a long message as a note, or that it is kept."""
    if not turn.id or len(turn.content) < PASTE_LENGTH:
        return []
    kept: dict[int, str] = st.session_state.setdefault("kept as notes", {})
    if turn.id in kept:
        words = f"Kept as the note “{kept[turn.id]}”. Nothing is learned about you from it."
        return [parts.note(words)]
    return [parts.button("Keep as a note", f"keep-note-{turn.id}", _keep, turn, plain=True)]


def _keep(turn: Message) -> None:
    def work() -> None:
        note = ui.person().sessions.keep_as_note(turn.id)
        st.session_state["kept as notes"][turn.id] = note.title or ""
        st.session_state.get("long", {}).pop((turn.id, len(turn.content)), None)

    ui.attempt(work)


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
