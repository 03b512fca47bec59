"""Of a very long message the beginning and the end are read, or all of it if that is asked for."""

from __future__ import annotations

import pytest

from memchat import LongMessage, MemChat, NotFound
from memchat.learn import model_calls
from memchat.learn.candidate import Turn
from memchat.testing import ScriptedModel
from tests.support.answers import answer
from tests.support.conversation import sent_data
from tests.support.leftovers import files_with, rows_with
from tests.support.long_text import WINDOW, calls, long_text, reader, reads_facts
from tests.support.store import NOON, Opener

ALL = 23


@pytest.fixture
def extract_model() -> ScriptedModel:
    return reader()


@pytest.fixture
def chat_model() -> ScriptedModel:
    return ScriptedModel(["Fine."] * 10, window=1_000_000)


def values(mc: MemChat) -> set[str]:
    return {memory.value for memory in mc.user("ana").memories.list()}


def proofs(mc: MemChat) -> dict[str, int]:
    """Where in its message each quote stands."""
    ana = mc.user("ana")
    found = [proof for m in ana.memories.list() for proof in ana.memories.evidence(m.id)]
    return {proof.quote: proof.start for proof in found}


def test_its_beginning_and_end_are_read_and_the_result_says_so(mc, extract_model) -> None:
    text = long_text()
    with mc.user("ana").chat() as chat:
        chat.send(text).read()
    assert calls(extract_model) == model_calls.MOST_WINDOWS
    assert chat.learned is not None and chat.learned.shortened == 1
    assert values(mc) == {"Lisbon", "Otto"}
    assert proofs(mc) == {words: text.index(words) for words in proofs(mc)}
    told = [
        "are left out]" in sent_data(extract_model, n)["transcript"][0]["text"] for n in range(8)
    ]
    assert told == [False, False, False, True, True, False, False, False]


def test_all_of_it_is_read_where_that_was_asked_for_with_the_message(mc, extract_model) -> None:
    text = long_text()
    chat = mc.user("ana").chat()
    chat.send(text, read_all=True).read()
    chat.end(wait=False)
    (learned,) = mc.jobs.run().learned
    assert calls(extract_model) == ALL and learned.shortened == 0
    assert values(mc) == {"Lisbon", "Zanzibar", "Otto"}
    assert proofs(mc) == {words: text.index(words) for words in proofs(mc)}


def test_a_message_of_as_many_windows_as_are_read_is_read_whole() -> None:
    def cut(characters: int) -> list[model_calls.Window]:
        turn = Turn("u1", "user", long_text(characters), NOON, 1)
        whole = not model_calls.is_long(turn.text, WINDOW)
        return model_calls.cut([turn], 0, WINDOW, () if whole else {1})

    assert len(cut(26_000)) == len(cut(28_000)) == len(cut(200_000)) == model_calls.MOST_WINDOWS
    shown = [line.text for window in cut(28_000) for line in window.transcript]
    assert any("Zanzibar" in words for words in shown)
    assert not any("Zanzibar" in line.text for w in cut(200_000) for line in w.transcript)


def test_all_of_it_can_be_read_later(mc, extract_model) -> None:
    ana, text = mc.user("ana"), long_text()
    chat = ana.chat()
    chat.send(text).read()
    chat.end()
    (said, _) = ana.sessions.messages(chat.session_id)
    assert ana.sessions.read_all(said.id).status == "pending"
    (learned,) = mc.jobs.run().learned
    assert calls(extract_model) == model_calls.MOST_WINDOWS + ALL and learned.shortened == 0
    assert values(mc) == {"Lisbon", "Zanzibar", "Otto"}
    assert ana.sessions.get(chat.session_id).status == "extracted"
    assert proofs(mc)["I moved to Zanzibar"] == text.index("I moved to Zanzibar")
    ana.sessions.read_all(said.id)  # a second time nothing is left to do
    assert mc.jobs.run().learned == []


