"""What people run themselves: the chat apps Open WebUI and LibreChat, whose conversations are
trees, and the memories of mem0 and Letta."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from memchat.transfer.formats import Fields, Item, Reader, SavedFact, Turn

_THOUGHT = re.compile(r"<details\b[^<>]*>(?:(?!<details\b).)*?</details>", re.DOTALL)
"""What a model thought or did, folded up in its answer."""
_PERSONA = "persona"
"""The block in which an agent of Letta says who it is itself."""
_SPEAK = "send_message"
"""The tool by which its older agents answer."""


class OpenWebUI(Reader):
    """Reads chats, as its settings export them, and the memories that its API lists."""

    PRODUCT = "Open WebUI"

    @staticmethod
    def holds(record: Fields) -> bool:
        memory = all(name in record for name in ("user_id", "content", "updated_at"))
        return bool(record.inner("chat")) or (memory and "role" not in record)

    def take(self, record: Fields) -> Iterator[Item]:
        chat = record.inner("chat")
        history = chat.inner("history")
        if not chat:
            at, text = record.time("updated_at", "created_at"), record.text("content")
            yield from self._facts(text, at and at.date())
            self._leave_out(self.NO_FACT, not text)
            return
        said = [Fields(one) for _, one in history.inner("messages").items()]
        said = said or list(chat.each("messages"))
        path = self._in_order(said, history.name("currentId"), "id", "parentId", "timestamp")
        self._rule(chat.inner("params").text("system") or chat.text("system"))
        title, began = record.text("title") or chat.text("title"), record.time("created_at")
        began = began or chat.time("timestamp")
        yield from self._talk(record.name("id"), title, map(self._turn, path), began)

    def _turn(self, message: Fields) -> Turn | None:
        role, text = message.name("role"), message.said()
        if role == "assistant":
            told = (one.said() for one in message.each("output") if one.name("type") == "message")
            text = _THOUGHT.sub("", text).strip() or "\n".join(filter(None, told))
        self._leave_out("attachments", len(message.list("files")))
        return self._spoken(role, text, message.time("timestamp"))


class LibreChat(Reader):
    """Reads a conversation in JSON, flat or with the answers under their questions."""

    PRODUCT = "LibreChat"

    @staticmethod
    def holds(record: Fields) -> bool:
        return "conversationId" in record and ("messagesTree" in record or "messages" in record)

    def take(self, record: Fields) -> Iterator[Item]:
        said, waiting = [], [*record.each("messagesTree"), *record.each("messages")][::-1]
        waiting += [one] if (one := record.inner("messages")) else []
        while waiting:
            said.append(waiting.pop())
            waiting += said[-1].each("children")[::-1]
        path = self._in_order(said, "", "messageId", "parentMessageId", "createdAt")
        self._rule(record.inner("options").text("promptPrefix"))
        turns = map(self._turn, path)
        yield from self._talk(record.name("conversationId"), record.text("title"), turns, None)

    def _turn(self, message: Fields) -> Turn | None:
        is_own = message.value("isCreatedByUser")
        role = "user" if is_own is True else "assistant" if is_own is False else ""
        role = role or message.name("sender").casefold()
        text = message.said() or message.text("text")
        self._leave_out("attachments", len(message.list("files")))
        role = "" if message.value("error") is True else role
        return self._spoken(role, text, message.time("createdAt"))


class Mem0(Reader):
    """Reads what ``get_all()`` returns: memories, in a list or under ``results``."""

    PRODUCT = "mem0"

    @staticmethod
    def holds(record: Fields) -> bool:
        return any("memory" in one for one in (record, *record.each("results")))

    def take(self, record: Fields) -> Iterator[Item]:
        self._leave_out("relations between things", len(record.list("relations")))
        for one in record.each("results") if "results" in record else (record,):
            at, until = one.time("updated_at", "created_at"), one.time("expiration_date")
            if text := one.text("memory"):
                yield SavedFact(text, at and at.date(), until and until.date())
            else:
                self._leave_out(self.NO_FACT)


class Letta(Reader):
    """Reads agent files (.af), of today and as they were before: what an agent was told, and
    its blocks of memory but for the one about itself."""

    PRODUCT = "Letta"

    @staticmethod
    def holds(record: Fields) -> bool:
        now = "agents" in record and "blocks" in record
        return now or ("core_memory" in record and "messages" in record)

    def take(self, record: Fields) -> Iterator[Item]:
        for block in (*record.each("blocks"), *record.each("core_memory")):
            at, text = block.time("updated_at"), block.text("value")
            if block.name("label") == _PERSONA:
                self._leave_out("blocks in which an agent says who it is")
                self._rule(text)
            elif text:
                yield from self._facts(text, at and at.date())
            else:
                self._leave_out(self.NO_FACT)
        for agent in record.each("agents") if "agents" in record else (record,):
            self._rule(agent.text("system"))
            speaks = agent.name("agent_type") == "letta_v1_agent"
            turns = (self._turn(one, speaks=speaks) for one in agent.each("messages"))
            yield from self._talk(agent.name("name"), agent.text("name"), turns, None)

    def _turn(self, message: Fields, *, speaks: bool) -> Turn | None:
        """A message. Agents of the older kinds speak by a tool, and think beside it; what the
        person said is in an envelope."""
        role, text = message.name("role"), message.said()
        if role == "user" and text.startswith("{") and (mail := _opened(text)):
            text = mail.text("message")
            role = role if mail.name("type") == "user_message" else ""
        elif role == "assistant" and (calls := message.each("tool_calls")):
            uses = [call.inner("function") for call in calls]
            told = [_opened(use.text("arguments")).text("message") for use in uses]
            told = [one for use, one in zip(uses, told, strict=True) if use.name("name") == _SPEAK]
            text = "\n".join(filter(None, told)) or (text if speaks else "")
            role = role if text else ""
        return self._spoken(role, text, message.time("created_at"))


def _opened(text: str) -> Fields:
    try:
        return Fields(json.loads(text))
    except (ValueError, RecursionError):
        return Fields(None)
