"""ChatGPT and Claude: conversations, and the facts that each had saved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date

from memchat.transfer.formats import Fields, Item, Reader, SavedFact, Turn, moment, path_to, text_of

_CITATION = re.compile("\ue200[^\ue201]*\ue201|[\ue200-\ue2ff]|【[^】\n]{0,80}†[^】\n]{0,200}】")
_SAVED = re.compile(r"^\s*\d+\.\s*\[(\d{4}-\d\d-\d\d)\]\.?\s*(\S.*)$", re.MULTILINE)
_SHOWN = ("text", "multimodal_text")
_MEMORIES = ("conversations_memory", "project_memories", "memory_files")


class ChatGPT(Reader):
    """Reads conversations, and what was saved in them with the tool ``bio``, or was shown to the
    model as saved."""

    PRODUCT = "ChatGPT"

    def __init__(self, left_out: Counter[str], rules: dict[str, None]) -> None:
        super().__init__(left_out, rules)
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
        self._leave_out(self.OTHER_BRANCHES, sum(bool(said[n]) for n in nodes.keys() - {*path}))
        name, began = record.name("conversation_id", "id"), record.time("create_time")
        turns = (self._turn(said[name]) for name in path)
        yield from self._talk(name, record.text("title"), turns, began)

    def _turn(self, message: Fields) -> Turn | None:
        """The message as it was said, or None for one that is noted elsewhere, or counted."""
        if not message:
            return None
        role, content = message.inner("author").name("role"), message.inner("content")
        kind, at = content.name("content_type"), message.time("create_time")
        # A part that is no text may be one that was spoken.
        text = _CITATION.sub("", content.said("parts") or content.text("text")).strip()
        hidden = message.inner("metadata").value("is_visually_hidden_from_conversation")
        to_all = message.value("recipient") in (None, "all")
        if kind == "user_editable_context":
            self._leave_out("custom instructions")
            self._rule(content.text("user_instructions"))
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
            return self._spoken(role if role == "system" else "", text, at)
        else:
            return self._spoken(role, text, at)
        return None

    def finish(self) -> Iterator[Item]:
        yield from (SavedFact(text, day) for text, day in self._saved.items())


class Claude(Reader):
    """Reads conversations and memories; of attachments, what the person pasted is no word of their
    own."""

    PRODUCT = "Claude"

    def __init__(self, left_out: Counter[str], rules: dict[str, None]) -> None:
        super().__init__(left_out, rules)
        self._listed: Counter[str] = Counter()
        self._seen: set[str] = set()

    @staticmethod
    def holds(record: Fields) -> bool:
        known = any(name in record for name in ("chat_messages", *_MEMORIES))
        return known or ("uuid" in record and ("name" in record or "messages" in record))

    def take(self, record: Fields) -> Iterator[Item]:
        name = record.name("uuid")
        where = next((one for one in ("chat_messages", "messages") if one in record), None)
        if any(one in record for one in _MEMORIES):
            yield from self._memories(record)
        elif "prompt_template" in record or "docs" in record:
            self._leave_out("projects with their documents")
            self._rule(record.text("prompt_template"))
        elif where is None:
            self._listed[name] += 1
        else:
            self._seen.add(name)
            said, leaf = record.each(where), record.name("current_leaf_message_uuid")
            path = self._in_order(said, leaf, "uuid", "parent_message_uuid", "created_at")
            turns = map(self._turn, path)
            yield from self._talk(name, record.text("name"), turns, record.time("created_at"))

    def _turn(self, message: Fields) -> Turn | None:
        role, blocks = message.name("sender", "role"), message.each("content")
        said = [block.text("text") for block in blocks if block.value("type") == "text"]
        # Beside blocks, the text has what was thought and done for it, too.
        text = "\n".join(filter(None, said)) if blocks else message.text("text")
        files = (*message.list("attachments"), *message.list("files"))
        self._leave_out("attachments", len(files))
        return self._spoken(role, text, message.time("created_at"))

    def _memories(self, record: Fields) -> Iterator[Item]:
        at, files = record.time("updated_at"), record.value("memory_files")
        texts = [record.value(_MEMORIES[0]), *dict(record.inner(_MEMORIES[1]).items()).values()]
        for file in files if isinstance(files, list) else [files]:
            texts += [value for name, value in Fields(file).items() if name != "path"]
        yield from self._facts("\n".join(map(text_of, texts)), at and at.date())

    def finish(self) -> Iterator[Item]:
        missing = sum(count for name, count in self._listed.items() if name not in self._seen)
        self._leave_out("conversations that are only listed, without their file", missing)
        yield from super().finish()
