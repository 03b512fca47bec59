"""Storing a reply: its message row, the lines of memory it was given, its prompt and the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.chat.conversation import Conversation
from memchat.chat.reply import Reply
from memchat.memory.forgetting import replies_in_flight
from memchat.memory.recall import render
from memchat.memory.recall.used_facts import echoed
from memchat.store import counts, fact_lists, messages, prompts, sessions
from memchat.store.prompts import Sent
from memchat.types import Hit


@dataclass(frozen=True, slots=True)
class Receipt:
    """One reply about to be stored in the caller's transaction, with what it was given."""

    tx: Connection
    session_id: int
    reply: Reply
    sent: Sent | None
    """What its model was sent; None where no model was asked."""
    now: datetime
    zone: ZoneInfo

    def store(self, conversation: Conversation, own: int, status: str, *, memory: bool) -> int:
        """Store the reply in scope row ``own``, without the words forgotten while it came in; gives
        its row. ``memory``: facts may be learnt from it."""
        reply = self.reply
        hits = (*reply.shown.hits, *reply.by_code.hits)
        shown, content = replies_in_flight.leave_out(
            self.tx, hits, conversation.drawn_facts, reply.received, self.zone
        )
        listed, content = replies_in_flight.leave_out(
            self.tx, reply.shown.listed, (), content, self.zone
        )
        message_id = messages.add(
            self.tx,
            self.session_id,
            own,
            "assistant",
            content,
            self.now,
            status,
            memory=memory,
        )
        messages.keep_receipt(self.tx, message_id, shown)
        if self.sent is not None:
            complete = len(shown) == len(hits) and len(listed) == len(reply.shown.listed)
            # A prompt that holds what was forgotten since is not stored.
            sent = self.sent if complete else replace(self.sent, system=None)
            prompts.keep(self.tx, message_id, self._with_list_apart(sent, listed))
        given = {hit.id for hit in reply.shown.hits if hit.kind == "memory"}
        given |= echoed(reply.shown.listed, reply.received)
        counts.add(self.tx, matched=reply.shown.matched, read=given)
        sessions.touch(self.tx, self.session_id, self.now)
        return message_id

    def _with_list_apart(self, sent: Sent, listed: Sequence[Hit]) -> Sent:
        """What was sent with its list of facts in rows of its own, which later replies share."""
        if not listed:
            return sent
        opening, rest = None, sent.system
        if sent.system is not None:
            opening, _, rest = sent.system.partition(render.listing(listed))
        lines = [(hit.id, hit.text) for hit in listed]
        list_id = fact_lists.keep(self.tx, self.session_id, opening, lines, self.now)
        return replace(sent, system=rest, list_id=list_id)
