"""A second look that cannot be made at once: the proposals wait, and are asked about later."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from memchat.errors import ProviderError
from memchat.learn.model_calls import NOBODY_LOOKED, NOT_LOOKED_AT, UNCLEAR_REASON
from memchat.testing import Request, ScriptedModel
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.kills import Victim, child_store, start_a_chat, wait_for_the_kill
from tests.support.second_look import OWL, SAID, SKI, TEA, judge, looks, sent, values
from tests.support.store import Opener

DOWN = ProviderError("down", status=503, retryable=True)
MINUTE = 60


def fails(_: Request) -> str:
    raise DOWN


def left(mc, extract_model, *facts, said: str = SAID) -> int:
    """A conversation whose second look failed; its number."""
    extract_model.second_look = fails
    extract_model.replies.append(answer(*(facts or (OWL,))))
    session = talk(mc, said).session_id
    assert session is not None
    return session


def later(mc, extract_model, clock, look) -> None:
    """A minute later the model answers."""
    extract_model.second_look = look
    clock.advance(seconds=MINUTE)
    mc.jobs.run()


def job(mc):
    (one,) = (job for job in mc.jobs.list(user="ana") if job.kind == "verify")
    return one


def test_nothing_is_stored_before_the_look_and_all_waits_for_a_job(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    chat = left(mc, extract_model, OWL, TEA)
    assert values(mc) == set()
    assert [(item.value, item.reason) for item in ana.inbox.list()] == [
        ("an owl", NOT_LOOKED_AT),
        ("tea", NOT_LOOKED_AT),
    ]
    assert (job(mc).status, job(mc).target_id, job(mc).attempts) == ("pending", chat, 0)
    assert job(mc).run_at == clock.now.replace(minute=1)
    assert ana.sessions.list()[0].status == "extracted"
    assert mc.jobs.run().done == 0, "not before its time"


def test_what_holds_is_stored_with_its_message_as_proof_and_the_inbox_is_empty(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    left(mc, extract_model)
    later(mc, extract_model, clock, judge(pet="holds"))
    assert values(mc) == {"an owl"} and ana.inbox.list() == []
    (owl,) = (m for m in ana.memories.list() if m.value == "an owl")
    assert (owl.created_by, owl.many) == ("auto", True)
    assert [proof.quote for proof in ana.memories.evidence(owl.id)] == ["I keep an owl"]
    (event, *_) = ana.memories.history(owl.id)
    assert event.actor == "model"
    assert event.detail == {"verdict": "holds", "model": "scripted/extract"}
    assert job(mc).status == "completed"
    mc.jobs.embed()
    assert ana.search("owl").hits[0].cosine is not None


def test_the_late_look_is_sent_what_the_first_would_have_been(mc, extract_model, clock) -> None:
    left(mc, extract_model, OWL)
    later(mc, extract_model, clock, judge(pet="holds"))
    first, second = map(sent, looks(extract_model))
    assert first == second


def test_what_does_not_hold_is_listed_beside_what_was_listed_before(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    late_one = fact("I swim", "sport", "swim", msg="u3", flags=["not_meant"])
    extract_model.second_look = fails
    extract_model.replies.append(answer(OWL, SKI, late_one))
    talk(mc, SAID, "I swim.")
    later(mc, extract_model, clock, judge(pet={"answer": "not", "why": "joke"}, hobby="not"))
    told = {one.value: one.reason for one in ana.inbox.refusals()}
    assert set(told) == {"an owl", "ski", "swim"}
    assert told["an owl"] == "it was said in play or irony"
    assert ana.inbox.list() == [] and values(mc) == set()
    (owl,) = (one for one in ana.inbox.refusals() if one.value == "an owl")
    assert ana.inbox.keep_refused(owl.id).value == "an owl"


@pytest.mark.parametrize("look", [judge(), judge(pet="unclear"), lambda _: "prose"])
def test_what_is_unclear_waits_for_the_person_and_is_not_asked_again(
    mc, extract_model, clock, look
) -> None:
    ana = mc.user("ana")
    left(mc, extract_model)
    later(mc, extract_model, clock, look)
    (item,) = ana.inbox.list()
    assert (item.value, item.reason) == ("an owl", UNCLEAR_REASON)
    calls = len(looks(extract_model))
    later(mc, extract_model, clock, judge(pet="holds"))
    assert len(looks(extract_model)) == calls
    assert ana.inbox.accept(item.id).value == "an owl"


def test_it_is_tried_again_with_growing_pauses_until_it_is_given_up(
    mc, extract_model, clock
) -> None:
    left(mc, extract_model)
    pauses = []
    for _ in range(6):
        clock.now = job(mc).run_at
        mc.jobs.run()
        pauses.append((job(mc).run_at - clock.now).total_seconds() / MINUTE)
    assert pauses[:5] == [1, 2, 4, 8, 16]
    assert (job(mc).status, job(mc).error_message) == ("failed", "down")
    (item,) = mc.user("ana").inbox.list()
    assert (item.value, item.reason) == ("an owl", NOBODY_LOOKED)
    mc.jobs.retry(user="ana")
    later(mc, extract_model, clock, judge(pet="holds"))
    assert values(mc) == set(), "only the title is looked at; of the rest the person decides"


def test_a_change_that_was_looked_at_late_replaces_and_ends(mc, extract_model, clock) -> None:
    extract_model.replies.append(
        answer(fact("I live in Hull", "city", "Hull"), fact("I ski", "hobby", "ski", many=True))
    )
    talk(mc, "I live in Hull. I ski.")

    def reader(messages) -> str:
        ids = {one["value"]: one["id"] for one in sent(Request(messages, "extract"))["known"]}
        updates, ends = ({"to": ids["Hull"], "is": "updates"}, {"to": ids["ski"], "is": "ends"})
        return answer(
            fact("I live in Leeds", "city", "Leeds", **updates),
            fact("Skiing is over", "hobby", "ski", **ends),
        )

    extract_model.second_look = fails
    extract_model.replies.append(reader)
    talk(mc, "I live in Leeds. Skiing is over, I ski no more.")
    assert values(mc) == {"Hull", "ski"}
    later(mc, extract_model, clock, judge(city="holds", hobby="holds"))
    assert values(mc) == {"Leeds"}
    reasons = {m.value: m.inactive_reason for m in mc.user("ana").memories.list(status="inactive")}
    assert reasons == {"Hull": "superseded", "ski": "ended"}


@pytest.mark.parametrize("decision", ["accept", "reject"])
@pytest.mark.parametrize("look", ["holds", "not", "unclear"])
def test_a_person_who_decided_meanwhile_wins(
    mc, extract_model, clock, decision: str, look: str
) -> None:
    ana = mc.user("ana")
    left(mc, extract_model)
    (item,) = ana.inbox.list()

    def answers_late(request: Request) -> str:
        getattr(mc.user("ana").inbox, decision)(item.id)
        return judge(pet=look)(request)

    later(mc, extract_model, clock, answers_late)
    assert values(mc) == ({"an owl"} if decision == "accept" else set())
    assert ana.inbox.list() == [] and ana.inbox.refusals() == []
    created = {m.created_by for m in ana.memories.list() if m.value == "an owl"}
    assert created == ({"manual"} if decision == "accept" else set())


@pytest.mark.parametrize("gone", ["message", "session", "fact", "app"])
def test_what_is_deleted_or_forgotten_meanwhile_does_not_come_back(
    mc, extract_model, clock, gone: str
) -> None:
    ana = mc.user("ana")
    session = left(mc, extract_model)
    (said, *_) = ana.sessions.messages(session)

    def answers_late(request: Request) -> str:
        if gone == "message":
            ana.sessions.delete_message(said.id)
        elif gone == "session":
            ana.sessions.delete(session)
        elif gone == "app":
            ana.apps.delete("default")
        else:
            ana.memories.delete(ana.memories.add("fact", "pet", "an owl").id)
        return judge(pet="holds")(request)

    later(mc, extract_model, clock, answers_late)
    mc.jobs.run()
    assert "an owl" not in {m.value for m in ana.memories.list(status="all")}
    assert ana.inbox.list() == []
    assert "an owl" not in str(ana.inbox.refusals())


def test_deleting_the_conversation_takes_its_look_off_the_queue(mc, extract_model, clock) -> None:
    session = left(mc, extract_model)
    mc.user("ana").sessions.delete(session)
    assert "verify" not in {one.kind for one in mc.jobs.list(user="ana")}


def test_while_memory_is_off_nothing_is_asked_or_stored_and_it_is_when_it_is_on_again(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    left(mc, extract_model)
    ana.set_memory(False, all_apps=True)
    calls = len(looks(extract_model))
    later(mc, extract_model, clock, judge(pet="holds"))
    assert len(looks(extract_model)) == calls and values(mc) == set()
    ana.set_memory(True, all_apps=True)
    later(mc, extract_model, clock, judge(pet="holds"))
    assert values(mc) == {"an owl"}


def test_memory_switched_off_while_the_model_looks_writes_nothing(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    left(mc, extract_model)

    def answers_late(request: Request) -> str:
        ana.set_memory(False, all_apps=True)
        return judge(pet="holds")(request)

    later(mc, extract_model, clock, answers_late)
    assert values(mc) == set()
    assert [item.value for item in ana.inbox.list()] == ["an owl"]


def test_what_the_store_does_not_take_is_listed(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I ski", "hobby", "ski", many=True)))
    talk(mc, "I ski.")
    (ski,) = ana.memories.list()
    over = fact("Skiing is over", "hobby", "ski", to="k1", **{"is": "ends"})
    left(mc, extract_model, over, said="Skiing is over, I ski no more.")
    clock.advance(seconds=1)
    ana.memories.update(ski.id, value="ski jumping")
    later(mc, extract_model, clock, judge(hobby="holds"))
    assert values(mc) == {"ski jumping"} and ana.inbox.list() == []
    assert [one.reason for one in ana.inbox.refusals()] == ["the fact it ends is not there"]


def test_a_second_batch_that_fails_leaves_all_for_later_and_the_calls_are_counted(
    mc, extract_model, clock
) -> None:
    ana = mc.user("ana")
    lamps = [f"lamp{chr(97 + n)}" for n in range(22)]
    facts = [fact(f"I own a {x}", x, x) for x in lamps]
    calls = []

    def look(request: Request) -> str:
        calls.append(request)
        if len(calls) % 2 == 0 and len(calls) < 5:
            raise DOWN
        return judge(**dict.fromkeys(lamps, "holds"))(request)

    extract_model.second_look = look
    extract_model.replies.extend([answer(*facts[:15]), answer(*facts[15:])])
    talk(mc, ". ".join(f"I own a {x}" for x in lamps) + ".")
    assert values(mc) == set() and len(ana.inbox.list()) == 22
    later(mc, extract_model, clock, look)
    assert values(mc) == set() and len(ana.inbox.list()) == 22
    clock.advance(seconds=2 * MINUTE)
    mc.jobs.run()
    assert values(mc) == set(lamps) and ana.inbox.list() == []
    totals = {total.purpose: total.calls for total in ana.usage()}
    assert totals["verify"] == 4, "those that came back"


def test_with_the_stand_in_instead_of_the_model_the_person_decides(
    open_store: Opener, extract_model, clock
) -> None:
    left(open_store(), extract_model)
    stand_in = ScriptedModel()
    stand_in.stand_in = True
    mc = open_store(extract_model=stand_in)
    clock.advance(seconds=MINUTE)
    mc.jobs.run()
    assert stand_in.requests == []
    (item,) = mc.user("ana").inbox.list()
    assert (item.value, item.reason) == ("an owl", NOBODY_LOOKED)


def looks_again(home: Path, reached: Connection) -> None:
    model = ScriptedModel([answer(OWL, TEA)])
    model.second_look = lambda _: wait_for_the_kill(reached)
    chat = child_store(home, extract_model=model).user("ana").chat()
    assert chat.send(SAID).read()
    chat.end()


def test_a_kill_between_look_and_write_loses_nothing_and_counts_once(
    tmp_path: Path, open_store: Opener, extract_model
) -> None:
    Victim(looks_again, tmp_path / "store").kill()
    mc = open_store()
    ana = mc.user("ana")
    assert values(mc) == set() and ana.inbox.list() == []
    extract_model.replies.append(answer(OWL, TEA))
    start_a_chat(mc)
    assert values(mc) == {"an owl", "tea"}
    assert {memory.seen_count for memory in ana.memories.list()} == {1}


def test_a_kill_during_a_late_look_leaves_it_to_the_next_start(
    open_store: Opener, extract_model, clock, monkeypatch
) -> None:
    mc = open_store()
    ana = mc.user("ana")
    left(mc, extract_model)
    extract_model.second_look = judge(pet="holds")
    clock.advance(seconds=MINUTE)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("memchat.learn.learner.Learner._write_late", killed)
        with pytest.raises(KeyboardInterrupt):
            mc.jobs.run()
    assert values(mc) == set() and [one.value for one in ana.inbox.list()] == ["an owl"]
    mc.jobs.run()
    assert values(mc) == {"an owl"} and ana.inbox.list() == []


def test_proposals_that_wait_for_a_look_are_not_exported(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    left(mc, extract_model)
    kinds = [record["record"] for record in ana.export()]
    assert "message" in kinds and "inbox_item" not in kinds
