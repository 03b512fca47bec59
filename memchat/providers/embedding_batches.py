"""Embedding many texts with a remote service: long ones in windows, all in batches, every vector
checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from memchat.errors import InputError, ProviderError
from memchat.types import clean_text

if TYPE_CHECKING:
    from memchat.providers import Vectors

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
