"""Claude: conversations, whole or with an index beside them; projects; and saved memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from memchat.transfer.formats import (
    ROLES,
    Conversation,
    Fields,
    Item,
    Reader,
    SavedFact,
    Turn,
    path_to,
    text_of,
)

_MEMORIES = ("conversations_memory", "project_memories", "memory_files")


class Claude(Reader):
    """Reads conversations and memories; of attachments, what the person pasted is no word of their
    own."""

    PRODUCT = "Claude"

    def __init__(self, left_out: Counter[str]) -> None:
        super().__init__(left_out)
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
        elif where is None:
            self._listed[name] += 1
        else:
            self._seen.add(name)
            said = record.each(where)
            path = _in_order(said, record.name("current_leaf_message_uuid"))
            self._leave_out(self.OTHER_BRANCHES, len(said) - len(path))
            turns = [turn for message in path if (turn := self._turn(message)) is not None]
            if turns:
                began = record.time("created_at")
                yield Conversation(name, record.text("name"), turns, began)
            else:
                self._leave_out(self.NO_MESSAGES)

    def _turn(self, message: Fields) -> Turn | None:
        role, blocks = message.name("sender", "role"), message.each("content")
        said = [block.text("text") for block in blocks if block.value("type") == "text"]
        # Beside blocks, the text has what was thought and done for it, too.
        text = "\n".join(filter(None, said)) if blocks else message.text("text")
        files = (*message.list("attachments"), *message.list("files"))
        self._leave_out("attachments", len(files))
        if role not in ROLES:
            self._leave_out(self.HIDDEN)
        elif not text:
            self._leave_out(self.NO_TEXT)
        else:
            return Turn(ROLES[role], text, message.time("created_at"))
        return None

    def _memories(self, record: Fields) -> Iterator[Item]:
        at, files = record.time("updated_at"), record.value("memory_files")
        texts = [record.value(_MEMORIES[0]), *dict(record.inner(_MEMORIES[1]).items()).values()]
        for file in files if isinstance(files, list) else [files]:
            texts += [value for name, value in Fields(file).items() if name != "path"]
        for line in dict.fromkeys(line for text in texts for line in text_of(text).splitlines()):
            if words := line.strip().lstrip("-*•# \t").strip():
                yield SavedFact(words.replace("**", ""), at and at.date())

    def finish(self) -> Iterator[Item]:
        missing = sum(count for name, count in self._listed.items() if name not in self._seen)
        self._leave_out("conversations that are only listed, without their file", missing)
        yield from super().finish()


def _in_order(said: Sequence[Fields], leaf: str) -> Sequence[Fields]:
    """The messages that lead to the last one that was shown; all, where none names another."""
    by_name = {one.name("uuid"): one for one in said}
    parents = {name: one.name("parent_message_uuid") for name, one in by_name.items()}
    if len(by_name) < len(said) or not any(parent in by_name for parent in parents.values()):
        return said
    times = {name: one.time("created_at") for name, one in by_name.items()}
    return [by_name[name] for name in path_to(leaf, parents, times)]
