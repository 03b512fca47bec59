"""So many requests a minute and no more; none in a pause that the provider asked for."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memchat.config import load
from memchat.errors import ConfigError, ProviderError
from memchat.providers import litellm_calls
from memchat.providers.embedders import LiteLLMEmbedder
from memchat.providers.litellm_calls import PauseRequested, RateLimiter
from tests.support.wire import Fail, OpenAIServer

KEY = "test-key-8d1f0a77c2"


class Time:
    """A clock in seconds that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def bucket(per_minute: int, time: Time) -> RateLimiter:
    return RateLimiter("openai", per_minute, now=time, wait=time.wait)


@given(
    st.integers(1, 5000), st.lists(st.floats(0, 40), min_size=1, max_size=40), st.integers(1, 200)
)
@settings(deadline=None, max_examples=60)
def test_no_minute_holds_more_than_the_limit(limit: int, rests: list[float], burst: int) -> None:
    time = Time()
    one = bucket(limit, time)
    sent: list[float] = []
    for rest in rests:
        time.now += rest
        for _ in range(burst):
            one.take()
            sent.append(time.now)
    for first, last in zip(sent, sent[limit:], strict=False):
        assert last - first >= 60 - 1e-6


def test_3000_go_in_the_first_minute_and_the_next_has_to_wait() -> None:
    time = Time()
    one = bucket(3000, time)
    for _ in range(3000):
        one.take()
    assert time.now < 1060
    one.take()
    assert time.now >= 1060 - 1e-6


def test_some_go_at_once_and_then_they_are_spread() -> None:
    time = Time()
    one = bucket(3000, time)
    sent = []
    for _ in range(100):
        one.take()
        sent.append(time.now)
    assert sent[49] == sent[0], "a second's worth"
    assert all(b - a == pytest.approx(60 / 2951) for a, b in pairwise(sent[49:]))


def test_a_short_pause_is_waited_for_and_a_long_one_refused() -> None:
    time = Time()
    one = bucket(3000, time)
    one.pause(0.5)
    one.take()
    assert time.now == 1000.5
    one.pause(30)
    with pytest.raises(PauseRequested, match="30 s") as caught:
        one.take()
    assert caught.value.status == 429 and caught.value.retryable
    assert caught.value.retry_after == pytest.approx(30)
    assert time.now == 1000.5
    time.now += 29.5
    one.take()
    assert time.now == pytest.approx(1030.5)


def test_a_short_pause_leaves_a_longer_one_as_it_is() -> None:
    one = bucket(3000, Time())
    one.pause(30)
    one.pause(0.5)
    with pytest.raises(PauseRequested, match="30 s"):
        one.take()


def test_only_the_provider_s_own_wish_pauses() -> None:
    time = Time()
    one = bucket(3000, time)
    one.pause_after(ProviderError("down", status=503, retry_after=60))
    one.pause_after(ProviderError("busy", status=429))
    one.take()
    one.pause_after(ProviderError("busy", status=429, retry_after=60))
    with pytest.raises(PauseRequested):
        one.take()


def test_threads_share_the_limit() -> None:
    time = Time()
    lock = threading.Lock()
    waits: list[float] = []

    def wait(seconds: float) -> None:
        with lock:
            waits.append(seconds)

    one = RateLimiter("openai", 60, now=time, wait=wait)
    threads = [threading.Thread(target=one.take) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == pytest.approx([i * 1.0 for i in range(1, 10)])


def test_one_address_has_one_bucket() -> None:
    assert litellm_calls.shared_limiter("openai", None, 3000) is litellm_calls.shared_limiter(
        "openai", None, 3000
    )
    assert litellm_calls.shared_limiter("openai", None, 3000) is not litellm_calls.shared_limiter(
        "gemini", None, 3000
    )
    assert litellm_calls.shared_limiter(
        "openai", "http://one", 9
    ) is not litellm_calls.shared_limiter("openai", "http://two", 9)


def test_after_a_429_nothing_is_sent_until_the_pause_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(key=KEY, dimensions=1536) as server:
        server.script(Fail(429, retry_after="40"))
        model = LiteLLMEmbedder("openai/text-embedding-3-small", timeout=10, api_base=server.base)
        with pytest.raises(ProviderError) as first:
            model.embed_documents(["one"])
        assert first.value.retry_after == 40
        with pytest.raises(PauseRequested):
            model.embed_documents(["two"])
        with pytest.raises(PauseRequested):
            model.embed_query("three")
        assert len(server.requests) == 1


def test_the_limit_is_a_setting() -> None:
    assert load({}).embed_per_minute == 3000
    assert load({"MEMCHAT_EMBED_PER_MINUTE": "100"}).embed_per_minute == 100
    with pytest.raises(ConfigError, match="MEMCHAT_EMBED_PER_MINUTE"):
        load({"MEMCHAT_EMBED_PER_MINUTE": "0"})
