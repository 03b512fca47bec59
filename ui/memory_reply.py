"""Replies about the memory itself: what is remembered laid out as a list, and a question that a yes
or a no answers with buttons."""

from __future__ import annotations

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Message, Question
from ui import components as ui
from ui import forgetting, memory_details, message, parts
from ui.parts import Part


def draw(turn: Message) -> list[Part]:
    """A reply. What it lists of the memories stands in rows, as they are now."""
    found = ui.person().sessions.parts(turn)
    drawn = [parts.words(found.before)] if found.before.strip() else []
    for memory_id in found.listed:
        drawn += _row(turn.id, memory_id)
    if found.listed:
        lead = parts.button("Open Memories", f"memories-{turn.id}", _lead, plain=True)
        drawn.append(lead)
    return drawn + [parts.words(text) for text in (found.after, found.question) if text.strip()]


def _lead() -> None:
    st.session_state["to page"] = "views/memories.py"


def answers(question: Question, turn: Message) -> Part:
    """The answers to the question that the reply ``turn`` ends with."""
    several = question.count > 1
    yes, no = "Yes, forget it", "No"
    if question.about == "blank":
        yes, no = "Yes, blank these", "No, leave them"
    elif several:
        yes = f"Yes, forget all {question.count}"
    said = {yes: "yes"}
    if several:
        said |= {f"Only {n}": str(n) for n in range(1, question.count + 1)}
    said[no] = "no"
    # A second click must not answer the question that the first one leads to.
    buttons = [
        parts.button(label, f"say-{words}-{turn.id}", message.answer, words, turn)
        for label, words in said.items()
    ]
    return parts.row(*buttons, key="answers")


def _row(turn_id: int, memory_id: int) -> list[Part]:
    """One memory, as it is now; nothing where it was forgotten for good."""
    key = f"{turn_id}-{memory_id}"
    if forgetting.can_restore(memory_id):
        undo = parts.button("Undo", f"untold-{key}", forgetting.restore, memory_id, plain=True)
        return [parts.row(parts.note("Forgotten."), undo, key=f"told-{key}")]
    try:
        memory = ui.person().memories.get(memory_id)
    except NotFound:
        return []
    name = f"{memory.key.replace('_', ' ')} {memory.value}"
    buttons = [
        parts.button(label, f"{start}-{key}", act, given, plain=True, names=name)
        for label, start, act, given in (
            ("Details", "details", memory_details.ask, memory.id),
            ("Forget", "forget-told", forgetting.forget, [memory.id]),
        )
    ]
    told = {"name": memory.key.replace("_", " "), "text": memory.value}
    return [parts.row({**told, "note": ui.about(memory)}, *buttons, key=f"told-{key}")]
