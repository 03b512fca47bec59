"""What an imported history teaches: its origin, what it may change, how much of it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memchat.errors import InputError
from memchat.testing import ScriptedModel
from memchat.types import ChatMessage
from tests.support.answers import answer, fact
from tests.support.histories import SEPTEMBER, talk, write
from tests.support.store import Opener

DAY = 86_400


@pytest.fixture
def ana(mc):
    return mc.user("ana")


Take = Callable[..., Any]


@pytest.fixture
def take(ana, tmp_path: Path) -> Take:
    """Imports this content, and reads it at once."""

    def one(content: Any, **more: Any) -> Any:
        file = write(tmp_path / "given", content)
        return ana.import_history(file, **{"learn": "now"} | more)

    return one


def city(name: str, **more: Any) -> str:
    return answer(fact(f"I live in {name}", "city", name, **more))


def drives(name: str) -> str:
    return answer(fact(f"I drive {name}", "car", name, memory_type="fact"))


def lives(name: str, at: float = SEPTEMBER, chat: str = "") -> dict[str, Any]:
    return talk(chat or name, f"I live in {name}", "Fine.", at=at)


def told(ana: Any) -> list[tuple[str, str]]:
    return [(one.value, one.created_by) for one in ana.memories.list()]


def read_now(model: ScriptedModel) -> list[str]:
    """The cities that the model was sent, once each, in order."""
    sent = (one.messages[-1].content for one in model.requests if one.purpose == "extract")
    return [name for said in sent for name in CITIES if f"I live in {name}" in said]


CITIES = ("Ghent", "Lyon", "Turin", "Cork", "Bern")
FIVE = [lives(name, SEPTEMBER + n * DAY) for n, name in enumerate(CITIES)]


def test_what_an_import_taught_says_so_and_what_was_learned_here_does_not(
    ana, take: Take, extract_model, mc
) -> None:
    extract_model.replies.append(city("Ghent"))
    take([lives("Ghent")])
    extract_model.replies.append(answer(fact("I like tea", "likes", "tea")))
    ana.add("I like tea")
    assert sorted(told(ana)) == [("Ghent", "import"), ("tea", "auto")]
    by_person = ana.search("Where do I live? Ghent", said_by="person").hits
    assert any(hit.memory and hit.memory.value == "Ghent" for hit in by_person)
    assert not [one for one in ana.audit().findings if one.kind == "missing evidence"]
    (gone,) = {one.id for one in ana.sessions.list() if one.title == "Talk Ghent"}
    ana.sessions.delete(gone)
    assert told(ana) == [("tea", "auto")]


@pytest.mark.parametrize("how", ["entered", "pinned"])
def test_what_contradicts_something_of_the_person_s_own_hand_waits_for_a_yes(
    ana, take: Take, extract_model, clock, how: str
) -> None:
    if how == "entered":
        ana.memories.add("profile", "city", "Lyon")
    else:
        extract_model.replies.append(city("Lyon"))
        ana.add("I live in Lyon")
        ana.memories.pin(ana.memories.list()[0].id)
    clock.advance(seconds=10 * DAY)
    at = clock().timestamp() - DAY
    extract_model.replies.append(city("Ghent", to="m1", **{"is": "updates"}))
    take([lives("Ghent", at)])
    assert [one.value for one in ana.memories.list()] == ["Lyon"]
    (item,) = ana.inbox.list()
    assert item.value == "Ghent" and "Lyon" in item.reason


def test_older_conversations_add_past_values_and_never_replace_a_newer_one(
    ana, take: Take, extract_model
) -> None:
    extract_model.replies += [city("Turin"), city("Cork")]
    take(FIVE[2:4])
    assert told(ana) == [("Cork", "import")]
    extract_model.replies += [city("Ghent"), city("Lyon", to="m1", **{"is": "updates"})]
    take(FIVE[:2])
    assert told(ana) == [("Cork", "import")] and ana.inbox.list() == []
    past = {one.value: one.inactive_reason for one in ana.memories.list(status="all")}
    assert past == {"Cork": None} | dict.fromkeys(("Turin", "Ghent", "Lyon"), "superseded")


def test_what_ended_before_its_beginning_was_imported_does_not_begin_again(
    ana, take: Take, extract_model
) -> None:
    sold = fact("I sold the Volvo", "car", "the Volvo", memory_type="fact", **{"is": "ends"})
    extract_model.replies.append(answer(sold))
    take([talk("sold", "I sold the Volvo", at=SEPTEMBER + 9 * DAY)])
    assert told(ana) == []
    names = ("the Skoda", "the Volvo", "the Skoda")
    extract_model.replies += [drives(name) for name in names]
    said = [f"I drive {name}" for name in names]
    take([talk(f"c{n}", words, at=SEPTEMBER + n * DAY) for n, words in enumerate(said)])
    assert told(ana) == []
    past = {one.value: one.inactive_reason for one in ana.memories.list(status="all")}
    assert past == {"the Volvo": "ended", "the Skoda": "superseded"}
    extract_model.replies.append(drives("a Fiat"))
    take([talk("new", "I drive a Fiat", at=SEPTEMBER + 20 * DAY)])
    assert told(ana) == [("a Fiat", "import")]


def test_an_end_that_names_another_value_than_the_one_known_is_not_taken_for_its_end(
    ana, take: Take, extract_model
) -> None:
    def plays(name: str, **more: Any) -> str:
        return answer(fact(f"I play the {name}", "hobby", name, many=True, **more))

    gave_up = fact("I gave up the cello", "hobby", "cello", many=True, **{"is": "ends"})
    extract_model.replies += [plays("viola"), answer(gave_up)]
    later = [
        talk("v", "I play the viola", at=SEPTEMBER + 8 * DAY),
        talk("c", "I gave up the cello", at=SEPTEMBER + 9 * DAY),
    ]
    take(later)
    assert told(ana) == [("viola", "import")] and ana.inbox.list() == []
    extract_model.replies.append(plays("cello"))
    take([talk("before", "I play the cello", at=SEPTEMBER)])
    assert told(ana) == [("viola", "import")], "what was given up does not begin again"


@pytest.mark.parametrize("value", ["", "the old viola", "no hobby"])
def test_an_end_without_the_id_of_what_it_ends_is_of_the_one_known_that_it_can_mean(
    ana, take: Take, extract_model, value: str
) -> None:
    given_up = fact("I gave up that hobby", "hobby", value, many=True, **{"is": "ends"})
    viola = fact("I play the viola", "hobby", "viola", many=True)
    extract_model.replies += [answer(viola), answer(given_up)]
    take([talk("v", "I play the viola", at=SEPTEMBER)])
    take([talk("n", "I gave up that hobby", at=SEPTEMBER + DAY)])
    assert told(ana) == []


def test_an_end_of_what_was_forgotten_brings_no_word_of_it_back(
    ana, take: Take, extract_model
) -> None:
    extract_model.replies.append(city("Ghent"))
    take([lives("Ghent")])
    ana.memories.delete(ana.memories.list()[0].id)
    left = fact("I left Ghent", "city", "Ghent", **{"is": "ends"})
    extract_model.replies.append(answer(left))
    take([talk("left", "I left Ghent", at=SEPTEMBER - DAY)])
    assert ana.memories.list(status="all") == []


def test_what_shares_the_key_of_something_forgotten_waits(ana, take: Take, extract_model) -> None:
    extract_model.replies.append(city("Ghent"))
    take([lives("Ghent")])
    ana.memories.delete(ana.memories.list()[0].id)
    extract_model.replies.append(city("Ghent"))
    take([lives("Ghent", SEPTEMBER + DAY, chat="again")])
    assert told(ana) == []
    extract_model.replies.append(answer(fact("My city is Ghent now", "city", "Ghent")))
    take([talk("later", "My city is Ghent now", at=SEPTEMBER + 9 * DAY)])
    assert told(ana) == [] and "Ghent" not in str(ana.sessions.messages(1))


def test_blanked_words_and_deleted_conversations_stay_so_and_are_not_read(
    ana, take: Take, extract_model
) -> None:
    extract_model.replies += [city("Ghent"), city("Lyon")]
    take(FIVE[:2])
    by_value = {one.value: one.id for one in ana.memories.list(status="all")}
    ana.memories.delete(by_value["Ghent"])
    (lyon,) = [one.id for one in ana.sessions.list() if one.title == "Talk Lyon"]
    ana.sessions.delete(lyon)
    before = len(extract_model.requests)
    done = take(FIVE[:2])
    assert (done.added, done.known, done.deleted, done.to_read) == ({}, 1, 1, 0)
    assert len(extract_model.requests) == before
    (left,) = ana.sessions.list()
    assert "Ghent" not in str(ana.sessions.messages(left.id))


def test_a_larger_number_reads_the_rest_at_a_second_import(ana, take: Take, extract_model) -> None:
    extract_model.replies += [city(name) for name in CITIES[3:]]
    first = take(FIVE, newest=2)
    assert first.to_read == 2 and read_now(extract_model) == ["Cork", "Bern"]
    again = take(FIVE, newest=2)
    assert (again.to_read, again.added, again.waiting) == (0, {}, 0)
    extract_model.replies += [city(name) for name in CITIES[1:3]]
    more = take(FIVE, newest=4, dry_run=True)
    assert (more.to_read, more.added, more.known) == (2, {}, 5) and more.calls == 4
    extract_model.requests.clear()
    assert take(FIVE, newest=4).to_read == 2
    assert read_now(extract_model) == ["Lyon", "Turin"]
    assert told(ana) == [("Bern", "import")]
    (left,) = [one.title for one in ana.sessions.list() if "unread" in one.metadata]
    assert left == "Talk Ghent"


def test_what_no_import_read_is_read_by_a_later_one(ana, take: Take, extract_model) -> None:
    assert take(FIVE[:1], learn="no").to_read == 0
    extract_model.replies.append(city("Ghent"))
    grown = talk("Ghent", "I live in Ghent", "Fine.", "It rains", "So it does.")
    assert take([grown]).to_read == 1 and told(ana) == [("Ghent", "import")]


def test_a_cap_in_calls_or_in_money_reads_the_newest_within_it(
    open_store: Opener, tmp_path: Path
) -> None:
    model = ScriptedModel(name="openai/gpt-4o-mini")
    ana = open_store(extract_model=model).user("ana")
    file = write(tmp_path / "given", FIVE)
    every = ana.import_history(file, dry_run=True)
    assert (every.to_read, every.calls, every.capped) == (5, 10, 0)
    for calls, read in ((0, 0), (1, 0), (5, 2), (10, 5), (99, 5)):
        plan = ana.import_history(file, max_calls=calls, dry_run=True)
        assert (plan.to_read, plan.capped) == (read, 5 - read) and plan.calls <= calls
    costs = {
        spent / 100_000: ana.import_history(file, max_cost=spent / 100_000, dry_run=True).to_read
        for spent in range(0, 2_000, 100)
    }
    assert sorted(costs.values()) == [*costs.values()] and {*costs.values()} == {*range(6)}
    line = "not read, as the cap is reached: 3 conversations"
    assert line in ana.import_history(file, max_calls=4, dry_run=True).told()
    model.replies += [city("Cork"), city("Bern")]
    done = ana.import_history(file, max_calls=4, learn="now")
    assert (done.to_read, done.capped) == (2, 3) and len(model.requests) <= 4
    assert told(ana) == [("Bern", "import")]
    assert ana.import_history(file, max_calls=4, dry_run=True).to_read == 2, "the next newest"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"max_calls": -1}, "cap -1"),
        ({"max_cost": float("nan")}, "cap nan"),
        ({"max_cost": -0.5}, "cap -0.5"),
        ({"max_cost": 1.0}, "price of scripted/extract is not known; give a cap in calls"),
        ({"max_calls": "many"}, "max_calls"),
    ],
)
def test_a_cap_that_cannot_be_held_is_refused(ana, take: Take, given, why: str) -> None:
    for learn in ("now", "later"):
        with pytest.raises(InputError, match=why):
            take(FIVE, learn=learn, **given)
    assert ana.sessions.list() == []


def test_a_stop_ends_the_reading_after_the_conversation_in_hand_and_the_rest_waits(
    ana, mc, take: Take, extract_model, open_store: Opener
) -> None:
    def stops(_sent: Sequence[ChatMessage]) -> str:
        mc.jobs.stop()
        return city("Lyon")

    extract_model.replies += [city("Ghent"), stops]
    done = take(FIVE)
    assert (done.to_read, done.waiting) == (5, 3)
    assert [one.value for one in ana.memories.list()] == ["Lyon"]
    assert mc.jobs.count(user="ana")["pending"] == 3
    mc.close()
    extract_model.requests.clear()
    extract_model.replies += [city("Turin")]
    again = open_store().user("ana")
    file = write(Path(mc.settings.home).parent / "given", FIVE)
    one = again.import_history(file, learn="now", max_calls=0)
    assert (one.to_read, one.waiting, one.added) == (0, 0, {})
    extract_model.replies += [city("Cork"), city("Bern")]
    rest = again.import_history(file, learn="now")
    assert (rest.to_read, rest.waiting) == (3, 0)
    assert read_now(extract_model) == ["Turin", "Cork", "Bern"]
    assert told(again) == [("Bern", "import")]


def test_the_progress_counts_what_is_stored_and_then_what_is_read(
    ana, take: Take, extract_model
) -> None:
    extract_model.replies += map(city, CITIES)
    seen: list[tuple[int, int]] = []
    take(FIVE, progress=lambda at: seen.append((at.done, at.total)))
    assert seen[-5:] == [(n, 5) for n in range(1, 6)]
