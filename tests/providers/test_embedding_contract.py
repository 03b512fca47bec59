"""What every embedding provider keeps to, whoever it is."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memchat.config import Settings
from memchat.config.providers import MINILM
from memchat.db.database import Database
from memchat.errors import InputError, ProviderError
from memchat.providers import Embedder, QueryBatchEmbedder, factory, fastembed
from memchat.providers import local as providers_local
from memchat.providers.embedders import GeminiEmbedder, LiteLLMEmbedder
from memchat.search import embeddings
from memchat.search.embed import embed_documents
from memchat.types import Usage
from tests.support.plugin import install
from tests.support.tiny_model import build
from tests.support.wire import Fail, GeminiServer, Hang, OpenAIServer, Rows, WireServer

KEY = "test-key-8d1f0a77c2"
TEXTS = ["green tea", "a red kayak", "the plumber mends the boiler", "one two three", "floods"]


@dataclass
class Case:
    """A provider, and how to see and disturb what is behind it, where there is something."""

    embedder: Embedder
    settings: Settings
    batch: int | None = None
    """Texts that it takes in one request; None where it has no such limit."""
    sent: Callable[[], list[list[str]]] | None = None
    """The texts of each request so far."""
    spoil: Callable[[Callable[[list[list[float]]], list[list[float]]]], None] | None = None
    """Has it answer other rows than it would, made from rows of the right size."""
    silent: Callable[[], Embedder] | None = None
    """The same provider, which does not answer in time."""
    server: WireServer | None = None


def local(tmp_path: Path, model: str) -> Case:
    settings = Settings(tmp_path, embed_model=model)
    embedder = factory.embedder(settings)
    assert embedder is not None
    return Case(embedder, settings)


def wired(server: WireServer, make: Callable[[float], Embedder], settings: Settings) -> Case:
    """Over a local server that speaks the provider's format."""
    embedder = make(20)

    def sent() -> list[list[str]]:
        bodies = [received.body for received in server.requests]
        if "input" in (bodies or [{}])[0]:
            return [body["input"] for body in bodies]
        parts = ([r["content"]["parts"][0]["text"] for r in body["requests"]] for body in bodies)
        return [[text.rpartition("text: ")[2] for text in texts] for texts in parts]

    def spoil(change: Callable[[list[list[float]]], list[list[float]]]) -> None:
        good = [[float(i + n + 1) for i in range(server.dimensions)] for n in range(2)]
        server.script(Rows(change(good)))

    def silent() -> Embedder:
        server.script(Hang(20))
        return make(0.3)

    return Case(embedder, settings, None, sent, spoil, silent, server)


def openai(tmp_path: Path) -> Iterator[Case]:
    with OpenAIServer(key=KEY, dimensions=24) as server:
        sizes: dict[str, Any] = {"dimensions": 24, "max_tokens": 500}

        def make(timeout: float) -> Embedder:
            model, base = "openai/house-model", server.base
            return LiteLLMEmbedder(model, timeout=timeout, api_base=base, **sizes)

        named = {"embed_model": "openai/house-model"}
        settings = Settings(tmp_path, embed_dimensions=24, embed_max_tokens=500, **named)
        case = wired(server, make, settings)
        case.batch = 2048
        yield case


def gemini(tmp_path: Path, model: str) -> Iterator[Case]:
    with GeminiServer(key=KEY, dimensions=768) as server:

        def make(timeout: float) -> Embedder:
            return GeminiEmbedder(model, timeout=timeout, api_base=server.url)

        case = wired(server, make, Settings(tmp_path, embed_model=model))
        case.batch = 100
        yield case


def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    install(tmp_path / "site", monkeypatch)
    case = local(tmp_path, "acme/small")
    module = sys.modules["acme_vectors"]
    case.batch, case.sent = 7, lambda: [texts for texts, _ in module.asked]

    def spoil(change: Callable[[list[list[float]]], list[list[float]]]) -> None:
        module.spoil = change

    def late(rows: object) -> None:
        raise TimeoutError("no answer")

    def silent() -> Embedder:
        module.spoil = late
        return case.embedder

    case.spoil, case.silent = spoil, silent
    return case


