"""What embedders share that embed many questions in one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memchat.types import Service, Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors


class BatchEmbedder(ABC):
    """An ``Embedder`` and ``QueryBatchEmbedder`` that embeds questions as documents, unless it says
    how they differ."""

    _service: Service

    @property
    def service(self) -> Service:
        """The service whose vectors it makes."""
        return self._service

    @abstractmethod
    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector for each text, in the order given, shape (n, dimensions).

        Raises ProviderError, ConfigError for a missing key or file, InputError for an empty text.
        """

    def embed_query(self, text: str) -> tuple[Vectors, Usage]:
        """The question's unit vector, shape (dimensions,). Raises as ``embed_documents`` does."""
        vectors, usage = self.embed_queries([text])
        return vectors[0], usage

    def embed_queries(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """``embed_query`` for many questions, shape (n, dimensions)."""
        return self.embed_documents(texts)
