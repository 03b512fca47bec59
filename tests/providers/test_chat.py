"""Chat models over the wire, against local servers that check requests as the real ones would."""

from __future__ import annotations

import gc
import json
import threading
import time
from email.utils import formatdate
from typing import Any

import pytest

from memchat.chat.turn import BackgroundStream
from memchat.errors import ConfigError, ProviderError
from memchat.learn import candidate
from memchat.providers.litellm_calls import ContextOverflow
from memchat.providers.litellm_chat import LiteLLMChat
from memchat.types import ChatMessage
from tests.support.chat_providers import KEY, failure
from tests.support.wire import (
    Cut,
    Empty,
    Endless,
    Fail,
    GeminiServer,
    Hang,
    OpenAIServer,
    Pieces,
    Raw,
    Say,
    WireServer,
)
from tests.support.wire.case import HELLO, chat_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "until": {"type": ["string", "null"]},
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"key": {"type": "string"}},
                "required": ["key"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["title", "until", "facts"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GEMINI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


def test_an_answer_comes_with_what_it_took(server: WireServer) -> None:
    done = chat_of(server).complete(HELLO, purpose="extract")
    assert done.text == "Hello there, friend."
    assert done.usage.purpose == "extract"
    assert done.usage.prompt_tokens > 0
    assert done.usage.completion_tokens > 0
    assert done.usage.cost_usd is not None
    assert 0 < done.usage.cost_usd < 0.01
    assert server.refusals == []


def test_a_stream_gives_every_piece_once_and_none_empty(server: WireServer) -> None:
    server.script(Say("one two three"))
    stream = chat_of(server).stream(HELLO)
    pieces = list(stream)
    assert pieces == ["one ", "two ", "three"]
    assert stream.usage.purpose == "chat"
    assert stream.usage.prompt_tokens > 0
    assert stream.usage.cost_usd is not None
    assert server.refusals == []
    assert len(server.requests) == 1


def test_the_usage_of_a_stream_is_the_providers_own(openai: OpenAIServer) -> None:
    openai.script(Say("x" * 400))
    stream = chat_of(openai).stream(HELLO)
    list(stream)
    assert stream.usage.completion_tokens == 101
    assert openai.requests[0].body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("status", "retryable", "says"),
    [
        (400, False, "refused the request"),
        (401, False, "refused the key in"),
        (403, False, "refused the key in"),
        (404, False, "check the model's name"),
        (408, True, "try again later"),
        (422, False, "refused the request"),
        (429, True, "in 7 s"),
        (500, True, "try again later"),
        (503, True, "try again later"),
    ],
)
def test_each_status_is_one_request_and_one_clear_line(
    server: WireServer, status: int, retryable: bool, says: str, streamed: bool
) -> None:
    server.script(Fail(status, f"no luck with {KEY}", retry_after="7"))
    error = failure(server, streamed=streamed)
    assert isinstance(error, ProviderError)
    assert error.status == status
    assert error.retryable is retryable
    assert says in str(error)
    assert error.retry_after == (7 if retryable else None)


def test_a_refused_request_says_why_but_not_in_peoples_words(server: WireServer) -> None:
    long = "my bank account is with the red bank in the high street"
    server.script(Fail(400, f"bad value: '{long}' near {KEY}"))
    message = str(failure(server, streamed=False))
    assert "bad value" in message
    assert long not in message


def test_a_date_in_retry_after_is_understood(openai: OpenAIServer) -> None:
    openai.script(Fail(429, retry_after=formatdate(time.time() + 1_200, usegmt=True)))
    error = failure(openai, streamed=False)
    assert isinstance(error, ProviderError)
    assert error.retry_after is not None
    assert 600 < error.retry_after <= 1_200


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        ("inf", 3_600),
        ("1e300", 3_600),
        ("1e11", 3_600),
        ("9" * 400, 3_600),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 3_600),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 3_600),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("-inf", 0),
        ("-5", 0),
        ("nan", 0),
        ("soon", None),
        ("Wed, 99 Oct 2015", None),
        ("", None),
    ],
)
def test_nobody_waits_longer_than_an_hour_whatever_the_provider_asks_for(
    openai: OpenAIServer, asked: str, waited: float | None, status: int
) -> None:
    openai.script(Fail(status, retry_after=asked))
    error = failure(openai, streamed=False)
    assert isinstance(error, ProviderError)
    assert error.retry_after == waited


