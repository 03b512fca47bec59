"""Inbox: what was held back, for a yes, a no, or other words."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from memchat.types import InboxItem
from ui import components as ui
from ui import decisions, sidebar

SHOWN = 20
# How the question about what is no longer there ends: no yes can do it.
GONE = ("is gone.", "has changed.")


def page() -> None:
    """One run."""
    ui.heading(
        "Inbox", "What was not sure enough to be kept. Nothing here is used before you say yes."
    )
    ui.show_problem()
    items = ui.person().inbox.list()
    if not items:
        ui.empty(
            "Nothing waits",
            "What a chat says in doubt, about others, or against what is known waits here for your "
            "yes or no.",
            "inbox",
        )
        return
    _bulk(items)
    with st.container(key="keys"):
        st.caption("Alt + Y says yes to the first one, Alt + X says no, Alt + E edits it.")
    for item in items[:SHOWN]:
        _item(item)
    if len(items) > SHOWN:
        st.caption(f"And {len(items) - SHOWN:,} more, when these are done.")


# Choosing many


def _bulk(items: Sequence[InboxItem]) -> None:
    ids = [item.id for item in items]
    chosen = _chosen()
    chosen.intersection_update(ids)
    with st.container(key="bulk", horizontal=True, vertical_alignment="center"):
        st.session_state["all items"] = len(chosen) == len(ids)
        st.checkbox("Select all", key="all items", on_change=_choose_all, args=(ids,))
        st.markdown(
            f"**{len(chosen):,} selected** of {len(ids):,}"
            if chosen
            else ui.plural(len(ids), "item"),
            width="stretch",
        )
        if chosen:
            _answers([item for item in items if item.id in chosen])


def _answers(chosen: Sequence[InboxItem]) -> None:
    count = len(chosen)
    with st.container(key="answers-chosen", horizontal=True, width="content"):
        st.button(f"Reject {count:,}", key="reject-chosen", on_click=_reject_chosen)
        st.button(
            f"{decisions.label_of_many(chosen)} {count:,}",
            key="accept-chosen",
            type="primary",
            on_click=_keep_chosen,
            args=(chosen,),
        )


def _chosen() -> set[int]:
    found: set[int] = st.session_state.setdefault("chosen items", set())
    return found


def _choose_all(ids: Sequence[int]) -> None:
    st.session_state["chosen items"] = set(ids) if st.session_state["all items"] else set()


def _choose(item_id: int) -> None:
    _chosen().symmetric_difference_update({item_id})


def _keep_chosen(chosen: Sequence[InboxItem]) -> None:
    hidden = [item for item in chosen if not decisions.has_words(item)]
    st.session_state["chosen items"] = set()
    decisions.accept([item.id for item in chosen if item not in hidden])
    if hidden:
        ui.problem(
            f"In {ui.plural(len(hidden), 'item')} a secret was hidden, so what to keep is not "
            "known. Write it again with Edit, or reject it."
        )


def _reject_chosen() -> None:
    chosen = sorted(_chosen())
    st.session_state["chosen items"] = set()
    decisions.reject(chosen)


# One item


def _item(item: InboxItem) -> None:
    with st.container(
        key=f"item-{item.id}", border=True, horizontal=True, vertical_alignment="top"
    ):
        name = f"pick-item-{item.id}"
        st.session_state[name] = item.id in _chosen()
        st.checkbox(
            f"Select {item.key or 'this question'}: {item.value or ''}",
            key=name,
            label_visibility="collapsed",
            on_change=_choose,
            args=(item.id,),
        )
        _content(item)


def _content(item: InboxItem) -> None:
    """One question, and in small letters why it is asked."""
    asked = decisions.question(item)
    words = f"{ui.literal(asked)}\n\n:small[:gray[{ui.literal(_why(item))}]]"
    st.markdown(words, width="stretch")
    if st.session_state.get("deciding") == item.id:
        _edit(item)
    else:
        _actions(item, ready=not asked.endswith(GONE))


def _why(item: InboxItem) -> str:
    why = f"Why it waits: {ui.as_sentence(item.reason)}"
    if item.sensitive:
        why += " Such things are kept with your yes alone."
    days = [f"from {item.starts_at:%-d %B %Y}"] if item.starts_at else []
    days += [f"until {item.expires_at:%-d %B %Y}"] if item.expires_at else []
    return " · ".join([why, *days, ui.day(item.created_at)])


def _actions(item: InboxItem, *, ready: bool) -> None:
    with st.container(key=f"answers-{item.id}", horizontal=True, width="content"):
        if ready and decisions.has_words(item):
            st.button(
                decisions.label(item),
                key=f"accept-{item.id}",
                type="primary",
                on_click=decisions.accept_one,
                args=(item,),
            )
        st.button(
            decisions.label_of_no(item),
            key=f"reject-{item.id}",
            on_click=decisions.reject,
            args=([item.id],),
        )
        if item.memory_id is None and item.relation not in ("ends", "call"):
            st.button("Edit", key=f"decide-{item.id}", on_click=_decide, args=(item.id,))
        if item.message_id is not None and st.button(
            "Open that message", key=f"source-{item.id}", type="tertiary"
        ):
            sidebar.open_chat(ui.person().sessions.of_message(item.message_id).id, item.message_id)


def _edit(item: InboxItem) -> None:
    with st.form(f"decide-form-{item.id}", border=False):
        value = st.text_input(
            "Value",
            value="" if item.masked else item.value or "",
            key=f"decided-{item.id}",
            max_chars=280,
        )
        ui.show_problem(f"deciding-{item.id}")
        if item.masked:
            st.caption("A secret was hidden here. Write what is to be kept, if anything.")
        with st.container(horizontal=True):
            kept = st.form_submit_button("Keep", type="primary")
            left = st.form_submit_button("Cancel")
    place = f"deciding-{item.id}"
    if kept and decisions.reword(item.id, value, at=place):
        _decide(None)
    if left:
        _decide(None)
    if kept or left:
        st.rerun()


def _decide(item_id: int | None) -> None:
    st.session_state["deciding"] = item_id


page()
