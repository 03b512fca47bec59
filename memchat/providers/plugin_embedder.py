"""An embedding model of another package."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from memchat.errors import ConfigError, ProviderError
from memchat.providers.batch_embedder import BatchEmbedder
from memchat.providers.embedding_batches import embed_in_batches
from memchat.providers.plugins import package_of
from memchat.providers.provider_errors import plugin_errors
from memchat.tokens import estimate_tokens
from memchat.types import Service, Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors

BATCH = 100
"""Texts in one call, where the plug-in does not say."""


class PluginEmbedder(BatchEmbedder):
    """An ``Embedder`` over another package's provider. Safe in several threads, where it is."""

    def __init__(self, point: EntryPoint, model: str) -> None:
        """Raises ConfigError, naming the package, where it gives no provider."""
        self._package = package_of(point).package
        name = f"{point.name}/{model}"
        with plugin_errors(lambda kind: ConfigError(self._failed(f"cannot make {name}", kind))):
            made: Any = point.load()(model)
            self._embed_texts = made.embed
            self._batch = int(getattr(made, "batch", BATCH))
            self._service = Service(
                point.name,
                model,
                int(made.dimensions),
                int(made.max_tokens),
                str(getattr(made, "version", "")),
                local=bool(getattr(made, "local", False)),
            )

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector for each text, in the order given, shape (n, dimensions).

        Raises ProviderError, naming the package, InputError for an empty text.
        """
        return self._embed(texts, question=False)

    def embed_queries(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """``embed_query`` for many questions, shape (n, dimensions)."""
        return self._embed(texts, question=True)

    def _embed(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, Usage]:
        started = time.perf_counter()
        service = self._service

        def call(some: list[str]) -> list[list[float]]:
            with plugin_errors(
                lambda kind: ProviderError(self._failed("failed", kind), retryable=True)
            ):
                rows = self._embed_texts(some, question=question)
                return [[float(number) for number in row] for row in rows]

        vectors = embed_in_batches(
            texts,
            call,
            model=service.name,
            max_tokens=service.max_tokens,
            batch=self._batch,
            dimensions=service.dimensions,
        )
        tokens = sum(map(estimate_tokens, texts))
        spent = time.perf_counter() - started
        return vectors, Usage("embed", service.name, tokens, 0, None, spent)

    def _failed(self, what: str, kind: str) -> str:
        return (
            f"the package {self._package} {what} ({kind}); update or uninstall it, or name another "
            "model with MEMCHAT_EMBED_MODEL"
        )
