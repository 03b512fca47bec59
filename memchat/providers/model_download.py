"""Downloading the files of a fastembed model; only done when the user asks for it.

The files come from the hub that fastembed's table names, over HTTP. Every wait has a time limit, an
interrupted download is continued, and every large file is checked against the hub's digest.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memchat import disk
from memchat.errors import ConfigError, InputError, ProviderError
from memchat.providers.fastembed_embedder import (
    NOT_INSTALLED,
    POOLING,
    PROMPTS,
    READ_BY,
    is_installed,
    library,
    missing_files,
)
from memchat.types import OnProgress, Progress

if TYPE_CHECKING:
    import httpx

HUB = "https://huggingface.co"
"""``HF_ENDPOINT`` replaces it, as it does for the hub's own tools."""
CONNECT_SECONDS = 10.0
SILENT_SECONDS = 30.0
"""A connection that is silent for so long has failed."""
PART = ".part"
MB = 1_000_000
EXAMPLES = "BAAI/bge-small-en-v1.5 or intfloat/multilingual-e5-large"
_OTHERS = (*READ_BY, "config.json", "special_tokens_map.json", PROMPTS, POOLING)


@dataclass(frozen=True, slots=True)
class _File:
    """A file on the hub; only large ones have a digest."""

    name: str
    size: int
    sha256: str | None


def download(model: str, folder: Path, on_progress: OnProgress) -> int:
    """Put the files of a model that fastembed knows into ``folder``; gives the bytes received.

    Raises ConfigError without the package, InputError for an unknown model, ProviderError where the
    hub cannot be reached or sends something else, StoreFull if the disk is full; the folder does
    not exist then.
    """
    if not is_installed():
        if "/" not in model:  # as every name of fastembed's has one
            raise InputError(
                f"there is no model {model} to fetch; name minilm or, once fastembed is installed, "
                f"one of its models, such as {EXAMPLES}"
            )
        raise ConfigError(NOT_INSTALLED)
    if folder.is_dir() and not missing_files(folder):
        return 0
    if folder.exists():
        raise InputError(f"{folder} is there and no whole model; move it away, then fetch it again")
    repository, wanted = _known(model, folder)
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ProviderError("HF_HUB_OFFLINE is set; unset it to fetch a model")
    import httpx

    part = folder.with_name(folder.name + PART)
    base = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    timeout = httpx.Timeout(SILENT_SECONDS, connect=CONNECT_SECONDS)
    plain = {"Accept-Encoding": "identity"}  # sizes and ranges are those of the files
    client = httpx.Client(timeout=timeout, follow_redirects=True, headers=plain)
    with client, _network_errors(model, base, folder):
        revision, files = _listed(client, f"{base}/api/models/{repository}", wanted)
        address = f"{base}/{repository}/resolve/{revision}"
        fetched = _Download(client, address, part, files, on_progress).run()
        if gone := missing_files(part):
            raise ProviderError(f"the hub has no {', '.join(gone)} for {model}; name another model")
        part.rename(folder)
    return fetched


class _Download:
    """The download of all files of a model."""

    def __init__(
        self,
        client: httpx.Client,
        base: str,
        part: Path,
        files: list[_File],
        on_progress: OnProgress,
    ) -> None:
        self._client, self._base, self._part, self._files = client, base, part, files
        self._on_progress = on_progress
        self._began = time.monotonic()
        self._bytes_before = sum(self._bytes_of(file) for file in files)
        self._bytes_now = self._bytes_before

    def run(self) -> int:
        """Download what is missing; gives the bytes received."""
        for file in self._files:
            self._show()
            self._load(file)
        self._show()
        return self._bytes_now - self._bytes_before

    def _bytes_of(self, file: _File) -> int:
        path = self._part / file.name
        return min(path.stat().st_size, file.size) if path.is_file() else 0

    def _load(self, file: _File) -> None:
        path, held = self._part / file.name, self._bytes_of(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        if held < file.size:
            headers = {"Range": f"bytes={held}-"} if held else {}
            with self._client.stream("GET", f"{self._base}/{file.name}", headers=headers) as answer:
                answer.raise_for_status()
                if held and answer.status_code != 206:  # the server sends the whole file again
                    self._bytes_now -= held
                with path.open("ab" if answer.status_code == 206 else "wb") as out:
                    for some in answer.iter_bytes():
                        out.write(some)
                        self._bytes_now += len(some)
                        self._show()
        if path.stat().st_size != file.size or file.sha256 not in (None, _sha256(path)):
            path.unlink()
            raise ProviderError(f"{file.name} came damaged; run it again")

    def _show(self) -> None:
        total = sum(file.size for file in self._files)
        spent = time.monotonic() - self._began
        here = -(-total // MB) if self._bytes_now == total else self._bytes_now // MB
        self._on_progress(
            Progress(here, -(-total // MB), spent, self._bytes_before // MB, unit="MB")
        )


@contextmanager
def _network_errors(model: str, base: str, folder: Path) -> Iterator[None]:
    """Turn an error of the network or disk into one line that says what to do."""
    import httpx

    other = f"or copy its files from another machine; see memchat services fetch --help ({base})"
    try:
        yield
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        raise ProviderError(
            f"the hub refused {model} (status {status}); try again later, {other}", status=status
        ) from error
    except httpx.HTTPError as error:
        raise ProviderError(
            f"{model} was not fetched, the hub cannot be reached ({type(error).__name__}); check "
            f"the network, {other}",
            retryable=True,
        ) from error
    except OSError as error:
        otherwise = ProviderError(
            f"{model} was not fetched, its folder cannot be written ({error.strerror}); make it "
            "writable, or set MEMCHAT_MODELS to another folder"
        )
        raise disk.failure(error, str(folder), otherwise) from error


def _known(model: str, folder: Path) -> tuple[str, list[str]]:
    """The repository of a model on the hub, and the files to download from it."""
    every = library().TextEmbedding.list_supported_models()
    found = next((one for one in every if one["model"].lower() == model.lower()), None)
    if found is None or not found["sources"]["hf"]:
        raise InputError(
            f"fastembed does not know {model}; put its files into {folder}, or name one of its "
            f"own, such as {EXAMPLES}"
        )
    return found["sources"]["hf"], [found["model_file"], *found["additional_files"], *_OTHERS]


def _listed(client: httpx.Client, address: str, wanted: list[str]) -> tuple[str, list[_File]]:
    """The current revision of the repository, and those of its files that are wanted."""
    answer = client.get(address, params={"blobs": "true"})
    answer.raise_for_status()
    try:
        told: dict[str, Any] = answer.json()
        files = [
            _File(one["rfilename"], int(one["size"]), (one.get("lfs") or {}).get("sha256"))
            for one in told["siblings"]
            if one["rfilename"] in wanted
        ]
        return str(told["sha"]), files
    except (ValueError, KeyError, TypeError) as error:
        raise ProviderError("the hub sent no list of files; try again later") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
