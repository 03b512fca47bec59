"""Files that a passphrase locks: scrypt makes the key, and AES-GCM seals one chunk after the other.

The first line is JSON: what the file is, the parameters of scrypt, and what the caller notes. It is
readable and is sealed with each chunk. A chunk's nonce is its number and whether it is the last, so
that none can be changed, moved, left out or cut off.
"""

from __future__ import annotations

import json
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memchat.errors import InputError, StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORMAT = "memchat encrypted backup"
VERSION = 1
_CHUNK = 1 << 20
_TAG = 16
_LINE = 1_000
"""Bytes that the first line has at most."""
_SCRYPT = {"n": 1 << 17, "r": 8, "p": 1}
"""Takes 128 MB and some tenths of a second for each guess."""
_MOST = {"n": 1 << 20, "r": 8, "p": 4}
"""So that a file from elsewhere cannot take all of the memory."""


def header(path: Path) -> Mapping[str, Any] | None:
    """What the first line says, or None for a file that is not encrypted."""
    try:
        with open(path, "rb") as file:
            return _header(file.readline(_LINE))
    except OSError:
        return None


def _header(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def encrypt(source: IO[bytes], out: IO[bytes], passphrase: str, **noted: Any) -> None:
    """Write ``source`` encrypted, with what is ``noted`` in the first line. Raises InputError for
    an empty passphrase."""
    about = {"format": FORMAT, "version": VERSION, **noted, "scrypt": _SCRYPT}
    about["salt"] = secrets.token_hex(16)
    line, cipher = json.dumps(about).encode() + b"\n", _cipher(about, passphrase)
    out.write(line)
    for nonce, chunk in _chunks(source, _CHUNK):
        out.write(cipher.encrypt(nonce, chunk, line))


def decrypt(path: Path, out: IO[bytes], passphrase: str) -> None:
    """Write what an encrypted file holds. Raises InputError where the passphrase is not its own,
    StoreError where the file was changed or cut off; what was written until then is its own."""
    from cryptography.exceptions import InvalidTag

    with open(path, "rb") as file:
        line = file.readline(_LINE)
        cipher, number = _cipher(_header(line) or {}, passphrase, path), 0
        for number, (nonce, chunk) in enumerate(_chunks(file, _CHUNK + _TAG)):
            try:
                out.write(cipher.decrypt(nonce, chunk, line))
            except InvalidTag:
                if number:
                    raise StoreError(
                        f"{path} was changed or cut off; copy it again, or restore another backup"
                    ) from None
                raise InputError(
                    f"{path} was not opened: the passphrase is another one, or the file was "
                    "changed or cut off. Type it again; if it is right, copy the file again"
                ) from None


def _cipher(about: Mapping[str, Any], passphrase: str, path: Path | None = None) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    if not passphrase:
        raise InputError("the passphrase is empty; give one that you will find again")
    try:
        if about["version"] != VERSION:
            raise StoreError(f"{path} was made by a newer memchat; update memchat")
        cost = {name: int(about["scrypt"][name]) for name in _SCRYPT}
        if not all(0 < cost[name] <= most for name, most in _MOST.items()):
            raise ValueError
        kdf = Scrypt(salt=bytes.fromhex(about["salt"]), length=32, **cost)
    except (LookupError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged (its first line); copy it again") from error
    # The same words may be typed in two ways of writing their accents.
    return AESGCM(kdf.derive(unicodedata.normalize("NFC", passphrase).encode()))


def _chunks(stream: IO[bytes], size: int) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a stream, an empty one where it is empty, each with its nonce."""
    number, chunk = 0, stream.read(size)
    while chunk or not number:
        after = stream.read(size)
        yield number.to_bytes(11, "big") + bytes([not after]), chunk
        number, chunk = number + 1, after
