"""Why a reply is as it is: what it was given, what its model was sent, and what became of it."""

from __future__ import annotations

import contextlib
import json

import pytest

from memchat import MemChat
from memchat.errors import NotFound, ProviderError
from memchat.testing import Broken, Calls, ScriptedModel
from memchat.types import to_json
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.forgetting import learn_zanzibar
from tests.support.leftovers import files_with, rows_with
from tests.support.receipts import reply_to
from tests.support.store import Opener, given


def counts(mc: MemChat) -> dict[str, tuple[int, int]]:
    """By value: how often found, how often read by a model."""
    with private.database(mc).read() as tx:
        rows = tx.connection.exec_driver_sql(
            "SELECT value, match_count, read_count FROM memories"
        ).all()
    return {value: (matched, read) for value, matched, read in rows}


# --- what is kept


def test_a_receipt_is_complete_and_gives_each_line_its_reasons(mc, chat_model) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "boat", "a red kayak")
    mc.jobs.embed()
    found = reply_to(mc, "Where is my red kayak boat?")
    assert [(line.hit.channel, line.hit.text) for line in (*found.lines, *found.also)] == [
        ("both", "boat: a red kayak (said 2026-05-01)"),
        ("all", "city: Lisbon"),
    ]
    kayak = found.lines[0].hit
    assert kayak.cosine is not None and kayak.bm25 is not None and 0 < kayak.score <= 1.5
    sent = chat_model.requests[-1].messages[0].content
    assert "- #1 city: Lisbon\n- #2 boat: a red kayak (said 2026-05-01)\n" in sent
    assert "For this message: #2\n" in sent
    assert all(line.hit.tokens > 0 for line in (*found.lines, *found.also))
    assert (found.question, found.dropped, found.forgotten) == ("Where is my red kayak boat?", 0, 0)


def test_the_prompt_is_what_the_model_was_sent_to_the_letter(open_store: Opener) -> None:
    model = ScriptedModel(
        ["One.", ProviderError("down"), Broken("half ", ProviderError("cut")), "Four."]
    )
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    chat = ana.chat()
    for text in ("first", "second", "third"):
        with contextlib.suppress(ProviderError):
            assert chat.send(text).read()
    reply = chat.send("fourth")
    assert reply.read() == "Four."
    replies = [m.id for m in ana.sessions.messages(chat.session_id) if m.role == "assistant"]
    assert len(replies) == 3
    for message_id, request in zip(replies, (0, 2, 3), strict=True):
        assert ana.sessions.why(message_id).prompt == model.requests[request].messages


def test_turns_that_no_longer_fit_are_not_in_the_prompt_of_a_later_reply(open_store) -> None:
    model = ScriptedModel(["Fine."] * 20, window=1000)
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    chat = ana.chat()
    for n in range(20):
        assert chat.send(f"Turn {n} " + "and some more words " * 10).read()
    for number, request in enumerate(model.requests):
        message = ana.sessions.messages(chat.session_id)[2 * number + 1]
        assert ana.sessions.why(message.id).prompt == request.messages


def test_the_tools_a_model_was_offered_are_named(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel(["Fine."], tools=True))
    assert set(reply_to(mc, "Hi").tools) == {"remember", "forget", "list_memories"}


def test_model_tokens_and_cost_are_those_of_this_reply(mc) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    first = chat.send("Hi")
    assert first.read()
    assert chat.send("Hello again, my friend").read()
    (call,) = [c for c in ana.sessions.why(first.message_id).calls if c.purpose == "chat"]
    assert call == first.stream.usage and call.cost_usd == 0.0


def test_what_the_budget_left_out_is_counted(open_store: Opener) -> None:
    mc = open_store(budget_tokens=150, pinned_tokens=60)
    for n in range(12):
        mc.user("ana").memories.add("profile", "house", f"by the sea in town number {n}")
    found = reply_to(mc, "Hi")
    assert found.lines and found.dropped == 12 - len(found.lines)


