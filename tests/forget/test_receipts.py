"""What receipts and prompts keep of words that are forgotten: meanwhile, while held back, after."""

from __future__ import annotations

import json

import pytest

from memchat import MemChat
from memchat.forget.wording import FILLER
from memchat.testing import ScriptedModel
from memchat.types import Why, to_json
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.leftovers import files_with, rows_with
from tests.support.receipts import reply_to, run
from tests.support.store import Opener, given

TOLD = "I moved to Zanzibar with my brother Tim, who grows cloves, nutmeg and sells boats."
ASKED = "Tell me about my brother Tim, cloves, nutmeg, boats"
BLANK = FILLER * len("Zanzibar")


def tell(mc: MemChat, extract_model, *, title: str = "") -> int:
    """The conversation that taught of Zanzibar, ended and read."""
    quoted = fact("I moved to Zanzibar", "city", "Zanzibar")
    extract_model.replies.append(answer(quoted, title=title))
    session_id = talk(mc, TOLD).session_id
    mc.jobs.run()
    assert session_id is not None
    # Out of the list of all facts, so that what the moment says is told by it alone.
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE memories SET sensitive = 1")
    return session_id


def move(mc: MemChat, clock) -> int:
    """Zanzibar, and Porto in its place; the id of the first."""
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Zanzibar").id
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Porto")
    mc.jobs.embed()
    return old


def shows(found: Why, words: str) -> bool:
    return words in json.dumps(to_json(found), ensure_ascii=False)


# --- while the reply comes in


def test_a_replaced_value_forgotten_while_the_reply_comes_in_is_not_written_down(
    open_store: Opener, clock
) -> None:
    def reply(messages) -> str:
        assert "before: Zanzibar" in messages[0].content
        mc.user("ana").memories.delete(old)
        return "Not Zanzibar any more."

    mc = open_store(chat_model=ScriptedModel([reply]))
    old = move(mc, clock)
    found = reply_to(mc, "Which city?")
    assert (found.lines, found.prompt) == ((), None)
    assert [line.hit.text for line in found.also] == ["city: Porto"]
    assert found.reply.content == f"Not {BLANK} any more."
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


@pytest.mark.parametrize("what", ["memory", "message", "session"])
def test_a_moment_forgotten_while_the_reply_comes_in_is_not_written_down(
    open_store: Opener, extract_model, what: str
) -> None:
    def reply(messages) -> str:
        assert TOLD in messages[0].content
        if what == "memory":
            mc.user("ana").memories.delete(mc.user("ana").memories.list()[0].id)
        elif what == "message":
            mc.user("ana").sessions.delete_message(mc.user("ana").sessions.messages(taught)[0].id)
        else:
            mc.user("ana").sessions.delete(taught)
        return "Tim is in Zanzibar."

    mc = open_store(chat_model=ScriptedModel(["Fine.", reply]), pinned_tokens=0)
    taught = tell(mc, extract_model)
    found = reply_to(mc, ASKED)
    assert (found.lines, found.also, found.forgotten, found.prompt) == ((), (), 1, None)
    assert found.reply.content == f"Tim is in {BLANK}."
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_a_fact_of_this_conversation_forgotten_while_the_reply_comes_in_is_not_written_down(
    open_store: Opener, extract_model
) -> None:
    def reply(messages) -> str:
        assert messages[1].content == TOLD
        mc.user("ana").memories.delete(mc.user("ana").memories.list()[0].id)
        return "Still in Zanzibar?"

    mc = open_store(chat_model=ScriptedModel(["Fine.", reply]), pinned_tokens=0)
    extract_model.replies.append(answer(fact("I moved to Zanzibar", "city", "Zanzibar")))
    chat = mc.user("ana").chat()
    assert chat.send(TOLD).read()
    chat.end()
    assert chat.send("How are you?").read()
    assert mc.user("ana").sessions.why().reply.content == f"Still in {BLANK}?"
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_a_deletion_held_while_the_reply_comes_in_is_purged_or_undone_whole(
    open_store: Opener, extract_model, clock
) -> None:
    def reply(messages) -> str:
        assert TOLD in messages[0].content
        mc.user("ana").memories.delete(city, hold=60)
        return "Tim is in Zanzibar."

    mc = open_store(chat_model=ScriptedModel(["Fine.", reply]), pinned_tokens=0)
    tell(mc, extract_model)
    city = mc.user("ana").memories.list()[0].id
    held = reply_to(mc, ASKED)
    assert [line.since for line in held.lines] == ["is being forgotten"] and held.prompt is None
    mc.user("ana").memories.restore(city)
    whole = mc.user("ana").sessions.why(held.reply.id)
    assert whole.reply.content == "Tim is in Zanzibar." and TOLD in whole.prompt[0].content
    mc.user("ana").memories.delete(city, hold=60)
    clock.advance(seconds=61)
    mc.jobs.run()
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_what_changes_otherwise_while_the_reply_comes_in_keeps_its_line(
    open_store: Opener, extract_model
) -> None:
    def reply(messages) -> str:
        mc.user("ana").memories.update(mc.user("ana").memories.list()[0].id, value="Porto")
        return "Tim is in Zanzibar."

    mc = open_store(chat_model=ScriptedModel(["Fine.", reply]))
    tell(mc, extract_model)
    found = reply_to(mc, ASKED)
    assert found.lines and found.forgotten == 0 and found.prompt is not None
    assert found.reply.content == "Tim is in Zanzibar."


