"""Another model is chosen in the chat: for one reply, or from now on."""

from __future__ import annotations

from memchat import MemChat
from tests.support.ui.tab import ANA, app, buttons, do, number, press, room, say, text, until

STAND_IN = "offline/chat"
OTHER = "ollama/llama3.2"


def choose(at, name: str) -> None:
    at.selectbox(key="model-name").set_value(name).run()
    press(at, "model-yes")


def test_a_reply_is_asked_for_again_from_another_model(mc: MemChat) -> None:
    at = app()
    say(at, "What is a heron?")
    do(at, buttons(at, "with-")[0])
    assert "It answers this once." in text(at)
    choose(at, next(name for name in at.selectbox(key="model-name").options if "openai/" in name))
    assert "cannot be used" in text(at) and "keys set openai" in text(at)
    choose(at, STAND_IN)
    until(at, lambda: "2 / 2" in text(at))
    assert len(mc.user(**ANA).sessions.messages(number(at))) == 2
    assert not buttons(at, "model-")


def test_a_chat_has_a_model_of_its_own_until_it_goes_back(mc: MemChat) -> None:
    at = app()
    do(at, "model")
    assert "It answers in this chat from now on." in text(at)
    choose(at, OTHER)
    assert room(at)["model"] == OTHER
    do(at, "model")
    press(at, "model-back")
    assert room(at)["model"] == "stand-in"
    say(at, "What is a heron?")
    assert room(at)["model"] == "stand-in"