def test_a_reply_of_code_alone_has_no_prompt_and_lists_what_it_showed(open_store) -> None:
    mc = open_store(chat_model=ScriptedModel())
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    found = reply_to(mc, "What do you remember about me?")
    assert not found.by_model and found.prompt is None
    assert [(line.hit.channel, line.hit.text) for line in found.lines] == [
        ("listed", "[profile] city: Lisbon (said 2026-05-01)")
    ]


def test_an_incognito_conversation_stores_none_of_it(mc) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    chat = ana.chat(incognito=True)
    assert chat.send("Where do I live?").read()
    with private.database(mc).read() as tx:
        for table in ("receipts", "prompts", "usage", "messages", "muted"):
            assert tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0
    assert counts(mc) == {"Lisbon": (0, 0)}


def test_without_memory_the_prompt_is_kept_and_nothing_was_given(mc, chat_model) -> None:
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    mc.user("ana", app="default").set_memory(False)
    found = reply_to(mc, "Where do I live?")
    assert found.lines == () and found.prompt == chat_model.requests[-1].messages


# --- which reply


def test_without_a_number_the_latest_reply_of_the_app_is_explained(mc) -> None:
    ana = mc.user("ana")
    first = reply_to(mc, "Hi")
    second = reply_to(mc, "Hello")
    reply_to(mc, "Elsewhere", app="notes")
    assert ana.sessions.why().reply == second.reply
    assert mc.user("ana", app="notes").sessions.why().question == "Elsewhere"
    assert ana.sessions.why(first.reply.id).reply == first.reply


def test_a_message_of_one_s_own_stands_for_the_reply_to_it(mc) -> None:
    found = reply_to(mc, "Hi")
    assert mc.user("ana").sessions.why(found.reply.id - 1) == found


def test_another_s_reply_is_not_found(mc) -> None:
    found = reply_to(mc, "Hi")
    for where in ({"user": "bo"}, {"user": "ana", "app": "notes"}):
        with pytest.raises(NotFound):
            mc.user(**where).sessions.why(found.reply.id)
        with pytest.raises(NotFound):
            mc.user(**where).sessions.why()


# --- what became of it


def test_each_line_says_what_became_of_it_since(mc, clock) -> None:
    ana = mc.user("ana")
    ids = {
        value: ana.memories.add(kind, key, value).id
        for kind, key, value in (
            ("profile", "city", "Lisbon"),
            ("profile", "job", "nurse"),
            ("preference", "tea", "green"),
            ("preference", "music", "fado"),
        )
    }
    found = reply_to(mc, "Hi")
    clock.advance(days=1)
    porto = ana.memories.add("profile", "city", "Porto").id
    ana.memories.update(ids["nurse"], value="doctor")
    ana.sessions.mute(ids["green"], found.reply.session_id)
    now = {line.hit.id: line for line in ana.sessions.why(found.reply.id).also}
    assert now[ids["Lisbon"]].since == f"replaced by #{porto}"
    assert now[ids["nurse"]].since == "changed, now job: doctor"
    assert now[ids["green"]].since is None and now[ids["green"]].muted
    assert now[ids["fado"]].since is None and not now[ids["fado"]].muted
    assert [line.hit.text for line in found.also] == [line.hit.text for line in now.values()]


def test_a_line_says_when_and_in_which_conversation_it_was_said(mc, extract_model, clock) -> None:
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    said = clock()
    taught = talk(mc, "I live in Lisbon").session_id
    clock.advance(days=3)
    (line,) = reply_to(mc, "Hello there").also
    assert (line.said_at, line.session_id) == (said, taught)
    mc.user("ana").memories.add("profile", "job", "nurse")
    lines = reply_to(mc, "Is it late?").also
    (by_hand,) = [line for line in lines if "nurse" in line.hit.text]
    assert (by_hand.said_at, by_hand.session_id) == (clock(), None)


