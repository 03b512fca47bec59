"""What is kept of a reply beside its words: the lines it was given, its prompt, and the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.memory.recall import render
from memchat.memory.recall.used_facts import echoed
from memchat.store import fact_lists, prompts, receipts, use_counts
from memchat.store.prompts import SentPrompt
from memchat.types import Hit

if TYPE_CHECKING:
    from memchat.chat.reply import Reply


def keep(
    tx: Connection,
    session_id: int,
    reply: Reply,
    shown: Sequence[Hit],
    listed: Sequence[Hit],
    now: datetime,
) -> None:
    """Keep the receipt of a reply that is stored.

    ``shown`` and ``listed`` are its lines without those forgotten while it came in.
    """
    assert reply.message_id is not None
    receipts.add(tx, reply.message_id, shown)
    if reply.sent is not None:
        # What was forgotten while the reply came in is not written down again.
        whole = len(shown) == len(reply.shown.hits) + len(reply.told.hits)
        whole = whole and len(listed) == len(reply.shown.listed)
        sent = reply.sent if whole else replace(reply.sent, system=None)
        prompts.add(tx, reply.message_id, _list_apart(tx, session_id, sent, listed, now))
    given = {hit.id for hit in reply.shown.hits if hit.kind == "memory"}
    given |= echoed(reply.shown.listed, reply.received)
    use_counts.add(tx, matched=reply.shown.matched, read=given)


def _list_apart(
    tx: Connection, session_id: int, sent: SentPrompt, listed: Sequence[Hit], now: datetime
) -> SentPrompt:
    """What was sent with its list of facts apart, which later replies share."""
    if not listed:
        return sent
    opening, rest = None, sent.system
    if sent.system is not None:
        opening, _, rest = sent.system.partition(render.listing(listed))
    lines = [(hit.id, hit.text) for hit in listed]
    list_id = fact_lists.add(tx, session_id, opening, lines, now)
    return replace(sent, system=rest, list_id=list_id)
