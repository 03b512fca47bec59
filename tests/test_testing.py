"""The public doubles behave as the models they stand for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memchat import testing
from memchat.errors import ProviderError
from memchat.testing import Broken, Calls, FakeClock, ScriptedModel
from memchat.types import ChatMessage

HI = (ChatMessage("user", "hi"),)


def test_replies_come_in_order_and_requests_are_kept() -> None:
    model = ScriptedModel(["one two", lambda messages: messages[-1].content.upper()])
    assert list(model.stream(HI)) == ["one ", "two"]
    assert model.complete(HI, purpose="extract", schema={"type": "object"}).text == "HI"
    assert [request.purpose for request in model.requests] == ["chat", "extract"]
    assert model.requests[1].schema == {"type": "object"}
    assert model.requests[0].messages == HI


def test_a_stream_gives_back_the_text_exactly() -> None:
    text = "  two\n\nlines \t and more "
    stream = ScriptedModel([text]).stream(HI)
    assert "".join(stream) == text
    assert stream.usage.completion_tokens > 0
    assert stream.closed


def test_an_exception_in_the_script_is_raised() -> None:
    model = ScriptedModel([ProviderError("down"), ProviderError("down again")])
    with pytest.raises(ProviderError, match="down"):
        list(model.stream(HI))
    with pytest.raises(ProviderError, match="down again"):
        model.complete(HI, purpose="extract")


def test_a_reply_can_break_in_the_middle() -> None:
    came = []
    with pytest.raises(ProviderError, match="cut"):
        for piece in ScriptedModel([Broken("half an", ProviderError("cut"))]).stream(HI):
            came.append(piece)
    assert came == ["half ", "an"]


def test_a_reply_can_call_tools_which_are_known_at_its_end() -> None:
    model = ScriptedModel([Calls(("look", {"at": "it"}), ("stop", "{no json"), text="One two")])
    stream = model.stream(HI, [{"type": "function", "function": {"name": "look"}}])
    pieces = iter(stream)
    assert next(pieces) == "One " and stream.calls == ()
    assert list(pieces) == ["two"]
    assert [(call.name, call.arguments) for call in stream.calls] == [
        ("look", '{"at": "it"}'),
        ("stop", "{no json"),
    ]
    assert model.requests[0].tools == ("look",) and not model.tools


def test_calls_without_a_word_are_no_empty_reply_and_a_closed_one_made_none() -> None:
    model = ScriptedModel([Calls(("look", {})), Calls(("look", {}), text="One two")])
    stream = model.stream(HI)
    assert list(stream) == [] and [call.name for call in stream.calls] == ["look"]
    closed = model.stream(HI)
    next(iter(closed))
    closed.close()
    assert closed.calls == ()


def test_a_closed_stream_ends_quietly() -> None:
    stream = ScriptedModel(["one two three"]).stream(HI)
    pieces = iter(stream)
    assert next(pieces) == "one "
    stream.close()
    assert list(pieces) == []


def test_an_empty_reply_is_an_error_in_both_ways_of_calling() -> None:
    model = ScriptedModel(["", ""])
    with pytest.raises(ProviderError, match="empty answer"):
        list(model.stream(HI))
    with pytest.raises(ProviderError, match="empty answer"):
        model.complete(HI, purpose="extract")


def test_a_call_too_many_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="no reply is left"):
        ScriptedModel().complete(HI, purpose="extract")


def test_the_clock_moves_only_when_told() -> None:
    clock = FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
    assert clock() == clock()
    before = clock()
    assert clock.advance(days=1, seconds=5) - before == timedelta(days=1, seconds=5)
    assert clock().tzinfo is UTC
    with pytest.raises(ValueError, match="aware"):
        FakeClock(datetime(2026, 5, 1))


def test_the_hash_embedder_is_at_hand() -> None:
    assert testing.HashEmbedder().service.provider == "hash"
    with pytest.raises(AttributeError):
        _ = testing.Nothing
