"""The line under a chat: what was learnt from it, what waits, what was not kept, what failed."""

from __future__ import annotations

import json

import pytest

from memchat import MemChat
from tests.support.answers import answer, fact
from tests.support.ui.tab import ANA, act, app, buttons, lines, number, press, say, text, until
from tests.support.wire import Fail, OpenAIServer, Say

TWO_HOLD = json.dumps({"verdicts": [{"id": f"c{n}", "answer": "holds"} for n in (1, 2)]})
PORTO = answer(fact("I live in Porto", "city", "Porto"))
REFUSED = Fail(401, "no such key", code="invalid_api_key")


@pytest.fixture
def models(service_models: dict[str, str]) -> dict[str, str]:
    return service_models


def test_one_line_names_what_is_new_what_it_replaced_and_what_waits(
    mc: MemChat, service: OpenAIServer
) -> None:
    ana = mc.user(**ANA)
    with ana.chat() as talk:
        service.script(Say("Fine."), Say(PORTO), Say(TWO_HOLD))
        talk.send("I live in Porto.").read()
    told = "I live in Lisbon and I play the cello. Maybe I will sell the bike."
    read = answer(
        fact("I live in Lisbon", "city", "Lisbon"),
        fact("I play the cello", "hobby", "playing the cello", many=True),
        fact("Maybe I will sell the bike", "plan", "selling the bike"),
    )
    service.script(Say("Lovely."), Say(read), Say(TWO_HOLD))
    at = app()
    say(at, told)
    press(at, "new")
    until(at, lambda: at.expander)
    (line,) = lines(at)
    assert "Remembered: **Hobby: playing the cello**" in line
    assert "Changed: **City: Lisbon** (before: Porto)" in line
    assert "Waits for your yes: **Plan: selling the bike**" in line
    press(at, next(key for key in buttons(at, "accept-chat-")))
    assert "selling the bike" in [m.value for m in ana.memories.list()]
    assert "Waits" not in lines(at)[0]


def test_undo_on_one_fact_touches_that_one_only(mc: MemChat, service: OpenAIServer) -> None:
    ana = mc.user(**ANA)
    with ana.chat() as talk:
        service.script(Say("Fine."), Say(PORTO), Say(TWO_HOLD))
        talk.send("I live in Porto.").read()
    read = answer(
        fact("I live in Lisbon", "city", "Lisbon"),
        fact("I play the cello", "hobby", "playing the cello"),
    )
    service.script(Say("Lovely."), Say(read), Say(TWO_HOLD))
    at = app()
    say(at, "I live in Lisbon and I play the cello.")
    press(at, "new")
    until(at, lambda: len(buttons(at, "unlearn-")) == 2)
    lisbon = next(m for m in ana.memories.list() if m.value == "Lisbon")
    press(at, next(key for key in buttons(at, "unlearn-") if key.endswith(f"-{lisbon.id}")))
    assert sorted(m.value for m in ana.memories.list()) == ["Porto", "playing the cello"]
    assert lines(at) == ["Remembered: **Hobby: playing the cello**"]


def test_a_failed_reading_is_a_badge_in_the_sidebar_with_a_way_to_read_it_again(
    mc: MemChat, service: OpenAIServer
) -> None:
    ana = mc.user(**ANA)
    lisbon = answer(fact("I live in Lisbon", "city", "Lisbon"))
    service.script(Say("Lovely."), REFUSED, Say(lisbon), Say(TWO_HOLD))
    at = app()
    say(at, "I live in Lisbon.")
    here = number(at)
    press(at, "new")
    until(at, lambda: at.warning)
    at.switch_page("views/memories.py").run()
    assert any("Not read" in part.value for part in at.sidebar.markdown)
    press(at, f"reread-{here}")
    until(at, lambda: [m.value for m in ana.memories.list()] == ["Lisbon"])
    until(at, lambda: not buttons(at, "reread-"))


def test_an_incognito_chat_says_nothing_of_the_chat_before(
    mc: MemChat, service: OpenAIServer
) -> None:
    service.script(Say("Lovely."), REFUSED)
    at = app()
    say(at, "I live in Lisbon.")
    press(at, "new-incognito")
    assert "being read for" not in text(at)
    until(at, lambda: "Not read" in text(at))  # in the sidebar
    assert not at.warning


def test_an_error_stands_in_the_form_that_caused_it(mc: MemChat, service: OpenAIServer) -> None:
    mc.user(**ANA).memories.add("profile", "city", "Lisbon")
    at = app("memories")
    act(at, "edit", 1)
    at.text_area(key="value-1").set_value("   ")
    press(at, "save-1")
    assert len(at.error) == 1
    (form,) = at.get("dialog")
    kinds = [element.type for element in form]
    assert kinds.index("error") > kinds.index("text_area")
