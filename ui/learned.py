"""What the reading of a chat taught: one line that names it all, and each thing with a way back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import streamlit as st

from memchat.types import Change, InboxItem, Refusal, Session, Undone
from ui import components as ui
from ui import decisions, old_backups, parts, refused
from ui.parts import Part

WHAT = {"added": "Remembered", "revived": "Remembered again", "superseded": "Changed"}
WHAT |= {"ended": "No longer holds", "merged": "Merged with what was known"}
WAITING = "Waits for your yes"
NOT_KEPT = "Not kept"
NAMED = 6
"""Facts of each kind that the line names; more are counted."""
NAME_LENGTH = 70


def under(used: Sequence[str], message_id: int, changes: Sequence[Change]) -> list[Part]:
    """Under a reply: what was used for it, and what its message taught, with a way back."""
    told = [f"Used: {_names(used)}"] if used else []
    if changes:
        told.append(f"Learnt: {_names(_plainly(change) for change in changes)}")
    if not told:
        return []
    line = [parts.note(" · ".join(told))]
    if changes:
        line.append(parts.button("Undo", f"unlearn-{message_id}", _unlearn, message_id, plain=True))
    return [parts.row(*line)]


def _plainly(change: Change) -> str:
    assert change.memory is not None
    words = change.memory.told.rstrip(".")
    if change.kind in ("ended", "merged"):
        words = f"{WHAT[change.kind].lower()}: {words}"
    return ui.shorten(words, NAME_LENGTH)


def show(session: Session, *, announced: bool = False) -> None:
    """Under a chat: what waits for a yes and what was not kept. Of a chat that has ended it is also
    said that nothing was new. ``announced``: it is the chat before this one, and what it taught is
    named, too; screen readers hear the line.
    """
    sessions = ui.person().sessions
    changes = [
        (message_id, change)
        for message_id, found in sessions.learned(session.id).items()
        for change in found
    ]
    waiting = _waiting(session.id, changes)
    refusals = ui.person().inbox.refusals(session_id=session.id)
    told = changes if announced else []
    line = _line([change for _, change in told], waiting, refusals)
    if not (told or waiting or refusals):
        read = session.status in ("extracted", "off")
        if read and not changes and ui.person().memory_switch().on:
            line = "Nothing new was learnt from this chat."
            st.caption(line)
    else:
        with st.expander(line, key=f"learned-{session.id}"):
            for message_id, change in told:
                _change(message_id, change)
            for item in waiting:
                _undecided(item)
            refused.show(refusals)
    if announced and line:
        ui.announce(line.replace("\\", "").replace("*", ""))


def _waiting(session_id: int, changes: Sequence[tuple[int, Change]]) -> list[InboxItem]:
    """What waits in the inbox for a word on this chat."""
    items = ui.person().inbox.list()
    if not items:
        return []
    messages = {message.id for message in ui.person().sessions.messages(session_id)}
    memories = {change.memory.id for _, change in changes if change.memory is not None}
    return [item for item in items if item.message_id in messages or item.memory_id in memories]


def _line(
    changes: Sequence[Change], waiting: Sequence[InboxItem], refusals: Sequence[Refusal]
) -> str:
    """All of it in one line of Markdown."""
    kinds = list(WHAT)
    ordered = sorted(changes, key=lambda change: kinds.index(change.kind))
    parts = [
        f"{WHAT[kind]}: {_names(map(_named, found))}"
        for kind, found in groupby(ordered, lambda change: change.kind)
    ]
    if waiting:
        parts.append(f"{WAITING}: {_names(map(_asked, waiting))}")
    kept_out = [
        _bold(refusal.proposes.replace("_", " ")) for refusal in refusals if not refusal.repeats
    ]
    if kept_out:
        parts.append(f"{NOT_KEPT}: {_names(kept_out)}")
    if not parts and refusals:
        parts.append(f"{NOT_KEPT}: it only repeats what is known")
    return " · ".join(parts)


def _names(names: Iterable[str]) -> str:
    named = list(names)
    shown = [name for name in named[:NAMED] if name]
    more = len(named) - len(shown)
    if more:
        shown.append(f"{more:,} more" if shown else f"{more:,}")
    return ", ".join(shown)


def _named(change: Change) -> str:
    assert change.memory is not None
    was = f" (before: {ui.literal(ui.shorten(change.before))})" if change.before else ""
    return _bold(change.memory.told) + was


def _asked(item: InboxItem) -> str:
    if item.key is None:
        return ui.literal(ui.shorten(ui.person().inbox.question(item), NAME_LENGTH))
    return _bold(item.told)


def _bold(words: str) -> str:
    return f"**{ui.literal(ui.shorten(words.removesuffix('.'), NAME_LENGTH))}**" if words else ""


def _change(message_id: int, change: Change) -> None:
    memory = change.memory
    assert memory is not None
    was = f", before: {ui.literal(change.before)}" if change.before else ""
    key = f"{message_id}-{memory.id}"
    with st.container(key=f"row-learned-{key}", horizontal=True, vertical_alignment="center"):
        st.markdown(f"{WHAT[change.kind]}: {_bold(memory.told)}{was}", width="stretch")
        st.button(
            "Undo",
            key=f"unlearn-{key}",
            type="tertiary",
            on_click=_unlearn,
            args=(message_id, memory.id),
        )


def _unlearn(message_id: int, memory_id: int | None = None) -> None:
    sessions = ui.person().sessions
    done: list[Undone] = []
    if not ui.attempt(lambda: done.append(sessions.unlearn(message_id, memory_id=memory_id))):
        return
    old_backups.look()
    if done[0].kept and not (done[0].gone or done[0].back):
        st.toast("It stays: you said it elsewhere, too, or entered it yourself.")
    else:
        st.toast("Taken back. Your words stay in the chat; this is not learnt from them again.")


def _undecided(item: InboxItem) -> None:
    with st.container(key=f"row-waits-{item.id}", horizontal=True, vertical_alignment="center"):
        question = ui.person().inbox.question(item)
        st.markdown(f"{WAITING}: {ui.literal(question)}", width="stretch")
        decisions.buttons(item)
