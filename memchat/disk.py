"""Where the data folder and the cache are, and files that only this account may read: made, read,
checked and replaced. Tells a full disk from other failures.

A private file is TOML with one name and value in each line (mode 600).
"""

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
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from memchat.errors import ConfigError, MemChatError, StoreError, StoreFull

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds the package: a checkout, or the environment it is installed in."""


def checkout() -> Path | None:
    """The checkout that memchat runs from, or None for an installed package."""
    is_one = (ROOT / "pyproject.toml").is_file() and (ROOT / "prompts").is_dir()
    return ROOT if is_one else None


def packaged(in_wheel: str, in_checkout: str) -> Path:
    """A file or folder that a wheel has inside the package, and a checkout beside it."""
    found = Path(__file__).parent / in_wheel
    return found if found.exists() else Path(__file__).parents[1] / in_checkout


def default_home() -> Path:
    """The platform's folder for user data."""
    from platformdirs import user_data_path

    return user_data_path("memchat", appauthor=False)


def cache_folder() -> Path:
    """The platform's folder for what can be downloaded again."""
    from platformdirs import user_cache_path

    return user_cache_path("memchat", appauthor=False)


PROBE_BYTES = 1 << 20
"""More than SQLite asks for at a time when it opens a store or grows its files."""
OTHERS = 0o077
"""The rights of everybody but the owner."""


def has_no_room(error: OSError) -> bool:
    """Whether it was refused for want of room: a full disk, or a quota that is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def full(place: str, error: OSError | None = None) -> StoreFull:
    """The error to raise where the disk that holds ``place`` has no room."""
    if error is not None and error.errno == errno.EDQUOT:
        what = f"your quota on the disk that holds {place} is used up"
    else:
        what = f"the disk that holds {place} is full"
    return StoreFull(f"{what}. Nothing that was kept is lost. Free some space and try again")


def failure(error: OSError, place: str, otherwise: MemChatError) -> MemChatError:
    """The error to raise where the system refused to write: that the disk that holds ``place`` has
    no room, or else ``otherwise``."""
    return full(place, error) if has_no_room(error) else otherwise


def no_room_in(folder: Path) -> OSError | None:
    """The system's refusal where a file in the folder cannot grow, else None.

    Asked after SQLite failed, whose error tells a broken disk from a full one only at times. What
    the system reports as free says nothing of quotas, so a file is written, and gone at once.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error if has_no_room(error) else None
    return None


def make_folder(folder: Path) -> None:
    """Make a folder that nobody else may look into, whatever the umask. One that is there stays as
    it is: `memchat doctor` says where others may look into it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        folder.chmod(0o700)


def new_file(path: Path) -> int:
    """Open a new file for writing that only this account may read, in the place of any other.

    A link that lies there is never followed.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)


def open_to_others(folder: Path) -> bool:
    """Whether other accounts of this machine may list or enter a folder."""
    return bool(folder.stat().st_mode & OTHERS)


MOST_BYTES = 1_000_000


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
    names = {name: name if re.fullmatch(r"\w+", name, re.A) else quoted(name) for name in values}
    lines = (f"{names[name]} = {quoted(values[name])}" for name in sorted(values))
    write_text(path, "\n".join([f"# {heading}", *lines]) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replace the file atomically, as ``replacing`` does."""
    with replacing(path) as file:
        file.write(text)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A file of mode 600 that takes this name once it is whole and on the disk.

    Raises StoreError where it cannot be written, StoreFull if the disk is full.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(new_file(new), "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        _sync(path.parent)
    except OSError as error:
        otherwise = StoreError(f"{path} cannot be written ({error.strerror})")
        raise failure(error, str(path.parent), otherwise) from error
    finally:
        new.unlink(missing_ok=True)


@contextlib.contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Lock the folder's private files against changes by other processes; creates the folder."""
    try:
        make_folder(folder)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        otherwise = StoreError(f"the folder {folder} cannot be used ({error.strerror})")
        raise failure(error, str(folder), otherwise) from error
    try:
        yield
    finally:
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