def test_a_title_forgotten_while_the_reply_comes_in_takes_the_lines_that_name_it(
    open_store: Opener, extract_model
) -> None:
    def reply(messages) -> str:
        assert "conversation “Zanzibar at last”" in messages[0].content
        mc.user("ana").memories.delete(city)
        return "Yes."

    mc = open_store(chat_model=ScriptedModel(["Fine.", "Fine.", reply]), pinned_tokens=0)
    city = kayaks(mc, extract_model)
    found = reply_to(mc, "Which red kayak did I buy for the lake?")
    assert (found.lines, found.prompt) == ((), None)
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def kayaks(mc: MemChat, extract_model) -> int:
    """A titled conversation of which another turn is found; the id of the city it taught."""
    quoted = fact("I live in Zanzibar", "city", "Zanzibar")
    extract_model.replies.append(answer(quoted, title="Zanzibar at last"))
    talk(mc, "I live in Zanzibar", "I bought a red kayak for the lake")
    mc.jobs.run()
    return mc.user("ana").memories.list()[0].id


# --- after it


def test_a_title_that_is_forgotten_leaves_the_receipts_that_name_it(
    open_store: Opener, extract_model
) -> None:
    mc = open_store(pinned_tokens=0)
    ana = mc.user("ana")
    city = kayaks(mc, extract_model)
    found = reply_to(mc, "Which red kayak did I buy for the lake?")
    assert shows(found, "Zanzibar at last")
    ana.memories.delete(city, hold=60)
    assert not shows(ana.sessions.why(found.reply.id), "Zanzibar")
    ana.memories.restore(city)
    assert ana.sessions.why(found.reply.id) == found
    ana.memories.delete(city)
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


def test_a_reply_that_was_given_only_the_moment_is_blanked_too(
    open_store: Opener, extract_model
) -> None:
    mc = open_store(chat_model=ScriptedModel(["Fine.", "Tim is in Zanzibar."]), pinned_tokens=0)
    ana = mc.user("ana")
    tell(mc, extract_model)
    found = reply_to(mc, ASKED)
    assert [line.hit.kind for line in found.lines] == ["message"]
    ana.memories.delete(ana.memories.list()[0].id)
    assert ana.sessions.why(found.reply.id).reply.content == f"Tim is in {BLANK}."
    assert rows_with(mc, "Zanzibar") == [] and files_with(mc, "Zanzibar") == []


# --- while the deletion is held back


def test_a_held_deletion_hides_the_moments_of_the_fact(open_store: Opener, extract_model) -> None:
    mc = open_store(pinned_tokens=0)
    ana = mc.user("ana")
    tell(mc, extract_model)
    city = ana.memories.list()[0].id
    found = reply_to(mc, ASKED)
    assert shows(found, "Zanzibar")
    ana.memories.delete(city, hold=60)
    held = ana.sessions.why(found.reply.id)
    assert not shows(held, "Zanzibar") and held.prompt is None
    assert [(line.hit.text, line.since) for line in held.lines] == [("…", "is being forgotten")]
    ana.memories.restore(city)
    assert ana.sessions.why(found.reply.id) == found


def test_a_held_deletion_hides_the_line_that_names_it_as_what_was_before(mc, clock) -> None:
    ana = mc.user("ana")
    old = move(mc, clock)
    found = reply_to(mc, "Which city?")
    assert shows(found, "before: Zanzibar")
    ana.memories.delete(old, hold=60)
    held = ana.sessions.why(found.reply.id)
    assert not shows(held, "Zanzibar") and held.prompt is None
    ana.memories.restore(old)
    assert ana.sessions.why(found.reply.id) == found


# --- turns that are deleted


