"""Cues for facts of older versions, by a command that says before what it sends."""

from __future__ import annotations

import json

import pytest

from memchat.errors import ProviderError
from memchat.memory.facts import cue_backfill
from memchat.memory.facts.cues import of_key
from memchat.store import cues
from memchat.testing import Broken
from tests.test_forget import rows_with


def without_cues(mc, *facts: tuple[str, str]) -> list[int]:
    """Facts as an older version wrote them."""
    ids = [mc.add("fact", key, value, user="ana").id for key, value in facts]
    with mc._database.write() as tx:
        tx.exec_driver_sql("UPDATE memories SET cues = '', search_text = key || ': ' || value")
    return ids


def cues_of(mc, memory_id: int) -> tuple[str, ...]:
    return mc.memory(memory_id, user="ana").cues


def test_the_model_gives_cues_to_facts_that_have_none(mc, extract_model) -> None:
    boat, diet = without_cues(mc, ("boat", "a red kayak"), ("diet", "no meat"))
    given = {str(boat): ["Paddling", "kayak", "route66", "lake"], "999": ["other"]}
    extract_model.replies.append(json.dumps({"cues": given}))
    assert mc.backfill_cues() == 2
    assert cues_of(mc, boat) == ("paddling", "lake"), "single words that the fact does not have"
    assert cues_of(mc, diet) == of_key("diet"), "nothing came for it"
    mc.backfill()
    (hit,) = mc.recall("paddling", user="ana").confident
    assert hit.id == boat
    assert mc.cue_plan().facts == 0 and mc.backfill_cues() == 0


def test_the_plan_says_what_is_sent_before_anything_is(mc, extract_model) -> None:
    without_cues(mc, ("boat", "a red kayak"), ("car", "an old Volvo"))
    plan = mc.cue_plan()
    assert (plan.facts, plan.asked, plan.model) == (2, 2, extract_model.name)
    assert plan.tokens > 2 * cue_backfill.ANSWER_TOKENS
    assert extract_model.requests == []


def test_sensitive_facts_are_sent_to_nobody(mc, extract_model) -> None:
    (asthma,) = without_cues(mc, ("health_condition", "asthma"))
    with mc._database.write() as tx:
        tx.exec_driver_sql("UPDATE memories SET sensitive = 1")
    assert mc.cue_plan().asked == 0
    assert mc.backfill_cues() == 1
    assert cues_of(mc, asthma) == of_key("health_condition")
    assert extract_model.requests == []


def test_facts_with_a_secret_are_sent_to_nobody_though_they_are_not_marked_sensitive(
    mc, extract_model
) -> None:
    without_cues(mc, ("gate_code", "green"))
    with mc._database.write() as tx:
        tx.exec_driver_sql("UPDATE memories SET value = '4471', sensitive = 0")
        (row,) = cues.facts_without_cues(tx, mc.now.date())
    assert not row.sensitive, "the store tells what is stored, and judges nothing"
    assert mc.cue_plan().asked == 0
    mc.backfill_cues()
    assert extract_model.requests == []


def test_a_run_that_breaks_off_keeps_what_it_has_and_goes_on_there(
    mc, extract_model, monkeypatch
) -> None:
    monkeypatch.setattr(cue_backfill, "BATCH", 1)
    boat, car = without_cues(mc, ("boat", "a red kayak"), ("car", "an old Volvo"))
    down = Broken("", ProviderError("the model is down"))
    extract_model.replies += [json.dumps({"cues": {str(boat): ["lake"]}}), down]
    with pytest.raises(ProviderError, match="down"):
        mc.backfill_cues()
    assert (cues_of(mc, boat), cues_of(mc, car)) == (("lake",), ())
    extract_model.replies.append(json.dumps({"cues": {str(car): ["driving"]}}))
    assert mc.backfill_cues() == 1
    assert cues_of(mc, car) == ("driving",)


def test_an_answer_of_no_use_leaves_facts_as_they_are(mc, extract_model) -> None:
    (boat,) = without_cues(mc, ("boat", "a red kayak"))
    extract_model.replies.append("I would rather not.")
    assert mc.backfill_cues() == 0 and cues_of(mc, boat) == ()


def test_a_word_forgotten_while_the_model_is_asked_comes_back_in_no_cue(mc, extract_model) -> None:
    nuts, baking = without_cues(mc, ("snack", "peanuts"), ("pastime", "baking"))

    def answering(_) -> str:
        mc.delete(nuts, user="ana")
        return json.dumps({"cues": {str(nuts): ["party"], str(baking): ["cake", "peanut"]}})

    extract_model.replies.append(answering)
    assert mc.backfill_cues() == 1
    assert cues_of(mc, baking) == ("cake",)
    assert rows_with(mc, "peanut") == []


def test_an_app_deleted_while_the_model_is_asked_takes_its_facts_and_breaks_nothing(
    mc, extract_model
) -> None:
    (boat,) = without_cues(mc, ("boat", "a red kayak"))

    def answering(_) -> str:
        mc.delete_app("default", user="ana")
        return json.dumps({"cues": {str(boat): ["lake"]}})

    extract_model.replies.append(answering)
    assert mc.backfill_cues() == 0
    assert rows_with(mc, "kayak") == []


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda mc, car: mc.delete(car, user="ana"),
        lambda mc, car: mc.edit(car, user="ana", sensitive=True),
        lambda mc, car: mc.set_memory(False, user="ana", app="default"),
        lambda mc, car: mc.set_memory(False, user="ana"),
    ],
    ids=["forgotten", "marked sensitive", "memory off for the app", "memory off for the person"],
)
def test_what_may_not_be_sent_any_more_is_not_sent_by_a_run_that_began_before(
    mc, extract_model, monkeypatch, meanwhile
) -> None:
    monkeypatch.setattr(cue_backfill, "BATCH", 1)
    boat, car = without_cues(mc, ("boat", "a red kayak"), ("car", "an old Volvo"))

    def answering(_) -> str:
        meanwhile(mc, car)
        return json.dumps({"cues": {str(boat): ["lake"]}})

    extract_model.replies.append(answering)
    assert mc.backfill_cues() == 1
    (request,) = extract_model.requests
    assert "Volvo" not in request.messages[1].content


def test_facts_of_people_whose_memory_is_off_are_sent_to_nobody(mc, extract_model) -> None:
    without_cues(mc, ("boat", "a red kayak"))
    mc.set_memory(False, user="ana", app="default")
    assert mc.cue_plan().facts == 0
    mc.set_memory(True, user="ana", app="default")
    assert mc.cue_plan().facts == 1
    mc.set_memory(False, user="ana")
    assert mc.cue_plan().facts == 0 and mc.backfill_cues() == 0
    assert extract_model.requests == []


def test_facts_that_are_over_are_sent_to_nobody(mc, extract_model, clock) -> None:
    (boat,) = without_cues(mc, ("boat", "a rented kayak"))
    today = clock().astimezone(mc.settings.zone).date()
    mc.edit(boat, user="ana", expires_at=today)
    assert mc.cue_plan().facts == 1, "its last day is not over"
    clock.advance(days=2)
    assert mc.cue_plan().facts == 0 and mc.backfill_cues() == 0
    assert extract_model.requests == []
