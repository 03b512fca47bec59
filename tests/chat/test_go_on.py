"""A reply that was stopped or cut goes on where it ended."""

from __future__ import annotations

import pytest

from memchat.errors import InputError, ProviderError
from memchat.testing import Broken, ScriptedModel
from tests.support.store import Opener


def test_a_reply_that_was_cut_goes_on_and_is_one_reply_then(open_store: Opener) -> None:
    model = ScriptedModel([Broken("One two"), "three four."])
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    ana.memories.add("fact", "boat", "a red kayak")
    chat = ana.chat()
    assert chat.send("Count to four.").read() == "One two"
    assert chat.go_on().read() == "One two three four."
    stored = ana.sessions.messages(chat.session_id)
    assert [(m.content, m.status) for m in stored] == [
        ("Count to four.", "complete"),
        ("One two three four.", "complete"),
    ]
    sent = model.requests[-1].messages
    assert "broken off" in sent[0].content and "\nOne two\n" in sent[0].content
    assert "a red kayak" in sent[0].content and sent[-1].content == "Count to four."
    assert ana.sessions.why(stored[-1].id).prompt == tuple(sent)


def test_it_stays_as_it_is_when_nothing_more_comes(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel([Broken("One two"), ProviderError("down"), "three."]))
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("Count to three.").read()
    before = ana.sessions.messages(chat.session_id)
    with pytest.raises(ProviderError):
        chat.go_on().read()
    assert ana.sessions.messages(chat.session_id) == before
    assert chat.go_on().read() == "One two three."


@pytest.mark.parametrize(
    ("begun", "rest", "whole"),
    [
        ("One", "two", "One two"),
        ("One ", "two", "One two"),
        ("One", ", two", "One, two"),
        ("日本", "語", "日本語"),
    ],
)
def test_a_space_stands_between_two_words_where_the_script_has_one(
    open_store: Opener, begun: str, rest: str, whole: str
) -> None:
    model = ScriptedModel([Broken(begun), rest])
    chat = open_store(chat_model=model).user("ana").chat(incognito=True)
    chat.send("Count.").read()
    assert chat.go_on().read() == whole
    assert [turn.content for turn in chat.turns] == ["Count.", whole]


def test_a_whole_reply_does_not_go_on(open_store: Opener) -> None:
    chat = open_store(chat_model=ScriptedModel(["Fine."])).user("ana").chat()
    with pytest.raises(InputError):
        chat.go_on()
    chat.send("Hello").read()
    with pytest.raises(InputError, match="whole"):
        chat.go_on()
