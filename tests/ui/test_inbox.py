"""The inbox page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memchat import MemChat
from tests.support import private
from tests.support.ui.tab import ANA, app, press, text
from ui.desk import Desk


def test_an_empty_inbox_says_what_comes_there(desk: Desk) -> None:
    assert "Nothing waits" in text(app("inbox"))


@pytest.mark.parametrize("answer", ["accept", "reject", "edit"])
def test_what_was_held_back_is_kept_rejected_or_kept_in_other_words(
    mc: MemChat, answer: str
) -> None:
    ana = mc.user(**ANA)
    with ana.chat() as talk:
        talk.send("If I move, I live in Lisbon. Maybe I am a vegetarian.").read()
    with private.database(mc).write() as tx:
        from memchat.store import apps, inbox
        from memchat.types import Scope

        held = inbox.NewInboxItem("it may be a wish", memory_type="fact", key="tea", value="sencha")
        own, _ = apps.ensure(tx, Scope("ana"), mc.now)
        inbox.add(tx, own, held, mc.now)
    item = ana.inbox.list()[-1]
    at = app("inbox")
    assert "it may be a wish" in text(at)
    if answer == "edit":
        press(at, f"decide-{item.id}")
        at.text_input(key=f"decided-{item.id}").set_value("hojicha")
        at.button[[b.label for b in at.button].index("Keep")].click().run()
    else:
        press(at, f"{answer}-{item.id}")
    assert item.id not in [i.id for i in ana.inbox.list()]
    tea = {"accept": ["sencha"], "reject": [], "edit": ["hojicha"]}[answer]
    assert [m.value for m in ana.memories.list() if m.key == "tea"] == tea


@pytest.mark.parametrize(
    ("relation", "question", "label", "left"),
    [
        ("updates", "Replace tea: green?", "Replace it", ["sencha"]),
        ("ends", "Is tea: green over?", "It is over", []),
    ],
)
def test_a_change_asks_what_a_yes_would_do_and_does_it(
    mc: MemChat, relation: str, question: str, label: str, left: list[str]
) -> None:
    known = mc.user(**ANA).memories.add("fact", "tea", "green")
    with private.database(mc).write() as tx:
        from memchat.store import apps, inbox
        from memchat.types import Scope

        own, _ = apps.ensure(tx, Scope("ana"), mc.now)
        held = inbox.NewInboxItem("it is not sure", memory_type="fact", key="tea", value="sencha")
        inbox.add(tx, own, replace(held, relation=relation, target_id=known.id), mc.now)
    (item,) = mc.user("ana").inbox.list()
    at = app("inbox")
    assert question in text(at)
    assert at.button(key=f"accept-{item.id}").label == label
    press(at, f"accept-{item.id}")
    assert [m.value for m in mc.user("ana").memories.list()] == left and mc.user(
        "ana"
    ).inbox.list() == []
