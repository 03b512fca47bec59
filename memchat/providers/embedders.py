"""Base of the embedders: batches and checks, the providers of other packages, and one for tests.

Texts longer than a model reads are embedded in windows, and requests are split into batches. Every
vector that comes back is checked and brought to length one.
"""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from memchat.errors import ConfigError, InputError, ProviderError
from memchat.providers.errors import plugin_errors
from memchat.tokens import estimate_tokens
from memchat.types import PluginInfo, Service, Usage, clean_text

if TYPE_CHECKING:
    from memchat.providers import Vectors

GROUP = "memchat.embeddings"


class Provider(Protocol):
    """An embedding model of another package. It is called from several threads.

    The package names a function in its ``pyproject.toml``

        [project.entry-points."memchat.embeddings"]
        acme = "acme_vectors:make"

    and ``MEMCHAT_EMBED_MODEL=acme/any-name`` then calls ``make("any-name")``, which gives this.
    Before that nothing of the package is imported. memchat cuts long texts, splits batches, checks
    what comes back, brings it to length one and stores it; a provider only makes vectors.

    It may also have ``version`` (a text; a changed one makes it another service, for example when
    a prefix changes), ``batch`` (texts in one call, else 100) and ``local`` (true if no call leaves
    this machine). Of an error it raises only the class is shown, except for memchat's own errors;
    ProviderError says whether and when to try again.
    """

    dimensions: int
    max_tokens: int

    def embed(self, texts: Sequence[str], *, question: bool) -> Sequence[Sequence[float]]:
        """One vector of ``dimensions`` numbers a text, in the order given."""
        ...


