"""JSON that names the messages of each conversation, and lines of facts as people paste them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memchat.transfer.formats import (
    HIDDEN,
    NO_MESSAGES,
    NO_TEXT,
    Conversation,
    Item,
    Reader,
    SavedFact,
    Turn,
    mapping,
    moment,
    name_of,
    sequence,
    text_of,
)

_LINE = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*\[([^\]\n]{0,40})\][.:]?\s*[-–—:]?\s*(\S.*?)\s*$")
_TIMES = ("created_at", "time", "timestamp", "date", "at")


class Messages(Reader):
    """Reads conversations in the form of OpenAI's chat API: ``messages`` of a role and content."""

    PRODUCT = "JSON"

    @staticmethod
    def holds(record: Mapping[str, Any]) -> bool:
        return "messages" in record

    def take(self, record: Mapping[str, Any]) -> Iterator[Item]:
        turns = [
            turn
            for message in sequence(record["messages"])
            if (turn := self._turn(mapping(message))) is not None
        ]
        if not turns:
            self._left_out[NO_MESSAGES] += 1
            return
        names = (record.get(name) for name in ("session", "conversation_id", "id", "uuid"))
        name = next(filter(None, map(name_of, names)), "")
        title = text_of(record.get("title")) or text_of(record.get("name"))
        yield Conversation(name, title, turns, _time(record))

    def _turn(self, message: Mapping[str, Any]) -> Turn | None:
        role, content = message.get("role"), message.get("content")
        parts = [text_of(mapping(part).get("text")) or text_of(part) for part in sequence(content)]
        text = text_of(content) or "\n".join(filter(None, parts))
        if role not in ("user", "human", "assistant", "ai"):
            self._left_out[HIDDEN] += 1
        elif not text:
            self._left_out[NO_TEXT] += 1
        else:
            said_by_person = role in ("user", "human")
            return Turn("user" if said_by_person else "assistant", text, _time(message))
        return None


def _time(record: Mapping[str, Any]) -> datetime | None:
    return next(filter(None, (moment(record.get(name)) for name in _TIMES)), None)


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
