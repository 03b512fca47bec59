"""Checks of the requirements that no single room holds: whole routes, as a person meets them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat, ProviderError
from memchat.config import load
from memchat.providers import ChatModel
from memchat.providers.offline import OfflineChat
from memchat.testing import FakeClock, Request, ScriptedModel
from memchat.tokens import estimate_tokens
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import sent_data, talk
from tests.support.second_look import sent
from tests.support.secrets import SECRET
from tests.support.store import Opener
from tests.support.whole_routes import values
from tests.support.wire import Empty, Fail, GeminiServer, OpenAIServer
from tests.support.wire.case import HELLO, chat_of

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
        yield OfflineChat(), lambda _: None
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
                assert chat.send("I moved to Lisbon.").read()
            assert chat.failure is None
            assert values(mc) == {"Lisbon"}
    (talked,), asked = far.requests, local.requests
    assert "gemini-2.5-flash:" in talked.path and "lite" not in talked.path
    assert [request.body["model"] for request in asked] == ["small-model-on-this-machine"] * 2


# Reading a conversation


@pytest.mark.slow
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
            assert chat.send(line).read()
            private.wait_for_reading(chat)
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
            assert reply.read() == "Fine."
            private.wait_for_reading(chat)
            assert len(extract.requests) == n
    turn = ["user complete", "assistant complete"]
    assert on_disk == [turn, turn * 2]


def test_a_conversation_gone_silent_is_ended_and_read_once(mc, extract_model, clock) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I moved to Lisbon", "city", "Lisbon")))
    chat = ana.chat()
    assert chat.send("I moved to Lisbon.").read()
    clock.advance(seconds=29 * 60)
    assert private.renew(chat) and ana.sessions.list()[0].status == "open"
    clock.advance(seconds=2 * 60)
    assert not private.renew(chat)
    assert ana.sessions.list()[0].status == "extracted" and values(mc) == {"Lisbon"}
    chat.end()
    assert [request.purpose for request in extract_model.requests] == ["extract", "verify"]


def test_what_was_open_when_the_store_closed_is_read_at_a_later_start(
    open_store: Opener, extract_model, clock
) -> None:
    first = open_store()
    assert first.user("ana").chat().send("I moved to Lisbon.").read()
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
    with private.database(mc).read() as tx:
        waiting = tx.connection.exec_driver_sql("SELECT value, reason FROM proposals").all()
    assert [row[0] for row in waiting] == [long] and "280" in waiting[0][1]
    asked = extract_model.requests[0].messages[0].content
    assert "at most 60 characters" in asked


@pytest.mark.slow
def test_nothing_sensitive_is_ever_saved_whatever_the_model_proposes(open_store: Opener) -> None:
    letters = [hidden for _, hidden, _ in SECRET if hidden.replace("-", "").isalpha()]

    def looks(request: Request) -> str:
        """Of letters alone a look must say that they are secret; what is left is code's."""
        asked = sent(request)["candidates"]
        held = {one["id"]: any(hidden in one["fact"] for hidden in letters) for one in asked}
        said = [{"id": n, "answer": "secret" if h else "holds"} for n, h in held.items()]
        return json.dumps({"verdicts": said})

    extract = ScriptedModel()
    extract.second_look = looks
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
    with private.database(mc).read() as tx:
        held = repr(tx.connection.exec_driver_sql("SELECT * FROM proposals").all())
    assert [hidden for _, hidden, _ in SECRET if hidden in held] == []
