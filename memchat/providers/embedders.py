"""Embedders: what is common to all of them, those of providers and of other packages, and a simple
one for tests.

Texts longer than a model reads are embedded in windows, and requests are split into batches. Every
vector that comes back is checked and brought to length one.
"""

from __future__ import annotations

import functools
import math
import re
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from memchat.config.providers import provider_of
from memchat.errors import ConfigError, InputError, MemChatError, ProviderError, ServiceError
from memchat.providers import litellm_calls
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


def plugins() -> list[PluginInfo]:
    """The installed providers, sorted by name. Imports none of them."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [package_of(point) for point in points]


def find_plugin(provider: str) -> EntryPoint | None:
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


@contextmanager
def plugin_errors(make: Callable[[str], MemChatError]) -> Iterator[None]:
    """Turn any error of code outside memchat, such as a plug-in's, into one of memchat's own.

    ``make`` gets the name of the error's class; its text may hold what a user wrote.
    """
    try:
        yield
    except MemChatError:
        raise
    except Exception as error:
        raise make(type(error).__name__) from error


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
    cut: Callable[[str, int], list[str]] | None = None,
) -> Vectors:
    """One unit vector for each text, in order, shape (n, dimensions); ``call`` makes one request.

    A text longer than ``max_tokens`` is embedded in windows, as ``cut`` makes them, and its vector
    is the direction of their mean. Raises InputError for an empty text, ProviderError for vectors
    that cannot be used.
    """
    import numpy as np

    parts = [(cut or windows)(text, max_tokens) for text in texts]
    pieces = [piece for some in parts for piece in some]
    found: list[Vectors] = []
    for some in _batches(pieces, batch, batch_tokens):
        found.append(unit_vectors(call(some), model=model, count=len(some), dimensions=dimensions))
        dimensions = found[-1].shape[1]
    if not found:
        return np.zeros((0, dimensions or 0), np.float32)
    rows = np.concatenate(found)
    starts = np.cumsum([0, *map(len, parts)])
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
    """An ``Embedder`` and ``QueryBatchEmbedder``: what it embeds is timed and counted."""

    _service: Service

    @property
    def service(self) -> Service:
        """The service whose vectors it makes."""
        return self._service

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector for each text, in the order given, shape (n, dimensions).

        Raises ProviderError, ConfigError for a missing key or file, InputError for an empty text.
        """
        return self._measured(texts, question=False)

    def embed_query(self, text: str) -> tuple[Vectors, Usage]:
        """The question's unit vector, shape (dimensions,). Raises as ``embed_documents`` does."""
        vectors, usage = self.embed_queries([text])
        return vectors[0], usage

    def embed_queries(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """``embed_query`` for many questions, shape (n, dimensions)."""
        return self._measured(texts, question=True)

    def _measured(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, Usage]:
        started = time.perf_counter()
        vectors, tokens, cost = self._embed(texts, question=question)
        spent = time.perf_counter() - started
        return vectors, Usage("embed", self.service.name, tokens, 0, cost, spent)

    @abstractmethod
    def _embed(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, int, float | None]:
        """The vectors, the tokens of the texts, and what they cost in US dollars."""

    def _in_batches(
        self, texts: Sequence[str], call: Callable[[list[str]], Rows], batch: int, **more: Any
    ) -> Vectors:
        """The vectors that ``call`` makes in several requests."""
        mine = self.service
        given = {"max_tokens": mine.max_tokens, "dimensions": mine.dimensions, **more}
        return embed_in_batches(texts, call, model=mine.name, batch=batch, **given)


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


REMEDY = "set MEMCHAT_EMBED_MODEL=minilm to embed on this machine"
BATCH_TOKENS = 300_000
_BATCHES = {"cohere": 96, "mistral": 128, "voyage": 128}
"""Texts a request, where a provider takes fewer than OpenAI."""
_USUAL_BATCH = 2048


class LiteLLMEmbedder(litellm_calls.RemoteModel, BatchEmbedder):
    """An ``Embedder`` over ``litellm.embedding``. Safe to use from several threads.

    ``per_minute`` is the provider's limit of requests; a model on this machine has none.
    ``dimensions`` and ``max_tokens`` are for a model that is not among the known ones. Raises
    ServiceError where they are missing, or are not what a known model has.
    """

    REMEDY = REMEDY

    def __init__(
        self,
        model: str,
        *,
        per_minute: int = litellm_calls.PER_MINUTE,
        dimensions: int | None = None,
        max_tokens: int | None = None,
        **remote: Any,
    ) -> None:
        super().__init__(model, **remote)
        provider = provider_of(model)
        pace = litellm_calls.shared_limiter(provider, self.api_base, per_minute)
        self._limiter = None if self.local else pace
        length, reads = model_sizes(model, dimensions, max_tokens)
        name = model.removeprefix(f"{provider}/")
        self._service = Service(provider, name, length, reads, local=self.local)

    def _embed(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, int, float | None]:
        counts: list[int] = []
        batch = _BATCHES.get(provider_of(self.model), _USUAL_BATCH)
        vectors = self._in_batches(
            texts, lambda some: self._call(some, counts), batch, batch_tokens=BATCH_TOKENS
        )
        tokens = sum(counts) or sum(map(estimate_tokens, texts))
        return vectors, tokens, litellm_calls.cost_usd(self.model, tokens, 0)

    def _call(self, texts: list[str], counts: list[int]) -> list[list[float]]:
        from memchat.providers.bounded_call import embedding_call

        options, module = self.options(), litellm_calls.litellm()
        rules = embedding_call(self.model, self.timeout, texts, self._service.dimensions)
        with litellm_calls.limited(self._limiter), self.request(rules):
            answer = module.embedding(input=texts, **options)
        if answer.usage:
            counts.append(int(answer.usage.prompt_tokens or 0))
        rows = sorted(answer.data or (), key=lambda row: int(row["index"]))
        if [row["index"] for row in rows] != list(range(len(texts))):
            said = f"sent {len(rows)} vectors for {len(texts)} texts; name another embedding model"
            raise litellm_calls.unusable_answer(self.model, said, retryable=False)
        return [list(row["embedding"]) for row in rows]


GEMINI_BATCH = 100
GEMINI_DIMENSIONS = 768
"""Of the 3,072 that a model may give: a quarter of the space at nearly the same quality."""
_API_VERSION = "v1beta"
_PREFIX_TOKENS = 16
_GEMINI: dict[str, tuple[int, float | None]] = {
    "gemini-embedding-001": (2048, 0.15),
    "gemini-embedding-2": (8192, 0.20),
}
"""Tokens a model reads, and US dollars a million of them."""


class GeminiEmbedder(litellm_calls.RemoteModel, BatchEmbedder):
    """An ``Embedder`` over Gemini's API, by google-genai: litellm takes a text such as "files/a"
    for a file to be fetched. Safe to use from several threads.

    ``api_base`` is Gemini's address without a version; ``per_minute`` the limit of requests.
    """

    REMEDY = REMEDY

    def __init__(
        self, model: str, *, per_minute: int = litellm_calls.PER_MINUTE, **remote: Any
    ) -> None:
        name = model.removeprefix("gemini/")
        super().__init__(f"gemini/{name}", **remote)
        self._limiter = litellm_calls.shared_limiter("gemini", self.api_base, per_minute)
        self._by_task = name.endswith("-001")
        reads, self._price = _GEMINI.get(name, (2048, None))
        # The version says how questions differ from documents.
        version = f"{'task-type' if self._by_task else 'prefix-1'},{GEMINI_DIMENSIONS}"
        self._service = Service("gemini", name, GEMINI_DIMENSIONS, reads, version)

    def _embed(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, int, float | None]:
        reads = self._service.max_tokens - _PREFIX_TOKENS
        vectors = self._in_batches(
            texts, lambda some: self._call(some, question), GEMINI_BATCH, max_tokens=reads
        )
        tokens = sum(map(estimate_tokens, texts))  # the API sends no count
        return vectors, tokens, None if self._price is None else tokens * self._price / 1e6

    def _call(self, texts: list[str], question: bool) -> list[list[float]]:
        """One request; a list of ``Content``, since -2 merges a list of strings into one vector."""
        client = self._client
        import httpx
        from google.genai import errors, types

        from memchat.providers.bounded_call import embedding_call

        task, lead = ("RETRIEVAL_QUERY" if question else "RETRIEVAL_DOCUMENT"), ""
        if not self._by_task:
            lead = "task: search result | query: " if question else "title: none | text: "
        contents: list[Any] = [types.Content(parts=[types.Part(text=lead + t)]) for t in texts]
        config = types.EmbedContentConfig(
            output_dimensionality=GEMINI_DIMENSIONS, task_type=task if self._by_task else None
        )
        rules = embedding_call(self.model, self.timeout, texts, GEMINI_DIMENSIONS)
        expected = (errors.APIError, httpx.HTTPError, ValueError)
        with litellm_calls.limited(self._limiter), self.request(rules, expected):
            answer = client.models.embed_content(
                model=self._service.model, contents=contents, config=config
            )
        return [list(found.values or ()) for found in answer.embeddings or ()]

    @functools.cached_property
    def _client(self) -> Any:
        """Kept as long as this object, as a collected client closes its connection."""
        key = self.find_key()
        import httpx
        from google import genai
        from google.genai import types

        http = httpx.Client(follow_redirects=True)  # google-genai's own would be of httpx2
        weakref.finalize(self, http.close)
        options = types.HttpOptions(
            base_url=self.api_base,
            api_version=_API_VERSION,
            timeout=round(self.timeout * 1000),
            httpx_client=http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        return genai.Client(api_key=key, vertexai=False, http_options=options)


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
            sizes = int(made.dimensions), int(made.max_tokens)
            version, local = str(getattr(made, "version", "")), bool(getattr(made, "local", False))
            self._service = Service(point.name, model, *sizes, version, local=local)

    def _embed(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, int, float | None]:
        def call(some: list[str]) -> list[list[float]]:
            with plugin_errors(
                lambda kind: ProviderError(self._failed("failed", kind), retryable=True)
            ):
                rows = self._embed_texts(some, question=question)
                return [[float(number) for number in row] for row in rows]

        vectors = self._in_batches(texts, call, self._batch)
        return vectors, sum(map(estimate_tokens, texts)), None

    def _failed(self, what: str, kind: str) -> str:
        return (
            f"the package {self._package} {what} ({kind}); update or uninstall it, or name another "
            "model with MEMCHAT_EMBED_MODEL"
        )


# Equal words are what BM25 counts, and better: the cosine has no weight.
SERVICE = Service(
    "hash", "words", 64, 1_000_000, floor=0.25, message_floor=0.25, cosine_weight=0.0, local=True
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

    def _embed(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, int, float | None]:
        import numpy as np

        words = [_words(text) for text in texts]
        vectors = np.zeros((len(texts), self.service.dimensions), np.float32)
        for vector, found in zip(vectors, words, strict=True):
            for word in found:
                vector[self._place(word)] += 1
            vector /= np.linalg.norm(vector)
        return vectors, sum(map(len, words)), 0.0

    def embed_query(self, text: str) -> tuple[Vectors, Usage]:
        """The question's unit vector; one that inherits from this may treat many otherwise."""
        vectors, usage = self.embed_documents([text])
        return vectors[0], usage

    def embed_queries(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """``embed_query`` for many questions."""
        return self.embed_documents(texts)

    def _place(self, word: str) -> int:
        digest = blake2b(word.encode(), digest_size=8, salt=self._salt).digest()
        return int.from_bytes(digest, "little") % self.service.dimensions


def _words(text: str) -> list[str]:
    text = clean_text(text).casefold()
    if not text.strip():
        raise InputError("an empty text cannot be embedded; give some text")
    return re.findall(r"\w+", text) or [text.strip()]
