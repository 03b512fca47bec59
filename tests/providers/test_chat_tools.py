"""Tools on the wire: sent where given, put together from parts, given up where refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memchat.errors import ProviderError
from memchat.providers.litellm_chat import LiteLLMChat
from tests.support.chat_providers import KEY
from tests.support.wire import Call, Fail, GeminiServer, OpenAIServer, Say, WireServer
from tests.support.wire.case import HELLO, chat_of


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GEMINI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


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


@pytest.mark.parametrize("name", ["ollama/llama3.2", "openai/nobody-knows-this"])
def test_a_model_that_is_not_known_to_call_tools_is_not_offered_any(name: str) -> None:
    assert not LiteLLMChat(name, timeout=1).tools
