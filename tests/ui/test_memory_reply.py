"""Replies about the memory: a list with buttons, and a question with its answers."""

from __future__ import annotations

from memchat import MemChat
from tests.support.ui.tab import ANA, answers, app, buttons, number, press, press_answer, say, text


def test_what_is_remembered_is_listed_in_rows_each_with_its_buttons(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    for key, value in (("city", "Lisbon"), ("pet", "an owl")):
        ana.memories.add("profile", key, value)
    at = app()
    say(at, "What do you remember about me?")
    assert "I remember 2 memories about you." in text(at)
    assert "- #1" not in text(at)
    owl = next(key for key in buttons(at, "forget-told-") if key.endswith("-2"))
    press(at, owl)
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]
    press(at, buttons(at, "untold-")[0])
    assert len(ana.memories.list()) == 2


def test_a_reply_that_only_reads_like_the_list_is_shown_as_it_is(mc: MemChat) -> None:
    with mc.user(**ANA).chat() as talk:
        talk.send("I remember 2 memories about you.").read()
    at = app(c=str(talk.session_id))
    assert not buttons(at, "forget-told-")


def test_a_question_is_answered_by_a_button(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    for value in ("Lisbon", "Porto"):
        ana.memories.add("fact", "trip", value)
    at = app()
    say(at, "Forget my trips")
    assert answers(at) == ["yes", "1", "2", "no"]
    press_answer(at, "1")
    assert len(ana.memories.list()) == 1
    assert not answers(at)


def test_a_no_by_its_button_forgets_nothing(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    at = app()
    say(at, "Forget my city")
    press_answer(at, "no")
    assert "Nothing was forgotten." in text(at)
    assert len(ana.memories.list()) == 1


def test_a_yes_to_a_question_that_another_tab_has_left_behind_forgets_nothing(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "bicycle", "a green one")
    at = app()
    say(at, "Forget my city")
    other = app(c=str(number(at)))
    press_answer(other, "no")
    say(other, "Forget my bicycle")
    press_answer(at, "yes")
    assert "This chat went on in another tab, so nothing was sent" in text(at)
    assert {m.value for m in ana.memories.list()} == {"Lisbon", "a green one"}
    press_answer(at, "yes")
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]
