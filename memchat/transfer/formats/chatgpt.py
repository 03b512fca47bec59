"""ChatGPT: each conversation is a tree of messages, and its saved memories lie among them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from memchat.transfer.formats import (
    HIDDEN,
    NO_MESSAGES,
    NO_TEXT,
    OTHER_BRANCHES,
    Conversation,
    Item,
    Reader,
    SavedFact,
    Turn,
    mapping,
    moment,
    name_of,
    path_to,
    sequence,
    text_of,
)

_CITATION = re.compile("\ue200[^\ue201]*\ue201|[\ue200-\ue2ff]|【[^】\n]{0,80}†[^】\n]{0,200}】")
_SAVED = re.compile(r"^\s*\d+\.\s*\[(\d{4}-\d\d-\d\d)\]\.?\s*(\S.*)$", re.MULTILINE)
_SHOWN = ("text", "multimodal_text")
_INSTRUCTIONS = "custom instructions"


class ChatGPT(Reader):
    """Reads conversations, and what was saved in them with the tool ``bio``, or was shown to the
    model as saved."""

    PRODUCT = "ChatGPT"

    def __init__(self, left_out: Counter[str]) -> None:
        super().__init__(left_out)
        self._saved: dict[str, date | None] = {}

    @staticmethod
    def holds(record: Mapping[str, Any]) -> bool:
        return "mapping" in record

    def take(self, record: Mapping[str, Any]) -> Iterator[Item]:
        nodes = {name: mapping(node) for name, node in mapping(record["mapping"]).items()}
        parents = {name: name_of(node.get("parent")) for name, node in nodes.items()}
        said = {name: mapping(node.get("message")) for name, node in nodes.items()}
        times = {name: moment(message.get("create_time")) for name, message in said.items()}
        leaf = name_of(record.get("current_node"))
        if leaf not in nodes:
            inner = {*parents.values()}
            ends = [name for name in nodes if name not in inner] or [*nodes]
            leaf = max(ends, key=lambda name: str(times[name] or ""), default="")
        path = path_to(leaf, parents)
        taken = [self._turn(said[name]) for name in path]
        turns = [turn for turn in taken if turn is not None]
        aside = sum(bool(said[name]) for name in nodes.keys() - {*path})
        self._left_out.update({OTHER_BRANCHES: aside} if aside else {})
        if not turns:
            self._left_out[NO_MESSAGES] += 1
            return
        name = name_of(record.get("conversation_id")) or name_of(record.get("id"))
        title, began = text_of(record.get("title")), moment(record.get("create_time"))
        yield Conversation(name, title, turns, began)

    def _turn(self, message: Mapping[str, Any]) -> Turn | None:
        """The message as it was said, or None for one that is noted elsewhere, or counted."""
        if not message:
            return None
        role, content = mapping(message.get("author")).get("role"), mapping(message.get("content"))
        kind, at = content.get("content_type"), moment(message.get("create_time"))
        parts = [_text_of_part(part) for part in sequence(content.get("parts"))]
        text = _CITATION.sub("", "\n".join(filter(None, parts)) or text_of(content.get("text")))
        hidden = mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
        to_all = message.get("recipient") in (None, "all")
        if kind in ("model_editable_context", "user_editable_context"):
            context = text_of(content.get("model_set_context"))
            self._saved |= {fact: _day(day) for day, fact in _SAVED.findall(context)}
            self._left_out[_INSTRUCTIONS if kind[0] == "u" else HIDDEN] += 1
        elif role == "assistant" and message.get("recipient") == "bio":
            lines = (line.strip() for line in text.splitlines())
            self._saved |= {line: at and at.date() for line in lines if line}
            self._left_out["messages to the saved memories, which are taken from them"] += 1
        elif role not in ("user", "assistant") or hidden or kind not in _SHOWN or not to_all:
            self._left_out[HIDDEN] += 1
        elif not text.strip():
            self._left_out[NO_TEXT] += 1
        else:
            return Turn("user" if role == "user" else "assistant", text.strip(), at)
        return None

    def finish(self) -> Iterator[Item]:
        yield from (SavedFact(text, day) for text, day in self._saved.items())


def _text_of_part(part: object) -> str:
    return text_of(part) or text_of(mapping(part).get("text"))  # the second of what was spoken


def _day(day: str) -> date | None:
    at = moment(day)
    return at and at.date()
