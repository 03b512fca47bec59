"""Memories as rows that are drawn as one scrolls, each in a sentence, with what can be done with
one or with many. The rows themselves are ``memchat/ui_assets/rows.js``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from memchat.errors import NotFound
from memchat.types import Job, Memory, Wanted
from ui import by_meaning, decisions, embedding_job, forgetting, hold, memory_details, memory_form
from ui import components as ui
from ui.marks import pieces
from ui.memory_form import close

KEY = "memory-list"
MORE = 50
"""Rows that are loaded at a time."""
Row = dict[str, Any]
SUMMED = 8
"""Memories of a group in the summary."""
BULK = (
    ("tag", "Tag"),
    ("pin", "Pin"),
    ("move", "Move"),
    ("sensitive", "Sensitive"),
    ("export", "Export"),
    ("forget", "Forget", True),
)


def show(
    memories: Mapping[int, Memory],
    ids: Sequence[int],
    wanted: Wanted,
    total: int,
    jobs: Mapping[int, Job],
) -> None:
    """Draw the rows of these ids in this order; one that is none of ``memories`` has gone since
    it was drawn. ``total`` is how many there are with those that are not loaded."""
    state = st.session_state
    state.update({"rows wanted": wanted, "rows jobs": jobs})
    rows = [
        _row(memories[i], wanted.search, jobs.get(i)) if i in memories else _gone(i) for i in ids
    ]
    _mount(
        list=repr((wanted, ui.app_name())),
        rows=rows,
        total=total + len(ids) - len(memories.keys() & set(ids)),
        counted=ui.plural(total, "memory", "memories"),
        bulk=BULK if wanted.status != "forgotten" else (),
    )
    _opened()


def summary() -> None:
    """What is known, by group, each sentence with the way to where it comes from."""
    memories, parts = ui.person().memories, []
    for group, count in memories.groups().items():
        found = memories.browse(Wanted(group=group, sort="most used"), limit=SUMMED).memories
        rows = [
            {"id": one.id, "said": ui.as_sentence(one.told), "day": ui.day(one.said_at)}
            for one in found
        ]
        more = f"{count - SUMMED:,} more" if count > SUMMED else ""
        parts.append({"title": group.capitalize(), "group": group, "rows": rows, "more": more})
    _mount(list="summary", parts=parts, rows=(), total=0, counted="", bulk=())
    _opened()


def _mount(**data: Any) -> None:
    component = st.components.v2.component(
        "memchat.rows", css="rows.css", js="rows.js", isolate_styles=False
    )
    component(key=KEY, data=data, on_act_change=_act)


def _row(memory: Memory, search: str, job: Job | None) -> Row:
    if memory.inactive_reason == "forgotten":
        asked = decisions.asked_to_forget(memory.id)
        about = f"{asked.reason}. It is out of use until you decide in the Inbox." if asked else ""
        return _still(memory.id, pieces(memory.told, search), about, ("restore", "Restore"))
    acts: list[tuple[Any, ...]] = [("edit", "Edit"), ("details", "Details")]
    if memory.active:
        acts.append(("unpin", "Unpin") if memory.pinned else ("pin", "Pin"))
    else:
        acts.append(("restore", "Use it again"))
    acts.append(("sensitive", "Not sensitive" if memory.sensitive else "Sensitive"))
    if job is not None and job.error_message:
        acts.append(("embed", "Try to index it again"))
    return {
        "id": memory.id,
        "text": pieces(memory.told, search),
        "about": " · ".join(_about(memory, job)),
        "tags": memory.tags,
        "faded": not memory.active,
        "acts": [*acts, ("forget", "Forget", True)],
    }


def _about(memory: Memory, job: Job | None) -> Iterator[str]:
    """What a row says besides the sentence; all else stands in its details."""
    if memory.pinned:
        yield "pinned"
    if memory.sensitive:
        yield "sensitive"
    yield from ui.origin_of(memory) if memory.created_by == "mcp" else [ui.day(memory.said_at)]
    yield from ui.span_of(memory)
    if job is not None and (words := embedding_job.words(job)):
        yield words


def _gone(memory_id: int) -> Row:
    """The place of a memory that was forgotten, or that left the list, since it was drawn: no row
    moves under the pointer."""
    if (held := hold.of_memory(memory_id)) is None:
        return _still(memory_id, [("No longer in this list.", False)])
    words = f"Forgotten: {held.name}" if held.name else "Forgotten."
    return _still(memory_id, [(words, False)], "", ("unforget", "Undo"))


def _still(memory_id: int, text: object, about: str = "", button: object = None) -> Row:
    """A row with which nothing else can be done."""
    return {"id": memory_id, "text": text, "about": about, "faded": True, "button": button}


# What is done


def _act() -> None:
    """Do what was chosen in the rows."""
    state = st.session_state
    chosen = state[KEY].act
    if chosen is None:
        return
    act, ids = chosen["act"], chosen["ids"]
    if ids == "all":
        wanted = state["rows wanted"]
        ids = dict.fromkeys([*by_meaning.ids(wanted), *ui.person().memories.browse_ids(wanted)])
    if act == "more":
        state["most"] += MORE
    elif act == "group":
        state["group"] = ids[0]
    elif act in DIALOGS:
        state["opened"] = (act, list(ids))
    elif ids:
        DOES[act](list(ids))


def _each(work: Callable[[int], object]) -> Callable[[list[int]], None]:
    def do(ids: list[int]) -> None:
        for memory_id in ids:
            if not ui.attempt(partial(work, memory_id)):
                return

    return do


def _pin(on: bool) -> Callable[[list[int]], None]:
    return _each(lambda memory_id: ui.person().memories.pin(memory_id, on=on))


def _mark(ids: list[int]) -> None:
    """Mark them as sensitive; take the mark off where all have it."""
    memories, marked = ui.person().memories, list[bool]()
    if ui.attempt(lambda: marked.extend(memories.get(one).sensitive for one in ids)):
        _each(partial(memories.update, sensitive=not all(marked)))(ids)


def _restore(ids: list[int]) -> None:
    for memory_id in ids:
        if forgetting.can_restore(memory_id):
            forgetting.restore(memory_id)
        else:
            ui.attempt(partial(ui.person().memories.restore, memory_id))


DOES: dict[str, Callable[[list[int]], object]] = {
    "pin": _pin(True),
    "unpin": _pin(False),
    "sensitive": _mark,
    "restore": _restore,
    "unforget": _restore,
    "embed": lambda ids: embedding_job.retry(st.session_state["rows jobs"][ids[0]].id),
    "forget": forgetting.forget,
    "details": lambda ids: memory_details.ask(ids[0]),
}


# What asks for more


def _opened() -> None:
    state = st.session_state
    act, ids = state.get("opened") or ("", [])
    if act:
        DIALOGS[act](ids)
    elif state.get("details") is not None:
        memory_details.show(state["details"])


def _edit(ids: list[int]) -> None:
    with suppress(NotFound):  # another tab has forgotten it
        memory_form.edit(ui.person().memories.get(ids[0]))


@st.dialog("Tag", on_dismiss=close)
def _tag(ids: list[int]) -> None:
    memories = ui.person().memories
    with st.form("tag-form", border=False):
        words = st.text_input("Tags (with commas between them)", key="tags-many")
        ui.show_problem("tag-form")
        if st.form_submit_button("Tag", type="primary", key="tag-them"):
            done = ui.attempt(
                lambda: [
                    memories.update(one, tags=[*memories.get(one).tags, words]) for one in ids
                ],
                at="tag-form",
            )
            if done:
                close()
            st.rerun()


@st.dialog("Move", on_dismiss=close)
def _move(ids: list[int]) -> None:
    memories = ui.person().memories
    st.write(f"Where is {ui.plural(len(ids), 'memory', 'memories')} to be used?")
    for label, everywhere in (("In every space", True), (f"Only in “{ui.app_name()}”", False)):
        if st.button(ui.literal(label), key=f"move-{everywhere}"):
            _each(partial(memories.update, all_apps=everywhere))(ids)
            close()
            st.rerun()


@st.dialog("Export", on_dismiss=close)
def _export(ids: list[int]) -> None:
    memories = ui.person().memories
    found = [memories.get(one).to_json() for one in ids]
    st.write(f"{ui.plural(len(ids), 'memory', 'memories')} as a file. Nothing in it is encrypted.")
    text = json.dumps(found, ensure_ascii=False, indent=1)
    st.download_button("Save the file", text, "memories.json", "application/json", key="save-file")


DIALOGS: dict[str, Callable[[Any], object]] = {
    "add": memory_form.add,
    "edit": _edit,
    "tag": _tag,
    "move": _move,
    "export": _export,
}
