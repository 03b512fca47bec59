"""Replies about the memory itself: what is remembered laid out as a list, and a question that a yes
or a no answers with buttons."""

from __future__ import annotations

import re

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Message
from ui import components as ui
from ui import forgetting, memory_details, message
from ui.reply_html import reply_html

_LISTING = re.compile(r"^I remember [\d,]+ memor(?:y|ies) about you\.$", re.MULTILINE)
_LISTED = re.compile(r"\n(?:- #\d+ .*|(?:Profile|Preferences|Facts|Other):|and \d+ more: .*)")
_QUESTION = re.compile(
    r"\n(?P<asked>Forget it for good\?|Forget these (?P<count>\d+) for good\?"
    r"|(?P<blank>Blank all of these, too\?)) \([^()\n]*\)\Z"
)


def show(turn: Message) -> None:
    """A reply. What it lists of the memories stands in rows, as they are now."""
    found = _LISTING.search(turn.content)
    ids = _listed(turn) if found is not None else []
    if found is None or not ids:
        # Behind a list a line of its own begins only after an empty one.
        st.html(reply_html(_QUESTION.sub(lambda asked: "\n" + asked[0], turn.content)))
        return
    st.html(reply_html(turn.content[: found.end()]))
    for memory_id in ids:
        _row(turn.id, memory_id)
    st.page_link("views/memories.py", label="Open Memories")
    rest = _LISTED.sub("", turn.content[found.end() :]).strip()
    if rest:
        st.html(reply_html(_QUESTION.sub(lambda asked: "\n" + asked[0], rest)))


def answers(text: str) -> None:
    """The answers to the question that a reply ends with."""
    found = _QUESTION.search(text)
    if found is None:
        return
    count = int(found["count"] or 1)
    yes, no = ("Yes, blank these", "No, leave them") if found["blank"] else ("Yes, forget it", "No")
    if count > 1:
        yes = f"Yes, forget all {count}"
    said = {yes: "yes"}
    if count > 1:
        said |= {f"Only {n}": str(n) for n in range(1, count + 1)}
    said[no] = "no"
    with st.container(key="answers", horizontal=True):
        for label, words in said.items():
            st.button(label, key=f"say-{words}", on_click=message.send, args=(words,))


def _listed(turn: Message) -> list[int]:
    """The memories that code listed in this reply, by its receipt: words alone prove nothing."""
    hits = ui.person().sessions.receipt(turn.id) if turn.id else ()
    return [hit.id for hit in hits if hit.channel == "listed"]


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
