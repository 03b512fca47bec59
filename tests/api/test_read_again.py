"""A conversation is read anew: nothing is stored twice, and what was forgotten stays so."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat import ConfigError, InputError, MemChat, NotFound, StoreError
from memchat.errors import ProviderError
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import Learned, Progress
from tests.support.answers import answer, fact
from tests.support.conversation import said, sent_data, state, talk, updates
from tests.support.kills import Victim, child_store, wait_for_the_kill
from tests.support.long_text import long_text, reader
from tests.support.second_look import judge
from tests.support.store import Opener

LISBON = fact("I moved to Lisbon", "city", "Lisbon")
OTTO = fact("My dog is Otto", "pet", "Otto")
WORDS = "I moved to Lisbon. My dog is Otto."


def again(mc: MemChat, extract_model: ScriptedModel, *facts, session_id: int = 1) -> Learned:
    extract_model.replies.append(answer(*facts))
    return mc.user("ana").sessions.read_again(session_id)


def rows(mc: MemChat) -> dict[str, list[str]]:
    """All that a person can see of what was learnt, without the days of it."""
    ana = mc.user("ana")
    return {
        "memories": [
            f"{m.id} {m.key} {m.value} {m.active} {m.inactive_reason} {m.seen_count}"
            for m in ana.memories.list(status="all")
        ],
        "proofs": [
            f"{m.id} {proof.message_id} {proof.quote}"
            for m in ana.memories.list(status="all")
            for proof in ana.memories.evidence(m.id)
        ],
        "inbox": [f"{item.id} {item.key} {item.value}" for item in ana.inbox.list()],
        "refusals": [
            f"{one.reason} {one.key} {one.value}" for one in ana.inbox.refusals() if not one.repeats
        ],
    }


def test_what_a_first_reading_missed_is_learnt_and_the_rest_is_not_stored_twice(
    mc, extract_model
) -> None:
    said(mc, extract_model, WORDS, LISBON)
    before = rows(mc)
    learned = again(mc, extract_model, LISBON, OTTO)
    assert (learned.queued, learned.skipped) == (None, None)
    assert [(c.kind, c.memory.value) for c in learned.changes] == [
        ("repeated", "Lisbon"),
        ("added", "Otto"),
    ]
    assert before["memories"][0] in rows(mc)["memories"]
    assert state(mc) == {"Lisbon": (True, None), "Otto": (True, None)}
    assert mc.user("ana").sessions.get(1).status == "extracted"


def test_the_same_answer_changes_nothing(mc, extract_model, clock: FakeClock) -> None:
    porto = fact("I live in Porto now", "city", "Porto", msg="u3")
    doubt = fact("perhaps I will buy a kayak", "plan", "buy a kayak", msg="u3")
    invented = fact("I have a yacht", "boat", "yacht")
    extract_model.second_look = judge(city="holds", plan="unclear", boat="holds")
    with mc.user("ana").chat() as chat:
        chat.send("I moved to Lisbon.").read()
        clock.advance(seconds=60)
        chat.send("I live in Porto now, and perhaps I will buy a kayak.").read()
        clock.advance(seconds=60)
        extract_model.replies.append(answer(LISBON, porto, doubt, invented))
    before = rows(mc)
    assert before["inbox"] and before["refusals"]
    again(mc, extract_model, LISBON, porto, doubt, invented)
    assert rows(mc) == before


def test_what_later_conversations_changed_stays_changed(
    mc, extract_model, clock: FakeClock
) -> None:
    said(mc, extract_model, WORDS, LISBON, OTTO)
    clock.advance(seconds=60)
    said(mc, extract_model, "I moved to Porto.", updates("I moved to Porto", "city", "Porto", "k1"))
    clock.advance(seconds=60)
    left = fact("I left Porto", "city", "Porto", to="k1", **{"is": "ends"})
    said(mc, extract_model, "I left Porto.", left)
    before = rows(mc)
    assert sum("True" in line for line in before["memories"]) == 1  # Otto alone
    again(mc, extract_model, LISBON, OTTO)
    again(mc, extract_model, fact("I moved to Porto", "city", "Porto"), session_id=2)
    assert rows(mc)["memories"] == before["memories"]


def test_what_was_forgotten_stays_forgotten(mc, extract_model) -> None:
    said(mc, extract_model, WORDS, LISBON, OTTO)
    ana = mc.user("ana")
    lisbon = next(m for m in ana.memories.list() if m.value == "Lisbon")
    ana.memories.delete(lisbon.id)
    otto = next(m for m in ana.memories.list() if m.value == "Otto")
    ana.sessions.unlearn(1, memory_id=otto.id)
    learned = again(mc, extract_model, LISBON, OTTO)
    assert learned.skipped == "there is nothing in it to learn from"
    assert rows(mc)["memories"] == [] and rows(mc)["inbox"] == []


def test_what_was_forgotten_and_stands_in_another_message_too_stays_forgotten(
    mc, extract_model
) -> None:
    more = fact("Otto barks", "pet_habit", "barks", msg="u3")
    extract_model.replies.append(answer(OTTO, more))
    talk(mc, "My dog is Otto.", "Otto barks at cars.")
    ana = mc.user("ana")
    otto = next(m for m in ana.memories.list() if m.value == "Otto")
    ana.memories.delete(otto.id)
    once_more = fact("Otto barks at cars", "pet", "Otto", msg="u3")
    again(mc, extract_model, OTTO, more, once_more)
    assert not any("Otto" in line for line in rows(mc)["memories"] + rows(mc)["inbox"])


@pytest.mark.parametrize("change", [{"value": "Sintra"}, {"key": "birthplace"}])
@pytest.mark.parametrize("many", [False, True])
def test_what_was_corrected_by_hand_stays_as_it_is(mc, extract_model, change, many) -> None:
    lisbon = fact("I moved to Lisbon", "place", "Lisbon", many=many)
    said(mc, extract_model, WORDS, lisbon)
    mc.user("ana").memories.update(1, **change)
    before = rows(mc)
    again(mc, extract_model, lisbon)
    assert rows(mc) == before


@pytest.mark.parametrize("yes", [True, False])
def test_what_was_answered_is_not_asked_again(mc, extract_model, yes: bool) -> None:
    doubt = fact("My dog is Otto", "pet", "Otto")
    doubted = fact("I moved to Lisbon", "home", "Lisbon")
    extract_model.second_look = judge(pet="unclear", home="not")
    said(mc, extract_model, WORDS, doubt, doubted)
    inbox = mc.user("ana").inbox
    (item,), (refused,) = inbox.list(), inbox.refusals()
    (inbox.accept if yes else inbox.reject)(item.id)
    if yes:
        inbox.keep_refused(refused.id)
    before = rows(mc)
    again(mc, extract_model, doubt, doubted)
    after = rows(mc)
    assert (after["memories"], after["inbox"]) == (before["memories"], [])
    assert (after["refusals"] == []) == yes


def test_an_end_does_not_end_what_was_said_again_later(mc, extract_model, clock) -> None:
    said(mc, extract_model, "I keep a kayak.", fact("I keep a kayak", "boat", "kayak"))
    clock.advance(seconds=60)
    sold = fact("I sold the kayak", "boat", "kayak", to="k1", **{"is": "ends"})
    said(mc, extract_model, "I sold the kayak.", sold)
    clock.advance(seconds=60)
    back = fact("I keep a kayak again", "boat", "kayak")
    said(mc, extract_model, "I keep a kayak again.", back)
    assert state(mc) == {"kayak": (True, None)}
    again(mc, extract_model, sold, session_id=2)
    assert state(mc) == {"kayak": (True, None)}


def test_only_what_was_said_with_memory_on_is_read(mc, extract_model) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send("My dog is Otto.").read()
        ana.set_memory(False)
        chat.send("I moved to Lisbon.").read()
        ana.set_memory(True)
        extract_model.replies.append(answer())
    again(mc, extract_model)
    assert [line["text"] for line in sent_data(extract_model)["transcript"]] == [
        "My dog is Otto.",
        "Fine.",
    ]
    with ana.chat() as chat:
        ana.set_memory(False)
        chat.send("I moved to Lisbon.").read()
    with pytest.raises(InputError, match="memory is off"):
        ana.sessions.read_again(2)
    ana.set_memory(True)
    assert ana.sessions.read_again(2).skipped == "there is nothing in it to learn from"


def test_of_a_copy_only_what_is_its_own_is_read(mc, extract_model) -> None:
    extract_model.replies.append(answer(LISBON))
    talk(mc, "I moved to Lisbon.", "Well.")
    ana = mc.user("ana")
    copy = ana.sessions.copy(1, before=3)
    assert ana.sessions.read_again(copy.id).skipped is not None
    with ana.chat(resume=copy.id) as chat:
        chat.send("My dog is Otto.").read()
        extract_model.replies.append(answer())
    again(mc, extract_model, session_id=copy.id)
    asked = sent_data(extract_model)
    assert [line["text"] for line in asked["transcript"]] == ["My dog is Otto.", "Fine."]


def test_one_that_is_open_or_unknown_or_another_persons_is_refused(mc, extract_model) -> None:
    chat = mc.user("ana").chat()
    chat.send("I moved to Lisbon.").read()
    with pytest.raises(StoreError, match=r"session 1 is still open .* end it to have it read now"):
        mc.user("ana").sessions.read_again(1)
    for user, number in (("ana", 7), ("bo", 1)):
        with pytest.raises(NotFound):
            mc.user(user).sessions.read_again(number)
    assert extract_model.requests == []
    extract_model.replies.append(answer(LISBON))
    chat.end()


def test_one_that_is_being_read_is_refused(mc, extract_model) -> None:
    def meanwhile(_) -> str:
        with pytest.raises(StoreError, match="session 1 is being read"):
            mc.user("ana").sessions.read_again(1)
        return answer(LISBON)

    extract_model.replies.append(meanwhile)
    talk(mc, "I moved to Lisbon.")
    assert state(mc) == {"Lisbon": (True, None)}


def test_a_reading_that_fails_waits_and_is_tried_again(mc, extract_model, clock) -> None:
    said(mc, extract_model, WORDS, LISBON)
    extract_model.replies.append(ProviderError("down"))
    ana = mc.user("ana")
    assert ana.sessions.read_again(1).queued == "down"
    assert ana.sessions.get(1).status == "pending"
    assert state(mc) == {"Lisbon": (True, None)}
    clock.advance(seconds=60)
    extract_model.replies.append(answer(LISBON, OTTO))
    mc.jobs.run()
    assert set(state(mc)) == {"Lisbon", "Otto"}


def test_without_waiting_it_is_only_queued(mc, extract_model) -> None:
    said(mc, extract_model, WORDS, LISBON)
    assert mc.user("ana").sessions.read_again(1, wait=False).queued == "it waits to be read"
    assert [check.state for check in mc.doctor() if check.name == "vectors"] == ["ok"]
    extract_model.replies.append(answer(OTTO))
    (learned,) = mc.jobs.run().learned
    assert [change.memory.value for change in learned.changes] == ["Otto"]


def test_progress_counts_the_parts_and_what_was_taken_is_counted(open_store: Opener) -> None:
    model = reader()
    mc = open_store(extract_model=model)
    mc.user("ana").add(long_text())
    seen: list[Progress] = []
    mc.user("ana").sessions.read_again(1, progress=seen.append)
    assert [(p.done, p.total, p.unit) for p in seen] == [(n, 8, "parts") for n in range(1, 9)]
    (used,) = [u for u in mc.user("ana").usage(session_id=1) if u.purpose == "extract"]
    assert used.calls == 16


def test_a_model_that_cannot_be_used_is_refused_before_anything_is_queued(
    mc, extract_model
) -> None:
    said(mc, extract_model, WORDS, LISBON)
    ana = mc.user("ana")
    with pytest.raises(ConfigError, match="names no provider"):
        ana.sessions.read_again(1, model="better")
    with pytest.raises(ConfigError, match="memchat keys set groq"):
        ana.sessions.read_again(1, model="groq/llama3")
    assert ana.sessions.get(1).status == "extracted"


def _killed_while_it_reads(home: Path, reached) -> None:
    extract = ScriptedModel([answer(LISBON), lambda _: wait_for_the_kill(reached)])
    mc = child_store(home, extract_model=extract)
    with mc.user("ana").chat() as chat:
        chat.send(WORDS).read()
    mc.user("ana").sessions.read_again(1)


def test_one_that_was_killed_is_read_by_the_next_process(tmp_path: Path) -> None:
    home = tmp_path / "killed"
    Victim(_killed_while_it_reads, home).kill()
    with child_store(home, extract_model=ScriptedModel([answer(LISBON, OTTO)])) as mc:
        mc.jobs.run(user="ana")
        assert state(mc) == {"Lisbon": (True, None), "Otto": (True, None)}
