"""Claude: conversations, whole or with an index beside them; projects; and saved memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
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

_ROLES = {"human": "user", "assistant": "assistant"}
_MEMORIES = ("conversations_memory", "project_memories", "memory_files")


class Claude(Reader):
    """Reads conversations and memories; of attachments, what the person pasted is no word of their
    own."""

    PRODUCT = "Claude"

    def __init__(self, left_out: Counter[str]) -> None:
        super().__init__(left_out)
        self._listed: set[str] = set()
        self._seen: set[str] = set()

    @staticmethod
    def holds(record: Mapping[str, Any]) -> bool:
        known = "chat_messages" in record or any(name in record for name in _MEMORIES)
        return known or ("uuid" in record and ("name" in record or "messages" in record))

    def take(self, record: Mapping[str, Any]) -> Iterator[Item]:
        messages, name = record.get("chat_messages", record.get("messages")), record.get("uuid")
        name = name_of(name)
        if any(one in record for one in _MEMORIES):
            yield from self._memories(record)
        elif "prompt_template" in record or "docs" in record:
            self._left_out["projects with their documents"] += 1
        elif messages is None:
            self._listed.add(name)
        else:
            self._seen.add(name)
            said = [mapping(message) for message in sequence(messages)]
            path = _in_order(said, name_of(record.get("current_leaf_message_uuid")))
            self._left_out.update({OTHER_BRANCHES: n} if (n := len(said) - len(path)) else {})
            turns = [turn for message in path if (turn := self._turn(message)) is not None]
            if turns:
                began = moment(record.get("created_at"))
                yield Conversation(name, text_of(record.get("name")), turns, began)
            else:
                self._left_out[NO_MESSAGES] += 1

    def _turn(self, message: Mapping[str, Any]) -> Turn | None:
        role = _ROLES.get(name_of(message.get("sender") or message.get("role")))
        blocks = [mapping(block) for block in sequence(message.get("content"))]
        said = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
        # Beside blocks, the text has what was thought and done for it, too.
        text = "\n".join(filter(None, said)) if blocks else text_of(message.get("text"))
        files = len(sequence(message.get("attachments"))) + len(sequence(message.get("files")))
        self._left_out.update({"attachments": files} if files else {})
        if role and text:
            at = moment(message.get("created_at"))
            return Turn("user" if role == "user" else "assistant", text, at)
        self._left_out[NO_TEXT if role else HIDDEN] += 1
        return None

    def _memories(self, record: Mapping[str, Any]) -> Iterator[Item]:
        day = moment(record.get("updated_at"))
        texts = [record.get("conversations_memory"), *mapping(record.get(_MEMORIES[1])).values()]
        for file in ((files := record.get("memory_files")) and sequence(files)) or [files]:
            texts += [mapping(file).get("content"), *mapping(file).values()]
        for line in dict.fromkeys(line for text in texts for line in text_of(text).splitlines()):
            if words := line.strip().lstrip("-*•# \t").strip():
                yield SavedFact(words.replace("**", ""), None if day is None else day.date())

    def finish(self) -> Iterator[Item]:
        if missing := len(self._listed - self._seen):
            self._left_out["conversations that are only listed, without their file"] += missing
        yield from super().finish()


def _in_order(said: list[Mapping[str, Any]], leaf: str) -> list[Mapping[str, Any]]:
    """The messages that lead to the last one that was shown; all, where none names another."""
    by_name = {name_of(one.get("uuid")): one for one in said}
    parents = {name: name_of(one.get("parent_message_uuid")) for name, one in by_name.items()}
    if len(by_name) < len(said) or not any(parent in by_name for parent in parents.values()):
        return said
    inner = {*parents.values()}
    ends = [name for name in by_name if name not in inner] or [*by_name]
    if leaf not in by_name:
        leaf = max(ends, key=lambda name: str(moment(by_name[name].get("created_at")) or ""))
    return [by_name[name] for name in path_to(leaf, parents)]
