"""An embedding service that is slow, fails or is missing costs meaning and never the reply."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest

from memchat import MemChat
from memchat.errors import InputError, ProviderError, SchemaError
from memchat.providers.embedders import HashEmbedder
from memchat.search import embed as patience_room
from memchat.search import embeddings
from memchat.search.embed import LOST, STRETCH, QueryTimeout, Question
from memchat.testing import ScriptedModel
from memchat.types import Usage
from tests.support import private
from tests.support.answers import answer
from tests.support.embedders import Down
from tests.support.store import Opener

PATIENCE = 0.15
WAIT = 30.0
SPENT = Usage("embed", "hash/words", 1, 0, 0.0, 0.0)


class Slow(HashEmbedder):
    """Answers a question when it is told to; documents at once."""

    def __init__(self) -> None:
        self.go = Event()
        self.answered = Event()
        self.asked = 0

    def embed_query(self, text: str) -> tuple[Any, Usage]:
        self.asked += 1
        assert self.go.wait(WAIT)
        found = super().embed_query(text)
        self.answered.set()
        return found


class Breaks(HashEmbedder):
    """Somebody's own embedder, with a mistake in it."""

    def embed_query(self, text: str) -> tuple[Any, Usage]:
        raise ValueError(f"cannot read {text}")

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        raise KeyError(texts[0])


@pytest.fixture
def slow() -> Iterator[Slow]:
    embedder = Slow()
    yield embedder
    embedder.go.set()


FEW = 165
"""A budget in which a single fact is more than the facts' share, so that it has to be found."""


def kayak(open_store: Opener, embedder: object, **more: Any) -> MemChat:
    mc = open_store(embedder=embedder, embed_patience=PATIENCE, budget_tokens=FEW, **more)
    mc.user("ana").memories.add("fact", "boat", "a red kayak")
    mc.jobs.embed()
    return mc


def arrived(chat) -> None:
    """Wait until each late answer is there."""
    for one in private.late_queries(chat):
        assert one.future.result(WAIT)


def kept_question(mc: MemChat, text: str) -> bool:
    key = embeddings.query_hash(text)
    with private.database(mc).read() as tx:
        return bool(embeddings.get(tx, private.meaning(mc)[0].service_id, [key]))


def test_a_slow_service_leaves_the_reply_to_words_without_being_waited_for_any_longer(
    open_store, slow: Slow, monkeypatch
) -> None:
    monkeypatch.setattr(patience_room, "LOST", 0.0)  # it is asked, and waited for, in each turn
    mc = kayak(open_store, slow)
    ana = mc.user("ana")
    chat = ana.chat()
    for _ in range(2):  # the second turn, with everything loaded, is no different
        begun = time.perf_counter()
        reply = chat.send("the red kayak")
        assert reply.read() == "Fine."
        assert time.perf_counter() - begun >= PATIENCE
        # How fast a reply is stands in the benchmarks: on a busy machine a time tells nothing.
        assert slow.asked and not slow.answered.is_set()
    assert [hit.channel for hit in reply.shown.hits if hit.kind == "memory"] == ["words"]
    assert "did not answer within 0.15 s" in reply.shown.degraded
    assert "MEMCHAT_EMBED_PATIENCE" in reply.shown.degraded
    assert ana.sessions.why().degraded == reply.shown.degraded


def test_a_vector_that_comes_late_is_kept_for_the_next_time(open_store, slow: Slow) -> None:
    mc = kayak(open_store, slow)
    ana = mc.user("ana")
    chat = ana.chat()
    assert chat.send("the red kayak").read()
    assert not kept_question(mc, "the red kayak")
    slow.go.set()
    assert slow.answered.wait(WAIT)
    arrived(chat)
    reply = chat.send("the red kayak")
    assert reply.read() and reply.shown.degraded is None
    assert kept_question(mc, "the red kayak")
    assert any(total.purpose == "embed" for total in ana.usage())


def test_a_vector_that_comes_before_the_end_is_kept_at_the_end(
    open_store, slow: Slow, extract_model
) -> None:
    extract_model.replies.append('{"facts": [], "forget": [], "title": "", "summary": ""}')
    mc = kayak(open_store, slow)
    with mc.user("ana").chat() as chat:
        assert chat.send("the red kayak").read()
        slow.go.set()
        arrived(chat)
    assert kept_question(mc, "the red kayak")