HERE = ("hash", "minilm", "fastembed")
WIRED = ("openai", "gemini-001", "gemini-2")
ASKED = (*WIRED, "a package")


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GEMINI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


def found(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    if which == "minilm" and not providers_local.available():
        pytest.skip("the MiniLM weights are not installed; make installs them")
    if which == "fastembed" and not fastembed.is_installed():
        pytest.skip("fastembed is not installed; it is the extra fastembed")
    if which == "openai":
        yield from openai(tmp_path)
    elif which in WIRED:
        yield from gemini(tmp_path, "gemini/gemini-embedding-" + which.removeprefix("gemini-"))
    elif which == "a package":
        yield package(tmp_path, monkeypatch)
    else:
        build(tmp_path / "models" / "house" / "tiny")
        names = {"hash": "hash/words", "minilm": MINILM, "fastembed": "fastembed/house/tiny"}
        yield local(tmp_path, names[which])


@pytest.fixture(params=[*HERE, *ASKED])
def case(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Case]:
    """Every provider."""
    yield from found(request.param, tmp_path, monkeypatch)


@pytest.fixture(params=ASKED)
def asked(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Case]:
    """Those that ask somebody."""
    yield from found(request.param, tmp_path, monkeypatch)


@pytest.fixture(params=WIRED)
def on_a_wire(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Case]:
    """Those that speak HTTP."""
    yield from found(request.param, tmp_path, monkeypatch)


def test_one_float32_vector_of_length_one_a_text_in_the_order_given(case: Case) -> None:
    vectors, usage = case.embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), case.embedder.service.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    for text, row in zip(TEXTS, vectors, strict=True):
        alone, _ = case.embedder.embed_documents([text])
        assert row == pytest.approx(alone[0], abs=1e-4)
    backwards, _ = case.embedder.embed_documents(TEXTS[::-1])
    assert backwards[::-1] == pytest.approx(vectors, abs=1e-4)
    assert usage.purpose == "embed" and usage.prompt_tokens > 0 and usage.completion_tokens == 0


def test_a_question_has_one_vector_in_the_same_space(case: Case) -> None:
    vector, usage = case.embedder.embed_query("where is the kayak?")
    assert vector.shape == (case.embedder.service.dimensions,) and vector.dtype == np.float32
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)
    assert usage.purpose == "embed"


def test_questions_asked_together_have_the_vectors_of_each_alone(case: Case) -> None:
    assert isinstance(case.embedder, QueryBatchEmbedder)
    vectors, usage = case.embedder.embed_queries(TEXTS)
    assert vectors.shape == (len(TEXTS), case.embedder.service.dimensions)
    for text, row in zip(TEXTS, vectors, strict=True):
        alone, _ = case.embedder.embed_query(text)
        assert row == pytest.approx(alone, abs=1e-4)
    assert usage.purpose == "embed" and usage.prompt_tokens > 0


def test_no_texts_have_no_vectors_and_cost_nothing(case: Case) -> None:
    vectors, usage = case.embedder.embed_documents([])
    assert vectors.shape == (0, case.embedder.service.dimensions) and vectors.dtype == np.float32
    assert usage.prompt_tokens == 0
    if case.sent is not None:
        assert case.sent() == []


@pytest.mark.parametrize("empty", ["", " \n\t"])
def test_an_empty_text_is_refused_before_anybody_is_asked(case: Case, empty: str) -> None:
    with pytest.raises(InputError):
        case.embedder.embed_documents(["fine", empty])
    if case.sent is not None:
        assert case.sent() == []


def test_a_text_costs_one_text_and_a_long_list_several_requests(asked: Case) -> None:
    assert asked.sent is not None and asked.batch is not None
    texts = [f"text {n}" for n in range(2 * asked.batch + 3)]
    vectors, _ = asked.embedder.embed_documents(texts)
    assert list(map(len, asked.sent())) == [asked.batch, asked.batch, 3]
    assert [text for some in asked.sent() for text in some] == texts
    for n in (0, asked.batch, 2 * asked.batch + 2):
        alone, _ = asked.embedder.embed_documents([texts[n]])
        assert vectors[n] == pytest.approx(alone[0], abs=1e-6)


