"""“Why this answer”: the receipt of a reply, and what can be done about each line of it."""

from __future__ import annotations

import streamlit as st

from memchat.errors import MemChatError
from memchat.types import Given, Why
from ui import components as ui
from ui import forgetting
from ui.notes import place

CHANNELS = {
    "pinned": "always at hand",
    "both": "found by meaning and words",
    "meaning": "found by meaning",
    "words": "found by its words",
    "time": "found by its time",
    "conversation": "from a conversation about it",
    "listed": "you had it listed",
    "all": "sent with every message",
    "newest": "not found for it, but there was room",
}


def ask(message_id: int) -> None:
    """Open the explanation of a reply."""
    st.session_state["why"] = message_id


def _close() -> None:
    st.session_state["why"] = None


@st.dialog("Why this answer", width="medium", on_dismiss=_close)
def show(message_id: int) -> None:
    """What its model was given, line by line, and what that took."""
    try:
        why = ui.person().sessions.why(message_id)
    except MemChatError as error:
        st.error(ui.literal(str(error)))
        return
    ui.show_problem()
    if why.by_model and not why.lines:
        st.markdown("Nothing that is known fitted this question.")
    for n, line in enumerate(sorted(why.lines, key=lambda line: -line.hit.score)):
        _line(line, why.reply.session_id, n)
    _also(why)
    st.caption(_summary(why))
    if why.degraded:
        st.caption(ui.sentence(why.degraded))
    _sent(why)


def _summary(why: Why) -> str:
    if not why.by_model:
        return "This reply was made by memchat itself, from your memories; no model was asked."
    given = (*why.lines, *why.also)
    tokens = sum(line.hit.tokens for line in given)
    text = f"The model was given {ui.plural(len(given), 'line')} ({tokens:,} tokens)."
    if why.forgotten:
        text += f" {ui.plural(why.forgotten, 'other')} that it was given you have forgotten since."
    if why.dropped:
        text += f" {ui.plural(why.dropped, 'more memory', 'more memories')} did not fit."
    return text


def _line(line: Given, session_id: int, n: int) -> None:
    hit = line.hit
    amending = hit.kind == "memory" and st.session_state.get("amending") == hit.id
    with st.container(key=f"given-{n}", horizontal=not amending, vertical_alignment="top"):
        parts = ["from your notes"] if hit.kind == "note" else []
        parts += [f"stored by {line.client} over MCP"] if line.client else []
        parts += [CHANNELS.get(hit.channel, hit.channel)]
        parts += [f"score {hit.score:.2f}"] if hit.channel not in ("all", "newest") else []
        parts += [f"meaning {hit.cosine:.2f}"] if hit.cosine is not None else []
        parts += [f"words {hit.bm25:.2f}"] if hit.bm25 is not None else []
        parts.append(ui.plural(hit.tokens, "token"))
        gone = hit.kind == "memory" and forgetting.can_restore(hit.id)
        if gone:
            parts.append("forgotten")
        elif line.since:
            parts.append(f"since then: {line.since}")
        elif line.muted:
            parts.append("kept out of the rest of this chat")
        about = ui.literal(" · ".join(parts))
        st.markdown(f"{ui.literal(hit.text)}\n\n:small[:gray[{about}]]", width="stretch")
        if gone:
            undo = forgetting.restore
            st.button("Undo", key=f"unforget-{n}", type="tertiary", on_click=undo, args=(hit.id,))
        elif amending and not line.since:
            _amended(hit.id, n)
        elif hit.kind == "memory":
            _actions(line, session_id, n)
        elif hit.kind == "note" and st.button("Open the note", key=f"open-{n}", type="tertiary"):
            _close()
            place.lead_to_passage(hit.id, hit.text)


def _also(why: Why) -> None:
    """The facts that were sent whatever was asked."""
    if not why.also:
        return
    with st.expander(f"Also sent: {len(why.also):,}"):
        for n, line in enumerate(why.also, len(why.lines)):
            _line(line, why.reply.session_id, n)


def _amended(memory_id: int, n: int) -> None:
    memory = ui.person().memories.get(memory_id)
    st.text_input("New value", value=memory.value, key=f"amended-{memory_id}", max_chars=280)
    ui.show_problem(f"amended-{memory_id}")
    ui.anyway()
    with st.container(horizontal=True):
        st.button("Save", key=f"save-{n}", type="primary", on_click=_save, args=(memory_id,))
        st.button("Cancel", key=f"unamend-{n}", on_click=_amend, args=(None,))


def _actions(line: Given, session_id: int, n: int) -> None:
    memory_id = line.hit.id
    where = (memory_id, session_id)
    if line.muted:
        st.button(
            "Relevant again", key=f"unmute-{n}", type="tertiary", on_click=_unmute, args=where
        )
    elif not line.since:
        st.button("Not relevant", key=f"mute-{n}", type="tertiary", on_click=_mute, args=where)
    if not line.since:
        one = (memory_id,)
        st.button("Edit", key=f"amend-{n}", type="tertiary", on_click=_amend, args=one)
        args = ([memory_id],)
        st.button(
            "Forget", key=f"forget-{n}", type="tertiary", on_click=forgetting.forget, args=args
        )


def _mute(memory_id: int, session_id: int) -> None:
    ui.attempt(lambda: ui.person().sessions.mute(memory_id, session_id))


def _unmute(memory_id: int, session_id: int) -> None:
    ui.attempt(lambda: ui.person().sessions.unmute(memory_id, session_id))


def _amend(memory_id: int | None) -> None:
    st.session_state["amending"] = memory_id


def _save(memory_id: int) -> None:
    value = st.session_state[f"amended-{memory_id}"]
    anyway = st.session_state.get("anyway", False)
    update = ui.person().memories.update
    place = f"amended-{memory_id}"
    if ui.attempt(lambda: update(memory_id, value=value, keep_secret=anyway), at=place):
        _amend(None)


def _sent(why: Why) -> None:
    if why.prompt is not None:
        with st.expander("What the model was sent"):
            if why.deleted:
                st.caption(f"{ui.plural(why.deleted, 'turn')} of it you have deleted since.")
            for message in why.prompt:
                st.caption(message.role)
                st.code(message.content, language=None, wrap_lines=True)
    elif why.by_model:
        st.caption("What the model was sent held words that you have forgotten since; it is gone.")
    for call in why.calls:
        cost = "no known price" if call.cost_usd is None else f"${call.cost_usd:.4f}"
        st.caption(
            ui.literal(
                f"{call.purpose}: {call.model}, {call.prompt_tokens:,} tokens in, "
                f"{call.completion_tokens:,} out, {cost}, {call.seconds:.1f} s"
            )
        )