def test_an_expired_memory_is_over_in_an_old_receipt(mc, clock) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "visitor", "Bo", expires_at=clock().date())
    found = reply_to(mc, "Hi")
    clock.advance(days=2)
    assert ana.sessions.why(found.reply.id).also[0].since == "over"


# --- not relevant


def test_a_muted_memory_stays_out_of_the_rest_of_that_conversation_alone(mc) -> None:
    ana = mc.user("ana")
    city = ana.memories.add("profile", "city", "Lisbon").id
    boat = ana.memories.add("fact", "boat", "a red kayak").id
    mc.jobs.embed()
    chat = ana.chat()
    ask = "Where is my red kayak boat?"
    assert {hit.id for hit in reply_given(chat, ask)} == {city, boat}
    ana.sessions.mute(city, chat.session_id)
    ana.sessions.mute(boat, chat.session_id)
    assert reply_given(chat, ask) == ()
    assert {hit.id for hit in reply_given(ana.chat(), ask)} == {city, boat}
    ana.sessions.unmute(boat, chat.session_id)
    assert {hit.id for hit in reply_given(chat, ask)} == {boat}
    assert ana.memories.get(city).active
    assert [h.id for h in ana.search("red kayak boat").hits if h.kind == "memory"]


def reply_given(chat, text: str) -> tuple:
    reply = chat.send(text)
    assert reply.read()
    return tuple(hit for hit in given(reply.shown) if hit.kind == "memory")


def test_muting_twice_is_muting_once_and_unmuting_needs_no_mute(mc) -> None:
    ana = mc.user("ana")
    city = ana.memories.add("profile", "city", "Lisbon").id
    session_id = reply_to(mc, "Hi").reply.session_id
    ana.sessions.unmute(city, session_id)
    ana.sessions.mute(city, session_id)
    ana.sessions.mute(city, session_id)
    assert ana.sessions.why().also[0].muted
    ana.sessions.unmute(city, session_id)
    assert not ana.sessions.why().also[0].muted


def test_muting_what_is_not_one_s_own_is_refused(mc) -> None:
    ana = mc.user("ana")
    bo = mc.user("bo")
    city = ana.memories.add("profile", "city", "Lisbon").id
    other = bo.memories.add("profile", "city", "Rome").id
    session_id = reply_to(mc, "Hi").reply.session_id
    for memory_id, where in ((other, session_id), (city, 99)):
        with pytest.raises(NotFound):
            ana.sessions.mute(memory_id, where)
    with pytest.raises(NotFound):
        bo.sessions.mute(other, session_id)


# --- counts


def test_what_is_read_and_what_is_found_is_counted_with_the_receipt(mc) -> None:
    for kind, key, value in (
        ("profile", "city", "Lisbon"),
        ("fact", "boat", "a red kayak"),
        ("fact", "garden", "roses"),
    ):
        mc.user("ana").memories.add(kind, key, value)
    mc.jobs.embed()
    assert reply_to(mc, "my red kayak boat").lines
    assert counts(mc) == {"Lisbon": (0, 1), "a red kayak": (1, 1), "roses": (0, 1)}


def test_a_fact_that_was_sent_counts_as_given_and_one_that_is_kept_out_does_not(mc) -> None:
    ana = mc.user("ana")
    ana.memories.add("fact", "garden", "roses")
    hidden = ana.memories.add("fact", "illness", "gout")
    ana.memories.update(hidden.id, sensitive=True)
    assert reply_to(mc, "Hello there").lines == ()
    assert counts(mc) == {"roses": (0, 1), "gout": (0, 0)}


def test_a_pinned_memory_that_also_fits_counts_as_found(mc) -> None:
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    assert reply_to(mc, "Is Lisbon my city?").lines
    assert counts(mc) == {"Lisbon": (1, 1)}