def listed() -> list[PluginInfo]:
    """The installed providers, sorted by name. Imports none of them."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [package_of(point) for point in points]


def find(provider: str) -> EntryPoint | None:
    """The entry point of a provider. Raises ConfigError where two packages bring one."""
    found = list(entry_points(group=GROUP, name=provider))
    if len(found) > 1:
        packages = " and ".join(sorted(package_of(point).package for point in found))
        raise ConfigError(f"both {packages} bring the provider {provider}; uninstall one of them")
    return found[0] if found else None


def package_of(point: EntryPoint) -> PluginInfo:
    """The package that declares an entry point, with its version."""
    made_by = point.dist
    if made_by is None:
        return PluginInfo(point.name, point.value, "")
    return PluginInfo(point.name, made_by.name, made_by.version)


BYTES_A_TOKEN = 2
"""A low estimate for every script, so that no window is longer than the model reads."""

Rows = Sequence[Sequence[float]]


def embed_in_batches(
    texts: Sequence[str],
    call: Callable[[list[str]], Rows],
    *,
    model: str,
    max_tokens: int,
    batch: int,
    batch_tokens: int | None = None,
    dimensions: int | None = None,
) -> Vectors:
    """One unit vector for each text, in order, shape (n, dimensions); ``call`` makes one request.

    A text longer than ``max_tokens`` is embedded in windows, and its vector is the direction of
    their mean. Raises InputError for an empty text, ProviderError for vectors that cannot be used.
    """
    import numpy as np

    cut = [windows(text, max_tokens) for text in texts]
    pieces = [piece for parts in cut for piece in parts]
    found: list[Vectors] = []
    for some in _batches(pieces, batch, batch_tokens):
        found.append(unit_vectors(call(some), model=model, count=len(some), dimensions=dimensions))
        dimensions = found[-1].shape[1]
    if not found:
        return np.zeros((0, dimensions or 0), np.float32)
    rows = np.concatenate(found)
    starts = np.cumsum([0, *(len(parts) for parts in cut)])
    means = [rows[a:b].mean(axis=0) for a, b in pairwise(starts)]
    return unit_vectors(means, model=model, count=len(texts), dimensions=dimensions)


def unit_vectors(rows: Any, *, model: str, count: int, dimensions: int | None) -> Vectors:
    """The rows as float32 vectors of length one.

    Raises ProviderError unless there are ``count`` of them, all of ``dimensions`` numbers (of equal
    length where that is None), finite and not zero.
    """
    import numpy as np

    if len(rows) != count:
        raise ProviderError(
            f"{model} sent {len(rows)} vectors for {count} texts; name another embedding model"
        )
    lengths = {*map(len, rows)}
    wanted = dimensions or next(iter(lengths))
    if lengths != {wanted} or not wanted:
        raise ProviderError(
            f"{model} sent vectors of {', '.join(map(str, sorted(lengths)))} numbers where "
            f"{wanted or 'some'} were expected; nothing was kept of them"
        )
    try:
        vectors = np.asarray(rows, np.float64)
    except (TypeError, ValueError) as error:
        raise ProviderError(f"{model} sent vectors that hold no numbers; try again") from error
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if not all(0 < norm < math.inf for norm in norms.tolist()):
        raise ProviderError(f"{model} sent a vector that is zero or not finite; try again")
    unit: Vectors = (vectors / norms[:, None]).astype(np.float32)
    return unit


def windows(text: str, max_tokens: int) -> list[str]:
    """The text in pieces short enough for the model, cut at white space where possible."""
    text = clean_text(text).strip()
    if not text:
        raise InputError("an empty text cannot be embedded; give some text")
    limit = max_tokens * BYTES_A_TOKEN
    pieces = []
    while len(text.encode()) > limit:
        fits = max(1, len(text.encode()[:limit].decode(errors="ignore")))
        space = max(text.rfind(" ", fits // 2, fits), text.rfind("\n", fits // 2, fits))
        end = space if space > 0 else fits
        pieces.append(text[:end].rstrip())
        text = text[end:].lstrip()
    return [*pieces, text] if text else pieces


def _batches(pieces: list[str], batch: int, batch_tokens: int | None) -> Iterator[list[str]]:
    """Batches of pieces within the limits of items and tokens for one request."""
    limit = (batch_tokens or 0) * BYTES_A_TOKEN
    some: list[str] = []
    size = 0
    for piece in pieces:
        length = len(piece.encode())
        if some and (len(some) == batch or (limit and size + length > limit)):
            yield some
            some, size = [], 0
        some.append(piece)
        size += length
    if some:
        yield some


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


SERVICE = Service(
    "hash",
    "words",
    64,
    1_000_000,
    floor=0.25,
    message_floor=0.25,
    cosine_weight=0.0,  # equal words are what BM25 counts, and better
    local=True,
)


class HashEmbedder(BatchEmbedder):
    """A bag of casefolded words, each hashed to one dimension; the same on every run.

    Models of other names are other spaces, of as many dimensions as the name ends with:
    ``HashEmbedder("other-384")``. ``words`` has 64.
    """

    _service = SERVICE
    _salt = b""

    def __init__(self, model: str = SERVICE.model) -> None:
        if model == SERVICE.model:
            return
        size = model.rpartition("-")[2]
        dimensions = int(size) if size.isdecimal() else SERVICE.dimensions
        self._service = replace(SERVICE, model=model, dimensions=dimensions)
        self._salt = blake2b(model.encode()).digest()[:16]

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector for each text, in order. Raises InputError for an empty text."""
        import numpy as np

        started = time.perf_counter()
        words = [_words(text) for text in texts]
        vectors = np.zeros((len(texts), self.service.dimensions), np.float32)
        for vector, found in zip(vectors, words, strict=True):
            for word in found:
                vector[self._place(word)] += 1
            vector /= np.linalg.norm(vector)
        spent = time.perf_counter() - started
        return vectors, Usage("embed", self.service.name, sum(map(len, words)), 0, 0.0, spent)

    def embed_query(self, text: str) -> tuple[Vectors, Usage]:
        """The question's unit vector; one that inherits from this may treat many otherwise."""
        vectors, usage = self.embed_documents([text])
        return vectors[0], usage

    def _place(self, word: str) -> int:
        digest = blake2b(word.encode(), digest_size=8, salt=self._salt).digest()
        return int.from_bytes(digest, "little") % self.service.dimensions


def _words(text: str) -> list[str]:
    text = clean_text(text).casefold()
    if not text.strip():
        raise InputError("an empty text cannot be embedded; give some text")
    return re.findall(r"\w+", text) or [text.strip()]
