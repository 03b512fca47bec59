"""Embeddings over the wire, against local servers that check requests as the real ones would."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memchat.config import Settings, load
from memchat.errors import ConfigError, InputError, ProviderError
from memchat.providers import Embedder
from memchat.providers.embedders import (
    BYTES_A_TOKEN,
    GeminiEmbedder,
    LiteLLMEmbedder,
    embed_in_batches,
    unit_vectors,
    windows,
)
from memchat.providers.factory import embedder, explain
from tests.support.wire import Fail, GeminiServer, Hang, OpenAIServer, Raw, Rows, WireServer
from tests.support.wire.server import vector

KEY = "test-key-8d1f0a77c2"
SMALL = "openai/text-embedding-3-small"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GEMINI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer(key=KEY, dimensions=1536) as running:
        yield running


@pytest.fixture
def gemini() -> Iterator[GeminiServer]:
    with GeminiServer(key=KEY) as running:
        yield running


@pytest.fixture(params=["openai", "gemini"])
def server(request: pytest.FixtureRequest) -> WireServer:
    running = request.getfixturevalue(request.param)
    assert isinstance(running, WireServer)
    return running


def embedder_of(server: WireServer, *, timeout: float = 10) -> Embedder:
    if isinstance(server, GeminiServer):
        model = "gemini/gemini-embedding-001"
        return GeminiEmbedder(model, timeout=timeout, api_base=server.url)
    return LiteLLMEmbedder(SMALL, timeout=timeout, api_base=f"{server.url}/v1")


def failure(server: WireServer, *, timeout: float = 10) -> ProviderError:
    """The error of one call; it must be one clean line, after one request."""
    with pytest.raises(ProviderError) as caught:
        embedder_of(server, timeout=timeout).embed_documents(["one", "two"])
    message = str(caught.value)
    assert KEY not in message
    assert "\n" not in message
    assert len(message) < 300
    assert len(server.requests) == 1
    return caught.value


def unit(text: str, size: int) -> list[float]:
    raw = np.array(vector(text, size))
    return [float(x) for x in raw / np.linalg.norm(raw)]


def test_each_text_has_its_own_unit_vector_in_order(server: WireServer) -> None:
    texts = [f"text number {n}" for n in range(7)]
    service = embedder_of(server).service
    vectors, usage = embedder_of(server).embed_documents(texts)
    assert vectors.shape == (7, service.dimensions)
    assert vectors.dtype == np.float32
    for row, text in zip(vectors, texts, strict=True):
        assert row == pytest.approx(unit(text, service.dimensions), abs=1e-6)
    assert usage.purpose == "embed"
    assert usage.prompt_tokens > 0
    assert usage.cost_usd is not None
    assert server.refusals == []
    assert len(server.requests) == 1


def test_a_question_has_one_vector(server: WireServer) -> None:
    question, usage = embedder_of(server).embed_query("who am I?")
    assert question.shape == (embedder_of(server).service.dimensions,)
    assert np.linalg.norm(question) == pytest.approx(1, abs=1e-6)
    assert usage.completion_tokens == 0
    assert server.refusals == []


def test_gemini_001_is_told_the_task_in_its_own_field(gemini: GeminiServer) -> None:
    model = GeminiEmbedder("gemini/gemini-embedding-001", timeout=10, api_base=gemini.url)
    model.embed_documents(["a", "b"])
    model.embed_query("q")
    documents, question = (received.body["requests"] for received in gemini.requests)
    assert gemini.requests[0].path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert [item["taskType"] for item in documents] == ["RETRIEVAL_DOCUMENT"] * 2
    assert question[0]["taskType"] == "RETRIEVAL_QUERY"
    assert documents[0]["content"]["parts"] == [{"text": "a"}]
    assert documents[0]["outputDimensionality"] == 768
    assert model.service.version == "task-type,768"
    assert gemini.refusals == []


def test_gemini_2_is_told_the_task_in_the_text(gemini: GeminiServer) -> None:
    model = GeminiEmbedder("gemini/gemini-embedding-2", timeout=10, api_base=gemini.url)
    vectors, _ = model.embed_documents(["a", "b"])
    model.embed_query("q")
    documents, question = (received.body["requests"] for received in gemini.requests)
    assert len(vectors) == len(documents) == 2
    assert documents[1]["content"]["parts"] == [{"text": "title: none | text: b"}]
    assert question[0]["content"]["parts"] == [{"text": "task: search result | query: q"}]
    assert "taskType" not in documents[0]
    assert model.service.version == "prefix-1,768"
    assert gemini.refusals == []


def test_many_texts_go_to_gemini_by_the_hundred(gemini: GeminiServer) -> None:
    texts = [f"t{n}" for n in range(230)]
    vectors, _ = embedder_of(gemini).embed_documents(texts)
    sizes = [len(received.body["requests"]) for received in gemini.requests]
    assert sizes == [100, 100, 30]
    assert vectors[229] == pytest.approx(unit("t229", 768), abs=1e-6)


def test_one_vector_for_a_whole_list_is_refused(server: WireServer) -> None:
    size = embedder_of(server).service.dimensions
    server.script(Rows([[1.0] * size]))
    assert "1 vectors for 2 texts" in str(failure(server))


@pytest.mark.parametrize("broken", [[0.0], [math.nan], [math.inf]])
def test_a_vector_that_is_zero_or_not_finite_is_refused(
    openai: OpenAIServer, broken: list[float]
) -> None:
    openai.script(Rows([broken * 1536, [1.0] * 1536]))
    assert "zero or not finite" in str(failure(openai))


def test_a_vector_of_another_length_is_refused(server: WireServer) -> None:
    server.script(Rows([[1.0] * 5, [1.0] * 5]))
    assert "5 numbers where" in str(failure(server))


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (403, False), (404, False), (429, True), (500, True), (503, True)],
)
def test_each_status_is_one_request_and_one_clear_line(
    server: WireServer, status: int, retryable: bool
) -> None:
    server.script(Fail(status, f"no luck with {KEY}", retry_after="7"))
    error = failure(server)
    assert error.status == status
    assert error.retryable is retryable
    assert error.retry_after == (7 if retryable else None)


def test_a_rejected_key_is_named_by_its_variable(
    server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong-key-77aa01")
    monkeypatch.setenv("GEMINI_API_KEY", "wrong-key-77aa01")
    message = str(failure(server))
    assert "refused the key in" in message
    assert "_API_KEY" in message
    assert "wrong-key" not in message


def test_a_missing_key_is_found_before_any_call(
    server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(ConfigError, match=r"keys set .*, or set MEMCHAT_EMBED_MODEL=minilm"):
        embedder_of(server).embed_query("hi")
    assert server.requests == []


def test_googles_other_key_variable_works(
    gemini: GeminiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    embedder_of(gemini).embed_query("hi")
    assert gemini.requests[0].headers["x-goog-api-key"] == KEY


def test_a_silent_provider_is_left_after_the_timeout(server: WireServer) -> None:
    server.script(Hang(20))
    error = failure(server, timeout=0.5)
    assert error.retryable
    assert "within 0.5 s" in str(error)


def test_an_address_where_nobody_listens_cannot_be_reached() -> None:
    nowhere = "http://127.0.0.1:9"
    remote: list[Embedder] = [
        GeminiEmbedder("gemini/gemini-embedding-001", timeout=10, api_base=nowhere),
        LiteLLMEmbedder(SMALL, timeout=10, api_base=nowhere),
    ]
    for one in remote:
        with pytest.raises(ProviderError, match="cannot be reached") as caught:
            one.embed_query("hi")
        assert caught.value.retryable


@pytest.mark.parametrize("body", ["<html>busy</html>", "{}"])
def test_an_answer_in_no_known_form_is_an_error(server: WireServer, body: str) -> None:
    server.script(Raw(body))
    failure(server)


def test_a_model_that_nobody_knows_is_used_with_the_sizes_that_were_given(
    openai: OpenAIServer,
) -> None:
    given = {"dimensions": 24, "max_tokens": 700}
    openai.dimensions = 24
    model = LiteLLMEmbedder("openai/house-model", timeout=10, api_base=openai.base, **given)
    assert (model.service.name, model.service.dimensions) == ("openai/house-model", 24)
    assert model.service.max_tokens == 700 and openai.requests == []
    assert model.embed_query("hi")[0].shape == (24,)
    openai.dimensions = 25
    with pytest.raises(ProviderError, match="25 numbers where 24"):
        model.embed_query("hi")


def test_a_known_model_s_service_needs_no_call(openai: OpenAIServer) -> None:
    service = LiteLLMEmbedder(SMALL, timeout=10, api_base=openai.base).service
    assert (service.dimensions, service.max_tokens) == (1536, 8191)
    assert not service.local
    assert openai.requests == []


@pytest.mark.parametrize("text", ["日本", "🛶 🛶", "aé日🛶"])
def test_a_character_longer_than_a_window_is_a_window(text: str) -> None:
    assert "".join(windows(text, 1)) == text.replace(" ", "")


def test_a_long_text_is_embedded_whole_in_windows(gemini: GeminiServer) -> None:
    text = " ".join(f"word{n}" for n in range(3000))
    vectors, _ = embedder_of(gemini).embed_documents([text, "short"])
    sent = [item["content"]["parts"][0]["text"] for item in gemini.requests[0].body["requests"]]
    assert len(sent) > 2
    assert " ".join(sent[:-1]) == text
    mean = np.mean([unit(part, 768) for part in sent[:-1]], axis=0)
    assert vectors[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert vectors[1] == pytest.approx(unit("short", 768), abs=1e-6)


def test_an_empty_text_is_refused_before_any_call(server: WireServer) -> None:
    with pytest.raises(InputError, match="empty text"):
        embedder_of(server).embed_documents(["fine", " \n"])
    assert server.requests == []


def test_no_texts_need_no_call(server: WireServer) -> None:
    vectors, _ = embedder_of(server).embed_documents([])
    assert vectors.shape == (0, embedder_of(server).service.dimensions)
    assert server.requests == []


@given(st.text(st.characters(codec="utf-8")), st.integers(4, 40))
def test_windows_hold_every_word_and_none_is_too_long(text: str, tokens: int) -> None:
    if not text.replace("\0", "x").strip():
        return
    parts = windows(text, tokens)
    assert all(0 < len(part.encode()) <= tokens * BYTES_A_TOKEN for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.replace("\0", "\ufffd").split())


@given(st.lists(st.integers(1, 30), max_size=30), st.integers(1, 7))
def test_batches_keep_order_and_limits(lengths: list[int], batch: int) -> None:
    texts = [f"{n:03}" + "x" * length for n, length in enumerate(lengths)]
    calls: list[list[str]] = []

    def call(some: list[str]) -> list[list[float]]:
        calls.append(some)
        return [[float(text[:3]) + 1, 1.0] for text in some]

    vectors = embed_in_batches(texts, call, model="m", max_tokens=99, batch=batch, batch_tokens=40)
    assert [text for some in calls for text in some] == texts
    assert all(len(some) <= batch for some in calls)
    assert all(len(some) == 1 or sum(map(len, some)) <= 80 for some in calls)
    for n, row in enumerate(vectors):
        assert row[0] / row[1] == pytest.approx(n + 1, rel=1e-4)


def test_vectors_that_hold_no_numbers_are_refused() -> None:
    with pytest.raises(ProviderError, match="no numbers"):
        unit_vectors([["a", "b"]], model="m", count=1, dimensions=2)


def test_the_settings_choose_the_embedder(tmp_path: Path, gemini: GeminiServer) -> None:
    def chosen(**env: str) -> Embedder | None:
        return embedder(load({"MEMCHAT_HOME": str(tmp_path), **env}))

    assert chosen(MEMCHAT_EMBED_MODEL="none") is None
    hashed = chosen(MEMCHAT_EMBED_MODEL="hash")
    assert hashed is not None
    assert hashed.service.provider == "hash"
    small = chosen(OPENAI_API_KEY=KEY)
    assert small is not None
    assert small.service.name == SMALL
    google = chosen(GEMINI_API_KEY=KEY, GEMINI_API_BASE=gemini.url)
    assert google is not None
    google.embed_query("hi")
    assert gemini.requests[0].path.startswith("/v1beta/models/gemini-embedding-001:")
    with pytest.raises(ConfigError, match="names no provider"):
        chosen(MEMCHAT_EMBED_MODEL="house-model")


def test_words_only_is_explained_as_a_choice(tmp_path: Path) -> None:
    *_, embed = explain(Settings(home=tmp_path, embed_model="none"))
    assert embed.problem is None
    assert embed.note is not None
    assert "by words only" in embed.note
