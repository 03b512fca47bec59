"""One memory whole: the words that prove it, what it was before, how it is used."""

from __future__ import annotations

from typing import Any

import streamlit as st

from memchat.errors import MemChatError
from memchat.types import Event, Evidence, Memory
from ui import components as ui
from ui import sidebar

WHAT = {
    "add": "kept",
    "repeat": "said again",
    "edit": "changed",
    "supersede": "replaced",
    "merge": "merged",
    "end": "ended",
    "expire": "its last day was over",
    "restore": "brought back",
    "move": "moved to another space",
    "pin": "pinned",
    "unpin": "no longer pinned",
    "tag": "tagged anew",
    "show": "brought back",
    "hide": "forgotten",
}
WHO = {"user": "by you", "model": "from a chat", "system": "by itself"}


def ask(memory_id: int) -> None:
    """Open a memory's details."""
    st.session_state["details"] = memory_id


def _close() -> None:
    st.session_state["details"] = None


@st.dialog("Memory", width="medium", on_dismiss=_close)
def show(memory_id: int) -> None:
    """Draw them."""
    memories = ui.person().memories
    try:
        memory = memories.get(memory_id)
        proofs = memories.evidence(memory_id)
        past = memories.history(memory_id)
        matched, read = memories.use_counts(memory_id)
    except MemChatError as error:
        st.error(ui.literal(str(error)))
        return
    ui.show_problem()
    st.markdown(f"**{ui.literal(memory.key)}**: {ui.literal(memory.value)}")
    told = "sent" if memory.created_by == "mcp" else "said"
    st.caption(
        f"{ui.described(memory)} · {told} {ui.plural(memory.seen_count, 'time')} · found "
        f"{ui.plural(matched, 'time')}, given to a model {ui.plural(read, 'time')}"
    )
    _before(memory)
    _sensitive(memory)
    st.subheader("Where it comes from", anchor=False)
    for n, proof in enumerate(proofs):
        _proof(proof, n)
    if not proofs and memory.created_by != "mcp":
        st.write("No words of a chat prove it: it was entered or accepted by you.")
    st.subheader("What happened to it", anchor=False)
    for event in reversed(past):
        _event(event)


def _before(memory: Memory) -> None:
    if memory.active:
        return
    by = f" by memory {memory.replaced_by}" if memory.replaced_by else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.write(f"Not in use: {memory.inactive_reason}{by}.")
        st.button("Use it again", key="restore", on_click=_restore, args=(memory.id,))


def _sensitive(memory: Memory) -> None:
    name = f"sensitive-{memory.id}"
    st.session_state[name] = memory.sensitive
    st.checkbox(
        "Sensitive: a chat model gets it only where it fits the message",
        key=name,
        on_change=_mark,
        args=(memory.id, not memory.sensitive),
    )


def _mark(memory_id: int, sensitive: bool) -> None:
    ui.attempt(lambda: ui.person().memories.update(memory_id, sensitive=sensitive))


def _restore(memory_id: int) -> None:
    ui.attempt(lambda: ui.person().memories.restore(memory_id))


def _proof(proof: Evidence, n: int) -> None:
    if proof.client is not None:
        by = f"Sent by {ui.literal(proof.client)} over MCP, {ui.day(proof.said_at)}"
        st.markdown(f"{by}:\n\n> {ui.literal(proof.quote)}")
        return
    whose = "your message" if proof.role == "user" else "a reply that you took up"
    title = proof.session_title or "a chat"
    st.markdown(
        f"From “{ui.literal(title)}”, {ui.day(proof.said_at)}, {whose}:\n\n> "
        + ui.literal(proof.quote)
    )
    if st.button("Open that message", key=f"proof-{n}"):
        _close()
        sidebar.open_chat(proof.session_id, proof.message_id)


def _event(event: Event) -> None:
    what = WHAT.get(event.kind)
    if what is None:
        return
    old, new = (event.old or {}), (event.new or {})
    words = ""
    if event.kind in ("edit", "tag"):
        # That a fact is not sensitive is not written down.
        changed = [n for n in {**new, "sensitive": False} if old.get(n) != new.get(n)]
        words = ": " + "; ".join(
            f"{name.replace('_', ' ')} {_shown(name, old)} → {_shown(name, new)}"
            for name in changed
        )
    elif event.kind in ("supersede", "merge") and event.related_id:
        words = f" by memory {event.related_id}"
    by_client = event.actor == "client" and event.cause
    who = f"by {event.cause} over MCP" if by_client else WHO.get(event.actor, event.actor)
    st.markdown(
        f"{ui.moment(event.at)}: {what} {ui.literal(who)}{ui.literal(words) if words else ''}"
    )


def _shown(name: str, fact: dict[str, Any]) -> object:
    if name == "sensitive":
        return "yes" if fact.get(name) else "no"
    if name == "tags":
        return ", ".join(fact.get(name, ())) or "none"
    return fact.get(name) or "none"
