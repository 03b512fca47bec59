"""What was held back, and a person's yes or no to it."""

from __future__ import annotations

from datetime import date

import pytest

from memchat.errors import InputError, NotFound
from tests.conftest import answer, fact
from tests.test_learn import talk


def held(mc, extract_model, line: str, *facts):
    extract_model.replies.append(answer(*facts))
    talk(mc, line)
    return mc.inbox(user="ana")


def asthma(mc, extract_model):
    return held(
        mc,
        extract_model,
        "I have asthma until tomorrow.",
        fact(
            "I have asthma until tomorrow",
            "health_condition",
            "asthma",
            flags=["sensitive"],
            until_said="until tomorrow",
            until="tomorrow",
        ),
    )


def test_a_yes_makes_a_memory_that_keeps_its_words_and_its_day(mc, extract_model) -> None:
    (item,) = asthma(mc, extract_model)
    assert (item.key, item.value, item.status) == ("health_condition", "asthma", "pending")
    memory = mc.accept(item.id, user="ana")
    assert (memory.value, memory.created_by) == ("asthma", "manual")
    assert memory.expires_at == date(2026, 5, 2)
    assert mc.evidence(memory.id, user="ana")[0].quote == "I have asthma until tomorrow"
    assert mc.inbox(user="ana") == []
    assert mc.history(memory.id, user="ana")[0].actor == "user"
    mc.embed_pending()
    assert mc.recall("asthma", user="ana").hits


def test_a_yes_with_other_words_keeps_those(mc, extract_model) -> None:
    (item,) = asthma(mc, extract_model)
    assert mc.accept(item.id, user="ana", value="mild asthma").value == "mild asthma"


def test_a_no_is_final_and_the_same_is_not_asked_again(mc, extract_model) -> None:
    (item,) = asthma(mc, extract_model)
    mc.reject(item.id, user="ana")
    assert mc.inbox(user="ana") == [] and mc.memories(user="ana") == []
    assert asthma(mc, extract_model) == []
    with pytest.raises(NotFound, match="nothing waits"):
        mc.accept(item.id, user="ana")


def test_a_hidden_value_must_be_said_again(mc, extract_model) -> None:
    (item,) = held(
        mc,
        extract_model,
        "Please remember my e-mail ana@example.org.",
        fact("remember my e-mail ana@example.org", "email", "ana@example.org", flags=["asked"]),
    )
    assert item.masked and "example.org" not in f"{item.value}{item.quote}{item.reason}"
    with pytest.raises(InputError, match="--value"):
        mc.accept(item.id, user="ana")
    assert mc.accept(item.id, user="ana", value="ana@example.org").value == "ana@example.org"


def test_a_yes_to_a_pair_lets_the_newer_replace_the_other(mc, extract_model) -> None:
    mc.add("profile", "city", "Lisbon", user="ana", all_apps=True)
    extract_model.replies.append(
        answer(fact("I live in Porto", "city", "Porto", to="k1", **{"is": "updates"}))
    )
    talk(mc, "I live in Porto.")
    (item,) = mc.inbox(user="ana")
    assert mc.accept(item.id, user="ana").value == "Porto"
    assert [m.value for m in mc.memories(user="ana")] == ["Porto"]
    (old,) = mc.memories(user="ana", status="inactive")
    assert (old.value, old.inactive_reason) == ("Lisbon", "superseded")


def test_another_s_item_is_not_there(mc, extract_model) -> None:
    (item,) = asthma(mc, extract_model)
    for where in ({"user": "bo"}, {"user": "ana", "app": "other"}):
        assert mc.inbox(**where) == []
        with pytest.raises(NotFound):
            mc.accept(item.id, **where)
        with pytest.raises(NotFound):
            mc.reject(item.id, **where)


def test_a_forgotten_message_takes_its_held_back_words_along(mc, extract_model) -> None:
    asthma(mc, extract_model)
    mc.delete_session(mc.sessions(user="ana")[0].id, user="ana")
    assert mc.inbox(user="ana") == []


def waiting(mc, extract_model, **more):
    unsure = fact("I may keep bees", "hobby", "keep bees", flags=["unsure"], **more)
    extract_model.replies.append(answer(unsure))
    talk(mc, "I may keep bees")
    (item,) = mc.inbox(user="ana")
    return item


@pytest.mark.parametrize("value", ["", "   ", "x" * 300])
def test_a_yes_with_words_that_cannot_be_kept_is_refused(mc, extract_model, value) -> None:
    item = waiting(mc, extract_model)
    with pytest.raises(InputError):
        mc.accept(item.id, user="ana", value=value)
    assert len(mc.inbox(user="ana")) == 1 and mc.memories(user="ana") == []


def test_words_given_with_a_yes_are_one_line(mc, extract_model) -> None:
    item = waiting(mc, extract_model)
    assert mc.accept(item.id, user="ana", value="keep\n bees").value == "keep bees"