def test_a_search_a_list_and_an_answer_outside_count_nothing(mc) -> None:
    ana = mc.user("ana")
    ana.memories.add("fact", "boat", "a red kayak")
    mc.jobs.embed()
    assert ana.search("red kayak boat").hits
    assert ana.memories.list()
    assert ana.answer("red kayak boat").shown.hits
    assert counts(mc) == {"a red kayak": (0, 0)}


def test_a_reply_that_never_came_counts_nothing(open_store: Opener) -> None:
    mc = open_store(chat_model=ScriptedModel([ProviderError("down")]))
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    with pytest.raises(ProviderError):
        ana.chat().send("Hi").read()
    assert counts(mc) == {"Lisbon": (0, 0)}


# --- forgetting


def test_forgetting_takes_the_words_out_of_every_prompt_that_held_them(
    mc, extract_model, chat_model
) -> None:
    ana = mc.user("ana")
    memory_id = learn_zanzibar(mc, extract_model, chat_model)
    told = reply_to(mc, "Hello there")
    assert "Zanzibar" in told.prompt[0].content and rows_with(mc, 'INTO "prompts"')
    ana.memories.delete(memory_id)
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []
    after = ana.sessions.why(told.reply.id)
    assert after.prompt is None and after.forgotten == 1
    assert "Zanzibar" not in json.dumps(to_json(after))


def test_a_replaced_value_leaves_the_prompts_it_stood_in(mc, clock) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Zanzibar").id
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Lisbon")
    mc.jobs.embed()
    told = reply_to(mc, "Which city?")
    assert "before: Zanzibar" in told.prompt[0].content
    ana.memories.delete(old)
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_while_a_deletion_is_held_its_words_are_not_shown(mc) -> None:
    ana = mc.user("ana")
    city = ana.memories.add("profile", "city", "Zanzibar").id
    told = reply_to(mc, "Hello there")
    ana.memories.delete(city, hold=60)
    held = ana.sessions.why(told.reply.id)
    assert "Zanzibar" not in json.dumps(to_json(held))
    assert held.also[0].since == "is being forgotten"
    ana.memories.restore(city)
    assert ana.sessions.why(told.reply.id).prompt == told.prompt


def test_what_is_forgotten_while_the_reply_comes_in_is_not_written_down_again(open_store) -> None:
    def reply(messages) -> str:
        assert "Zanzibar" in messages[0].content
        mc.user("ana").memories.delete(city)
        return "Fine."

    mc = open_store(chat_model=ScriptedModel([reply]))
    city = mc.user("ana").memories.add("profile", "city", "Zanzibar").id
    found = reply_to(mc, "Hello there")
    assert found.prompt is None and found.lines == found.also == () and found.forgotten == 1
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_deleting_a_conversation_takes_its_words_out_of_the_prompts_of_others(
    mc, extract_model
) -> None:
    extract_model.replies.append(answer(summary="Talk of Zanzibar."))
    taught = talk(mc, "The ferry to Zanzibar leaves at dawn").session_id
    mc.jobs.run()
    told = reply_to(mc, "When does the ferry to that island leave at dawn?")
    assert any(line.hit.kind == "message" for line in told.lines)
    mc.user("ana").sessions.delete(taught)
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_deleting_a_conversation_takes_its_receipts_prompts_and_mutes(mc) -> None:
    ana = mc.user("ana")
    city = ana.memories.add("profile", "city", "Lisbon").id
    found = reply_to(mc, "Hi")
    mc.user("ana").sessions.mute(city, found.reply.session_id)
    mc.user("ana").sessions.delete(found.reply.session_id)
    with private.database(mc).read() as tx:
        for table in ("receipts", "prompts", "muted"):
            assert tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0


def test_a_command_s_tool_call_leaves_a_prompt_too(open_store: Opener) -> None:
    call = Calls(("list_memories", {}))
    mc = open_store(chat_model=ScriptedModel([call], tools=True))
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    found = reply_to(mc, "Tell me all that you remember about me, please")
    assert found.by_model and found.forgotten == 0
    assert {line.hit.channel for line in (*found.lines, *found.also)} == {"listed", "all"}
