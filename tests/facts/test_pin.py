"""What a person pins is at hand in every chat, first of all, and nowhere else."""

from __future__ import annotations

import pytest

from memchat import MemChat
from memchat.errors import InputError, NotFound
from memchat.testing import ScriptedModel
from memchat.types import Wanted
from tests.support.store import Opener

ANA = {"user": "ana"}
LONG = "green touring bike with a basket, two bags, a bell and lights for the long way to work"


def shown(mc: MemChat, model: ScriptedModel, **scope: str) -> str:
    """What a model is told beside a question that fits no memory."""
    mc.user(**(ANA | scope)).answer("xyzzy?")
    return model.requests[-1].messages[0].content


def crowd(mc: MemChat) -> None:
    """More facts than a prompt of the ``small`` store has room for."""
    for n in range(40):
        mc.user(**ANA).memories.add("fact", "note", f"one of many notes, number {n}")


@pytest.fixture
def small(open_store: Opener) -> MemChat:
    """A store whose prompts have little room."""
    return open_store(budget_tokens=400, pinned_tokens=60)


def test_where_not_all_facts_fit_a_pinned_one_is_given_whatever_the_question(
    small: MemChat, chat_model: ScriptedModel
) -> None:
    mc = small
    ana = mc.user(**ANA)
    kept = ana.memories.add("fact", "bike", LONG)
    crowd(mc)
    assert LONG not in shown(mc, chat_model)
    assert ana.memories.pin(kept.id).pinned
    assert LONG in shown(mc, chat_model)
    assert not ana.memories.pin(kept.id, on=False).pinned
    assert LONG not in shown(mc, chat_model)


def test_what_is_always_given_takes_no_more_than_its_share_of_the_prompt(small: MemChat) -> None:
    for n in range(40):
        small.user(**ANA).memories.add("preference", "like", f"pictures of otters, number {n}")
    reply = small.user(**ANA).chat().send("Where is the boat?")
    assert reply.read()
    always = [hit.tokens for hit in reply.shown.hits if hit.channel == "pinned"]
    assert always and sum(always) <= small.settings.pinned_tokens


def test_where_not_all_facts_fit_what_is_pinned_comes_before_the_profile(
    small: MemChat, chat_model: ScriptedModel
) -> None:
    mc = small
    ana = mc.user(**ANA)
    crowd(mc)
    ana.memories.add("profile", "name", "Ana Ferreira")
    ana.memories.pin(ana.memories.add("other", "book club", "first Tuesday").id)
    told = shown(mc, chat_model)
    assert told.index("first Tuesday") < told.index("Ana Ferreira")


def test_what_takes_its_place_is_pinned_too_and_back_again(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    old = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.pin(old.id)
    new = ana.memories.add("profile", "city", "Porto")
    assert ana.memories.get(new.id).pinned
    assert ana.memories.restore(old.id).pinned


def test_pinning_leaves_one_event_each_way(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("profile", "city", "Lisbon")
    for on in (True, True, False, False):
        ana.memories.pin(kept.id, on=on)
    told = [(event.kind, event.actor) for event in ana.memories.history(kept.id)]
    assert told[-2:] == [("pin", "user"), ("unpin", "user")]
    assert len(told) == 3


def test_what_is_not_in_use_or_another_s_cannot_be_pinned(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    old = ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("profile", "city", "Porto")
    with pytest.raises(InputError):
        ana.memories.pin(old.id)
    for scope in ({"user": "bob"}, {"user": "ana", "app": "work"}):
        with pytest.raises(NotFound):
            mc.user(**scope).memories.pin(old.id)


def test_it_stays_in_its_app(mc: MemChat, chat_model: ScriptedModel) -> None:
    ana = mc.user(**ANA)
    ana.memories.pin(ana.memories.add("fact", "bike", "green touring bike").id)
    assert "green" not in shown(mc, chat_model, app="work")
    ana.memories.pin(ana.memories.add("fact", "boat", "red canoe", all_apps=True).id)
    assert "red canoe" in shown(mc, chat_model, app="work")


def test_forgetting_undone_brings_it_back_pinned_and_done_leaves_nothing(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    kept = ana.memories.add("fact", "bike", "green touring bike")
    ana.memories.pin(kept.id)
    ana.memories.delete(kept.id, hold=60)
    assert "green" not in shown(mc, chat_model)
    assert ana.memories.restore(kept.id).pinned
    ana.memories.delete(kept.id)
    assert "green" not in shown(mc, chat_model)
    assert b"green touring" not in (mc.settings.home / "memchat.db").read_bytes()


def test_pinned_ones_are_looked_through_alone(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    kept = [ana.memories.add("fact", "bike", f"number {n}") for n in range(3)]
    ana.memories.pin(kept[1].id)
    wanted = Wanted(status="pinned")
    assert [m.id for m in ana.memories.browse(wanted).memories] == [kept[1].id]
    assert [m.pinned for m in ana.memories.list()].count(True) == 1
