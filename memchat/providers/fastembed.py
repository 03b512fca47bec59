"""Models that fastembed runs on this machine, from files in a folder, without any download.

The files are in a folder of the model's name, put there by ``memchat services fetch`` or by hand:
an ONNX file, ``tokenizer.json``, ``tokenizer_config.json``, ``config.json``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import json
import os
import threading
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memchat.errors import ConfigError, InputError, ProviderError, ServiceError
from memchat.providers.embedders import BatchEmbedder, plugin_errors
from memchat.types import Service, clean_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from memchat.providers import Vectors

PACKAGE = "fastembed"
TOKENIZER = "tokenizer.json"
LIMITS = "tokenizer_config.json"
READ_BY = (TOKENIZER, LIMITS)
"""The files that every model has besides its weights."""
PROMPTS = "config_sentence_transformers.json"
POOLING = "1_Pooling/config.json"
MARGIN = 8
"""Tokens of a window that are left free for the model's special tokens."""
BATCH = 32
"""Texts in one batch; larger ones take more memory and are not faster."""
MOST_PIECES = 1_000_000
"""In one call of fastembed, which makes the batches itself."""
_ENDS = 1 << 20
_RETRIEVE = "Represent this sentence for searching relevant passages: "
_PREFIXES = {
    "intfloat/multilingual-e5": ("query: ", "passage: "),
    "nomic-ai/nomic-embed-text": ("search_query: ", "search_document: "),
    "google/embeddinggemma": ("task: search result | query: ", "title: none | text: "),
    "snowflake/snowflake-arctic-embed": (_RETRIEVE, ""),
    "mixedbread-ai/mxbai-embed": (_RETRIEVE, ""),
    "baai/bge-small-en": (_RETRIEVE, ""),
    "baai/bge-base-en": (_RETRIEVE, ""),
    "baai/bge-large-en": (_RETRIEVE, ""),
}
"""The prefixes a model was trained with, for questions and documents, by the beginning of its name;
used where its folder has none."""


def is_installed() -> bool:
    """Whether the package is installed. Imports nothing."""
    return importlib.util.find_spec(PACKAGE) is not None


def missing_files(folder: Path) -> list[str]:
    """The files of a model that are missing in its folder."""
    gone = [name for name in READ_BY if not (folder / name).is_file()]
    return gone if _weights(folder) is not None else ["an ONNX or safetensors file", *gone]


class FastembedEmbedder(BatchEmbedder):
    """An ``Embedder`` over fastembed. Safe in several threads.

    A text longer than the model reads is embedded in windows, and its vector is the direction of
    their mean, so that nothing is cut off. The service's version is a digest of the model's files
    and prefixes, so that other files of the same name make it another service.
    """

    def __init__(self, model: str, folder: Path, *, dimensions: int | None = None) -> None:
        """``dimensions`` are for a model whose files do not contain them.

        Raises ConfigError where the package or a file is missing, ServiceError where the files do
        not contain the sizes.
        """
        if not is_installed():
            raise ConfigError(NOT_INSTALLED)
        if gone := missing_files(folder):
            raise ConfigError(missing_message(model, folder, gone))
        self._model = model
        self._folder = folder
        told = _read(folder / "config.json")
        length = dimensions or told.get("hidden_size") or told.get("dim") or told.get("d_model")
        if not isinstance(length, int):
            raise ServiceError(
                f"the files of {model} do not say how long its vectors are; set "
                "MEMCHAT_EMBED_DIMENSIONS (or, changing to it, --dimensions)"
            )
        limits = [_read(folder / LIMITS).get(name) for name in ("model_max_length", "max_length")]
        known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 10_000_000]
        if not known or min(known) <= 2 * MARGIN:
            raise ServiceError(
                f"{LIMITS} of {model} does not say how many tokens it reads; write "
                "model_max_length into it"
            )
        most = min(known)
        self._before_question, self._before_text = _prefixes(model, folder)
        version = _digest(folder, self._before_question, self._before_text)
        self._service = Service(PACKAGE, model, length, most, version, local=True)
        self._lock = threading.Lock()

    def _embed(self, texts: Sequence[str], *, question: bool) -> tuple[Vectors, int, float]:
        before = self._before_question if question else self._before_text
        tokens = 0

        def cut(text: str, most: int) -> list[str]:
            nonlocal tokens
            parts, length = _windows(self._ready[1], text, before, most)
            tokens += length
            return parts

        def run(pieces: list[str]) -> list[Any]:
            model = self._ready[0]
            embed = model.query_embed if question else model.passage_embed
            with plugin_errors(lambda kind: ProviderError(self._unusable("run", kind))):
                return list(embed([before + piece for piece in pieces], batch_size=BATCH))

        vectors = self._in_batches(texts, run, MOST_PIECES, cut=cut)
        return vectors, tokens, 0.0

    @property
    def _ready(self) -> tuple[Any, Tokenizer]:
        with self._lock:
            return self._loaded

    @functools.cached_property
    def _loaded(self) -> tuple[Any, Tokenizer]:
        """The model, and a tokenizer without truncation."""
        with plugin_errors(lambda kind: ConfigError(self._unusable("loaded", kind))):
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            return _load(self._model, self._folder, self._service.dimensions), tokenizer

    def _unusable(self, done: str, kind: str) -> str:
        return (
            f"{self._model} cannot be {done} from {self._folder} ({kind}); remove that folder and "
            f"run memchat services fetch {self._model}, or name another model"
        )


