"""Chat models over the wire, against local servers that check requests as the real ones would."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest

from memchat.config import Settings, load
from memchat.errors import ConfigError, ProviderError
from memchat.memory.extraction import candidate
from memchat.providers.factory import chat_model, extract_model
from memchat.providers.litellm_chat import LiteLLMChat
from memchat.providers.model_choice import explain
from memchat.providers.provider_errors import ContextOverflow
from memchat.types import ChatMessage
from tests.wire import (
    Call,
    Cut,
    Empty,
    Endless,
    Fail,
    GeminiServer,
    Hang,
    OpenAIServer,
    Raw,
    Say,
    WireServer,
)
from tests.wire.case import HELLO, chat_of

KEY = "test-key-8d1f0a77c2"
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


@pytest.fixture(params=[OpenAIServer, GeminiServer], ids=["openai", "gemini"])
def server(request: pytest.FixtureRequest) -> Iterator[WireServer]:
    with request.param(key=KEY) as running:
        yield running


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer(key=KEY) as running:
        yield running


@pytest.fixture
def gemini() -> Iterator[GeminiServer]:
    with GeminiServer(key=KEY) as running:
        yield running


def failure(server: WireServer, *, streamed: bool, timeout: float = 10) -> Exception:
    """The error of one call, in either way of calling; it must be one clean line."""
    model = chat_of(server, timeout=timeout)
    with pytest.raises((ProviderError, ConfigError)) as caught:
        if streamed:
            list(model.stream(HELLO))
        else:
            model.complete(HELLO, purpose="extract")
    message = str(caught.value)
    assert KEY not in message
    assert "\n" not in message
    assert "Traceback" not in message
    assert "litellm." not in message
    assert len(message) < 300
    assert model.name in message
    assert len(server.requests) == 1
    return caught.value


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
    with pytest.raises(ConfigError, match=r"needs a key: set .*_API_KEY.*, or .*offline stand-in"):
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


def test_windows_come_from_litellm_then_the_setting_then_a_default() -> None:
    assert LiteLLMChat("gemini/gemini-2.5-flash", timeout=1).window > 1_000_000
    assert LiteLLMChat("openai/unheard-of", timeout=1).window == 8192
    assert LiteLLMChat("openai/unheard-of", timeout=10, context_tokens=4096).window == 4096
    assert LiteLLMChat("ollama/llama3.2", timeout=10, context_tokens=4096).window == 4096


def test_a_price_that_is_not_known_stays_unknown(openai: OpenAIServer) -> None:
    done = chat_of(openai, model="openai/some-local-model").complete(HELLO, purpose="chat")
    assert done.usage.cost_usd is None


def test_the_stand_in_answers_through_the_same_path() -> None:
    model = LiteLLMChat("offline/chat", timeout=1)
    assert model.stand_in
    stream = model.stream(HELLO)
    assert "".join(stream).strip()
    assert stream.usage.cost_usd == 0.0
    assert model.complete(HELLO, purpose="chat").text.strip()


def test_nothing_that_was_said_reaches_the_log(
    server: WireServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    server.script(Fail(500, f"I am Ana {KEY}"))
    with caplog.at_level(logging.WARNING):
        failure(server, streamed=True)
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err):
        assert "Ana" not in text
        assert KEY not in text


def test_the_settings_reach_gemini_at_its_other_address(gemini: GeminiServer) -> None:
    for base in (gemini.url, f"{gemini.url}/"):
        settings = load({"GEMINI_API_KEY": KEY, "GEMINI_API_BASE": base, "MEMCHAT_TIMEOUT": "10"})
        assert chat_model(settings).complete(HELLO, purpose="chat").text
        assert extract_model(settings).complete(HELLO, purpose="extract").text
    paths = [received.path for received in gemini.requests]
    assert paths[:2] == [
        "/v1beta/models/gemini-2.5-flash:generateContent",
        "/v1beta/models/gemini-2.5-flash-lite:generateContent",
    ]
    assert all(path.startswith("/v1beta/models/") for path in paths)


def test_openai_s_own_base_variable_is_honoured(
    openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai.base)
    settings = load({"OPENAI_API_KEY": KEY, "MEMCHAT_CHAT_MODEL": "openai/tiny-local"})
    assert chat_model(settings).complete(HELLO, purpose="chat").text
    assert openai.requests[0].path == "/v1/chat/completions"


def test_the_reasons_for_each_model_are_told_without_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load({"GEMINI_API_KEY": KEY})
    chat, extract, embed = explain(settings)
    assert (chat.model, extract.model) == (
        "gemini/gemini-2.5-flash",
        "gemini/gemini-2.5-flash-lite",
    )
    assert embed.model == "gemini/gemini-embedding-001"
    assert chat.why == "GEMINI_API_KEY is set"
    assert (chat.key, chat.key_set, chat.problem) == ("GEMINI_API_KEY", True, None)
    assert KEY not in repr((chat, extract, embed))
    monkeypatch.delenv("GEMINI_API_KEY")
    chat, _, embed = explain(settings)
    assert chat.problem == "GEMINI_API_KEY or GOOGLE_API_KEY is not set"
    assert chat.remedy is not None
    assert "MEMCHAT_CHAT_MODEL=ollama/llama3.2" in chat.remedy
    assert embed.remedy is not None
    assert "MEMCHAT_EMBED_MODEL=minilm" in embed.remedy


def test_a_model_without_a_provider_is_explained(tmp_path: Any) -> None:
    chat, _, _ = explain(Settings(home=tmp_path, chat_model="llama3"))
    assert chat.problem == "'llama3' names no provider"
    assert chat.remedy is not None
    assert "MEMCHAT_CHAT_MODEL" in chat.remedy


def test_explaining_and_building_load_no_provider_library() -> None:
    code = (
        "import sys; from memchat.config import load;"
        "from memchat.providers import factory, model_choice;"
        "s = load({'GEMINI_API_KEY': 'k'}); model_choice.explain(s); factory.chat_model(s);"
        "factory.extract_model(s); factory.embedder(s).service;"
        "factory.embedder(load({'OPENAI_API_KEY': 'k'})).service;"
        "print([m for m in ('litellm', 'google.genai', 'openai', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def tools() -> list[dict[str, Any]]:
    what = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    named = {"name": "forget", "description": "Forget it.", "parameters": what}
    bare = {"name": "list_all", "description": "List all."}
    return [{"type": "function", "function": function} for function in (named, bare)]


def names_sent(server: WireServer, request: int = -1) -> list[str]:
    sent = server.requests[request].body.get("tools", [])
    if isinstance(server, GeminiServer):
        sent = [{"function": f} for tool in sent for f in tool["function_declarations"]]
    return [tool["function"]["name"] for tool in sent]


def made(stream: Any) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in stream.calls]


def test_tools_go_with_the_request_only_where_they_are_given(server: WireServer) -> None:
    model = chat_of(server)
    list(model.stream(HELLO, tools()))
    list(model.stream(HELLO))
    assert model.tools
    assert (
        names_sent(server, 0) == ["forget", "list_all"] and "tools" not in server.requests[1].body
    )
    assert server.refusals == []


def test_a_call_streamed_in_several_parts_is_put_together(server: WireServer) -> None:
    server.script(Call((("forget", '{"what": "my city, Łódź"}'),)))
    stream = chat_of(server).stream(HELLO, tools())
    assert list(stream) == []
    assert made(stream) == [("forget", {"what": "my city, Łódź"})]
    assert stream.usage.prompt_tokens > 0 and len(server.requests) == 1


def test_two_calls_at_once_and_the_text_before_them_all_arrive(server: WireServer) -> None:
    server.script(
        Call((("forget", '{"what": "a"}'), ("forget", '{"what": "b"}')), text="Of course.")
    )
    stream = chat_of(server).stream(HELLO, tools())
    assert list(stream) == ["Of ", "course."]
    assert made(stream) == [("forget", {"what": "a"}), ("forget", {"what": "b"})]


def test_arguments_that_are_no_json_arrive_as_they_were_sent(openai: OpenAIServer) -> None:
    openai.script(Call((("forget", '{"what": "my ci'), ("no_such_tool", "{}"))))
    stream = chat_of(openai).stream(HELLO, tools())
    list(stream)
    assert [(call.name, call.arguments) for call in stream.calls] == [
        ("forget", '{"what": "my ci'),
        ("no_such_tool", "{}"),
    ]


def test_a_connection_lost_in_the_middle_of_a_call_leaves_none(server: WireServer) -> None:
    calls = (("forget", '{"what": "a"}'), ("forget", '{"what": "my city"}'))
    server.script(Call(calls, text="Well.", cut=True))
    stream = chat_of(server).stream(HELLO, tools())
    with pytest.raises(ProviderError, match="broke off"):
        list(stream)
    assert stream.calls == ()


def test_a_stream_that_is_closed_early_called_nothing(server: WireServer) -> None:
    server.script(Call((("forget", '{"what": "a"}'),), text="One two three"))
    stream = chat_of(server).stream(HELLO, tools())
    assert next(iter(stream)) == "One "
    stream.close()
    assert stream.calls == ()


def test_an_endpoint_that_refuses_tools_is_asked_without_them_from_then_on(
    server: WireServer,
) -> None:
    server.script(Fail(400, "this model does not support tools"), Say("Hello."))
    model = chat_of(server)
    assert list(model.stream(HELLO, tools())) == ["Hello."]
    assert len(server.requests) == 2 and not model.tools
    list(model.stream(HELLO, tools()))
    assert len(server.requests) == 3 and "tools" not in server.requests[2].body


def test_another_refusal_is_not_taken_for_one_of_tools(server: WireServer) -> None:
    server.script(Fail(400, "no such thing"), Fail(503, "the tool shed burns"))
    model = chat_of(server)
    for _ in range(2):
        with pytest.raises(ProviderError):
            list(model.stream(HELLO, tools()))
    assert len(server.requests) == 2 and model.tools


@pytest.mark.parametrize("name", ["offline/chat", "ollama/llama3.2", "openai/nobody-knows-this"])
def test_a_model_that_is_not_known_to_call_tools_is_not_offered_any(name: str) -> None:
    assert not LiteLLMChat(name, timeout=1).tools