def test_what_is_asked_for_while_it_is_read_is_done_next(open_store: Opener, chat_model) -> None:
    asked = []

    def asks(messages) -> str:
        if not asked:
            asked.append(mc.user("ana").sessions.read_all(message_id))
        return reads_facts(messages)

    extract_model = reader(asks)
    mc = open_store(extract_model=extract_model)
    chat = mc.user("ana").chat()
    chat.send(long_text()).read()
    message_id = chat.turns[0].id
    chat.end(wait=False)
    mc.jobs.run()
    assert calls(extract_model) == model_calls.MOST_WINDOWS + ALL
    assert "Zanzibar" in values(mc)


def test_what_it_takes_to_read_it_is_known_before(mc, extract_model) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("Hello.").read()
    chat.send(long_text()).read()
    (found,) = ana.sessions.long_messages(chat.session_id)
    said = chat.turns[2]
    assert (found.message_id, found.characters) == (said.id, len(said.content))
    assert (found.calls, found.calls_for_all, found.read_all) == (
        model_calls.MOST_WINDOWS,
        ALL,
        False,
    )
    assert found.cost_for_all is None and found.model == extract_model.name
    assert found.effort == f"23 calls, about {found.tokens_for_all:,} tokens"
    ana.sessions.read_all(said.id)
    assert [one.read_all for one in ana.sessions.long_messages(chat.session_id)] == [True]
    with pytest.raises(NotFound):
        mc.user("bo").sessions.read_all(said.id)
    with pytest.raises(NotFound):
        mc.user("bo").sessions.long_messages(chat.session_id)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (0.0, "free"),
        (0.004, "less than $0.01"),
        (0.123, "about $0.12"),
        (None, "about 9,000 tokens"),
    ],
)
def test_the_effort_is_said_in_words(cost: float | None, words: str) -> None:
    long = LongMessage(1, 80_000, False, 8, 62, 9_000, cost, "a/model")
    assert long.effort == f"62 calls, {words}"


def test_with_memory_off_nothing_is_asked_about_a_long_message(mc) -> None:
    ana = mc.user("ana")
    ana.set_memory(False)
    chat = ana.chat()
    chat.send(long_text()).read()
    assert ana.sessions.long_messages(chat.session_id) == []


def test_added_conversations_take_beginning_and_end_or_all(mc, extract_model) -> None:
    ana = mc.user("ana")
    learned = ana.add(long_text())
    assert (learned.shortened, calls(extract_model)) == (1, model_calls.MOST_WINDOWS)
    assert values(mc) == {"Lisbon", "Otto"}
    learned = ana.add(long_text(), read_all=True)
    assert (learned.shortened, calls(extract_model)) == (0, model_calls.MOST_WINDOWS + ALL)
    assert "Zanzibar" in values(mc)


def test_words_of_the_part_that_was_not_read_are_forgotten_too(open_store, chat_model) -> None:
    mc = open_store(extract_model=ScriptedModel([answer()] * 20, window=WINDOW))
    ana = mc.user("ana")
    ana.add(long_text())
    memory = ana.memories.add("profile", "former_city", "Zanzibar")
    assert rows_with(mc, "Zanzibar")
    found = ana.mentions.find([memory.id])
    ana.memories.delete(memory.id, blank=found)
    assert rows_with(mc, "Zanzibar") == []
    assert files_with(mc, "Zanzibar") == []


def test_a_copied_long_message_is_read_where_it_was_said(mc, extract_model) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        chat.send(long_text()).read()
        chat.send("Thanks.").read()
    first, _, second, _ = ana.sessions.messages(chat.session_id)
    copy = ana.sessions.copy(chat.session_id, before=second.id)
    (copied, _) = ana.sessions.messages(copy.id)
    assert ana.sessions.long_messages(copy.id) == []
    before = calls(extract_model)
    assert ana.sessions.read_all(copied.id).id == first.session_id
    mc.jobs.run(user="ana")
    assert calls(extract_model) > before
    assert values(mc) == {"Lisbon", "Otto", "Zanzibar"}
    proved = {p.message_id for m in ana.memories.list() for p in ana.memories.evidence(m.id)}
    assert proved == {first.id}