def test_a_prompt_says_how_many_of_its_turns_were_deleted_since(
    mc, chat_model, monkeypatch, capsys
) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    for text in ("My colour is mauve", "second", "third"):
        reply = chat.send(text)
        assert reply.read()
    whole = ana.sessions.why(reply.message_id)
    assert (whole.deleted, whole.prompt) == (0, chat_model.requests[-1].messages)
    assert "deleted" not in run(mc, monkeypatch, capsys, "why", "--prompt")[1]
    turns = ana.sessions.messages(chat.session_id)
    ana.sessions.delete_message(turns[0].id)
    ana.sessions.delete_message(turns[3].id)
    found = ana.sessions.why(reply.message_id)
    assert found.deleted == 2 and found.prompt is not None
    assert [m.content for m in found.prompt[1:]] == ["Fine.", "second", "third"]
    out = run(mc, monkeypatch, capsys, "why", "--prompt")[1]
    assert out.startswith("turns   2 deleted since, and not below\n")


def test_a_reply_whose_question_no_longer_fits_is_no_deleted_turn(open_store: Opener) -> None:
    model = ScriptedModel(["Fine, and some more words. " * 8] * 20, window=1000)
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    chat = ana.chat()
    for n in range(20):
        reply = chat.send(f"Turn {n} " + "and some more words " * (n % 5 * 8))
        assert reply.read()
        found = ana.sessions.why(reply.message_id)
        assert (found.deleted, found.prompt) == (0, model.requests[-1].messages)


# --- not relevant


def test_a_muted_value_does_not_come_back_behind_what_replaced_it(mc) -> None:
    ana = mc.user("ana")
    old = ana.memories.add("profile", "city", "Lisbon").id
    chat = ana.chat()
    assert chat.send("Hi").read()
    ana.sessions.mute(old, chat.session_id)
    ana.memories.add("profile", "city", "Porto")
    mc.jobs.embed()
    asked = "Was my city Lisbon?"
    reply = chat.send(asked)
    assert reply.read()
    texts = [hit.text for hit in given(reply.shown)]
    assert len(texts) == 1 and "Porto" in texts[0] and "Lisbon" not in texts[0]
    assert any("before: Lisbon" in line.hit.text for line in reply_to(mc, asked).lines)


def test_what_taught_a_muted_fact_stays_out_once_that_is_replaced(
    open_store: Opener, extract_model
) -> None:
    mc = open_store(pinned_tokens=0)
    ana = mc.user("ana")
    tell(mc, extract_model)
    old = ana.memories.list()[0].id
    chat = ana.chat()
    assert chat.send("Hi").read()
    ana.sessions.mute(old, chat.session_id)
    ana.memories.add("profile", "city", "Porto")
    mc.jobs.embed()
    reply = chat.send(ASKED)
    assert reply.read() and not any("Zanzibar" in hit.text for hit in reply.shown.hits)
    assert shows(reply_to(mc, ASKED), "Zanzibar")


@pytest.mark.parametrize("how", ["muted", "muted and replaced", "held"])
def test_a_turn_of_this_conversation_does_not_bring_back_what_it_taught(
    open_store: Opener, extract_model, how: str
) -> None:
    model = ScriptedModel(["Fine."] * 40, window=1500)
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    mc = open_store(chat_model=model)
    ana = mc.user("ana")
    chat = ana.chat()
    assert chat.send("I live in Lisbon, near the river.").read()
    chat.end()
    city = ana.memories.list()[0].id
    for n in range(30):
        assert chat.send(f"Turn {n} about gardening " + "more words " * 12).read()
    asked = "Lisbon river"
    reply = chat.send(asked)
    assert reply.read() and "conversation" in {hit.channel for hit in reply.shown.hits}
    if how == "held":
        ana.memories.delete(city, hold=60)
    else:
        ana.sessions.mute(city, chat.session_id)
    if how == "muted and replaced":
        ana.memories.add("profile", "city", "Porto")
        mc.jobs.embed()
    reply = chat.send(f"{asked}, again")
    assert reply.read() and not any("near the river" in hit.text for hit in reply.shown.hits)


# --- what became of a line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("blue Volvo estate", "blue Volvo"),
        ("blue Volvo (said to be stolen)", "blue Volvo"),
        ("blue Volvo", "Volvo"),
        ("<blue> Volvo", "<blue>"),
    ],
)
def test_an_edit_to_a_part_of_a_value_is_told(mc, before: str, after: str) -> None:
    ana = mc.user("ana")
    car = ana.memories.add("profile", "car", before).id
    found = reply_to(mc, "Hi")
    assert found.also[0].since is None
    ana.memories.update(car, value=after)
    since = ana.sessions.why(found.reply.id).also[0].since
    assert since is not None and since.startswith("changed, now car: ")
