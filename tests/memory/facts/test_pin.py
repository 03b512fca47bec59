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
    mc.chat_once("xyzzy?", **(ANA | scope))
    return model.requests[-1].messages[0].content


def crowd(mc: MemChat) -> None:
    """More facts than a prompt of the ``small`` store has room for."""
    for n in range(40):
        mc.add("fact", "note", f"one of many notes, number {n}", **ANA)


@pytest.fixture
def small(open_store: Opener) -> MemChat:
    """A store whose prompts have little room."""
    return open_store(budget_tokens=400, pinned_tokens=60)


def test_where_not_all_facts_fit_a_pinned_one_is_given_whatever_the_question(
    small: MemChat, chat_model: ScriptedModel
) -> None:
    mc = small
    kept = mc.add("fact", "bike", LONG, **ANA)
    crowd(mc)
    assert LONG not in shown(mc, chat_model)
    assert mc.pin(kept.id, **ANA).pinned
    assert LONG in shown(mc, chat_model)
    assert not mc.pin(kept.id, **ANA, on=False).pinned
    assert LONG not in shown(mc, chat_model)


def test_where_not_all_facts_fit_what_is_pinned_comes_before_the_profile(
    small: MemChat, chat_model: ScriptedModel
) -> None:
    mc = small
    crowd(mc)
    mc.add("profile", "name", "Ana Ferreira", **ANA)
    mc.pin(mc.add("other", "book club", "first Tuesday", **ANA).id, **ANA)
    told = shown(mc, chat_model)
    assert told.index("first Tuesday") < told.index("Ana Ferreira")


def test_what_takes_its_place_is_pinned_too_and_back_again(mc: MemChat) -> None:
    old = mc.add("profile", "city", "Lisbon", **ANA)
    mc.pin(old.id, **ANA)
    new = mc.add("profile", "city", "Porto", **ANA)
    assert mc.memory(new.id, **ANA).pinned
    assert mc.restore(old.id, **ANA).pinned


def test_pinning_leaves_one_event_each_way(mc: MemChat) -> None:
    kept = mc.add("profile", "city", "Lisbon", **ANA)
    for on in (True, True, False, False):
        mc.pin(kept.id, **ANA, on=on)
    told = [(event.kind, event.actor) for event in mc.history(kept.id, **ANA)]
    assert told[-2:] == [("pin", "user"), ("unpin", "user")]
    assert len(told) == 3


def test_what_is_not_in_use_or_another_s_cannot_be_pinned(mc: MemChat) -> None:
    old = mc.add("profile", "city", "Lisbon", **ANA)
    mc.add("profile", "city", "Porto", **ANA)
    with pytest.raises(InputError):
        mc.pin(old.id, **ANA)
    for scope in ({"user": "bob"}, {"user": "ana", "app": "work"}):
        with pytest.raises(NotFound):
            mc.pin(old.id, **scope)


def test_it_stays_in_its_app(mc: MemChat, chat_model: ScriptedModel) -> None:
    mc.pin(mc.add("fact", "bike", "green touring bike", **ANA).id, **ANA)
    assert "green" not in shown(mc, chat_model, app="work")
    mc.pin(mc.add("fact", "boat", "red canoe", **ANA, all_apps=True).id, **ANA)
    assert "red canoe" in shown(mc, chat_model, app="work")


def test_forgetting_undone_brings_it_back_pinned_and_done_leaves_nothing(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    kept = mc.add("fact", "bike", "green touring bike", **ANA)
    mc.pin(kept.id, **ANA)
    mc.delete(kept.id, **ANA, hold=60)
    assert "green" not in shown(mc, chat_model)
    assert mc.restore(kept.id, **ANA).pinned
    mc.delete(kept.id, **ANA)
    assert "green" not in shown(mc, chat_model)
    assert b"green touring" not in (mc.settings.home / "memchat.db").read_bytes()


def test_pinned_ones_are_looked_through_alone(mc: MemChat) -> None:
    kept = [mc.add("fact", "bike", f"number {n}", **ANA) for n in range(3)]
    mc.pin(kept[1].id, **ANA)
    wanted = Wanted(status="pinned")
    assert [m.id for m in mc.browse(wanted, **ANA).memories] == [kept[1].id]
    assert [m.pinned for m in mc.memories(**ANA)].count(True) == 1
