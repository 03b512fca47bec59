"""Another model than that of the settings: for one reply, or for a chat from now on."""

from __future__ import annotations

import pytest

from memchat import MemChat
from memchat.errors import ConfigError
from memchat.testing import ScriptedModel

OTHER = "offline/chat"


def test_another_model_answers_once_and_the_first_reply_stays_as_a_version(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send("What is a heron?").read()
        assert "stand-in" in chat.redo(model=OTHER).read()
        assert chat.model == chat_model.name
        assert chat.send("And a stork?").read() == "Fine."
        messages = ana.sessions.messages(chat.session_id or 0)
        assert len(ana.sessions.versions(chat.session_id or 0)[messages[1].id]) == 2


def test_another_model_answers_from_now_on_until_the_chat_goes_back(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    with mc.user("ana").chat() as chat:
        chat.set_model(OTHER)
        assert chat.model == OTHER and "stand-in" in (chat.notice() or "")
        assert "stand-in" in chat.send("What is a heron?").read()
        chat.set_model(None)
        assert chat.send("And a stork?").read() == "Fine."


def test_a_model_that_cannot_be_used_is_refused_with_what_helps_and_changes_nothing(
    mc: MemChat,
) -> None:
    with mc.user("ana").chat() as chat:
        chat.send("Hello").read()
        for work in (lambda: chat.set_model("openai/gpt-4.1-mini"),
                     lambda: chat.redo(model="openai/gpt-4.1-mini")):  # fmt: skip
            with pytest.raises(ConfigError, match=r"openai/gpt-4\.1-mini cannot be used: .*keys"):
                work()
        assert [turn.content for turn in chat.turns] == ["Hello", "Fine."]
