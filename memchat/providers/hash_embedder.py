"""An embedder for tests: words hashed into a small vector, so that only equal words match."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from memchat.errors import InputError
from memchat.providers.batch_embedder import BatchEmbedder
from memchat.types import Service, Usage, clean_text

if TYPE_CHECKING:
    from memchat.providers import Vectors

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
