"""Embeddings of any provider that litellm knows.

Sizes of well-known embedding models: the length of their vectors and the tokens they read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memchat.config.keys import Keys, provider_of
from memchat.errors import ServiceError
from memchat.providers.embedders import BatchEmbedder, embed_in_batches
from memchat.providers.errors import CallContext, translate, unusable_answer
from memchat.providers.litellm_setup import (
    LOCAL,
    PER_MINUTE,
    call_errors,
    cost_usd,
    find_key,
    litellm,
    request_options,
    shared_limiter,
)
from memchat.tokens import estimate_tokens
from memchat.types import Service, Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors

KNOWN: dict[str, tuple[int, int]] = {
    "text-embedding-3-small": (1536, 8191),
    "text-embedding-3-large": (3072, 8191),
    "text-embedding-ada-002": (1536, 8191),
    "mistral-embed": (1024, 8192),
    "nomic-embed-text": (768, 2048),
    "mxbai-embed-large": (1024, 512),
    "bge-m3": (1024, 8192),
    "all-minilm": (384, 256),
}
"""Dimensions and tokens read, by the name after the last slash. The other embedders know the sizes
of Gemini's and of local models."""


def model_sizes(model: str, dimensions: int | None, max_tokens: int | None) -> tuple[int, int]:
    """Dimensions and tokens of a model: as known, else as given.

    Raises ServiceError for an unknown model whose sizes were not given, and for given dimensions
    that a known model does not have: vectors of a wrong length would be refused one by one.
    """
    known = KNOWN.get(model.rpartition("/")[2].removesuffix(":latest"))
    if known is None and (dimensions is None or max_tokens is None):
        raise ServiceError(
            f"memchat does not know {model}: say how long its vectors are and how many tokens it "
            "reads, with MEMCHAT_EMBED_DIMENSIONS and MEMCHAT_EMBED_MAX_TOKENS (or, changing to "
            "it, with --dimensions and --max-tokens)"
        )
    if known is not None and dimensions not in (None, known[0]):
        raise ServiceError(
            f"the vectors of {model} have {known[0]} numbers, not {dimensions}; unset "
            "MEMCHAT_EMBED_DIMENSIONS"
        )
    length = known[0] if known else dimensions
    reads = max_tokens or (known[1] if known else None)
    assert length is not None and reads is not None
    return length, reads


BATCH = 2048
BATCH_TOKENS = 300_000
REMEDY = "set MEMCHAT_EMBED_MODEL=minilm to embed on this machine"

_BATCHES = {"cohere": 96, "mistral": 128, "voyage": 128}
"""Texts a request, where a provider takes fewer than OpenAI."""


class LiteLLMEmbedder(BatchEmbedder):
    """An ``Embedder`` over ``litellm.embedding``. Safe to use from several threads.

    ``timeout`` is in seconds, ``api_base`` the provider's address where it is not the usual one,
    ``keys`` those of files, ``per_minute`` its limit of requests; a model on this machine has none.
    ``dimensions`` and ``max_tokens`` are for a model that is not among the known ones. Raises
    ServiceError where they are missing, or are not what a known model has.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout: float,
        api_base: str | None = None,
        per_minute: int = PER_MINUTE,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        keys: Keys | None = None,
    ) -> None:
        self._model = model
        self._timeout = timeout
        self._api_base = api_base
        self._keys = keys or Keys()
        provider, local = provider_of(model), model.startswith(LOCAL)
        self._limiter = None if local else shared_limiter(provider, api_base, per_minute)
        length, reads = model_sizes(model, dimensions, max_tokens)
        name = model.removeprefix(f"{provider}/")
        self._service = Service(provider, name, length, reads, local=local)

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector for each text, in the order given, shape (n, dimensions).

        Raises ProviderError, ConfigError for a missing key, InputError for an empty text.
        """
        started = time.perf_counter()
        told: list[int] = []
        vectors = embed_in_batches(
            texts,
            lambda some: self._call(some, told),
            model=self._model,
            max_tokens=self._service.max_tokens,
            batch=_BATCHES.get(provider_of(self._model), BATCH),
            batch_tokens=BATCH_TOKENS,
            dimensions=self._service.dimensions,
        )
        tokens = sum(told) or sum(map(estimate_tokens, texts))
        cost = cost_usd(self._model, tokens, 0)
        return vectors, Usage("embed", self._model, tokens, 0, cost, time.perf_counter() - started)

    def _call(self, texts: list[str], told: list[int]) -> list[list[float]]:
        key = find_key(self._model, self._keys, REMEDY)
        options = request_options(self._model, self._timeout, key, self._api_base)
        module = litellm()
        from memchat.providers.bounded_call import embedding_call

        if self._limiter is not None:
            self._limiter.take()
        try:
            with embedding_call(self._model, self._timeout, texts, self._service.dimensions):
                answer = module.embedding(input=texts, **options)
        except call_errors() as error:
            failure = translate(error, CallContext(self._model, self._timeout, self._keys))
            if self._limiter is not None:
                self._limiter.pause_after(failure)
            raise failure from error
        if answer.usage:
            told.append(int(answer.usage.prompt_tokens or 0))
        rows = sorted(answer.data or (), key=lambda row: int(row["index"]))
        if [row["index"] for row in rows] != list(range(len(texts))):
            raise unusable_answer(
                self._model,
                f"sent {len(rows)} vectors for {len(texts)} texts; name another embedding model",
                retryable=False,
            )
        return [list(row["embedding"]) for row in rows]
