"""Embedding providers of other packages, found by the entry point group ``memchat.embeddings``.

A package says in its ``pyproject.toml``

    [project.entry-points."memchat.embeddings"]
    acme = "acme_vectors:make"

and ``MEMCHAT_EMBED_MODEL=acme/any-name`` then calls ``make("any-name")`` for a ``Provider``. Before
that nothing of it is imported. memchat cuts long texts, splits batches, checks what comes back,
brings it to length one and stores it; a provider only makes vectors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol

from memchat.errors import ConfigError, ProviderError
from memchat.providers.embedding_batches import embed_in_batches
from memchat.providers.provider_errors import plugin_errors
from memchat.tokens import estimate_tokens
from memchat.types import PluginInfo, Service, Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors

GROUP = "memchat.embeddings"
BATCH = 100


class Provider(Protocol):
    """What an entry point's function gives for a model's name. It is called from several threads.

    It may also have ``version`` (a text; another one is another service, as where a prefix
    changed), ``batch`` (texts a call, else 100) and ``local`` (true where no call leaves this
    machine). What it raises is told by its class alone, but for memchat's own errors: ProviderError
    says whether to try again, and when.
    """

    dimensions: int
    max_tokens: int

    def embed(self, texts: Sequence[str], *, question: bool) -> Sequence[Sequence[float]]:
        """One vector of ``dimensions`` numbers a text, in the order given."""
        ...


def listed() -> list[PluginInfo]:
    """The providers that are installed, by name. Imports none of them."""
    return [_info(point) for point in sorted(entry_points(group=GROUP), key=lambda one: one.name)]


def find(provider: str) -> EntryPoint | None:
    """The entry point of a provider. Raises ConfigError where two packages bring one."""
    found = list(entry_points(group=GROUP, name=provider))
    if len(found) > 1:
        packages = " and ".join(sorted(_info(point).package for point in found))
        raise ConfigError(f"both {packages} bring the provider {provider}; uninstall one of them")
    return found[0] if found else None


class PluginEmbedder:
    """An ``Embedder`` over another package's provider. Safe in several threads, where it is."""

    def __init__(self, point: EntryPoint, model: str) -> None:
        """Raises ConfigError, naming the package, where it gives no provider."""
        self._package = _info(point).package
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

    @property
    def service(self) -> Service:
        """The provider's name and the model's, with the sizes that it tells."""
        return self._service

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector a text, in the order given, shape (n, dimensions).

        Raises ProviderError, naming the package, InputError for an empty text.
        """
        return self._embed(texts, question=False)

    def embed_query(self, text: str) -> tuple[Vectors, Usage]:
        """The question's unit vector, shape (dimensions,). Raises as ``embed_documents`` does."""
        vectors, usage = self.embed_queries([text])
        return vectors[0], usage

    def embed_queries(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """The same for many."""
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


def _info(point: EntryPoint) -> PluginInfo:
    made_by = point.dist
    if made_by is None:
        return PluginInfo(point.name, point.value, "")
    return PluginInfo(point.name, made_by.name, made_by.version)
