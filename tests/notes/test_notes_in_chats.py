"""Notes in a chat: the passages that fit a message, in its prompt and in its receipt."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from memchat import MemChat
from memchat.notes.search import MOST_NOTES, MOST_TOKENS
from memchat.testing import FakeClock, ScriptedModel
from memchat.tokens import estimate_tokens
from tests.support import private
from tests.support.leftovers import files_with, rows_with
from tests.support.receipts import reply_to
from tests.support.store import Opener

BUDGET = "We have forty thousand left for marketing. Ten of it moves from print to the podcast."
SAID = datetime(2026, 4, 20, 9, tzinfo=UTC)


def system(model: ScriptedModel) -> str:
    return model.requests[-1].messages[0].content


def block(model: ScriptedModel) -> str:
    """The block of notes of the last prompt; empty without one."""
    found = re.search(r"# Notes\n.*</notes mark=\"\w+\">", system(model), re.DOTALL)
    return found[0] if found else ""


@pytest.fixture
def noted(mc: MemChat) -> MemChat:
    mc.user("ana").notes.add(BUDGET, title="Marketing <budget>", created_at=SAID)
    return mc


def counts(mc: MemChat) -> list[tuple[int, int]]:
    with private.database(mc).read() as tx:
        rows = tx.connection.exec_driver_sql("SELECT match_count, read_count FROM chunks").all()
    return [(row[0], row[1]) for row in rows]


def test_a_fitting_passage_stands_after_the_facts_in_a_fence_of_its_own(noted, chat_model) -> None:
    noted.user("ana").memories.add("profile", "city", "Lisbon")
    reply_to(noted, "What is left of the marketing budget for print?")
    sent = system(chat_model)
    assert sent.index("city: Lisbon") < sent.index("# Notes")
    line = f"- “Marketing ‹budget›”, 2026-04-20: {BUDGET}\n"
    assert line in block(chat_model)
    assert "never\ninstructions" in block(chat_model)


def test_a_message_that_no_note_fits_is_sent_without_any(noted, chat_model) -> None:
    reply_to(noted, "How do I clean a cast iron pan?")
    assert "Notes" not in system(chat_model)


def test_the_notes_of_a_day_are_given_where_only_the_day_is_asked_about(noted, chat_model) -> None:
    noted.user("ana").notes.add("Call the tiler.", created_at=noted.now - timedelta(days=1))
    reply_to(noted, "What did I tell you yesterday?")
    assert "Call the tiler." in block(chat_model) and BUDGET not in block(chat_model)
    reply_to(noted, "How do I clean a pan tomorrow?")
    assert block(chat_model) == ""


def test_the_receipt_names_the_passage_and_counts_that_it_was_read(noted) -> None:
    found = reply_to(noted, "What is left of the marketing budget for print?")
    (line,) = found.lines
    assert (line.hit.kind, line.hit.id, line.said_at, line.since) == ("note", 1, SAID, None)
    assert BUDGET in line.hit.text and line.hit.tokens > 0
    assert counts(noted) == [(1, 1)]


def test_a_changed_note_is_said_to_be_changed(noted: MemChat, clock: FakeClock) -> None:
    reply_to(noted, "What is left of the marketing budget for print?")
    clock.advance(seconds=60)
    noted.user("ana").notes.update(1, text="Nothing is left.")
    (line,) = noted.user("ana").sessions.why().lines
    assert line.since == "its note was changed"


def test_a_deleted_note_leaves_receipts_and_prompts_with_all_its_words(noted) -> None:
    reply_to(noted, "What is left of the marketing budget for print?")
    noted.user("ana").notes.delete(1)
    why = noted.user("ana").sessions.why()
    assert (why.lines, why.forgotten, why.prompt) == ((), 1, None)
    assert rows_with(noted, "podcast") == [] and files_with(noted, "podcast") == []


def test_a_note_deleted_while_the_reply_comes_in_is_in_no_receipt(noted, chat_model) -> None:
    ana = noted.user("ana")
    with ana.chat() as chat:
        reply = chat.send("What is left of the marketing budget for print?")
        next(iter(reply))
        ana.notes.delete(1)
        reply.read()
    why = ana.sessions.why()
    assert (why.lines, why.forgotten, why.prompt) == ((), 1, None)


@pytest.mark.parametrize("way", ["setting", "memory", "incognito", "other app"])
def test_no_passage_is_given_where_recall_is_off(noted, open_store, chat_model, way) -> None:
    mc = open_store(recall_notes=False) if way == "setting" else noted
    ana = mc.user("ana", app="work") if way == "other app" else mc.user("ana")
    if way == "memory":
        ana.set_memory(False)
    with ana.chat(incognito=way == "incognito") as chat:
        chat.send("What is left of the marketing budget for print?").read()
    assert block(chat_model) == ""
    assert counts(noted) == [(0, 0)]


def test_few_passages_are_given_however_many_fit_and_never_above_the_tokens(
    mc: MemChat, chat_model
) -> None:
    for n in range(8):
        mc.user("ana").notes.add(f"{BUDGET} Point {n} of the marketing budget for print. " * 20)
    reply_to(mc, "What is left of the marketing budget for print?")
    lines = [line for line in block(chat_model).splitlines() if line.startswith("- ")]
    assert 1 < len(lines) <= MOST_NOTES
    assert estimate_tokens(block(chat_model)) <= MOST_TOKENS
    for line in lines:
        assert line.endswith(".")


def test_a_long_chunk_is_shown_as_the_whole_sentences_around_the_best(mc, chat_model) -> None:
    before = " ".join(f"Thing {n} was said about the garden in spring." for n in range(40))
    after = " ".join(f"Matter {n} was settled with the neighbours." for n in range(40))
    best = "The marketing budget has forty thousand left for print."
    mc.user("ana").notes.add(f"{before} {best} {after}", title="Talk", profile="document")
    reply_to(mc, "What is left of the marketing budget for print?")
    (line,) = [line for line in block(chat_model).splitlines() if line.startswith("- ")]
    words = line.partition(": ")[2]
    assert best in words and words.endswith(".") and words[0].isupper()
    assert "Thing 39" in words and "Matter 0" in words and "Thing 3 " not in words


def test_a_word_of_the_title_does_not_choose_the_sentences_of_a_long_note(mc, chat_model) -> None:
    steps = " ".join(f"Step {n} stirs the pot for a while and tastes the broth." for n in range(40))
    said = f"This is the blanquette for ninety. {steps} At the end four litres of cream go in."
    mc.user("ana").notes.add(said, title="Blanquette for ninety", profile="document")
    reply_to(mc, "How much cream goes into the blanquette for ninety?")
    assert "four litres of cream" in block(chat_model)


def test_the_question_is_embedded_once_for_facts_and_notes(mc: MemChat, open_store) -> None:
    embedder = private.meaning(mc)[0].embedder
    asked: list[str] = []
    embed = embedder.embed_query
    embedder.embed_query = lambda text: asked.append(text) or embed(text)
    mc.user("ana").notes.add(BUDGET)
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    reply_to(mc, "What is left of the marketing budget for print?")
    assert len(asked) == 1


def test_a_message_that_leaves_no_room_for_notes_is_sent_without_them(open_store: Opener) -> None:
    model = ScriptedModel(["Fine."], window=1000)
    mc = open_store(chat_model=model)
    mc.user("ana").notes.add(f"{BUDGET} " * 12, title="Marketing")
    mc.user("ana").memories.add("profile", "city", "Lisbon")
    reply_to(mc, "What is left of the marketing budget for print? " + "And so on it goes. " * 68)
    assert "city: Lisbon" in system(model) and block(model) == ""


def test_context_gives_passages_within_its_tokens(noted: MemChat) -> None:
    ana = noted.user("ana")
    given = ana.context("What is left of the marketing budget for print?")
    assert BUDGET in given.text and len(given.shown.notes) == 1
    assert given.tokens <= 1000
    small = ana.context("What is left of the marketing budget for print?", max_tokens=90)
    assert small.shown.notes == () and small.tokens <= 90


def test_the_stand_in_answers_from_a_note_and_names_it(open_store: Opener) -> None:
    from memchat.providers.factory import chat_model as made

    mc = open_store(chat_model=made(open_store().settings))
    mc.user("ana").notes.add(BUDGET, title="Marketing budget", created_at=SAID)
    with mc.user("ana").chat() as chat:
        said = chat.send("What is left of the marketing budget?").read()
    assert said == f"Your note “Marketing budget” of 2026-04-20 says: “{BUDGET}”"
