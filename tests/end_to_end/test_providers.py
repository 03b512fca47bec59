"""The whole main job over each provider's wire, and everything a provider can do wrong.

Real litellm, google-genai, SQLite and FAISS; the double stands at the provider's door and checks
what it is sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memchat import MemChat, MemChatError, config
from memchat.language.secrets import mask
from memchat.testing import FakeClock
from tests.support import empty_store
from tests.support.answers import answer, fact
from tests.support.second_look import HOLDS
from tests.support.secrets import SECRET
from tests.support.store import WAIT
from tests.support.wire.gemini import GeminiServer
from tests.support.wire.openai import OpenAIServer
from tests.support.wire.server import Cut, Empty, Fail, Hang, Raw, Say, Step, WireServer

LISBON = answer(fact("I moved to Lisbon", "city", "Lisbon"), title="Moving", summary="")


def scripted(messages: list[dict[str, Any]]) -> str:
    """A model that chats, reads a session when it is shown one, and finds that a proposal holds."""
    sent = json.dumps(messages)
    if "candidates" in sent:
        return HOLDS
    return LISBON if "transcript" in sent else "Lisbon is lovely."


@pytest.fixture(params=["openai", "gemini"])
def server(request: pytest.FixtureRequest) -> Iterator[WireServer]:
    kind = {"openai": OpenAIServer, "gemini": GeminiServer}[request.param]
    with kind(reply=scripted) as wire:
        yield wire


@pytest.fixture
def mc(
    server: WireServer, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MemChat]:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    # A question's vector comes before its reply here, so that it never takes a later step's place.
    patience = {"MEMCHAT_EMBED_PATIENCE": str(WAIT)}
    env = {
        "MEMCHAT_HOME": str(empty_store.place(tmp_path / "store")),
        "MEMCHAT_TIMEOUT": "5",
        **patience,
    }
    if isinstance(server, OpenAIServer):
        server.dimensions = 1536
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        env |= {"OPENAI_API_KEY": server.key}
    else:
        server.dimensions = 768
        monkeypatch.setenv("GEMINI_API_KEY", server.key)
        env |= {"GEMINI_API_KEY": server.key, "GEMINI_API_BASE": server.url}
    with MemChat(settings=config.load(env), clock=clock) as store:
        yield store


def test_no_request_over_a_note_holds_its_secrets(mc: MemChat, server: WireServer) -> None:
    ana, hidden = mc.user("ana"), [*SECRET[::12], ("PIN 4821", "4821", "password")]
    text = f"The plumber came. {'; '.join(line for line, _, _ in hidden)}."
    ana.notes.add(text, title="Plumber: PIN 4821")
    asked = mask(text)  # the double's vectors are near only for equal texts
    with ana.chat() as chat:
        chat.send(asked).read()
    assert ana.notes.ask(asked).read() and ana.notes.ask(asked, mode="summary").read()
    sent = [json.dumps(request.body, ensure_ascii=False) for request in server.requests]
    assert sum("Plumber: PIN [password]" in body for body in sent) == 3
    assert [secret for _, secret, _ in hidden if any(secret in body for body in sent)] == []


def test_a_conversation_is_held_read_embedded_and_used_with_one_key_set(
    mc: MemChat, server: WireServer
) -> None:
    ana = mc.user("ana")
    with ana.chat() as chat:
        assert chat.notice() is None
        assert chat.send("I moved to Lisbon last week.").read() == "Lisbon is lovely."
    assert chat.failure is None and chat.learned is not None
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]
    before = len(server.requests)
    reply = ana.chat().send("Where was it again?")
    assert reply.read() and [hit.memory.value for hit in reply.shown.listed] == ["Lisbon"]
    assert "Lisbon" in json.dumps(server.requests[-1].body)
    assert len(server.requests) - before == 2, "one embedding of the question, one chat call"
    assert server.refusals == []
    assert {u.purpose for u in ana.usage()} == {"chat", "extract", "verify", "embed"}


def test_a_session_end_costs_a_reading_a_look_and_one_embedding_batch(
    mc: MemChat, server: WireServer
) -> None:
    chat = mc.user("ana").chat()
    chat.send("I moved to Lisbon last week.").read()
    before = len(server.requests)
    chat.end()
    assert len(server.requests) - before == 3


def test_adding_by_hand_waits_for_no_provider_and_the_next_work_catches_up(
    mc: MemChat, server: WireServer
) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    assert mc.jobs.embed().count == 0, "a remote service is not asked by a one-shot command"
    assert server.requests == []
    found = ana.search("Lisbon")
    assert found.hits[0].channel == "words"
    assert "1 fact is searched by its words" in (found.degraded or "")
    assert len(server.requests) == 1, "a search asks for its question's vector alone"
    assert mc.jobs.run(user="ana").done == 1
    assert ana.search("Lisbon").hits[0].channel == "both"


FACTS = [fact("I moved to Lisbon", "note", f"{c} Lisbon") for c in "abcdefghijklmno"]
FAULTS: dict[str, list[Step]] = {
    "an internal error": [Fail(500)],
    "an overloaded server": [Fail(503)],
    "a wish to wait": [Fail(429, retry_after="7", retry_delay="7s")],
    "a rejected key": [Fail(401)],
    "silence": [Hang(10)],
    "an empty answer": [Empty()],
    "prose twice": [Say("Here is what I found!"), Say("As I said.")],
    "broken JSON twice": [Say('{"facts": [{"quo'), Say('{"facts"')],
    "no JSON at all": [Raw("<html>down</html>")],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_provider_that_fails_at_the_reading_loses_nothing_and_costs_few_calls(
    mc: MemChat, server: WireServer, clock: FakeClock, name: str
) -> None:
    ana = mc.user("ana")
    chat = ana.chat()
    chat.send("I moved to Lisbon last week.").read()
    before = len(server.requests)
    server.script(*FAULTS[name])
    chat.end()
    assert len(server.requests) - before <= 3
    assert chat.learned is None
    assert chat.failure and "\n" not in chat.failure and server.key not in chat.failure
    assert ana.sessions.list()[0].status == "pending"
    assert len(ana.sessions.messages(chat.session_id or 0)) == 2
    server.steps.clear()
    clock.advance(seconds=60)
    assert [one.count("added") for one in mc.jobs.run().learned] == [1]
    assert [m.value for m in ana.memories.list()] == ["Lisbon"]


@pytest.mark.parametrize("asked", ["inf", "1e300", "1e11", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_a_conversation_is_read_within_an_hour_however_long_the_provider_wants_to_be_left_alone(
    mc: MemChat, server: WireServer, clock: FakeClock, asked: str
) -> None:
    chat = mc.user("ana").chat()
    chat.send("I moved to Lisbon last week.").read()
    server.script(Fail(429, retry_after=asked))
    chat.end()
    assert chat.failure and chat.failure.endswith("try again in 3600 s")
    clock.advance(seconds=3_599)
    assert mc.jobs.run().learned == []
    clock.advance(seconds=1)
    assert [one.count("added") for one in mc.jobs.run().learned] == [1]


@pytest.mark.parametrize("name", [n for n in FAULTS if "twice" not in n])
def test_a_provider_that_fails_at_the_reply_loses_no_message(
    mc: MemChat, server: WireServer, name: str
) -> None:
    ana = mc.user("ana")
    ana.set_memory(False, all_apps=True)  # the only call is then the reply's
    chat = ana.chat()
    server.script(*FAULTS[name])
    with pytest.raises(MemChatError) as caught:
        chat.send("I moved to Lisbon last week.").read()
    assert "\n" not in str(caught.value) and server.key not in str(caught.value)
    turns = ana.sessions.messages(chat.session_id or 0)
    assert [(t.role, t.content) for t in turns] == [("user", "I moved to Lisbon last week.")]
    server.steps.clear()
    assert chat.send("Hello?").read() == "Lisbon is lovely."


def test_a_reply_cut_off_is_kept_as_far_as_it_came(mc: MemChat, server: WireServer) -> None:
    ana = mc.user("ana")
    ana.set_memory(False, all_apps=True)
    chat = ana.chat()
    server.script(Cut("Lisbon is"))
    with pytest.raises(MemChatError):
        chat.send("I moved to Lisbon last week.").read()
    turns = ana.sessions.messages(chat.session_id or 0)
    assert (turns[-1].role, turns[-1].status) == ("assistant", "partial")
    assert turns[-1].content.startswith("Lisbon")


def test_fifteen_facts_of_one_quote_are_judged_one_by_one(mc: MemChat, server: WireServer) -> None:
    chat = mc.user("ana").chat()
    chat.send("I moved to Lisbon last week.").read()
    server.script(Say(answer(*FACTS)), Say(answer(*FACTS[10:])))
    chat.end()
    assert chat.failure is None and chat.learned is not None
    assert len(chat.learned.changes) == 15, "ten a call, and the rest asked for"
