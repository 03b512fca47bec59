"""Chat completions over HTTP: OpenAI's own client, a provider of the test's own, and the store."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import uvicorn

from memchat import AsyncMemChat, ConfigError, MemChat, User
from memchat.config import Settings
from memchat.config.keys import ClientToken, Keys
from memchat.http.server import app_of
from memchat.providers.embedders import HashEmbedder
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact
from tests.support.store import WAIT
from tests.support.wire.openai import OpenAIServer
from tests.support.wire.server import Call, Endless, Fail, Say


class Tokens(dict[str, ClientToken]):
    """The tokens of the programs."""


TOKENS = Tokens(
    notes=ClientToken("notes", "trust", "t-trust"), page=ClientToken("page", "ask", "t-ask")
)
CITY = {"role": "user", "content": "I live in Porto."}
WHERE = {"role": "user", "content": "Where do I live?"}


@dataclass
class Served:
    """A store that is served."""

    url: str
    mc: MemChat
    provider: OpenAIServer
    extract_model: ScriptedModel

    @property
    def ana(self) -> User:
        return self.mc.user("ana")

    def __post_init__(self) -> None:
        self._clients: list[openai.OpenAI] = []

    def client(self, token: str = "t-trust", **more: Any) -> openai.OpenAI:
        made = openai.OpenAI(base_url=f"{self.url}/v1", api_key=token, max_retries=0, **more)
        self._clients.append(made)
        return made

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def ask(self, *messages: dict[str, Any], token: str = "t-trust", **more: Any) -> Any:
        return self.client(token).chat.completions.create(
            model="memchat",
            messages=list(messages),  # type: ignore[arg-type]
            **more,
        )

    def sent(self) -> list[dict[str, Any]]:
        """The messages that the provider was sent last."""
        messages: list[dict[str, Any]] = self.provider.requests[-1].body["messages"]
        return messages

    def conversations(self) -> list[list[tuple[str, str]]]:
        """What is kept, the first conversation first."""
        kept = sorted(self.ana.sessions.list(), key=lambda one: one.id)
        return [[(m.role, m.content) for m in self.ana.sessions.messages(s.id)] for s in kept]

    def read(self) -> None:
        """Have the conversations read now."""
        for session in self.ana.sessions.list():
            self.ana.sessions.end(session.id)
        self.mc.jobs.run()


@contextmanager
def serving(home: Path, **changes: Any) -> Iterator[Served]:
    with OpenAIServer() as provider:
        settings = Settings(
            home=home,
            chat_model="openai/gpt-4.1-mini",
            embed_patience=WAIT,
            addresses={"OPENAI_BASE_URL": provider.base},
            keys=Keys({"OPENAI_API_KEY": (provider.key, "a test")}),
        ).with_(**changes)
        model = ScriptedModel()
        awaited: Any = AsyncMemChat(
            settings=settings, extract_model=model, embedder=HashEmbedder(), chat_model=model
        )
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            app_of(awaited, "ana", "default", lambda: TOKENS), log_level="warning"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        until(lambda: server.started)
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            yield (served := Served(url, awaited._face, provider, model))
            served.close()
        finally:
            server.should_exit = True
            thread.join()
            awaited._face.close()


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "store") as one:
        yield one
    assert one.provider.refusals == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_what_is_known_goes_before_the_messages_and_what_is_said_is_kept(
    served: Served, stream: bool
) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    served.provider.script(Say("You live in Porto."))
    reply = served.ask({"role": "system", "content": "Be brief."}, WHERE, stream=stream)
    if stream:
        text = "".join(part.choices[0].delta.content or "" for part in reply if part.choices)
    else:
        text = reply.choices[0].message.content
    assert text == "You live in Porto."
    system, asked = served.sent()
    assert system["content"].startswith("Be brief.") and "city: Porto" in system["content"]
    assert asked == WHERE
    until(lambda: any(len(turns) == 2 for turns in served.conversations()))
    assert served.conversations() == [[("user", WHERE["content"]), ("assistant", text)]]


def test_all_else_of_a_request_and_of_an_answer_is_passed_on_as_it_is(served: Served) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    more = {"temperature": 0.3, "stop": ["END"], "seed": 7, "user": "u", "tools": [tool], "n": 1}
    served.provider.script(Say("Fine."))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}
    reply = served.ask(said, **more)
    sent = served.provider.requests[-1].body
    assert {name: sent[name] for name in more} == more
    assert sent["messages"][-1] == said and sent["model"] == "gpt-4.1-mini"
    assert reply.usage.total_tokens > 0 and reply.choices[0].finish_reason == "stop"


def test_the_rounds_of_a_tool_are_one_turn_of_one_conversation(served: Served) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    served.provider.script(Call((("look", "{}"),)), Say("It rains in Porto."))
    list(served.ask(WHERE, stream=True))
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    served.ask(WHERE, asked, {"role": "tool", "tool_call_id": "c", "content": "rain"})
    assert served.conversations() == [
        [("user", "Where do I live?"), ("assistant", "It rains in Porto.")]
    ]


def test_a_conversation_is_known_again_by_its_turns_and_only_what_is_new_is_added(
    served: Served,
) -> None:
    served.provider.script(Say("Noted."), Say("In Porto."), Say("Noted."), Say("Yes."))
    history: list[dict[str, Any]] = []
    for words in ("I live in Porto.", "Where do I live?"):
        history.append({"role": "user", "content": words})
        reply = served.ask(*history)
        history.append({"role": "assistant", "content": reply.choices[0].message.content})
    served.ask(CITY)  # another one that begins with the same words
    served.ask({"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}, WHERE)
    told = [(one["role"], one["content"]) for one in history]
    assert served.conversations() == [
        told,
        told[:2],
        [("user", "Where do I live?"), ("assistant", "Yes.")],  # of an unknown one, what is new
    ]


def test_the_headers_name_a_conversation_an_app_and_leave_memory_out(served: Served) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    for header in ({"X-Memchat-Session": "s"}, {"X-Memchat-Session": "s"}):
        served.ask(CITY, extra_headers=header)
    served.ask(CITY, extra_headers={"X-Memchat-App": "work"})
    served.ask(WHERE, extra_headers={"X-Memchat-Memory": "off"})
    assert served.sent() == [WHERE]
    assert len(served.conversations()) == 1
    assert len(served.mc.user("ana", "work").sessions.list()) == 1


def test_a_front_end_s_own_requests_are_answered_and_not_kept(served: Served) -> None:
    served.ana.memories.add("profile", "city", "Porto")
    task = {"role": "user", "content": "### Task:\nGenerate a title for the chat."}
    served.ask(task)
    assert served.sent() == [task] and served.conversations() == []


def test_what_a_program_sent_is_learned_as_its_mode_allows(served: Served) -> None:
    for token in ("t-ask", "t-trust"):
        said = fact("I live in Porto", "city" if token == "t-ask" else "hobby", "Porto")
        served.extract_model.replies.append(answer(said))
        served.ask(CITY, token=token)
        served.read()
    assert [m.key for m in served.ana.memories.list()] == ["hobby"]
    (waits,) = served.ana.inbox.list()
    assert waits.key == "city" and "page sent it as your words" in waits.reason


def test_a_client_that_goes_away_keeps_the_words_that_came(served: Served) -> None:
    served.provider.script(Endless())
    stream = served.ask(WHERE, stream=True)
    for _ in range(3):
        next(stream)
    stream.close()
    until(lambda: any(len(turns) == 2 for turns in served.conversations()))
    ((asked, said),) = served.conversations()
    assert asked == ("user", WHERE["content"]) and said[1]


def test_the_provider_s_own_errors_come_through_and_nothing_is_kept(served: Served) -> None:
    served.provider.script(Fail(429, "slow down"))
    with pytest.raises(openai.RateLimitError, match="slow down"):
        served.ask(WHERE)
    assert served.conversations() == []


def test_models_are_listed_and_an_unknown_one_is_refused_without_a_request(served: Served) -> None:
    with served.client() as client:
        assert [m.id for m in client.models.list()] == ["memchat", "openai/gpt-4.1-mini"]
        for name in ("nowhere/x", "http://127.0.0.1:1/x", "gemini/x"):
            with pytest.raises(openai.NotFoundError, match="there is no model"):
                client.chat.completions.create(model=name, messages=[WHERE])  # type: ignore[list-item]
        client.chat.completions.create(model="gpt-4o", messages=[WHERE])  # type: ignore[list-item]
    assert [r.body["model"] for r in served.provider.requests] == ["gpt-4o"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_without_the_format_gives_its_text_and_what_is_dropped_is_named(
    tmp_path: Path, stream: bool
) -> None:
    with serving(tmp_path / "store", chat_model="offline/chat") as served:
        served.ana.memories.add("preference", "tea", "green tea")
        with served.client() as client:
            raw = client.chat.completions.with_raw_response.create(
                model="memchat",
                messages=[{"role": "user", "content": "Which tea do I like?"}],
                temperature=0.1,
                stream=stream,
            )
            reply = raw.parse()
            parts = [p.choices[0].delta.content or "" for p in reply] if stream else []  # type: ignore
            text = "".join(parts) if stream else reply.choices[0].message.content  # type: ignore
        assert "green tea" in text
        assert raw.headers["x-memchat-dropped"] == "temperature"
        assert served.conversations()[0][1] == ("assistant", text)


REFUSED: dict[str, tuple[dict[str, str], int]] = {
    "no token": ({}, 401),
    "a wrong token": ({"authorization": "Bearer t-other"}, 401),
    "no bearer": ({"authorization": "Basic t-trust"}, 401),
    "another host": ({"authorization": "Bearer t-trust", "host": "evil.example"}, 421),
    "another origin": ({"authorization": "Bearer t-trust", "origin": "http://evil.example"}, 403),
    "another person": ({"authorization": "Bearer t-trust", "x-memchat-user": "ben"}, 403),
}


@pytest.mark.parametrize(("headers", "status"), REFUSED.values(), ids=REFUSED)
def test_who_is_not_let_in_gets_nothing(
    served: Served, headers: dict[str, str], status: int
) -> None:
    body = {"model": "memchat", "messages": [WHERE]}
    for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/x")):
        given = json.dumps(body) if method == "POST" else None
        said = httpx.request(method, served.url + path, headers=headers, content=given)
        assert said.status_code == status, (path, said.text)
        assert said.json()["error"]["message"]
    assert served.provider.requests == [] and served.conversations() == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"messages": "x"}', b'{"messages": [1]}', b'{"messages": [{"role": 1}]}',
     b"\xff" * 9],
)  # fmt: skip
def test_a_body_that_cannot_be_read_is_refused(served: Served, body: bytes) -> None:
    said = httpx.post(
        f"{served.url}/v1/chat/completions",
        content=body,
        headers={"authorization": "Bearer t-trust"},
    )
    assert said.status_code == 400 and said.json()["error"]["message"]
    assert served.provider.requests == []


def test_who_has_no_token_is_not_told_where_the_tokens_lie(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> None:
        raise ConfigError("/home/ana/mcp_tokens.toml is not private")

    monkeypatch.setattr(TOKENS, "values", unreadable)
    said = httpx.get(f"{served.url}/v1/models", headers={"authorization": "Bearer t-trust"})
    assert said.status_code == 503 and "/home/ana" not in said.text


def test_an_app_that_cannot_be_is_refused(served: Served) -> None:
    with pytest.raises(openai.BadRequestError, match="app name"):
        served.ask(CITY, extra_headers={"X-Memchat-App": "a" * 400})


def test_a_body_without_end_is_refused_at_the_limit(served: Served) -> None:
    def endless() -> Iterator[bytes]:
        yield from [b" " * 2**20] * 40

    with httpx.Client(headers={"authorization": "Bearer t-trust"}, timeout=WAIT) as client:
        try:
            said = client.post(f"{served.url}/v1/chat/completions", content=endless())
            assert said.status_code == 413
        except httpx.WriteError:
            pass  # the connection was closed first
    assert served.provider.requests == []