def test_a_vector_that_comes_while_the_model_answers_is_kept_with_the_reply(open_store) -> None:
    slow = Slow()

    def reply(messages) -> str:
        slow.go.set()
        assert slow.answered.wait(WAIT)
        assert private.late_queries(chat)[-1].future.result(WAIT)
        return "Fine."

    mc = kayak(open_store, slow, chat_model=ScriptedModel([reply]))
    chat = mc.user("ana").chat()
    answered = chat.send("the red kayak")
    assert answered.read() and answered.shown.degraded
    assert kept_question(mc, "the red kayak")


def test_a_failing_service_leaves_words_and_says_why(open_store: Opener) -> None:
    mc = kayak(open_store, Down())
    ana = mc.user("ana")
    reply = ana.chat().send("the red kayak")
    assert reply.read() and [h.channel for h in reply.shown.hits if h.kind == "memory"] == ["words"]
    assert reply.shown.degraded == "searched by words only: the service is down"
    assert ana.sessions.why().degraded == reply.shown.degraded


def test_without_a_service_words_are_searched_and_it_is_said(open_store: Opener) -> None:
    mc = kayak(open_store, None, embed_model="none")
    ana = mc.user("ana")
    reply = ana.chat().send("the red kayak")
    assert reply.read() and [h.channel for h in reply.shown.hits if h.kind == "memory"] == ["words"]
    assert reply.shown.degraded and ana.sessions.why().degraded == reply.shown.degraded


def test_an_answer_outside_a_conversation_does_not_wait_either(open_store, slow: Slow) -> None:
    mc = kayak(open_store, slow)
    answer = mc.user("ana").answer("the red kayak")
    assert answer.text == "Fine." and answer.shown.degraded
    assert [hit.channel for hit in answer.shown.hits] == ["words"]


def test_a_service_that_answers_in_time_is_not_degraded(open_store: Opener) -> None:
    mc = open_store(embed_patience=WAIT)
    ana = mc.user("ana")
    reply = ana.chat().send("Hi")
    assert reply.read() and reply.shown.degraded is None and ana.sessions.why().degraded is None


def test_with_memory_off_no_service_is_asked(open_store, slow: Slow) -> None:
    mc = kayak(open_store, slow)
    ana = mc.user("ana")
    mc.user("ana", app="default").set_memory(False)
    assert ana.chat().send("the red kayak").read()
    assert ana.chat(incognito=True).send("the red kayak").read()
    assert slow.asked == 0


def test_a_store_of_another_service_is_an_error_and_no_slowness() -> None:
    def refuse(text: str) -> Question:
        raise SchemaError("the vectors are another service's")

    patience = QueryTimeout(WAIT, refuse)
    asked = patience.start("x")
    with pytest.raises(SchemaError):
        patience.wait(asked)
    assert asked.arrived() is None


def took_a_little_longer(patience: QueryTimeout) -> None:
    """As after an answer that came late, though not very late."""
    patience._last = 0.05 * (STRETCH - 1)


def test_a_service_known_to_take_a_little_longer_is_given_that_little() -> None:
    go = Event()

    def find(text: str) -> Question:
        assert text == "quick" or go.wait(WAIT)
        return Question(text, usage=SPENT)

    patience = QueryTimeout(0.05, find)
    took_a_little_longer(patience)
    begun = time.monotonic()
    late = patience.start("slow")
    assert patience.wait(late).degraded
    assert time.monotonic() - begun >= 0.05 * STRETCH
    go.set()
    assert late.future.result(WAIT)
    go.clear()
    assert patience.wait(patience.start("quick")).degraded is None  # and it is known as quick again
    assert "within 0.05 s" in (patience.wait(patience.start("slow")).degraded or "")
    go.set()


def test_a_service_that_hangs_after_a_slow_answer_is_waited_for_at_length_once(monkeypatch) -> None:
    monkeypatch.setattr(patience_room, "LOST", 0.0)
    go = Event()
    patience = QueryTimeout(
        0.05, lambda text: Question(text, degraded=None if go.wait(WAIT) else "?")
    )
    took_a_little_longer(patience)
    why = [patience.wait(patience.start("x")).degraded or "" for _ in range(3)]
    go.set()
    assert ["within 0.2 s" in one for one in why] == [True, False, False]
    assert all("within 0.05 s" in one for one in why[1:])


