"""Finds out by its content what an export holds, and reads it: with the reader of the product that
it comes from, as conversations in plain JSON, or as lines of facts that somebody pasted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from memchat.errors import InputError
from memchat.transfer import kinds
from memchat.transfer.archive import BROKEN, Archive, Member
from memchat.transfer.formats import (
    ROLES,
    Conversation,
    Fields,
    Item,
    Reader,
    SavedFact,
    Turn,
    moment,
    text_of,
)
from memchat.transfer.formats.chatgpt import ChatGPT
from memchat.transfer.formats.claude import Claude
from memchat.transfer.formats.gemini import Gemini

LINES = "a list of facts"
OWN = "memchat"
KNOWN = "exports of ChatGPT, Claude, Gemini (JSON) and memchat, JSON with messages, and dated facts"
_LINE = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*\[([^\]\n]{0,40})\][.:]?\s*[-–—:]?\s*(\S.*?)\s*$")
_TIMES = ("created_at", "time", "timestamp", "date", "at")


class Messages(Reader):
    """Reads conversations in the form of OpenAI's chat API: ``messages`` of a role and content."""

    PRODUCT = "JSON"

    @staticmethod
    def holds(record: Fields) -> bool:
        return "messages" in record

    def take(self, record: Fields) -> Iterator[Item]:
        said = map(self._turn, record.each("messages"))
        if turns := [turn for turn in said if turn is not None]:
            name = record.name("session", "conversation_id", "id", "uuid")
            title = record.text("title") or record.text("name")
            yield Conversation(name, title, turns, record.time(*_TIMES))
        else:
            self._leave_out(self.NO_MESSAGES)

    def _turn(self, message: Fields) -> Turn | None:
        role = message.name("role")
        parts = (text_of(one) or Fields(one).text("text") for one in message.list("content"))
        text = message.text("content") or "\n".join(filter(None, parts))
        if role not in ROLES:
            self._leave_out(self.HIDDEN)
        elif not text:
            self._leave_out(self.NO_TEXT)
        else:
            return Turn(ROLES[role], text, message.time(*_TIMES))
        return None


def facts_in(text: str, left_out: Counter[str]) -> Iterator[SavedFact]:
    """The facts of lines such as "- [2024-05-01] Likes tea"; the other lines are counted."""
    for line in text.splitlines():
        if found := _LINE.match(line):
            at = moment(found[1].strip())
            yield SavedFact(found[2], at and at.date())
        elif line.strip(" \t`-=#*"):
            left_out["lines that are no “- [date] fact”"] += 1


def has_facts(head: str) -> bool:
    """Whether a text begins with such lines, at most a few others before them."""
    lines = [line for line in head.splitlines() if line.strip()][:20]
    dated = [found for line in lines if (found := _LINE.match(line)) and moment(found[1].strip())]
    return bool(dated)


READERS: tuple[type[Reader], ...] = (ChatGPT, Claude, Gemini, Messages)


class Source:
    """An export, which can be read again and again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.left_out: Counter[str] = Counter()
        self.products: dict[str, None] = {}
        """The names of the products, in the order in which they were found."""

    def items(self) -> Iterator[tuple[str, Item]]:
        """What it holds, each with the product. Raises InputError where it cannot be read, or
        nothing in it is known."""
        archive = Archive()
        self.left_out = archive.left_out
        readers = {one: one(self.left_out) for one in READERS}
        for member in archive.members(self._path):
            if member.is_json:
                yield from self._of_json(member, readers)
            elif has_facts(member.beginning):
                self.products[LINES] = None
                yield from self._of_lines(member)
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

    def _of_lines(self, member: Member) -> Iterator[tuple[str, Item]]:
        try:
            text = member.text()
        except InputError:
            self.left_out[BROKEN] += 1
        else:
            yield from ((LINES, fact) for fact in facts_in(text, self.left_out))
