"""Finds out by its content what an export holds, and reads it: with the reader of the product that
it comes from, as conversations in plain JSON, or as lines of facts that somebody pasted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from memchat.errors import InputError
from memchat.transfer import kinds
from memchat.transfer.archive import BROKEN, Archive, Member
from memchat.transfer.formats import Fields, Item, Reader
from memchat.transfer.formats.assistants import ChatGPT, Claude
from memchat.transfer.formats.gemini import Gemini
from memchat.transfer.formats.plain import Lines, Markdown, Messages
from memchat.transfer.formats.self_hosted import Letta, LibreChat, Mem0, OpenWebUI

OWN = "memchat"
KNOWN = (
    "exports of ChatGPT, Claude, Gemini, Open WebUI, LibreChat, mem0, Letta and memchat, JSON with "
    "messages, conversations in Markdown, and dated facts"
)
READERS: tuple[type[Reader], ...] = (
    *(ChatGPT, Claude, Gemini, OpenWebUI, LibreChat, Letta, Mem0),
    *(Messages, Markdown, Lines),
)


class Source:
    """An export, which can be read again and again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.left_out: Counter[str] = Counter()
        self.products: dict[str, None] = {}
        """The names of the products, in the order in which they were found."""
        self.rules: dict[str, None] = {}
        """What the assistants had been told to be and to do."""

    def items(self) -> Iterator[tuple[str, Item]]:
        """What it holds, each with the product. Raises InputError where it cannot be read, or
        nothing in it is known."""
        with suppress(OSError), open(self._path, "rb") as file:
            if kinds.packed(file) is not None:  # its other files are those of notes
                self.products[OWN] = None
                return
        archive = Archive()
        self.left_out = archive.left_out
        readers = {one: one(self.left_out, self.rules) for one in READERS}
        for member in archive.members(self._path):
            kind = next((one for one in READERS if one.begins(member.beginning)), None)
            if kind is not None:
                self.products[kind.PRODUCT] = None
                yield from self._of_text(member, readers[kind])
            elif member.is_json:
                yield from self._of_json(member, readers)
            else:
                self.left_out["files of another kind"] += 1
        for kind, reader in readers.items():
            yield from ((kind.PRODUCT, item) for item in reader.finish())
        if OWN in self.products and len(self.products) > 1:
            del self.products[OWN]
            self.left_out["exports of memchat, to be imported by themselves"] += 1
        if not self.products:
            raise InputError(
                f"{self._path} is no export that memchat knows{self.why}; it reads {KNOWN}"
            )

    @property
    def why(self) -> str:
        """What was left out, in brackets."""
        told = "; ".join(f"{what}: {count:,}" for what, count in self.left_out.items())
        return f" ({told})" if told else ""

    def _of_json(
        self, member: Member, readers: Mapping[type[Reader], Reader]
    ) -> Iterator[tuple[str, Item]]:
        values = member.values()
        for value in values:
            inner = value.get("conversations") if isinstance(value, dict) else None
            for record in inner if isinstance(inner, list) else [value]:
                known = Fields(record)
                if known.value("format") == kinds.FORMAT:
                    self.products[OWN] = None
                    return
                kind = next((one for one in READERS if one.holds(known)), None)
                if kind is None:
                    self.left_out["records of another kind"] += 1
                else:
                    self.products[kind.PRODUCT] = None
                    yield from ((kind.PRODUCT, item) for item in readers[kind].take(known))
        self.left_out.update({"parts that are no JSON": values.broken} if values.broken else {})

    def _of_text(self, member: Member, reader: Reader) -> Iterator[tuple[str, Item]]:
        try:
            yield from ((reader.PRODUCT, item) for item in reader.read(member))
        except InputError:
            self.left_out[BROKEN] += 1
