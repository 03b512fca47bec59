"""Taking back answers to inbox items: the memories are as they were, and the items wait again.

What an answer added is deleted. What it replaced, ended or repeated gets its former state. An item
whose words were forgotten meanwhile, or whose message was deleted, does not come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memchat.errors import InputError
from memchat.memory.context import Context
from memchat.memory.facts import inbox_answers
from memchat.memory.forgetting import purge, redaction
from memchat.memory.forgetting.undo import TAKEN_BACK
from memchat.store import (
    embeddings,
    events,
    hidden_memories,
    inbox,
    jobs,
    memories,
    memory_changes,
    messages,
    row_images,
    tombstones,
)
from memchat.store.events import Cause
from memchat.store.inbox import FORGET
from memchat.store.row_images import RowImages
from memchat.types import InboxItem


def take_back(
    ctx: Context, items: Sequence[InboxItem], images: RowImages, answered_at: datetime
) -> tuple[list[InboxItem], set[int]]:
    """Take these answers back, in the caller's transaction. Gives the items that wait again, and
    the scope rows whose saved vector index must be dropped.

    Raises InputError where a memory was changed since; nothing is taken back then.
    """
    tx, ids = ctx.tx, ctx.scope.ids
    if row_images.changed_meanwhile(tx, images):
        raise InputError(
            "a memory that it concerns was changed or forgotten since, so nothing was taken back; "
            "see memchat memories list"
        )
    cause = Cause(ctx.now, "user", TAKEN_BACK)
    stale = _remove_added(ctx, images.added, cause)
    row_images.put_back(tx, images, cause)
    there = {item.id for item in items if _may_wait(ctx, item, answered_at)}
    back = [inbox.get(tx, ids, i) for i in row_images.put_items_back(tx, images, there)]
    return [item for item in back if item is not None], stale


def _remove_added(ctx: Context, added: Sequence[int], cause: Cause) -> set[int]:
    tx = ctx.tx
    homes = {
        memory_id: memories.app_id_of(tx, memory_id)
        for memory_id in memories.by_ids(tx, ctx.scope.ids, added)
    }
    hashes = [memories.hash_of(tx, memory_id) for memory_id in homes]
    for memory_id in homes:
        redaction.drop_receipt_lines(tx, redaction.shown_together(tx, memory_id))
    jobs.cancel(tx, "embed", list(homes))
    memory_changes.remove(tx, list(homes))
    embeddings.remove_unused(tx, hashes)
    events.blank(tx, homes)
    for memory_id, app_id in homes.items():
        events.record(tx, memory_id, app_id, "forget", cause)
    if homes:
        purge.request_scrub(tx)
    return set(homes.values())


def _may_wait(ctx: Context, item: InboxItem, answered_at: datetime) -> bool:
    """Whether an item may come back: its memories and its message are there, and nothing of what
    it says was forgotten since."""
    tx, ids = ctx.tx, ctx.scope.ids
    pair = {i for i in (item.memory_id, item.related_id) if i is not None}
    # What a program asked to forget may be hidden until the answer.
    hides = item.relation == FORGET
    there = hidden_memories.existing(tx, pair) if hides else memories.by_ids(tx, ids, [*pair])
    if len(there) < len(pair):
        return False
    forgotten = tombstones.find(tx, ids, inbox_answers.marks(item)).values()
    return _is_still_said(ctx, item) and all(at <= answered_at for at in forgotten)


def _is_still_said(ctx: Context, item: InboxItem) -> bool:
    """Whether the message that an item quotes is there, with the words that it quotes."""
    if item.message_id is None:
        return True
    turn = messages.by_ids(ctx.tx, [item.message_id]).get(item.message_id)
    if turn is None or item.masked or item.quote is None or item.start is None:
        return turn is not None
    return turn.content[item.start : item.start + len(item.quote)] == item.quote
