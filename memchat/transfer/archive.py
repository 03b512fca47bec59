"""Opens what somebody else packed: a file, a folder, or a zip file with others in it.

Nothing is unpacked to the disk under a name of the archive, links are not followed, and what would
unpack to far more than an export can be is refused. JSON is read value by value, so that a file of
any size takes the memory of one chunk and one conversation.
"""

from __future__ import annotations

import codecs
import json
import lzma
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from memchat.errors import InputError
from memchat.notes.formats import decode

MOST_BYTES = 20_000_000_000
"""Bytes of all files together, unpacked."""
MOST_FILES = 200_000
MOST_RATIO = 200
"""How many times its size a packed file may have; text packs to a tenth or so."""
SMALL = 10_000_000
"""Bytes of a file that may be packed as densely as it likes."""
MOST_DEPTH = 3
"""Zip files in one another."""
LARGEST = 64_000_000
"""Characters of one JSON value; a longer one is no conversation."""
_CHUNK = 1_000_000
_HEAD = 4_096
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_ELEMENT = re.compile(r"[,{}\[\]]")
_NEXT = re.compile(r"[\s,]*")
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)

LINK = "links, which are not followed"
OUTSIDE = "files with a name that leads out of the archive"
LOCKED = "files with a password"
BROKEN = "files that cannot be read"
DEEP = "zip files in more than two others"


@dataclass(frozen=True, slots=True)
class Member:
    """One file, wherever it lies. Its stream can be read once, and while it is the last one."""

    name: str
    stream: IO[bytes]
    head: bytes
    """How it begins."""

    @property
    def is_json(self) -> bool:
        """Whether it begins as JSON does."""
        return self.beginning.lstrip()[:1] in ("{", "[")

    @property
    def beginning(self) -> str:
        """The text of its head."""
        return self.head.decode(_encoding(self.head), "replace")

    def values(self) -> Values:
        """The JSON values in it; what is no text in the encoding of its beginning becomes
        U+FFFD."""
        return Values(codecs.getreader(_encoding(self.head))(self.stream, "replace"))

    def pieces(self, mark: str) -> Iterator[str]:
        """The text in pieces, each but the first behind a mark. What is no text in the encoding of
        its beginning becomes U+FFFD. Raises InputError where it cannot be read, or a piece is too
        long for anything that was said."""
        stream, held = codecs.getreader(_encoding(self.head))(self.stream, "replace"), ""
        try:
            while chunk := stream.read(_CHUNK):
                *whole, held = f"{held}{chunk}".split(mark)
                yield from whole
                if len(held) > LARGEST:
                    raise InputError(BROKEN)
        except (*BROKEN_ZIP, OSError, UnicodeError) as error:
            raise InputError(BROKEN) from error
        yield held

    def text(self) -> str:
        """The whole text. Raises InputError where it is none, or too long for a list."""
        try:
            data = self.stream.read(LARGEST + 1)
        except BROKEN_ZIP as error:
            raise InputError(BROKEN) from error
        if len(data) > LARGEST:
            raise InputError(BROKEN)
        return decode(data)


@dataclass(slots=True)
class Archive:
    """The files of an export, and what was left out of them."""

    left_out: Counter[str] = field(default_factory=Counter)
    _bytes: int = 0
    _files: int = 0

    def members(self, path: Path) -> Iterator[Member]:
        """The files at a path, by their names. Raises InputError where it cannot be read, or is
        larger than an export can be."""
        try:
            if path.is_dir():
                for file in sorted(path.rglob("*")):
                    if file.is_symlink():
                        self.left_out[LINK] += 1
                    elif file.is_file() and not _is_junk(str(file.relative_to(path))):
                        yield from self._file(file, str(file.relative_to(path)))
            elif path.exists() and not path.is_file():
                raise InputError(f"{path} is neither a file nor a folder")
            else:
                yield from self._file(path, path.name)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror or error})") from error

    def _file(self, path: Path, name: str) -> Iterator[Member]:
        with open(path, "rb") as stream:
            self._count(path.stat().st_size)
            yield from self._member(name, stream, 1)

    def _member(self, name: str, stream: IO[bytes], depth: int) -> Iterator[Member]:
        head = stream.read(_HEAD)
        if not head.startswith(b"PK\x03\x04"):
            stream.seek(0)
            yield Member(name, stream, head)
        elif depth > MOST_DEPTH:
            self.left_out[DEEP] += 1
        else:
            stream.seek(0)
            yield from self._zip(stream, depth)

    def _zip(self, stream: IO[bytes], depth: int) -> Iterator[Member]:
        with ExitStack() as stack:
            if depth > 1:  # it is read from its end, and unpacking goes forward only
                unpacked = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(stream, unpacked)
                stream = unpacked
            try:
                packed = stack.enter_context(zipfile.ZipFile(stream))
                infos = sorted(packed.infolist(), key=lambda info: info.filename)
            except BROKEN_ZIP:
                self.left_out[BROKEN] += 1
                return
            for info in infos:
                if self._is_wanted(info):
                    yield from self._packed(packed, info, depth)

    def _packed(
        self, packed: zipfile.ZipFile, info: zipfile.ZipInfo, depth: int
    ) -> Iterator[Member]:
        self._count(info.file_size)
        check_size(info)
        try:
            with closing(packed.open(info)) as stream:
                yield from self._member(info.filename, stream, depth + 1)
        except BROKEN_ZIP:
            self.left_out[BROKEN] += 1

    def _is_wanted(self, info: zipfile.ZipInfo) -> bool:
        reason, parts = "", PurePosixPath(info.filename.replace("\\", "/")).parts
        if info.is_dir() or _is_junk(info.filename):
            return False
        if stat.S_ISLNK(info.external_attr >> 16):
            reason = LINK
        elif ".." in parts or parts[:1] == ("/",) or info.filename[1:2] == ":":
            reason = OUTSIDE
        elif info.flag_bits & 1:
            reason = LOCKED
        self.left_out.update([reason] if reason else [])
        return not reason

    def _count(self, size: int) -> None:
        self._bytes, self._files = self._bytes + size, self._files + 1
        if self._bytes > MOST_BYTES or self._files > MOST_FILES:
            raise InputError(
                f"it has more than {MOST_FILES:,} files, or {MOST_BYTES // 10**9} GB; "
                "nothing was imported. Import its parts one by one"
            )