def test_a_service_that_hangs_is_asked_nothing_new_until_it_answers(monkeypatch) -> None:
    now, go, asked = [0.0], Event(), []

    def find(text: str) -> Question:
        asked.append(text)
        assert go.wait(WAIT)
        return Question(text, usage=SPENT)

    monkeypatch.setattr(patience_room.time, "monotonic", lambda: now[0])
    patience = QueryTimeout(0.05, find)
    first = patience.start("first")
    assert patience.start("at the same time").text and not first.future.done()
    now[0] += 0.05 * STRETCH + 0.01
    began = time.perf_counter()
    for n in range(30):
        refused = patience.wait(patience.start(f"later {n}"))
        assert refused.degraded and "owes an earlier answer" in refused.degraded
    assert time.perf_counter() - began < 1
    assert sorted(asked) == ["at the same time", "first"]
    now[0] += LOST  # what nobody answers for so long is lost
    patience.start("a trial")
    go.set()
    assert patience.wait(patience.start("at last"), WAIT).degraded is None


def test_an_embedder_that_breaks_costs_meaning_and_no_patience(open_store: Opener) -> None:
    mc = open_store(embedder=Breaks(), budget_tokens=FEW)
    ana = mc.user("ana")
    ana.memories.add("fact", "boat", "a red kayak")
    began = time.perf_counter()
    reply = ana.chat().send("the red kayak")
    assert reply.read() and time.perf_counter() - began < WAIT / 3
    for shown in (reply.shown, ana.search("the red kayak")):
        assert [hit.channel for hit in shown.hits if hit.kind == "memory"] == ["words"]
        assert "failed (ValueError)" in shown.degraded and "kayak" not in shown.degraded


def test_a_search_waits_unless_it_is_told_how_long(open_store, slow: Slow) -> None:
    mc = kayak(open_store, slow)
    ana = mc.user("ana")
    began = time.perf_counter()
    found = ana.search("the red kayak", timeout=PATIENCE)
    assert time.perf_counter() - began < WAIT / 10
    assert found.degraded and [hit.channel for hit in found.hits] == ["words"]
    slow.go.set()
    found = ana.search("the red kayak")
    assert found.degraded is None and found.hits[0].cosine is not None


def test_a_slow_service_does_not_hold_up_forgetting(open_store, slow: Slow) -> None:
    mc = kayak(open_store, slow)
    reply = mc.user("ana").chat().send("Forget what I said of the kayak, the red one")
    assert "a red kayak" in reply.read()


def test_a_slow_service_is_told_on_the_command_line_once(
    open_store, slow: Slow, monkeypatch, capsys
) -> None:
    from memchat.cli import chat as cli_chat

    mc = kayak(open_store, slow)
    chat, told = mc.user("ana").chat(), set[str]()
    for text in ("the red kayak", "the red kayak again"):
        assert cli_chat._turn(chat, text, told)
    assert capsys.readouterr().err.count("did not answer within 0.15 s") == 1


def test_the_first_question_waits_for_a_model_that_is_being_loaded_and_no_later_one(
    monkeypatch,
) -> None:
    monkeypatch.setattr(patience_room, "BUSY", 0.1)
    loaded, go = Event(), Event()

    def find(text: str) -> Question:
        assert (loaded if text == "first" else go).wait(WAIT)
        return Question(text, usage=SPENT)

    patience = QueryTimeout(0.05, find, local=True)
    first = patience.start("first")
    Timer(0.4, loaded.set).start()  # longer than any later question is waited for
    assert patience.wait(first).degraded is None
    assert "within 0.1 s" in (patience.wait(patience.start("later")).degraded or "")
    go.set()


def test_a_model_on_a_busy_machine_gets_a_second_and_a_service_does_not() -> None:
    go = Event()
    go.set()

    def find(text: str) -> Question:
        assert go.wait(WAIT)
        return Question(text, usage=SPENT)

    here, away = QueryTimeout(0.01, find, local=True), QueryTimeout(0.01, find)
    for patience in (here, away):
        assert patience.wait(patience.start("first"), WAIT).degraded is None
    go.clear()
    assert "within 0.01 s" in (away.wait(away.start("x")).degraded or "")
    late = here.start("x")
    Timer(0.2, go.set).start()  # as where others keep the processor
    assert here.wait(late).degraded is None


