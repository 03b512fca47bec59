"""Memories: all that is remembered, to search, correct and forget."""

from __future__ import annotations

from typing import cast

import streamlit as st

from memchat.types import MEMORY_TYPES, CreatedBy, Memory, Wanted
from ui import by_meaning, forgetting, memory_form, memory_row, space
from ui import components as ui

# Rows of a page. A row costs the browser some 12 ms: with 20 of them a turn takes too long. No text
# in quotes stands here: Streamlit would draw it.
PAGE = 12
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
    "key": "By key",
    "most used": "Most used",
    "least used": "Least used",
    "ending first": "Ending first",
}


def page() -> None:
    """One run."""
    st.session_state.setdefault("chosen", set())
    ui.heading("Memories", "What is remembered about you, and where it comes from.")
    if not ui.person().memory_switch().on:
        st.info(
            f"Nothing new is remembered: {ui.literal(space.why_off())}. What is here can still be "
            "read, changed and forgotten. The switch is in Settings."
        )
    ui.show_problem()
    wanted = _filters()
    key = (wanted, ui.app_name())
    if st.session_state.get("wanted") != key:
        st.session_state.update(wanted=key, page=0, chosen=set())
    _results(wanted)


def _filters() -> Wanted:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search memories",
            key="search-memories",
            type="search",
            live=True,
            placeholder="Search memories",
            label_visibility="collapsed",
            persist_state="session",
        )
        st.button("Add", key="add", type="primary", on_click=memory_form.begin_adding)
    if st.session_state.get("adding"):
        memory_form.add_form()
    types = st.pills(
        "Type",
        MEMORY_TYPES,
        selection_mode="multi",
        format_func=lambda kind: ui.TYPES[kind],
        key="types",
        label_visibility="collapsed",
        persist_state="session",
    )
    tags = _tags()
    with st.container(key="filters"):
        status, created, sort = st.columns(3)
    return Wanted(
        tags=tags,
        search=search.strip(),
        memory_types=tuple(types),
        status=status.selectbox(
            "Show",
            list(STATUSES),
            format_func=lambda name: STATUSES[name],
            key="status",
            persist_state="session",
        ),
        created_by=_created_by(created),
        sort=sort.selectbox(
            "Order",
            list(SORTS),
            format_func=lambda name: SORTS[name],
            key="sort",
            persist_state="session",
        ),
    )


def _tags() -> tuple[str, ...]:
    """The tags that were chosen; nothing is shown where no memory has any."""
    chosen = st.session_state.get("tags", [])
    every = sorted({*ui.person().memories.tags(), *chosen})
    if not every:
        return ()
    return tuple(
        st.multiselect(
            "Tags",
            every,
            key="tags",
            placeholder="Tags",
            label_visibility="collapsed",
            persist_state="session",
        )
    )


def _created_by(column: st.delta_generator.DeltaGenerator) -> tuple[CreatedBy, ...]:
    chosen = column.selectbox(
        "Origin",
        ["", *ui.CREATED],
        format_func=lambda name: ui.CREATED.get(name, "Any").capitalize(),
        key="created",
        persist_state="session",
    )
    return (cast("CreatedBy", chosen),) if chosen else ()


def _results(wanted: Wanted) -> None:
    state = st.session_state
    found = ui.person().memories.browse(wanted, limit=PAGE, offset=state["page"] * PAGE)
    if not found.memories and state["page"]:
        state["page"] = 0
        st.rerun()
    if found.total and wanted.status != "forgotten":
        _bulk(wanted, found.memories, found.total)
    there = {memory.id: memory for memory in found.memories}
    for memory_id in _in_place(wanted, list(there)):
        if memory_id in there:
            job = found.unembedded.get(memory_id)
            memory_row.show(there[memory_id], wanted.search, job)
        else:
            memory_row.gone(memory_id)
    if found.total:
        _pages(found.total)
    else:
        _nothing(wanted)
    if not state["page"]:
        by_meaning.show(wanted)


def _in_place(wanted: Wanted, ids: list[int]) -> list[int]:
    """The rows of the page in the order in which they were first drawn, with those that were
    forgotten since: no row moves under the pointer."""
    state = st.session_state
    view = (wanted, ui.app_name(), state["page"])
    if state.get("rows of") != view:
        state.update({"rows of": view, "rows": []})
    state["rows"] += [memory_id for memory_id in ids if memory_id not in state["rows"]]
    return list(state["rows"])


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


# Choosing many


def _bulk(wanted: Wanted, shown: tuple[Memory, ...], total: int) -> None:
    state = st.session_state
    chosen: set[int] = state["chosen"]
    ids = [memory.id for memory in shown]
    all_here = set(ids) <= chosen
    with st.container(key="bulk", horizontal=True, vertical_alignment="center"):
        if state.get("all here") != all_here:
            state["all here"] = all_here
        st.checkbox("Select page", key="all here", on_change=_choose_page, args=(ids,))
        st.markdown(
            f"**{len(chosen):,} selected** of {total:,}"
            if chosen
            else ui.plural(total, "memory", "memories"),
            width="stretch",
        )
        if chosen and len(chosen) < total:
            st.button(
                f"Select all {total:,} results",
                key="choose-all",
                on_click=lambda: state.update(chosen=set(ui.person().memories.browse_ids(wanted))),
                type="tertiary",
            )
        if chosen:
            st.button("Clear", key="choose-none", type="tertiary", on_click=lambda: chosen.clear())
            st.button(
                f"Forget {len(chosen):,}",
                key="forget-many",
                type="primary",
                on_click=_ask,
                args=(True,),
            )
    if chosen and state.get("forgetting"):
        _forget_many()


def _choose_page(ids: list[int]) -> None:
    chosen: set[int] = st.session_state["chosen"]
    if st.session_state["all here"]:
        chosen.update(ids)
    else:
        chosen.difference_update(ids)


def _ask(forgetting: bool = False) -> None:
    st.session_state["forgetting"] = forgetting


@st.dialog("Forget these memories?", on_dismiss=_ask)
def _forget_many() -> None:
    chosen: set[int] = st.session_state["chosen"]
    st.write(
        f"{ui.plural(len(chosen), 'memory', 'memories')} and the words that proved them leave this "
        f"disk. For {forgetting.undo_seconds(len(chosen)):.0f} seconds it can be undone."
    )
    with st.container(horizontal=True):
        if st.button("Forget", key="forget-many-yes", type="primary"):
            forgetting.forget(sorted(chosen))
            st.session_state["chosen"] = set()
            _ask()
            st.rerun()
        if st.button("Cancel", key="forget-many-no", on_click=_ask):
            st.rerun()


# Pages


def _pages(total: int) -> None:
    state = st.session_state
    last = (total - 1) // PAGE
    if not last:
        return
    with st.container(key="pages", horizontal=True, vertical_alignment="center"):
        st.button("← Before", key="before", disabled=state["page"] == 0, on_click=_turn, args=(-1,))
        st.markdown(f"Page {state['page'] + 1:,} of {last + 1:,}")
        st.button("Next →", key="next", disabled=state["page"] == last, on_click=_turn, args=(1,))


def _turn(by: int) -> None:
    st.session_state["page"] += by


page()
