"""A person's answer to what was held back. A yes counts as their own word."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import InputError, NotFound
from memchat.memory import buried, forget
from memchat.memory.by_hand import VALUE_LIMIT
from memchat.memory.consolidate import Consolidation, Fact, search_text
from memchat.memory.gate import keys
from memchat.store import apps, inbox, jobs, memories, messages, succession, tombstones
from memchat.store.events import Cause
from memchat.store.tombstones import Mark
from memchat.types import InboxItem, Memory, MemoryType, Scope, one_line


def accept(
    tx: Connection,
    scope: Scope,
    item: InboxItem,
    settings: Settings,
    now: datetime,
    value: str | None = None,
    *,
    embeds: bool = True,
) -> Memory:
    """Keep a proposal, with ``value`` in place of its own, or let a pair's newer memory replace
    the other; ``embeds`` says whether there is something to make its vector with.

    Raises InputError for a masked value that nobody filled in.
    """
    cause = Cause(now, "user", "accepted from the inbox")
    if item.memory_id is not None and item.related_id is not None:
        return _replace(tx, scope, item.memory_id, item.related_id, item.id, cause)
    if item.memory_id is not None:
        return _end(tx, scope, item.memory_id, item.id, cause)
    if item.memory_type is None or item.key is None:
        raise InputError(f"item {item.id} proposes nothing; reject it")
    words = value if value is not None else item.value or ""
    if value is None and item.masked:
        raise InputError("its value is hidden; say it again with --value to keep it")
    if item.expires_at is not None and item.expires_at < now.astimezone(settings.zone).date():
        raise InputError(f"item {item.id} was over on {item.expires_at}; reject it")
    words = one_line(words, "value", VALUE_LIMIT)
    own, shared = apps.ensure(tx, scope, now)
    tombstones.lift(tx, [own, shared], _marks(item) | buried.marks_of_words(item.key, words))
    sha1 = memories.sha1_of(item.memory_type, item.key, words)
    forget.make_way(tx, own, sha1, settings.zone, now)
    fact = _fact(tx, scope, item, item.memory_type, item.key, words, settings, now)
    if value is not None:
        fact = replace(fact, said_at=now)  # their own words, said now
    done = Consolidation(tx, own, shared, cause, settings.merge_threshold, settings.zone).apply(
        fact
    )
    if done.memory is None:
        raise InputError(f"item {item.id} cannot be kept: {done.reason}")
    if embeds:
        app_id = memories.app_id_of(tx, done.memory.id)
        jobs.enqueue(tx, "embed", app_id, "memory", done.memory.id, now)
    inbox.decide(tx, item.id, "accepted")
    return done.memory


def reject(tx: Connection, scope: Scope, item: InboxItem, now: datetime) -> None:
    """Say no: the same is not asked again. What was forgotten before is forgotten anew, and its
    words do not stay behind as a rejected item."""
    own, shared = apps.ensure(tx, scope, now)
    marks = _marks(item)
    if tombstones.buried(tx, (own, shared), marks):
        tombstones.bury(tx, own, 0, marks, now)
        inbox.drop(tx, [item.id])
    else:
        inbox.decide(tx, item.id, "rejected")


def _marks(item: InboxItem) -> set[Mark]:
    """By what a proposal is recognised as forgotten."""
    if item.key is None or item.value is None:
        return set()
    marks = buried.marks_of(item.key, item.value)
    if item.quote is not None and item.message_id is not None:
        marks |= buried.marks_of_proof(item.key, item.quote, item.message_id)
    return marks


def _fact(
    tx: Connection,
    scope: Scope,
    item: InboxItem,
    memory_type: MemoryType,
    key: str,
    value: str,
    settings: Settings,
    now: datetime,
) -> Fact:
    turn = messages.by_ids(tx, [item.message_id]).get(item.message_id) if item.message_id else None
    said_at = turn.created_at if turn is not None else now
    quote = ""
    if turn is not None and item.start is not None and item.quote and not item.masked:
        quote = turn.content[item.start : item.start + len(item.quote)]
    return Fact(
        memory_type=memory_type,
        key=key,
        value=value,
        said_at=said_at,
        search_text=search_text(memory_type, key, value, scope.user, said_at, settings.zone, quote),
        created_by="manual",
        many=item.many if keys.cardinality(key) is None else keys.cardinality(key) == "many",
        expires_at=item.expires_at,
        proofs=((turn.id, item.start or 0, quote),) if turn is not None and quote else (),
    )


def _replace(
    tx: Connection, scope: Scope, memory_id: int, related_id: int, item_id: int, cause: Cause
) -> Memory:
    ids = apps.find(tx, scope).ids
    found = memories.by_ids(tx, ids, [related_id])
    new, old = succession.present(tx, ids, [memory_id]).get(memory_id), found.get(related_id)
    if new is None or old is None or new.id == old.id:
        raise NotFound("one of the two memories is gone or retired; reject the item")
    if old.active:
        memories.deactivate(
            tx, old, memories.app_id_of(tx, old.id), "superseded", cause, replaced_by=new.id
        )
    inbox.decide(tx, item_id, "accepted")
    return new


def _end(tx: Connection, scope: Scope, memory_id: int, item_id: int, cause: Cause) -> Memory:
    memory = memories.get(tx, apps.find(tx, scope).ids, memory_id)
    if memory is None:
        raise NotFound("the memory is gone; reject the item")
    if memory.active:
        memories.deactivate(tx, memory, memories.app_id_of(tx, memory_id), "ended", cause)
    inbox.decide(tx, item_id, "accepted")
    return memory
