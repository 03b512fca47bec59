"""What the chat page shows when a model's service fails, and how it goes on."""

from __future__ import annotations

import pytest

from memchat import MemChat
from tests.support.answers import answer, fact
from tests.support.second_look import HOLDS
from tests.support.ui.tab import (
    ANA,
    app,
    buttons,
    editing,
    errors,
    number,
    press,
    say,
    say_anew,
    send,
    text,
    until,
)
from tests.support.wire import Cut, Fail, OpenAIServer, Pieces, Say

REFUSED = Fail(401, "no such key", code="invalid_api_key")


@pytest.fixture
def models(service_models: dict[str, str]) -> dict[str, str]:
    return service_models


def said(mc: MemChat) -> list[str]:
    ana = mc.user(**ANA)
    return [m.content for m in ana.sessions.messages(ana.sessions.list()[0].id)]


@pytest.mark.parametrize("page", [None, "settings"])
def test_an_address_that_is_not_the_provider_s_own_is_told(
    mc: MemChat, service: OpenAIServer, page: str | None
) -> None:
    assert "Your words go to" in text(app(page))


def test_a_message_without_a_reply_says_why_and_is_tried_again(
    mc: MemChat, service: OpenAIServer
) -> None:
    service.script(REFUSED, Say("Here I am."))
    at = app()
    send(at, "Hello")
    until(at, lambda: errors(at))
    assert "key" in errors(at)[0]
    assert said(mc) == ["Hello"]
    assert buttons(at, "mend") == ["mend"]
    press(at, "retry")
    until(at, lambda: buttons(at, "why-"))
    assert said(mc) == ["Hello", "Here I am."]
    assert not errors(at)


def test_an_error_that_begins_with_the_model_s_name_writes_it_as_it_is(
    mc: MemChat, service: OpenAIServer
) -> None:
    service.script(Cut("Half an"))
    at = app()
    send(at, "Hello")
    until(at, lambda: errors(at))
    assert "openai/gpt-test broke off" in text(at)


def test_a_reply_is_still_there_when_the_next_try_fails(mc: MemChat, service: OpenAIServer) -> None:
    service.script(Say("Good."), REFUSED, Say("Better."))
    at = app()
    say(at, "Hello")
    press(at, "redo-1")
    until(at, lambda: errors(at))
    assert "Good." in text(at)
    assert buttons(at, "retry") == []
    press(at, "redo-1")
    until(at, lambda: buttons(at, "redo-") and said(mc) == ["Hello", "Better."])
    assert not errors(at)


def test_words_said_anew_wait_in_their_box_when_no_reply_comes(
    mc: MemChat, service: OpenAIServer
) -> None:
    service.script(Say("Good."), REFUSED, Say("Good evening to you."))
    at = app()
    say(at, "Hello")
    say_anew(at, 0, "Good evening")
    until(at, lambda: errors(at))
    assert said(mc) == ["Hello", "Good."]
    assert editing(at) == ["Good evening"]
    say_anew(at, 0, *editing(at))
    until(at, lambda: buttons(at, "redo-") and "Good evening to you." in text(at))
    assert said(mc) == ["Good evening", "Good evening to you."]


def test_a_chat_that_could_not_be_read_says_why_and_is_read_again(
    mc: MemChat, service: OpenAIServer
) -> None:
    ana = mc.user(**ANA)
    lisbon = answer(fact("I live in Lisbon", "city", "Lisbon"))
    service.script(Say("Lovely."), REFUSED, Say(lisbon), Say(HOLDS))
    at = app()
    say(at, "I live in Lisbon.")
    here = number(at)
    press(at, "new")
    until(at, lambda: at.warning)
    assert "not read for memories yet" in at.warning[0].value
    assert "key" in at.warning[0].value
    until(at, lambda: not mc.jobs.run(user="ana").done)  # the job that failed is over
    press(at, "reread")
    until(at, lambda: [m.value for m in ana.memories.list()] == ["Lisbon"])
    until(at, lambda: at.expander)
    assert not at.warning
    assert ana.sessions.get(here).status == "extracted"


def test_any_chat_is_read_again_from_its_menu_and_says_what_that_taught(
    mc: MemChat, service: OpenAIServer
) -> None:
    ana = mc.user(**ANA)
    lisbon = answer(fact("I live in Lisbon", "city", "Lisbon"))
    service.script(Say("Lovely."), Say(answer()), Say(lisbon), Say(HOLDS))
    at = app()
    say(at, "I live in Lisbon.")
    here = number(at)
    press(at, f"more-{here}")
    assert at.button(key=f"read-again-{here}").disabled  # it is read when it is left
    press(at, "new")
    until(at, lambda: ana.sessions.get(here).status == "extracted")
    assert ana.memories.list() == []
    press(at, f"more-{here}")
    press(at, f"read-again-{here}")
    assert number(at) == here
    until(at, lambda: [m.value for m in ana.memories.list()] == ["Lisbon"])
    until(at, lambda: "Learnt: city: Lisbon" in text(at))


def test_a_chat_that_cannot_be_read_again_says_why(mc: MemChat, service: OpenAIServer) -> None:
    ana = mc.user(**ANA)
    service.script(Say("Lovely."), Say(answer()))
    with ana.chat() as chat:
        chat.send("I live in Lisbon.").read()
    ana.set_memory(False)
    at = app()
    press(at, f"more-{chat.session_id}")
    press(at, f"read-again-{chat.session_id}")
    assert "memory is off" in " ".join(error.value for error in at.error)


def test_an_error_leads_to_the_settings_that_mend_it(mc: MemChat, service: OpenAIServer) -> None:
    service.script(REFUSED)
    at = app()
    send(at, "Hello")
    until(at, lambda: errors(at))
    press(at, "mend")
    assert "Settings" in text(at)


def test_a_reply_that_was_cut_is_continued_in_its_place(mc: MemChat, service: OpenAIServer) -> None:
    service.script(Pieces(("Half",)), Say("done."))
    at = app()
    say(at, "Hello")
    assert said(mc) == ["Hello", "Half"]
    press(at, next(iter(buttons(at, "go-on-"))))
    until(at, lambda: said(mc) == ["Hello", "Half done."] and buttons(at, "why-"))
    assert not buttons(at, "go-on-")
