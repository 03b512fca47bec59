"""Cues for facts of older versions, by a command that says before what it sends."""

from __future__ import annotations

import json

import pytest

from memchat.errors import ProviderError
from memchat.facts import cue_backfill, cues
from memchat.facts.cues import of_key
from memchat.testing import Broken
from tests.support import private
from tests.support.leftovers import rows_with


def without_cues(mc, *facts: tuple[str, str]) -> list[int]:
    """Facts as an older version wrote them."""
    ids = [mc.user("ana").memories.add("fact", key, value).id for key, value in facts]
    with private.database(mc).write() as tx:
        tx.exec_driver_sql("UPDATE memories SET cues = ''")
        tx.exec_driver_sql(
            "UPDATE passages SET text = (SELECT content FROM memories WHERE id = owner_id)"
        )
    return ids


def cues_of(mc, memory_id: int) -> tuple[str, ...]:
    return mc.user("ana").memories.get(memory_id).cues


def test_the_model_gives_cues_to_facts_that_have_none(mc, extract_model) -> None:
    boat, diet = without_cues(mc, ("boat", "a red kayak"), ("diet", "no meat"))
    given = {str(boat): ["Paddling", "kayak", "route66", "lake"], "999": ["other"]}
    extract_model.replies.append(json.dumps({"cues": given}))
    assert mc.jobs.backfill_cues().count == 2
    assert cues_of(mc, boat) == ("paddling", "lake"), "single words that the fact does not have"
    assert cues_of(mc, diet) == of_key("diet"), "nothing came for it"
    mc.jobs.backfill()
    (hit,) = mc.user("ana").search("paddling").confident
    assert hit.id == boat
    assert mc.jobs.cue_plan().facts == 0 and mc.jobs.backfill_cues().count == 0


def test_the_plan_says_what_is_sent_before_anything_is(mc, extract_model) -> None:
    without_cues(mc, ("boat", "a red kayak"), ("car", "an old Volvo"))
    plan = mc.jobs.cue_plan()
    assert (plan.facts, plan.asked, plan.model) == (2, 2, extract_model.name)
    assert plan.tokens > 2 * cue_backfill.ANSWER_TOKENS
    assert extract_model.requests == []


def test_sensitive_facts_are_sent_to_nobody(mc, extract_model) -> None:
    (asthma,) = without_cues(mc, ("health_condition", "asthma"))
    with private.database(mc).write() as tx:
        tx.exec_driver_sql("UPDATE memories SET sensitive = 1")
    assert mc.jobs.cue_plan().asked == 0
    assert mc.jobs.backfill_cues().count == 1
    assert cues_of(mc, asthma) == of_key("health_condition")
    assert extract_model.requests == []


def test_facts_with_a_secret_are_sent_to_nobody_though_they_are_not_marked_sensitive(
    mc, extract_model
) -> None:
    without_cues(mc, ("gate_code", "green"))
    with private.database(mc).write() as tx:
        tx.exec_driver_sql("UPDATE memories SET value = '4471', sensitive = 0")
        (row,) = cues.facts_without_cues(tx, mc.now.date())
    assert not row.sensitive, "the store tells what is stored, and judges nothing"
    assert mc.jobs.cue_plan().asked == 0
    mc.jobs.backfill_cues()
    assert extract_model.requests == []


def test_a_run_that_breaks_off_keeps_what_it_has_and_goes_on_there(
    mc, extract_model, monkeypatch
) -> None:
    monkeypatch.setattr(cue_backfill, "BATCH", 1)
    boat, car = without_cues(mc, ("boat", "a red kayak"), ("car", "an old Volvo"))
    down = Broken("", ProviderError("the model is down"))
    extract_model.replies += [json.dumps({"cues": {str(boat): ["lake"]}}), down]
    with pytest.raises(ProviderError, match="down"):
        mc.jobs.backfill_cues()
    assert (cues_of(mc, boat), cues_of(mc, car)) == (("lake",), ())
    extract_model.replies.append(json.dumps({"cues": {str(car): ["driving"]}}))
    assert mc.jobs.backfill_cues().count == 1
    assert cues_of(mc, car) == ("driving",)


def test_an_answer_of_no_use_leaves_facts_as_they_are(mc, extract_model) -> None:
    (boat,) = without_cues(mc, ("boat", "a red kayak"))
    extract_model.replies.append("I would rather not.")
    assert mc.jobs.backfill_cues().count == 0 and cues_of(mc, boat) == ()


def test_a_word_forgotten_while_the_model_is_asked_comes_back_in_no_cue(mc, extract_model) -> None:
    nuts, baking = without_cues(mc, ("snack", "peanuts"), ("pastime", "baking"))

    def answering(_) -> str:
        mc.user("ana").memories.delete(nuts)
        return json.dumps({"cues": {str(nuts): ["party"], str(baking): ["cake", "peanut"]}})

    extract_model.replies.append(answering)
    assert mc.jobs.backfill_cues().count == 1
    assert cues_of(mc, baking) == ("cake",)
    assert rows_with(mc, "peanut") == []


def test_an_app_deleted_while_the_model_is_asked_takes_its_facts_and_breaks_nothing(
    mc, extract_model
) -> None:
    (boat,) = without_cues(mc, ("boat", "a red kayak"))

    def answering(_) -> str:
        mc.user("ana").apps.delete("default")
        return json.dumps({"cues": {str(boat): ["lake"]}})

    extract_model.replies.append(answering)
    assert mc.jobs.backfill_cues().count == 0
    assert rows_with(mc, "kayak") == []


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda mc, car: mc.user("ana").memories.delete(car),
        lambda mc, car: mc.user("ana").memories.update(car, sensitive=True),
        lambda mc, car: mc.user("ana", app="default").set_memory(False),
        lambda mc, car: mc.user("ana").set_memory(False, all_apps=True),
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
    assert mc.jobs.backfill_cues().count == 1
    (request,) = extract_model.requests
    assert "Volvo" not in request.messages[1].content


def test_facts_of_people_whose_memory_is_off_are_sent_to_nobody(mc, extract_model) -> None:
    without_cues(mc, ("boat", "a red kayak"))
    mc.user("ana", app="default").set_memory(False)
    assert mc.jobs.cue_plan().facts == 0
    mc.user("ana", app="default").set_memory(True)
    assert mc.jobs.cue_plan().facts == 1
    mc.user("ana").set_memory(False, all_apps=True)
    assert mc.jobs.cue_plan().facts == 0 and mc.jobs.backfill_cues().count == 0
    assert extract_model.requests == []


def test_facts_that_are_over_are_sent_to_nobody(mc, extract_model, clock) -> None:
    (boat,) = without_cues(mc, ("boat", "a rented kayak"))
    today = clock().astimezone(mc.settings.zone).date()
    mc.user("ana").memories.update(boat, expires_at=today)
    assert mc.jobs.cue_plan().facts == 1, "its last day is not over"
    clock.advance(days=2)
    assert mc.jobs.cue_plan().facts == 0 and mc.jobs.backfill_cues().count == 0
    assert extract_model.requests == []
