"""A person's yes or no to what waits in the inbox, wherever it is asked. Each can be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import streamlit as st

from memchat import Answered
from memchat.types import InboxItem
from memchat.types.memories import named_value
from ui import components as ui
from ui import forgetting, hold
from ui.hold import Hold

UNDO_SECONDS = 10.0
NAME_LENGTH = 36
KEPT = "kept"
KEEP, REPLACE, OVER = "Keep", "Replace it", "It is over"
FORGET, SHARE, CALL = "Forget it", "Keep in every space", "Call it"
DID = {KEEP: "Kept", REPLACE: "Kept instead", OVER: "Over", SHARE: "Kept in every space"}
"""What each yes did."""


def label(item: InboxItem) -> str:
    """What a yes does, as its button says."""
    if item.run_id is not None:
        return CALL
    if item.relation in ("forget", "promote"):
        return FORGET if item.relation == "forget" else SHARE
    if item.memory_id is not None:
        return REPLACE if item.related_id else OVER
    return {"updates": REPLACE, "ends": OVER}.get(item.relation, KEEP)


def question(item: InboxItem) -> str:
    """What a yes to an item would do. The app calls an app a space."""
    asked = ui.person().inbox.question(item)
    if item.relation == "promote":
        asked = asked.replace(" in every app?", " in every space?")
    return asked


def label_of_no(item: InboxItem) -> str:
    """What a no does, as its button says."""
    if item.related_id:
        return "Leave both"
    noes = {"forget": "Do not forget it", "promote": "Leave it here", "call": "Do not call it"}
    return noes.get(item.relation, "Reject")


def label_of_many(items: Sequence[InboxItem]) -> str:
    """What a yes to many does: to keep some means to replace or end what is known."""
    return KEEP if all(label(item) == KEEP for item in items) else "Say yes to"


def has_words(item: InboxItem) -> bool:
    """Whether a yes needs no other words: a hidden secret has to be written again."""
    return item.relation == "ends" or not item.masked


def buttons(item: InboxItem) -> None:
    """A yes and a no."""
    key = f"chat-{item.id}"
    if has_words(item):
        st.button(label(item), key=f"accept-{key}", on_click=accept_one, args=(item,))
    else:
        st.page_link("views/inbox.py", label="Write it again in the Inbox")
    no, args = label_of_no(item), ([item.id],)
    st.button(no, key=f"reject-{key}", type="tertiary", on_click=reject, args=args)


def accept_one(item: InboxItem) -> None:
    """Say yes to one item."""
    if item.run_id is not None:
        ui.attempt(lambda: ui.person().inbox.accept(item.id))
    elif item.relation == "forget":
        forgetting.forget_as_asked(item)
    else:
        accept([item.id])


def asked_to_forget(memory_id: int) -> InboxItem | None:
    """The item in which a program asks to forget a memory."""
    waiting = ui.person().inbox.list()
    asked = [item for item in waiting if (item.memory_id, item.relation) == (memory_id, "forget")]
    return asked[0] if asked else None


def accept(item_ids: Sequence[int]) -> None:
    """Say yes to items."""
    _answer(lambda: ui.person().inbox.accept_many(item_ids), KEPT)


def reword(item_id: int, value: str, *, at: str) -> bool:
    """Say yes to an item in other words; whether it was kept. An error is shown in the place
    ``at``."""
    inbox = ui.person().inbox
    return _answer(lambda: inbox.accept_many([item_id], values={item_id: value}), KEPT, at, value)


def reject(item_ids: Sequence[int]) -> None:
    """Say no to items."""
    _answer(lambda: ui.person().inbox.reject_many(item_ids), "rejected")


def _answer(
    work: Callable[[], Answered], done: str, at: str = "", value: str | None = None
) -> bool:
    """Answer items, one of them in the words ``value``; whether that could be done for all."""
    came: list[Answered] = []
    if not ui.attempt(lambda: came.append(work()), at=at):
        return False
    answered = came[0]
    if answered.items:
        ui.desk().wake()
        said = _done(answered.items) if done == KEPT else done.capitalize()
        words = f"{said}: {_named(answered.items, value)}. Can be undone for"
        back = f"item-{answered.items[0].id}"
        hold.keep(words, UNDO_SECONDS, lambda held: _take_back(held, answered), back=back)
    if answered.failed:
        reasons = " ".join(dict.fromkeys(_reasons(answered.failed)))
        ui.problem(f"{ui.plural(len(answered.failed), 'item')} not {done}. {reasons}", at=at)
    return not answered.failed


def _done(items: Sequence[InboxItem]) -> str:
    """What a yes to these items did."""
    did = {DID[label(item)] for item in items}
    return did.pop() if len(did) == 1 else "Said yes to"


def _reasons(failed: Mapping[int, str]) -> Iterator[str]:
    """Why items were not answered, as the page says it."""
    waiting = {item.id for item in ui.person().inbox.list()}
    for item_id, why in failed.items():
        yield ui.as_sentence(why) if item_id in waiting else "It was answered before."


def _named(items: Sequence[InboxItem], value: str | None) -> str:
    """One proposal in words, or how many items there are."""
    if len(items) > 1 or items[0].key is None:
        return ui.plural(len(items), "item")
    told = items[0].told if value is None else named_value(items[0].key, value)
    return ui.literal(ui.shorten(told, NAME_LENGTH).removesuffix("."))


def _take_back(held: Hold, answered: Answered) -> None:
    ui.attempt(lambda: held.person.inbox.take_back(answered))
