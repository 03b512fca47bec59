"""Where the data folder and the cache are, and the private files of the data folder: TOML with one
name and value in each line, which only this account may read (mode 600)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import shlex
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from memchat import disk
from memchat.errors import ConfigError, StoreError

MOST_BYTES = 1_000_000
LOCK = ".settings.toml.lock"
"""The file that is locked while one of the others is changed. It is empty, and gone afterwards."""


def read(path: Path) -> dict[str, object]:
    """The file's names and values; empty where there is no file.

    Raises ConfigError for a file that other accounts may read or change, or that is not TOML. No
    message contains a value of the file.
    """
    return parsed(path, read_text(path))


def read_text(path: Path) -> str:
    """The file's text; empty where there is no file. Raises ConfigError as ``read`` does."""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigError(
                f"{path} is a symbolic link and is not read; put the file itself there, then run "
                f"chmod 600 {shlex.quote(str(path))}"
            ) from None
        raise ConfigError(f"{path} cannot be read ({error.strerror})") from None
    with open(handle, "rb") as file:
        _check(path, os.fstat(handle))
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ConfigError(f"{path} is larger than {MOST_BYTES:,} bytes and is not read")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text; write it anew") from None


def parsed(path: Path, text: str) -> dict[str, object]:
    """The names and values in the text of the file. Raises ConfigError where it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The parser's message may quote the file, so only the line is shown.
        place = re.search(r"line \d+", str(error))
        where = f" ({place[0]})" if place else ""
        raise ConfigError(f'{path} is not TOML{where}; write each line as NAME = "value"') from None


def quoted(text: str) -> str:
    """A text as TOML writes it. JSON would write an emoji as two halves, which are no TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def write(path: Path, values: Mapping[str, str], heading: str) -> None:
    """Replace the file by these names and values, as ``write_text`` does."""
    lines = [f"# {heading}", *(f"{name} = {quoted(values[name])}" for name in sorted(values))]
    write_text(path, "\n".join(lines) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replace the file atomically; it has mode 600 from the beginning.

    Raises StoreError where it cannot be written, StoreFull if the disk is full.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(new, flags, 0o600), "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        _sync(path.parent)
    except OSError as error:
        otherwise = StoreError(f"{path} cannot be written ({error.strerror})")
        raise disk.failure(error, str(path.parent), otherwise) from error
    finally:
        new.unlink(missing_ok=True)


@contextlib.contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Lock the folder's private files against changes by other processes; creates the folder."""
    # Not the folder itself: each open store holds a lock on that one until it is closed.
    path = folder / LOCK
    try:
        disk.make_folder(folder)
        handle = _locked(path)
    except OSError as error:
        otherwise = StoreError(f"the folder {folder} cannot be used ({error.strerror})")
        raise disk.failure(error, str(folder), otherwise) from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _locked(path: Path) -> int:
    """The lock file, open and locked. Who held it before has removed it: then it is made again."""
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        os.close(handle)


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path} is no file and is not read; remove it")
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"{path} belongs to another account and is not read; make a file of your own there, "
            f"then run chmod 600 {shlex.quote(str(path))}"
        )
    if found.st_mode & 0o077:
        raise ConfigError(
            f"{path} may be read or changed by others and is not read; run "
            f"chmod 600 {shlex.quote(str(path))}"
        )


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds the package: a checkout, or the environment it is installed in."""
STORE_FILES = ("memchat.db", "settings.toml", "keys.toml")
"""A folder that holds one of these is in use as a data folder."""


def checkout() -> Path | None:
    """The checkout that memchat runs from, or None for an installed package."""
    is_one = (ROOT / "pyproject.toml").is_file() and (ROOT / "prompts").is_dir()
    return ROOT if is_one else None


def default_home() -> Path:
    """The platform's folder for user data, or a data folder that is in use in the checkout.

    Earlier versions kept the store of a checkout in its ``data/store``.
    """
    return _in_checkout() or _user_data()


def cache_folder() -> Path:
    """The platform's folder for what can be downloaded again."""
    from platformdirs import user_cache_path

    return user_cache_path("memchat", appauthor=False)


def move_advice(home: Path) -> str | None:
    """The commands that move a data folder out of the checkout; None where it is elsewhere."""
    if home != _in_checkout():
        return None
    place, target = shlex.quote(str(home)), _user_data()
    risk = f"the data folder {place} is in the checkout, where git clean -fdx deletes it"
    if target.exists():
        return f"{risk}; move it elsewhere and set MEMCHAT_HOME to its place ({target} exists)"
    parent, target_name = shlex.quote(str(target.parent)), shlex.quote(str(target))
    return (
        f"{risk}; to move it, while no memchat runs: mkdir -p {parent} && mv {place} {target_name}"
    )


def _in_checkout() -> Path | None:
    root = checkout()
    if root is None:
        return None
    folder = root / "data" / "store"
    return folder if any((folder / name).exists() for name in STORE_FILES) else None


def _user_data() -> Path:
    from platformdirs import user_data_path

    return user_data_path("memchat", appauthor=False)