def check_size(info: zipfile.ZipInfo) -> None:
    """Raise InputError for a packed file that would unpack to far more than an export does."""
    if info.file_size > max(SMALL, MOST_RATIO * info.compress_size):
        raise InputError(
            "the zip file would unpack to far more than an export does, as one does that is "
            "made to fill a disk; nothing was imported"
        )


def _is_junk(name: str) -> bool:
    """Whether a file is one that a Mac puts beside others."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return "__MACOSX" in parts or parts[-1:] == (".DS_Store",) or parts[-1][:2] == "._"


def _encoding(head: bytes) -> str:
    found = json.detect_encoding(head)
    return "utf-8" if "surrogatepass" in found else found


class Values:
    """The JSON values in a text: the elements of its list, or those that follow one another.

    ``broken`` counts what is no JSON; the values behind it are read all the same.
    """

    def __init__(self, stream: codecs.StreamReader) -> None:
        self._stream, self._text, self._place, self._ended = stream, "", 0, False
        self._decoder = json.JSONDecoder(strict=False)
        self.broken = 0

    def __iter__(self) -> Iterator[Any]:
        self._skip()
        is_list = self._text.startswith("[", self._place)
        self._place += is_list
        while self._skip():
            if is_list and self._text[self._place] == "]":
                return
            found, value = self._value()
            if found:
                yield value
            else:
                self.broken += 1
                self._pass_over(is_list)
        self.broken += is_list  # it was cut off

    def _skip(self) -> bool:
        """Go to the next value; False at the end."""
        while True:
            found = _NEXT.match(self._text, self._place)
            self._place = found.end() if found else self._place
            if self._place < len(self._text):
                return True
            if not self._more():
                return False

    def _more(self) -> bool:
        """Read on; False at the end. A value that grows is looked at again when it has doubled."""
        if self._ended or len(self._text) - self._place > LARGEST:
            return False
        left = self._text[self._place :]
        try:
            chunk = self._stream.read(max(_CHUNK, len(left)))
        except (*BROKEN_ZIP, OSError, UnicodeError):
            chunk = ""
            self.broken += 1
        self._text, self._place, self._ended = left + chunk, 0, not chunk
        return bool(chunk)

    def _value(self) -> tuple[bool, Any]:
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                at_the_end = len(self._text) - error.pos < 16 or "Unterminated" in error.msg
                if not (at_the_end and self._more()):
                    return False, None
            except (RecursionError, ValueError):
                return False, None
            else:
                if end < len(self._text) or isinstance(value, dict | list) or not self._more():
                    self._place = end
                    return True, value

    def _pass_over(self, is_list: bool) -> None:
        """Go behind what is no JSON: in a list to where its brackets close, else to the next
        line."""
        end = re.compile("\n") if not is_list else _TOKEN
        if is_list and self._text[self._place] not in "{[":
            end, self._place = _ELEMENT, self._place + 1
        depth, at = 0, self._place
        while True:
            token = end.search(self._text, at)
            if token is None:
                if not self._more():
                    self._place = len(self._text)
                    return
                depth, at = 0, self._place
                continue
            at = token.end()
            if end is _TOKEN:
                depth += (token[0] in "{[") - (token[0] in "}]")
            if depth <= 0:
                self._place = token.start() if end is _ELEMENT else at
                return