def test_a_model_that_does_not_load_in_time_is_waited_for_once(monkeypatch) -> None:
    monkeypatch.setattr(patience_room, "LOADING", 0.2)
    monkeypatch.setattr(patience_room, "BUSY", 0.1)
    monkeypatch.setattr(patience_room, "LOST", 0.0)
    go = Event()
    patience = QueryTimeout(
        0.05, lambda text: Question(text, degraded=None if go.wait(WAIT) else "?"), local=True
    )
    why = [patience.wait(patience.start("x")).degraded or "" for _ in range(2)]
    go.set()
    assert ["within 0.2 s" in why[0], "within 0.1 s" in why[1]] == [True, True]


# The end of a conversation


class Synonyms(HashEmbedder):
    """Knows that a puppy is a dog, which no search by words sees."""

    _service = replace(HashEmbedder._service, cosine_weight=0.7)

    def __init__(self) -> None:
        self.go = Event()
        self.together: list[list[str]] = []

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        return super().embed_documents([text.replace("puppy", "dog") for text in texts])

    def embed_query(self, text: str) -> tuple[Any, Usage]:
        assert self.go.wait(WAIT)
        return super().embed_query(text)

    def embed_queries(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        self.together.append(list(texts))
        return super().embed_queries(texts)


class OneByOne:
    """An embedder that takes one question a call: the least that one must be able to do."""

    def __init__(self) -> None:
        self._inner = Synonyms()
        self.go, self.service = self._inner.go, self._inner.service
        self.asked: list[str] = []
        self.embed_documents = self._inner.embed_documents

    def embed_query(self, text: str) -> tuple[Any, Usage]:
        found = self._inner.embed_query(text)
        self.asked.append(text)
        if "bad" in text:
            raise InputError("this text cannot be read")
        return found


SAID = ("My puppy barks all night", "That is a bad habit of his", "Does a puppy ever sleep?")


def known_at_the_end(
    open_store: Opener, extract_model: ScriptedModel, home: Path, embedder: Any, *, waits: bool
) -> list[dict[str, Any]]:
    """What the extraction model is shown as known after a chat that had its vectors, or not."""
    waited = WAIT if waits else 0.01
    mc = open_store(embedder=embedder, home=home, embed_patience=waited)
    ana = mc.user("ana")
    ana.memories.add("fact", "dog", "Bruno, a grey dog")
    ana.memories.add("fact", "boat", "a red kayak")
    mc.jobs.embed()
    if waits:
        embedder.go.set()
    extract_model.requests.clear()
    extract_model.replies.append(answer())
    with ana.chat() as chat:
        for text in SAID:
            reply = chat.send(text)
            assert reply.read() and (waits or private.late_queries(chat))
        if isinstance(embedder, OneByOne):
            embedder.go.set()  # what is asked one by one is asked at the end in the same way
    assert chat.failure is None
    (request,) = extract_model.requests
    known: list[dict[str, Any]] = json.loads(request.messages[1].content.split("\n")[1])["known"]
    embedder.go.set()
    return known


@pytest.mark.parametrize("kind", [Synonyms, OneByOne])
def test_what_is_shown_as_known_at_the_end_does_not_depend_on_how_quick_the_service_was(
    open_store, extract_model, tmp_path, kind
) -> None:
    quick, slow = (
        known_at_the_end(open_store, extract_model, tmp_path / str(waits), kind(), waits=waits)
        for waits in (True, False)
    )
    assert quick == slow and slow[0]["value"] == "Bruno, a grey dog"


def test_the_messages_that_the_chat_had_no_vector_of_are_asked_for_in_one_call(
    open_store, extract_model, tmp_path
) -> None:
    quick, slow = Synonyms(), Synonyms()
    known_at_the_end(open_store, extract_model, tmp_path / "quick", quick, waits=True)
    known_at_the_end(open_store, extract_model, tmp_path / "slow", slow, waits=False)
    assert quick.together == [] and slow.together == [list(SAID)]


def test_a_service_that_fails_at_the_end_leaves_the_known_facts_to_words(
    open_store, extract_model, tmp_path
) -> None:
    class FailsAtTheEnd(Synonyms):
        def embed_queries(self, texts: Sequence[str]) -> tuple[Any, Usage]:
            raise ProviderError("the service is down", retryable=True)

    embedder = FailsAtTheEnd()
    known = known_at_the_end(open_store, extract_model, tmp_path, embedder, waits=False)
    newest_first = ["a red kayak", "Bruno, a grey dog"]
    assert [one["value"] for one in known] == newest_first