NOT_INSTALLED = (
    "fastembed is not installed; run pip install fastembed, or set MEMCHAT_EMBED_MODEL=minilm"
)


def missing_message(model: str, folder: Path, gone: Sequence[str]) -> str:
    """The message for missing files of a model."""
    return (
        f"{model} is not on this machine: {folder} lacks {', '.join(gone)}; run memchat services "
        f"fetch {model}, or put its files there"
    )


def library() -> Any:
    """The fastembed module, without telemetry and warnings."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(PACKAGE)


def _load(model: str, folder: Path, dimensions: int) -> Any:
    """The model as fastembed defines it, if it does and has the expected files; otherwise as its
    folder describes it."""
    embedding = library().TextEmbedding
    told = importlib.import_module(f"{PACKAGE}.common.model_description")
    known = {one["model"].lower(): one for one in embedding.list_supported_models()}
    name, found = model, known.get(model.lower())
    if found is None or not (folder / found["model_file"]).is_file():
        name = f"memchat:{folder}"
        weights = _weights(folder)
        assert weights is not None
        if name.lower() not in known:
            embedding.add_custom_model(
                model=name,
                pooling=told.PoolingType(_pooling(folder)),
                normalization=True,
                sources=told.ModelSource(hf=name),
                dim=dimensions,
                model_file=weights.relative_to(folder).as_posix(),
            )
    return embedding(
        name, cache_dir=str(folder.parent), specific_model_path=str(folder), local_files_only=True
    )


def _pooling(folder: Path) -> str:
    told = _read(folder / POOLING)
    if told.get("pooling_mode_cls_token"):
        return "CLS"
    return "LAST_TOKEN" if told.get("pooling_mode_lasttoken") else "MEAN"


def _weights(folder: Path) -> Path | None:
    """The model itself: ``model.onnx`` before others, above ``onnx/`` before below it."""
    found = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx"), *folder.glob("*.safetensors")]
    found.sort(key=lambda path: (len(path.parts), path.stem != "model", path.name))
    return found[0] if found else None


def _prefixes(model: str, folder: Path) -> tuple[str, str]:
    """The prefixes for questions and for documents."""
    prompts = _read(folder / PROMPTS).get("prompts")
    if isinstance(prompts, dict) and prompts:
        text = prompts.get("document") or prompts.get("passage") or ""
        return str(prompts.get("query") or ""), str(text)
    starts = (pair for start, pair in _PREFIXES.items() if model.lower().startswith(start))
    return next(starts, ("", ""))


def _digest(folder: Path, *prefixes: str) -> str:
    """A digest of the model's files; of the weights only both ends, as they may be gigabytes."""
    weights = _weights(folder)
    assert weights is not None
    digest = hashlib.sha256(repr(prefixes).encode())
    digest.update((folder / TOKENIZER).read_bytes())
    digest.update(_pooling(folder).encode())
    size = weights.stat().st_size
    with weights.open("rb") as file:
        digest.update(f"{size}".encode() + file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        digest.update(file.read(_ENDS))
    return digest.hexdigest()[:12]


def _windows(
    tokenizer: Tokenizer, text: str, before: str, max_tokens: int
) -> tuple[list[str], int]:
    """The text in pieces short enough for the model, and its number of tokens."""
    text = clean_text(text).strip()
    if not text:
        raise InputError("an empty text cannot be embedded; give some text")
    marked = len(tokenizer.encode(before).ids) + MARGIN
    found = tokenizer.encode(text, add_special_tokens=False)
    room = max(1, max_tokens - marked)
    if len(found.ids) <= room:
        return [text], len(found.ids)
    starts = [found.offsets[i][0] for i in range(0, len(found.ids), room)]
    cuts = sorted({0, *starts[1:], len(text)})
    pieces = [text[a:b].strip() for a, b in pairwise(cuts)]
    return [piece for piece in pieces if piece], len(found.ids)


def _read(path: Path) -> dict[str, Any]:
    """A JSON file; empty where there is none or it cannot be read."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
