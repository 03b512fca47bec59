"""The inbox page."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from memchat import MemChat
from tests.support import private
from tests.support.ui.tab import ANA, app, buttons, press, text
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
        from memchat.db import apps
        from memchat.facts import proposals
        from memchat.types import Proposal, Scope

        held = Proposal("it may be a wish", memory_type="fact", key="tea", value="sencha")
        own = apps.ensure(tx, Scope("ana")).own
        proposals.add(tx, own, held)
    item = ana.inbox.list()[-1]
    at = app("inbox")
    assert "Why it waits: It may be a wish." in text(at)
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
    ("relation", "question", "label", "done", "left"),
    [
        ("updates", "Replace tea: green by tea: sencha?", "Replace it", "Kept instead", ["sencha"]),
        ("ends", "Is tea: green over?", "It is over", "Over", []),
    ],
)
def test_a_change_asks_what_a_yes_would_do_and_does_it(
    mc: MemChat, relation: str, question: str, label: str, done: str, left: list[str]
) -> None:
    known = mc.user(**ANA).memories.add("fact", "tea", "green")
    with private.database(mc).write() as tx:
        from memchat.db import apps
        from memchat.facts import proposals
        from memchat.types import Proposal, Scope

        own = apps.ensure(tx, Scope("ana")).own
        held = Proposal("it is not sure", memory_type="fact", key="tea", value="sencha")
        proposals.add(tx, own, replace(held, relation=relation, target_id=known.id))
    (item,) = mc.user("ana").inbox.list()
    at = app("inbox")
    assert question in text(at)
    assert at.button(key=f"accept-{item.id}").label == label
    at.checkbox(key=f"pick-item-{item.id}").check().run()
    assert at.button(key="accept-chosen").label == "Say yes to 1"
    press(at, f"accept-{item.id}")
    assert f"{done}: Tea: sencha. Can be undone" in text(at)
    assert [m.value for m in mc.user("ana").memories.list()] == left and mc.user(
        "ana"
    ).inbox.list() == []


def test_an_item_takes_one_question_and_one_line_on_why_it_is_asked(mc: MemChat) -> None:
    propose(mc, "lithium", sensitive=True)
    at = app("inbox")
    (said,) = [str(m.value).replace("\\", "") for m in at.markdown if "lithium" in str(m.value)]
    question, why = said.split("\n\n")
    assert question == "Remember tea: lithium?"
    assert "Why it waits: Unsure. Such things are kept with your yes alone. · today" in why


def propose(mc: MemChat, *values: str, **fields: bool) -> None:
    """Proposals that wait, each for a memory of this value."""
    with private.database(mc).write() as tx:
        from memchat.db import apps
        from memchat.facts import proposals
        from memchat.types import Proposal, Scope

        own = apps.ensure(tx, Scope("ana")).own
        for value in values:
            held = Proposal("unsure", memory_type="fact", key="tea", value=value)
            proposals.add(tx, own, replace(held, **fields))


@pytest.mark.parametrize(("answer", "kept"), [("accept", 2), ("reject", 0)])
def test_one_answer_is_undone_by_its_own_button(mc: MemChat, answer: str, kept: int) -> None:
    ana = mc.user(**ANA)
    propose(mc, "sencha", "mint")
    items = ana.inbox.list()
    at = app("inbox")
    for item in items:
        press(at, f"{answer}-{item.id}")
    assert "Nothing waits" in text(at) and ana.memories.count() == kept
    done = "Kept" if answer == "accept" else "Rejected"
    assert f"{done}: Tea: mint. Can be undone for" in text(at)
    assert len(buttons(at, "undo-")) == 2
    press(at, buttons(at, "undo-")[1])  # the latest stands first
    assert ana.inbox.list() == [items[0]] and buttons(at, "reject-") == [f"reject-{items[0].id}"]
    assert ana.memories.count() == max(kept - 1, 0)


def test_words_of_ones_own_are_taken_back_too(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    propose(mc, "sencha")
    (item,) = ana.inbox.list()
    at = app("inbox")
    press(at, f"decide-{item.id}")
    at.text_input(key=f"decided-{item.id}").set_value("hojicha")
    at.button[[b.label for b in at.button].index("Keep")].click().run()
    assert [m.value for m in ana.memories.list()] == ["hojicha"]
    assert "Kept: Tea: hojicha. Can be undone" in text(at)
    press(at, buttons(at, "undo-")[0])
    assert ana.memories.count() == 0 and ana.inbox.list() == [item]


def test_some_are_chosen_and_kept_at_once(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    propose(mc, "sencha", "mint", "oolong")
    first, second, third = ana.inbox.list()
    at = app("inbox")
    assert not buttons(at, "accept-chosen")
    for item in (first, third):
        at.checkbox(key=f"pick-item-{item.id}").check().run()
    assert "2 selected of 3" in text(at).replace("*", "")
    press(at, "accept-chosen")
    assert [m.value for m in ana.memories.list()] == ["oolong", "sencha"]
    assert ana.inbox.list() == [second]
    press(at, buttons(at, "undo-")[0])
    assert ana.inbox.list() == [first, second, third] and ana.memories.count() == 0


def test_what_another_tab_answered_is_told_in_plain_words(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    propose(mc, "sencha")
    (item,) = ana.inbox.list()
    at = app("inbox")
    ana.inbox.reject(item.id)
    press(at, f"accept-{item.id}")
    assert "1 item not kept. It was answered before." in text(at)
    assert "Nothing waits" in text(at) and "memchat" not in text(at)


def test_all_of_two_hundred_are_rejected_at_once_and_come_back(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    propose(mc, *(f"tea number {n}" for n in range(200)))
    at = app("inbox")
    assert "And 180 more" in text(at)
    at.checkbox(key="all items").check().run()
    began = time.monotonic()
    press(at, "reject-chosen")
    assert time.monotonic() - began < 5  # it takes a tenth of that
    assert "Rejected: 200 items." in text(at) and "Nothing waits" in text(at)
    press(at, buttons(at, "undo-")[0])
    assert len(ana.inbox.list()) == 200


def test_a_hidden_secret_among_the_chosen_stays_and_it_is_said_why(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    propose(mc, "sencha")
    propose(mc, "[secret]", masked=True)
    at = app("inbox")
    at.checkbox(key="all items").check().run()
    press(at, "accept-chosen")
    assert "In 1 item a secret was hidden" in text(at)
    assert [m.value for m in ana.memories.list()] == ["sencha"]
    assert [item.value for item in ana.inbox.list()] == ["[secret]"]


def test_an_answer_whose_memory_was_changed_since_cannot_be_undone(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    propose(mc, "sencha")
    at = app("inbox")
    press(at, f"accept-{ana.inbox.list()[0].id}")
    ana.memories.update(ana.memories.list()[0].id, value="hojicha")
    press(at, buttons(at, "undo-")[0])
    assert "changed or forgotten since" in text(at)
    assert [m.value for m in ana.memories.list()] == ["hojicha"]


def test_a_workflow_that_asks_before_a_call_gets_a_yes_or_a_no(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    step = {"id": "act", "type": "MCP Tool", "config": {"server": "none", "tool": "send"}}
    ana.workflows.add(json.dumps({"slug": "w", "name": "W", "steps": [step]}))
    run = ana.workflows.run("w")
    with private.database(mc).write() as tx:
        from memchat.db import apps
        from memchat.facts import proposals
        from memchat.types import Scope

        own = apps.ensure(tx, Scope("ana")).own
        proposals.ask_about_run(tx, own, run.id, "Call send of none?", "it asks first")
    (item,) = ana.inbox.list()
    at = app("inbox")
    assert "Call send of none?" in text(at)
    assert at.button(key=f"accept-{item.id}").label == "Call it"
    assert at.button(key=f"reject-{item.id}").label == "Do not call it"
    assert not buttons(at, f"decide-{item.id}")
    press(at, f"accept-{item.id}")
    assert not ana.inbox.list() and ana.workflows.get_run(run.id).state == "failed"
