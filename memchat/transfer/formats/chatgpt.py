"""ChatGPT: each conversation is a tree of messages, and its saved memories lie among them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date

from memchat.transfer.formats import (
    Conversation,
    Fields,
    Item,
    Reader,
    SavedFact,
    Turn,
    moment,
    path_to,
    text_of,
)

_CITATION = re.compile("\ue200[^\ue201]*\ue201|[\ue200-\ue2ff]|【[^】\n]{0,80}†[^】\n]{0,200}】")
_SAVED = re.compile(r"^\s*\d+\.\s*\[(\d{4}-\d\d-\d\d)\]\.?\s*(\S.*)$", re.MULTILINE)
_SHOWN = ("text", "multimodal_text")


class ChatGPT(Reader):
    """Reads conversations, and what was saved in them with the tool ``bio``, or was shown to the
    model as saved."""

    PRODUCT = "ChatGPT"

    def __init__(self, left_out: Counter[str]) -> None:
        super().__init__(left_out)
        self._saved: dict[str, date | None] = {}

    @staticmethod
    def holds(record: Fields) -> bool:
        return "mapping" in record

    def take(self, record: Fields) -> Iterator[Item]:
        nodes = {name: Fields(node) for name, node in record.inner("mapping").items()}
        said = {name: node.inner("message") for name, node in nodes.items()}
        parents = {name: node.name("parent") for name, node in nodes.items()}
        times = {name: message.time("create_time") for name, message in said.items()}
        path = path_to(record.name("current_node"), parents, times)
        turns = [turn for name in path if (turn := self._turn(said[name])) is not None]
        self._leave_out(self.OTHER_BRANCHES, sum(bool(said[n]) for n in nodes.keys() - {*path}))
        if turns:
            name, began = record.name("conversation_id", "id"), record.time("create_time")
            yield Conversation(name, record.text("title"), turns, began)
        else:
            self._leave_out(self.NO_MESSAGES)

    def _turn(self, message: Fields) -> Turn | None:
        """The message as it was said, or None for one that is noted elsewhere, or counted."""
        if not message:
            return None
        role, content = message.inner("author").name("role"), message.inner("content")
        kind, at = content.name("content_type"), message.time("create_time")
        # A part that is no text may be one that was spoken.
        parts = [text_of(one) or Fields(one).text("text") for one in content.list("parts")]
        text = _CITATION.sub("", "\n".join(filter(None, parts)) or content.text("text")).strip()
        hidden = message.inner("metadata").value("is_visually_hidden_from_conversation")
        to_all = message.value("recipient") in (None, "all")
        if kind == "user_editable_context":
            self._leave_out("custom instructions")
        elif kind == "model_editable_context":
            for day, fact in _SAVED.findall(content.text("model_set_context")):
                saved = moment(day)
                self._saved[fact] = saved and saved.date()
            self._leave_out(self.HIDDEN)
        elif role == "assistant" and message.value("recipient") == "bio":
            lines = (line.strip() for line in text.splitlines())
            self._saved |= {line: at and at.date() for line in lines if line}
            self._leave_out("messages to the saved memories, which are taken from them")
        elif role not in ("user", "assistant") or hidden or kind not in _SHOWN or not to_all:
            self._leave_out(self.HIDDEN)
        elif not text:
            self._leave_out(self.NO_TEXT)
        else:
            return Turn("user" if role == "user" else "assistant", text, at)
        return None

    def finish(self) -> Iterator[Item]:
        yield from (SavedFact(text, day) for text, day in self._saved.items())
