"""Gemini's embeddings, through google-genai."""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from memchat.config.keys import Keys
from memchat.providers.embedders import BatchEmbedder, embed_in_batches
from memchat.providers.errors import CallContext, translate
from memchat.providers.litellm_setup import PER_MINUTE, find_key, shared_limiter
from memchat.tokens import estimate_tokens
from memchat.types import Service, Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors

BATCH = 100
DIMENSIONS = 768
"""Of the 3,072 that a model may give: a quarter of the space at nearly the same quality."""
API_VERSION = "v1beta"
REMEDY = "set MEMCHAT_EMBED_MODEL=minilm to embed on this machine"
PREFIX_TOKENS = 16

_KNOWN: dict[str, tuple[int, float]] = {
    "gemini-embedding-001": (2048, 0.15),
    "gemini-embedding-2": (8192, 0.20),
}
"""Tokens a model reads, and US dollars a million of them."""


class GeminiEmbedder(BatchEmbedder):
    """An ``Embedder`` over Gemini's API. Safe to use from several threads.

    ``timeout`` is in seconds; ``base_url`` is Gemini's address without a version; ``per_minute``
    the limit of requests; ``keys`` are those of files.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout: float,
        base_url: str | None = None,
        per_minute: int = PER_MINUTE,
        keys: Keys | None = None,
    ) -> None:
        self._model = model.removeprefix("gemini/")
        self._name = f"gemini/{self._model}"
        self._timeout = timeout
        self._base_url = base_url
        self._keys = keys or Keys()
        self._limiter = shared_limiter("gemini", base_url, per_minute)
        self._by_task = self._model.endswith("-001")
        known = _KNOWN.get(self._model)
        self._max_tokens = known[0] if known else 2048
        # The version says how questions differ from documents.
        version = f"{'task-type' if self._by_task else 'prefix-1'},{DIMENSIONS}"
        self._service = Service("gemini", self._model, DIMENSIONS, self._max_tokens, version)
        self._price = known[1] if known else None

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector for each text, shape (n, 768); batches of at most 100.

        Raises ProviderError, ConfigError for a missing key, InputError for an empty text.
        """
        return self._embed(texts, "RETRIEVAL_DOCUMENT", "title: none | text: ")

    def embed_queries(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """``embed_query`` for many questions, shape (n, dimensions)."""
        return self._embed(texts, "RETRIEVAL_QUERY", "task: search result | query: ")

    def _embed(self, texts: Sequence[str], task: str, prefix: str) -> tuple[Vectors, Usage]:
        started = time.perf_counter()
        vectors = embed_in_batches(
            texts,
            self._call(task, prefix),
            model=self._name,
            max_tokens=self._max_tokens - PREFIX_TOKENS,
            batch=BATCH,
            dimensions=DIMENSIONS,
        )
        tokens = sum(map(estimate_tokens, texts))  # the API sends no count
        cost = None if self._price is None else tokens * self._price / 1e6
        return vectors, Usage("embed", self._name, tokens, 0, cost, time.perf_counter() - started)

    def _call(self, task: str, prefix: str) -> Callable[[list[str]], list[list[float]]]:
        """One request; a list of ``Content``, since -2 merges a list of strings into one vector."""

        def call(texts: list[str]) -> list[list[float]]:
            client = self._client
            import httpx
            from google.genai import errors, types

            from memchat.providers.bounded_call import embedding_call

            lead = "" if self._by_task else prefix
            contents: list[Any] = [types.Content(parts=[types.Part(text=lead + t)]) for t in texts]
            config = types.EmbedContentConfig(
                output_dimensionality=DIMENSIONS, task_type=task if self._by_task else None
            )
            self._limiter.take()
            try:
                with embedding_call(self._name, self._timeout, texts, DIMENSIONS):
                    answer = client.models.embed_content(
                        model=self._model, contents=contents, config=config
                    )
            except (errors.APIError, httpx.HTTPError, ValueError) as error:
                failure = translate(error, CallContext(self._name, self._timeout, self._keys))
                self._limiter.pause_after(failure)
                raise failure from error
            return [list(found.values or ()) for found in answer.embeddings or ()]

        return call

    @functools.cached_property
    def _client(self) -> Any:
        """Kept as long as this object, as a collected client closes its connection."""
        key = find_key(self._name, self._keys, REMEDY)
        import httpx
        from google import genai
        from google.genai import types

        http = httpx.Client(follow_redirects=True)  # google-genai's own would be of httpx2
        weakref.finalize(self, http.close)
        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=API_VERSION,
            timeout=round(self._timeout * 1000),
            httpx_client=http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        return genai.Client(api_key=key, vertexai=False, http_options=options)
