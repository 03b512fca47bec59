"""The last message answered anew, or said in other words: nothing is lost where no reply comes."""

from __future__ import annotations

import pytest

from memchat import MemChat
from memchat.chat import Chat
from memchat.errors import InputError, ProviderError
from memchat.testing import Broken, ScriptedModel
from tests.support.answers import answer, fact
from tests.support.store import Opener

ANA = {"user": "ana"}
LISBON = answer(fact("I live in Lisbon", "city", "Lisbon"), title="Lisbon")
DOWN = ProviderError("the model does not answer")


def said(mc: MemChat, talk: Chat) -> list[str]:
    return [turn.content for turn in mc.user(**ANA).sessions.messages(talk.session_id or 0)]


def prompt(model: ScriptedModel) -> list[str]:
    """What the model was sent last, from the person and itself."""
    return [message.content for message in model.requests[-1].messages[1:]]


def next_replies(model: ScriptedModel, *replies: object) -> None:
    model.replies.clear()
    model.replies.extend(replies)  # type: ignore[arg-type]


def test_a_new_reply_takes_the_place_of_the_old(mc: MemChat, chat_model: ScriptedModel) -> None:
    next_replies(chat_model, "Fine.", "Better.")
    with mc.user(**ANA).chat() as talk:
        talk.send("Hello").read()
        assert talk.redo().read() == "Better."
        assert prompt(chat_model) == ["Hello"]
        assert said(mc, talk) == ["Hello", "Better."]


@pytest.mark.parametrize("came", ["", "Bet"])
def test_the_old_reply_stays_where_the_new_one_fails(
    mc: MemChat, chat_model: ScriptedModel, came: str
) -> None:
    next_replies(chat_model, "Fine.", Broken(came, DOWN), "Better.")
    with mc.user(**ANA).chat() as talk:
        talk.send("Hello").read()
        with pytest.raises(ProviderError):
            talk.redo().read()
        assert said(mc, talk) == ["Hello", "Fine."]
        talk.redo().read()
        assert said(mc, talk) == ["Hello", "Better."]


@pytest.mark.parametrize("came", ["", "Rain is"])
def test_a_message_said_anew_without_a_reply_leaves_the_old_turn_whole(
    mc: MemChat, chat_model: ScriptedModel, extract_model: ScriptedModel, came: str
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.append(LISBON)
    next_replies(chat_model, "Lovely.", Broken(came, DOWN), "Noted.")
    with ana.chat() as talk:
        talk.send("I live in Lisbon").read()
        talk.end()
        before = ana.memories.list()
        with pytest.raises(ProviderError):
            talk.redo("I like rain").read()
        assert said(mc, talk) == ["I live in Lisbon", "Lovely."]
        assert ana.memories.list() == before != []
        talk.send("And now?").read()
        assert "Lisbon" in chat_model.requests[-1].messages[0].content
        extract_model.replies.append(answer())


def test_what_only_the_old_words_prove_is_not_given_to_the_model_that_answers_the_new(
    mc: MemChat, chat_model: ScriptedModel, extract_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.append(LISBON)
    with ana.chat() as talk:
        talk.send("I live in Lisbon").read()
        talk.end()
        talk.redo("I live in Porto. Where do I live?").read()
        sent = " ".join(message.content for message in chat_model.requests[-1].messages)
        assert "Porto" in sent
        assert "Lisbon" not in sent
        assert ana.memories.list() == []
        extract_model.replies.append(answer())


def test_a_memory_kept_out_of_the_chat_before_stays_out_where_no_reply_comes(
    mc: MemChat, chat_model: ScriptedModel, extract_model: ScriptedModel
) -> None:
    ana = mc.user(**ANA)
    extract_model.replies.append(LISBON)
    next_replies(chat_model, "Lovely.", Broken("", DOWN), "Somewhere.")
    with ana.chat() as talk:
        talk.send("I live in Lisbon").read()
        talk.end()
        ana.sessions.mute(ana.memories.list()[0].id, talk.session_id or 0)
        with pytest.raises(ProviderError):
            talk.redo("I like rain").read()
        talk.send("Where do I live?").read()
        assert "city: Lisbon" not in chat_model.requests[-1].messages[0].content
        extract_model.replies.append(answer())


def test_a_reply_that_was_stopped_takes_the_place_of_the_old(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    next_replies(chat_model, "Fine.", "Much better than before.")
    with mc.user(**ANA).chat() as talk:
        talk.send("Hello").read()
        reply = talk.redo()
        next(iter(reply))
        reply.stop()
        assert said(mc, talk) == ["Hello", "Much "]


def test_a_reply_that_was_never_read_takes_nobodys_place(
    mc: MemChat, chat_model: ScriptedModel
) -> None:
    next_replies(chat_model, "Fine.", "Never seen.")
    with mc.user(**ANA).chat() as talk:
        talk.send("Hello").read()
        talk.redo()
    assert said(mc, talk) == ["Hello", "Fine."]


def test_a_store_killed_in_mid_answer_has_the_old_turn_and_the_new_words(
    open_store: Opener, chat_model: ScriptedModel
) -> None:
    next_replies(chat_model, "Fine.", "Never finished.")
    mc = open_store()
    talk = mc.user(**ANA).chat()
    talk.send("Hello").read()
    next(iter(talk.redo("Good evening")))
    assert said(open_store(), talk) == ["Hello", "Fine.", "Good evening"]


def test_incognito_the_old_turn_stays_too(mc: MemChat, chat_model: ScriptedModel) -> None:
    next_replies(chat_model, "Fine.", Broken("", DOWN), Broken("", DOWN), "Good evening to you.")
    with mc.user(**ANA).chat(incognito=True) as talk:
        talk.send("Hello").read()
        for words in (None, "Good evening"):
            with pytest.raises(ProviderError):
                talk.redo(words).read()
            assert [turn.content for turn in talk.turns] == ["Hello", "Fine."]
        talk.redo("Good evening").read()
        assert [turn.content for turn in talk.turns] == ["Good evening", "Good evening to you."]


def test_blank_words_are_refused_and_change_nothing(mc: MemChat) -> None:
    with mc.user(**ANA).chat() as talk:
        talk.send("Hello").read()
        with pytest.raises(InputError):
            talk.redo("  ")
        assert said(mc, talk) == ["Hello", "Fine."]
        talk.send("Once more").read()
        assert said(mc, talk) == ["Hello", "Fine.", "Once more", "Fine."]