def test_gemini_s_own_wish_is_followed_for_an_hour_at_most(gemini: GeminiServer) -> None:
    gemini.script(Fail(429, retry_delay=f"{'9' * 400}s"))
    error = failure(gemini, streamed=False)
    assert isinstance(error, ProviderError)
    assert error.retry_after == 3_600


@pytest.mark.parametrize("streamed", [False, True])
def test_gemini_s_own_wish_to_wait_is_understood(gemini: GeminiServer, streamed: bool) -> None:
    gemini.script(Fail(429, retry_delay="27s"))
    error = failure(gemini, streamed=streamed)
    assert isinstance(error, ProviderError)
    assert error.retry_after == 27


def test_a_spent_account_is_not_asked_again(openai: OpenAIServer) -> None:
    openai.script(Fail(429, "You exceeded your current quota", code="insufficient_quota"))
    error = failure(openai, streamed=False)
    assert isinstance(error, ProviderError)
    assert not error.retryable
    assert "no credit" in str(error)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_rejected_key_is_named_by_its_variable(
    server: WireServer, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "wrong-key-77aa01"
    monkeypatch.setenv("OPENAI_API_KEY", wrong)
    monkeypatch.setenv("GEMINI_API_KEY", wrong)
    error = failure(server, streamed=streamed)
    assert "_API_KEY" in str(error)
    assert wrong not in str(error)
    assert isinstance(error, ProviderError)
    assert not error.retryable


@pytest.mark.parametrize("model", ["gemini/gemini-2.5-flash", "openai/gpt-4.1-mini", "groq/x"])
def test_a_missing_key_is_found_before_any_call(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        ConfigError, match=rf"_API_KEY.*: run memchat keys set {model.split('/')[0]},"
    ):
        LiteLLMChat(model, timeout=0.5).stream(HELLO)


def test_a_name_without_a_known_provider_is_a_matter_of_settings() -> None:
    with pytest.raises(ConfigError, match="names no provider that is known"):
        LiteLLMChat("foo/bar", timeout=0.5).complete(HELLO, purpose="extract")


@pytest.mark.parametrize("streamed", [False, True])
def test_too_long_a_conversation_has_its_own_error(server: WireServer, streamed: bool) -> None:
    said = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
    server.script(Fail(400, said, code="context_length_exceeded"))
    error = failure(server, streamed=streamed)
    assert isinstance(error, ContextOverflow)
    assert not error.retryable
    assert "send less" in str(error)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_silent_provider_is_left_after_the_timeout(server: WireServer, streamed: bool) -> None:
    server.script(Hang(20))
    error = failure(server, streamed=streamed, timeout=0.5)
    assert isinstance(error, ProviderError)
    assert error.retryable
    assert "within 0.5 s" in str(error)


@pytest.mark.parametrize("model", ["openai/gpt-4.1-mini", "gemini/gemini-2.5-flash", "ollama/x"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_address_where_nobody_listens_cannot_be_reached(model: str, streamed: bool) -> None:
    chat = LiteLLMChat(model, timeout=10, api_base="http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError, match="cannot be reached") as caught:
        if streamed:
            list(chat.stream(HELLO))
        else:
            chat.complete(HELLO, purpose="extract")
    assert caught.value.retryable
    assert caught.value.status is None


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("body", ["<html>busy</html>", "{}", '{"choices": []}'])
def test_an_answer_in_no_known_form_is_an_error(
    server: WireServer, body: str, streamed: bool
) -> None:
    server.script(Raw(body))
    error = failure(server, streamed=streamed)
    assert isinstance(error, ProviderError)
    assert error.retryable
    assert error.status is None


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("openai_word", "gemini_word", "says"),
    [
        ("content_filter", "SAFETY", "content filter"),
        ("length", "MAX_TOKENS", "length"),
        ("stop", "STOP", "empty answer"),
    ],
)
def test_no_text_at_all_is_an_error_that_names_the_reason(
    server: WireServer, openai_word: str, gemini_word: str, says: str, streamed: bool
) -> None:
    server.script(Empty(gemini_word if isinstance(server, GeminiServer) else openai_word))
    error = failure(server, streamed=streamed)
    assert says in str(error)


def test_a_cut_stream_gives_its_pieces_and_then_an_error(server: WireServer) -> None:
    server.script(Cut("one two three"))
    stream = chat_of(server).stream(HELLO)
    came: list[str] = []
    with pytest.raises(ProviderError, match="broke off") as caught:
        for piece in stream:
            came.append(piece)
    assert "".join(came) == "one two three"
    assert caught.value.retryable
    assert len(server.requests) == 1
    assert stream.usage.completion_tokens > 0


def test_closing_a_stream_cuts_the_connection(server: WireServer) -> None:
    server.script(Endless())
    stream = chat_of(server, timeout=10).stream(HELLO)
    pieces = iter(stream)
    assert next(pieces).startswith("word")
    stream.close()
    stream.close()
    assert server.client_left.wait(10)
    assert list(pieces) == []
    assert stream.usage.completion_tokens > 0


@pytest.mark.parametrize("step", [Hang(300), Pieces(("one ", "two"), silence=300)])
def test_closing_a_stream_ends_it_at_once_though_the_provider_is_silent(
    server: WireServer, step: Hang | Pieces
) -> None:
    server.script(step)
    stream = BackgroundStream(chat_of(server, timeout=300).stream(HELLO))
    came: list[str] = []
    reader = threading.Thread(target=lambda: came.extend(stream))
    reader.start()
    while not server.requests or "".join(came) != "".join(getattr(step, "parts", ())):
        assert reader.is_alive()
    stream.close()
    reader.join(60)
    assert not reader.is_alive()
    assert not stream.whole


def test_a_stream_closed_before_its_first_word_cuts_the_connection_that_comes(
    server: WireServer,
) -> None:
    server.script(Endless())
    stream = chat_of(server, timeout=10).stream(HELLO)
    asking = threading.Thread(target=lambda: list(stream))
    asking.start()
    while not server.requests:
        assert asking.is_alive()
    stream.close()
    asking.join(60)
    assert server.client_left.wait(60)


def test_leaving_a_stream_cuts_the_connection(server: WireServer) -> None:
    server.script(Endless())
    for _ in chat_of(server, timeout=10).stream(HELLO):
        break
    gc.collect()
    assert server.client_left.wait(10)


def test_a_stream_closed_before_its_start_asks_nobody(server: WireServer) -> None:
    stream = chat_of(server).stream(HELLO)
    stream.close()
    assert list(stream) == []
    assert server.requests == []


def test_a_schema_goes_out_in_strict_mode_where_there_is_one(server: WireServer) -> None:
    model = chat_of(server)
    assert model.schema_mode
    server.script(Say(json.dumps({"title": "t", "until": None, "facts": []})))
    done = model.complete(HELLO, purpose="extract", schema=SCHEMA)
    assert json.loads(done.text)["title"] == "t"
    assert server.refusals == []
    sent = json.dumps(server.requests[0].body)
    assert "until" in sent
    assert "json_schema" in sent or "responseJsonSchema" in sent or "response_json_schema" in sent


def test_both_endpoints_take_the_schema_of_the_extraction(server: WireServer) -> None:
    chat_of(server).complete(HELLO, purpose="extract", schema=candidate.json_schema())
    assert server.refusals == []


def test_the_endpoint_would_refuse_a_loose_schema(openai: OpenAIServer) -> None:
    loose = {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}
    with pytest.raises(ProviderError, match="refused the request"):
        chat_of(openai).complete(HELLO, purpose="extract", schema=loose)
    assert "additionalProperties" in openai.refusals[0]


def test_a_model_without_schema_mode_is_sent_none(openai: OpenAIServer) -> None:
    model = chat_of(openai, model="openai/some-local-model")
    assert not model.schema_mode
    model.complete(HELLO, purpose="extract", schema=SCHEMA)
    assert "response_format" not in openai.requests[0].body
    assert openai.refusals == []


def test_a_conversation_keeps_its_roles_and_order(server: WireServer) -> None:
    turns = [*HELLO, ChatMessage("assistant", "Hello Ana."), ChatMessage("user", "Who am I?")]
    chat_of(server).complete(turns, purpose="chat")
    assert server.refusals == []
    body = server.requests[0].body
    sent = json.dumps(body.get("contents", body.get("messages")))
    assert sent.index("I am Ana") < sent.index("Hello Ana") < sent.index("Who am I")
