"""Memories: all that is remembered, to search, correct and forget."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

import streamlit as st

from memchat.errors import MemChatError, NotFound
from memchat.types import CreatedBy, Draft, Memory, Wanted
from ui import by_meaning, forgetting, memory_list, space
from ui import components as ui

# No text in quotes stands here: Streamlit would draw it.
STATUSES = {
    "active": "In use",
    "pinned": "Pinned",
    "expiring": "Ending within 30 days",
    "never used": "Never used",
    "inactive": "No longer in use",
    "not embedded": "Not embedded yet",
    "forgotten": "Forgotten",
    "all": "All",
}
SORTS = {
    "newest": "Newest first",
    "oldest": "Oldest first",
    "key": "By name",
    "most used": "Most used",
    "least used": "Least used",
    "ending first": "Ending first",
}


SUMMARY = "What I know about you"


def page() -> None:
    """One run."""
    ui.heading("Memories")
    if not ui.person().memory_switch().on:
        st.info(
            f"Nothing new is remembered: {ui.literal(space.why_off())}. What is here can still be "
            "read, changed and forgotten. The switch is in Settings."
        )
    ui.show_problem()
    wanted = _filters()
    if wanted.group == SUMMARY:
        memory_list.summary()
        return
    state = st.session_state
    view = (wanted, ui.app_name())
    if state.get("rows of") != view:
        state.update({"rows of": view, "rows": [], "most": memory_list.MORE})
    _results(wanted)


def _filters() -> Wanted:
    with st.container(key="boxes", horizontal=True, vertical_alignment="bottom"):
        with (
            st.form("add-box", border=False, clear_on_submit=True),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            words = st.text_input(
                "What should I remember?",
                key="add-words",
                placeholder="What should I remember?",
                label_visibility="collapsed",
            )
            if st.form_submit_button("Add", key="add", type="primary"):
                _read(words.strip())
        search = st.text_input(
            "Search memories",
            key="search-memories",
            type="search",
            live=not by_meaning.remote(),
            placeholder="Search memories",
            label_visibility="collapsed",
            persist_state="session",
        )
        with st.popover("Filter", key="filter"):
            tags, status, created, sort = _tags(), _status(), _created_by(), _sort()
    return Wanted(
        search=search.strip(),
        tags=tags,
        status=status,
        created_by=created,
        sort=sort,
        group=_group(),
    )


def _read(words: str) -> None:
    """Open the form with what the reader makes of a statement, or with its words."""
    read: Draft | str = words
    with suppress(MemChatError), st.spinner("Reading …"):
        draft = ui.person().memories.draft(words)
        read = draft if draft.read else words
    st.session_state["opened"] = ("add", read)


def _group() -> str:
    """The group that was chosen, or the summary of all; nothing is shown where nothing is known."""
    groups = ui.person().memories.groups()
    chosen = st.session_state.get("group")
    if not groups and not chosen:
        return ""
    return (
        st.pills(
            "Group",
            list(dict.fromkeys([SUMMARY, *groups, chosen or SUMMARY])),
            format_func=lambda name: (
                name if name == SUMMARY else f"{name.capitalize()} {groups.get(name, 0):,}"
            ),
            key="group",
            label_visibility="collapsed",
            persist_state="session",
        )
        or ""
    )


def _status() -> str:
    return st.selectbox(
        "Show",
        list(STATUSES),
        format_func=lambda name: STATUSES[name],
        key="status",
        persist_state="session",
    )


def _sort() -> str:
    return st.selectbox(
        "Order",
        list(SORTS),
        format_func=lambda name: SORTS[name],
        key="sort",
        persist_state="session",
    )


def _tags() -> tuple[str, ...]:
    """The tags that were chosen; nothing is shown where no memory has any."""
    chosen = st.session_state.get("tags", [])
    every = sorted({*ui.person().memories.tags(), *chosen})
    if not every:
        return ()
    return tuple(st.multiselect("Tags", every, key="tags", persist_state="session"))


def _created_by() -> tuple[CreatedBy, ...]:
    chosen = st.selectbox(
        "Origin",
        ["", *ui.CREATED],
        format_func=lambda name: ui.CREATED.get(name, "Any").capitalize(),
        key="created",
        persist_state="session",
    )
    return (cast("CreatedBy", chosen),) if chosen else ()


def _results(wanted: Wanted) -> None:
    memories, state = ui.person().memories, st.session_state
    found = memories.browse(wanted, limit=state["most"])
    there = {memory.id: memory for memory in found.memories}
    best = by_meaning.ids(wanted)
    meant = set(best).difference(memories.browse_ids(wanted)) if best else ()
    there |= {i: memory for i in best if i not in there and (memory := _memory(i)) is not None}
    state["rows"] += [i for i in dict.fromkeys([*best, *there]) if i not in state["rows"]]
    by_meaning.notes(wanted)
    total = found.total + len(meant)
    if not total:
        _nothing(wanted)
    memory_list.show(there, state["rows"], wanted, total, found.unembedded)


def _memory(memory_id: int) -> Memory | None:
    try:
        return ui.person().memories.get(memory_id)
    except NotFound:
        return None  # it was forgotten since


def _nothing(wanted: Wanted) -> None:
    if wanted == Wanted(sort=wanted.sort):
        ui.empty(
            "Nothing is remembered yet",
            "Talk about yourself in a chat: when it ends, what matters is kept here, with the "
            "words that prove it. Or say “Remember that …”, or add something by hand.",
            "memories",
        )
    elif wanted.status == "forgotten":
        ui.empty(
            "Nothing waits to be forgotten",
            f"What you forget can be brought back for {forgetting.UNDO_SECONDS:.0f} seconds, "
            "longer for hundreds; then its words leave this disk. What a program asks to forget "
            "waits here for your answer in the Inbox.",
            "memories",
        )
    else:
        title = "No memory has these words" if wanted.search else "Nothing fits"
        ui.empty(title, "Try fewer words, or show all.", "memories")


page()
