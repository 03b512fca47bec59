"""Replies about the memory itself: what is remembered laid out as a list, and a question that a yes
or a no answers with buttons."""

from __future__ import annotations

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Message, Question
from ui import components as ui
from ui import forgetting, memory_details, message
from ui.reply_html import reply_html


def show(turn: Message) -> None:
    """A reply. What it lists of the memories stands in rows, as they are now."""
    parts = ui.person().sessions.parts(turn)
    _words(parts.before)
    if parts.listed:
        for memory_id in parts.listed:
            _row(turn.id, memory_id)
        st.page_link("views/memories.py", label="Open Memories")
    _words(parts.after)
    _words(parts.question)


def answers(question: Question, turn: Message) -> None:
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
    with st.container(key="answers", horizontal=True):
        for label, words in said.items():
            # A second click must not answer the question that the first one leads to.
            key, args = f"say-{words}-{turn.id}", (words, turn)
            st.button(label, key=key, on_click=message.answer, args=args)


def _words(text: str) -> None:
    if text.strip():
        st.html(reply_html(text))


def _row(turn_id: int, memory_id: int) -> None:
    """One memory, as it is now; nothing where it was forgotten for good."""
    key = f"{turn_id}-{memory_id}"
    if forgetting.can_restore(memory_id):
        with st.container(key=f"row-told-{key}", horizontal=True, vertical_alignment="center"):
            st.markdown(":gray[Forgotten.]", width="stretch")
            undo, args = forgetting.restore, (memory_id,)
            st.button("Undo", key=f"untold-{key}", type="tertiary", on_click=undo, args=args)
        return
    try:
        memory = ui.person().memories.get(memory_id)
    except NotFound:
        return
    with st.container(key=f"row-told-{key}", horizontal=True, vertical_alignment="top"):
        words = f"**{ui.literal(memory.key.replace('_', ' '))}**  {ui.literal(memory.value)}"
        st.markdown(f"{words}\n\n:small[:gray[{ui.described(memory)}]]", width="stretch")
        if st.button("Details", key=f"details-{key}", type="tertiary"):
            memory_details.ask(memory.id)
            st.session_state["details of row"] = key  # other replies may list it, too
        forget, chosen = forgetting.forget, ([memory.id],)
        st.button("Forget", key=f"forget-told-{key}", type="tertiary", on_click=forget, args=chosen)
    state = st.session_state
    if state.get("details") == memory.id and state.get("details of row") == key:
        memory_details.show(memory.id)