def test_nothing_of_a_long_text_is_cut(case: Case) -> None:
    most = min(case.embedder.service.max_tokens, 10_000)
    long = " ".join(["tea"] * most + ["kayak"] * most)
    vectors, _ = case.embedder.embed_documents([long, " ".join(["tea"] * most)])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert float(vectors[0] @ vectors[1]) < 0.999, "its end takes part"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: [[math.nan] * len(rows[0]), *rows[1:]], "not finite"),
        (lambda rows: [[math.inf] * len(rows[0]), *rows[1:]], "not finite"),
        (lambda rows: [[0.0] * len(rows[0]), *rows[1:]], "zero"),
        (lambda rows: [row[:-1] for row in rows], "numbers"),
        (lambda rows: rows[:-1], "1 vectors for 2"),
        (lambda rows: [*rows, rows[0]], "3 vectors for 2"),
    ],
    ids=["NaN", "Inf", "zero", "short", "too few", "too many"],
)
def test_what_is_no_vector_is_refused(
    asked: Case, change: Callable[[list[list[float]]], list[list[float]]], reason: str
) -> None:
    assert asked.spoil is not None
    asked.spoil(change)
    with pytest.raises(ProviderError, match=reason) as error:
        asked.embedder.embed_documents(["one", "two"])
    assert "\n" not in str(error.value) and not error.value.retryable


@pytest.mark.parametrize("how", ["NaN", "zero", "short", "few"])
def test_whatever_passes_a_provider_is_checked_once_more(case: Case, how: str) -> None:
    class Spoilt:
        service = case.embedder.service

        def embed_documents(self, texts: list[str]) -> tuple[Any, Usage]:
            vectors, usage = case.embedder.embed_documents(texts)
            if how in ("NaN", "zero"):
                vectors[0] = math.nan if how == "NaN" else 0
            if how == "short":
                vectors = vectors[:, :-1]
            return (vectors[:-1] if how == "few" else vectors), usage

    with pytest.raises(ProviderError):
        embed_documents(Spoilt(), {"a": "one", "b": "two"})  # type: ignore[arg-type]


def test_a_provider_that_does_not_answer_is_an_error_that_may_pass(asked: Case) -> None:
    assert asked.silent is not None
    with pytest.raises(ProviderError) as error:
        asked.silent().embed_documents(["one", "two"])
    assert error.value.retryable and "\n" not in str(error.value)
    assert any(word in str(error.value) for word in ("try again", "update"))


def test_its_service_is_kept_with_all_that_tells_its_space_and_found_again(case: Case) -> None:
    service = case.embedder.service
    database = Database(case.settings.home / "store")
    with database.write() as tx:
        number = embeddings.register_service(tx, service)
        assert embeddings.register_service(tx, service) == number
        stored = embeddings.get_service(tx, number)
    database.close()
    assert service.same_space(stored) and stored is not None
    again, why_not = factory.embedder_for(case.settings, stored)
    assert why_not is None and again is not None and again.service.same_space(service)


def test_an_error_status_is_one_line_that_says_what_to_do(on_a_wire: Case) -> None:
    assert on_a_wire.server is not None
    for status, retryable in ((400, False), (401, False), (404, False), (429, True), (503, True)):
        on_a_wire.server.script(Fail(status, f"no luck with {KEY}"))
        with pytest.raises(ProviderError) as error:
            on_a_wire.embedder.embed_documents(["one"])
        assert (error.value.status, error.value.retryable) == (status, retryable)
        assert KEY not in str(error.value) and "\n" not in str(error.value)


# A model on this machine whose numbers are no numbers


@pytest.mark.skipif(not fastembed.is_installed(), reason="fastembed is not installed")
@pytest.mark.parametrize("times", [math.nan, 0.0])
def test_a_model_file_that_gives_no_vectors_is_refused(tmp_path: Path, times: float) -> None:
    folder = build(tmp_path / "tiny", times=times)
    with pytest.raises(ProviderError, match="zero or not finite"):
        fastembed.FastembedEmbedder("house/tiny", folder).embed_documents(["tea"])
