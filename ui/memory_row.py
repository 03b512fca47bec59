"""One memory in a list: its words, what it is, and what can be done with it."""

from __future__ import annotations

import streamlit as st

from memchat.types import Job, Memory
from ui import components as ui
from ui import decisions, embedding_job, forgetting, hold, memory_details, memory_form
from ui.marks import marked


def show(
    memory: Memory, search: str = "", job: Job | None = None, *, choosable: bool = True
) -> None:
    """Draw it, with the words of a search marked; ``job`` is that of a vector it has not got yet.
    ``choosable``: it can be selected together with others."""
    state = st.session_state
    if memory.inactive_reason == "forgotten":
        _restorable(memory, search)
        return
    with st.container(key=f"row-{memory.id}", horizontal=True, vertical_alignment="top"):
        if choosable:
            _checkbox(memory)
        if state.get("changing") == memory.id:
            memory_form.edit_form(memory)
            return
        faded = ":gray[{}]" if memory.inactive_reason else "{}"
        key = marked(memory.key.replace("_", " "), search)
        words = f"**{key}**  {marked(memory.value, search)}"
        # One element and not two: what a page holds is what it takes to draw.
        about = (":green[Pinned] · " if memory.pinned else "") + ui.described(memory)
        about += " · sensitive" if memory.sensitive else ""
        chips = "".join(f" :gray-badge[{ui.literal(tag)}]" for tag in memory.tags)
        st.markdown(f"{faded.format(words)}\n\n:small[:gray[{about}]]{chips}", width="stretch")
        if memory.active:
            st.button(
                "Unpin" if memory.pinned else "Pin",
                key=f"pin-{memory.id}",
                type="tertiary",
                on_click=_pin,
                args=(memory.id, not memory.pinned),
            )
        st.button(
            "Edit",
            key=f"change-{memory.id}",
            type="tertiary",
            on_click=memory_form.change,
            args=(memory.id,),
        )
        if st.button("Details", key=f"details-{memory.id}", type="tertiary"):
            memory_details.ask(memory.id)
        st.button(
            "Forget",
            key=f"forget-{memory.id}",
            type="tertiary",
            on_click=forgetting.forget,
            args=([memory.id],),
        )
    if job is not None:
        embedding_job.show(job)
    if state.get("details") == memory.id:
        memory_details.show(memory.id)


def gone(memory_id: int) -> None:
    """The place of a memory that was forgotten, or that left the list, since it was drawn."""
    with st.container(key=f"gone-{memory_id}", horizontal=True, vertical_alignment="center"):
        held = hold.of_memory(memory_id)
        if held is not None:
            what = held.name and f": {held.name}"
            st.markdown(f":gray[Forgotten{what or '.'}]", width="stretch")
            st.button(
                "Undo",
                key=f"unforget-{memory_id}",
                type="tertiary",
                on_click=forgetting.restore,
                args=(memory_id,),
            )
        else:
            st.markdown(":gray[No longer in this list.]", width="stretch")


def _checkbox(memory: Memory) -> None:
    name = f"pick-{memory.id}"
    st.session_state[name] = memory.id in st.session_state["chosen"]
    st.checkbox(
        f"Select {memory.key}: {memory.value}",
        key=name,
        label_visibility="collapsed",
        on_change=_choose,
        args=(memory.id,),
    )


def _choose(memory_id: int) -> None:
    chosen: set[int] = st.session_state["chosen"]
    chosen.symmetric_difference_update({memory_id})


def _restorable(memory: Memory, search: str) -> None:
    """A memory that is forgotten and not purged yet."""
    with st.container(key=f"row-{memory.id}", horizontal=True, vertical_alignment="top"):
        name = marked(f"{memory.key.replace('_', ' ')}: {memory.value}", search)
        words = f":gray[{name}]"
        asked = decisions.asked_to_forget(memory.id)
        if asked is not None:
            about = f"{asked.reason}. It is out of use until you decide in the Inbox."
            words += f"\n\n:small[:gray[{ui.literal(about)}]]"
        st.markdown(words, width="stretch")
        st.button(
            "Restore",
            key=f"restore-{memory.id}",
            type="tertiary",
            on_click=_restore,
            args=(memory.id,),
        )


def _restore(memory_id: int) -> None:
    if forgetting.can_restore(memory_id):
        forgetting.restore(memory_id)
    else:
        ui.attempt(lambda: ui.person().memories.restore(memory_id))


def _pin(memory_id: int, on: bool) -> None:
    ui.attempt(lambda: ui.person().memories.pin(memory_id, on=on))
