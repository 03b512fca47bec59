"""Storing a reply: its message row, the memories and notes it was shown, its prompt, and what it
cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from memchat.chat.conversation import Conversation
from memchat.chat.parts import Parts
from memchat.chat.prompt import Prompt
from memchat.chat.reply import Reply
from memchat.memory.forgetting import replies_in_flight
from memchat.memory.recall import render
from memchat.memory.recall.used_facts import echoed
from memchat.store import (
    apps,
    chunks,
    fact_lists,
    jobs,
    messages,
    notes,
    prompts,
    receipts,
    sessions,
    usage,
    use_counts,
)
from memchat.store.prompts import SentPrompt
from memchat.types import Hit


@dataclass(frozen=True, slots=True)
class Receipt:
    """One reply, whole or partial, of a stored session."""

    parts: Parts
    conversation: Conversation
    reply: Reply
    prompt: Prompt | None
    """What its model was sent; None where no model was asked."""
    status: str
    """``complete`` or ``partial``."""

    def store(self, session_id: int, *, memory_on: bool, extract: bool) -> bool:
        """Write everything in one transaction, and with ``extract`` queue the reading of it.

        False where the session was deleted while the reply came in: then nothing is written.
        """
        reply, now = self.reply, self.parts.clock()
        with self.parts.database.write() as tx:
            own = apps.find(tx, self.conversation.scope).own
            if own is None or sessions.by_id(tx, session_id) is None:
                return False
            if reply.received:
                learnable = memory_on and reply.stream is not None
                self._store_reply(tx, session_id, now, learnable=learnable)
                self._count_notes(tx, own)
                sessions.touch(tx, session_id, now)
            spent = [reply.stream.usage] if reply.stream is not None else []
            if self.prompt is not None and self.prompt.filter_usage is not None:
                spent.append(self.prompt.filter_usage)
            for one in spent:
                usage.add(tx, own, session_id, one, now, message_id=reply.message_id)
            self.conversation.store_query_vectors(tx, self.parts.recall, own, now)
            if extract:
                jobs.enqueue(tx, "extract", own, session_id, now)
        return True

    def _store_reply(
        self, tx: Connection, session_id: int, now: datetime, *, learnable: bool
    ) -> None:
        """The reply with its receipt, without the words that were forgotten while it came in."""
        reply, zone = self.reply, self.parts.settings.zone
        hits = (*reply.shown.hits, *reply.by_code.hits)
        drawn_facts = self.conversation.drawn_facts
        shown, content = replies_in_flight.drop_forgotten(
            tx, hits, drawn_facts, reply.received, zone
        )
        listed, content = replies_in_flight.drop_forgotten(
            tx, reply.shown.listed, (), content, zone
        )
        message_id = messages.add(
            tx, session_id, "assistant", content, now, self.status, memory=learnable
        )
        reply.message_id = message_id
        there = notes.existing(tx, [hit.id for hit in reply.shown.notes])
        receipts.add(tx, message_id, [*shown, *(n for n in reply.shown.notes if n.id in there)])
        if self.prompt is not None:
            complete = len(shown) == len(hits) and len(listed) == len(reply.shown.listed)
            complete = complete and len(there) == len(reply.shown.notes)
            # A prompt that holds what was forgotten since is not stored.
            sent = self.prompt.sent if complete else replace(self.prompt.sent, system=None)
            prompts.add(tx, message_id, _with_list_apart(tx, session_id, sent, listed, now))
        given = {hit.id for hit in reply.shown.hits if hit.kind == "memory"}
        given |= echoed(reply.shown.listed, reply.received)
        use_counts.add(tx, matched=reply.shown.matched, read=given)

    def _count_notes(self, tx: Connection, own: int) -> None:
        """Count that the passages given were found and read."""
        given = [hit.chunk_id for hit in self.reply.shown.notes if hit.chunk_id is not None]
        if given:
            chunks.count_matches(tx, given)
            chunks.count_reads(tx, [own], given)


def _with_list_apart(
    tx: Connection, session_id: int, sent: SentPrompt, listed: Sequence[Hit], now: datetime
) -> SentPrompt:
    """What was sent with its list of facts in rows of its own, which later replies share."""
    if not listed:
        return sent
    opening, rest = None, sent.system
    if sent.system is not None:
        opening, _, rest = sent.system.partition(render.listing(listed))
    lines = [(hit.id, hit.text) for hit in listed]
    list_id = fact_lists.add(tx, session_id, opening, lines, now)
    return replace(sent, system=rest, list_id=list_id)
