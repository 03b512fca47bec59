"""Answering what waits in the inbox or was refused, and taking answers back.

A yes counts as the user's own word. To take an answer back, the rows are kept as they were before
it (``RowImages``): what it added is deleted, and what it replaced, ended or repeated gets its
former state. The items wait again, but for those whose words were forgotten meanwhile or whose
message was deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Table, delete, insert, select, update
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from memchat.config import Settings
from memchat.db import Tx, database, messages
from memchat.db.schema import (
    inbox,
    memories,
    memory_events,
    memory_sources,
    memory_tags,
    tombstones,
)
from memchat.errors import InputError, NotFound
from memchat.facts import changes, history, keys, refusals
from memchat.facts import inbox as facts_inbox
from memchat.facts import memories as facts_memories
from memchat.facts.consolidation import (
    INBOX,
    KEPT_REFUSAL,
    Confirmation,
    Source,
    ingest,
)
from memchat.facts.fact import (
    Fact,
    as_item,
    last_day,
    proposed,
    search_text,
    target_of,
)
from memchat.facts.history import UPKEEP, Cause
from memchat.facts.in_force import in_words
from memchat.facts.inbox import FORGET, PROMOTE
from memchat.facts.manual import ManualChanges
from memchat.forget import purge, redaction
from memchat.forget import tombstones as forget_tombstones
from memchat.forget.tombstones import Mark
from memchat.forget.undo import TAKEN_BACK
from memchat.learn.values import VALUE_LIMIT
from memchat.search import passages
from memchat.types import EVERY_APP, InboxItem, Memory, Refusal, one_line


def accept(
    tx: Tx,
    item: InboxItem,
    settings: Settings,
    value: str | None = None,
) -> Memory:
    """Do what an item proposes, with ``value`` in place of its own; of a pair, the newer memory
    replaces the other.

    Where the memory that it would replace is gone or was reworded, it is stored as new. Raises
    InputError for a masked value without ``value`` and for a request to forget, which ``forget``
    answers, and NotFound where there is nothing to end.
    """
    cause = Cause(tx.now, INBOX.actor, INBOX.cause)
    if item.memory_id is not None and item.related_id is not None:
        return _replace(tx, item.memory_id, item.related_id, item.id, cause)
    if item.memory_id is not None and item.relation == FORGET:
        raise InputError("forgetting cannot be taken back; say yes to this one by itself")
    if item.memory_id is not None and item.relation == PROMOTE:
        return _promote(tx, settings, item.memory_id, item.id)
    if item.memory_id is not None:
        return _end(tx, item.memory_id, item.id, cause)
    if item.memory_type is None or item.key is None:
        raise InputError(f"item {item.id} proposes nothing; reject it")
    if value is None and item.masked and item.relation != "ends":
        raise InputError("its value is hidden; say it again with --value to keep it")
    said = item if value is None else replace(item, value=value)
    yes = _Acceptance(tx, settings, INBOX, said, value is not None)
    memory = yes.apply()
    facts_inbox.decide(tx, item.id, "accepted")
    return memory


def forget(tx: Tx, item: InboxItem, hold: float) -> tuple[Memory, set[int]]:
    """Say yes to a request to forget: the memory is hidden, and its purge is due in ``hold``
    seconds. Gives also the scope rows whose saved vector index must be dropped.

    Raises NotFound where the memory is gone.
    """
    hidden = _hidden(tx, item.memory_id or 0)
    stale: set[int] = set()
    if hidden is not None:
        purge.queue_purge(tx, hidden, hold)
    else:
        own = tx.own
        there = _there(tx, item.memory_id or 0)
        stale = Confirmation(tx, own).hide_for_program(there, hold)
    facts_inbox.decide(tx, item.id, "accepted")
    memory = _hidden(tx, item.memory_id or 0)
    assert memory is not None
    return memory, stale


def keep_refused(tx: Tx, refused: Refusal, settings: Settings) -> Memory:
    """Do what a refusal proposed, on the user's word, and remove the refusal.

    Raises InputError where only the reason was noted, NotFound where there is nothing to end.
    """
    if refused.memory_type is None or refused.key is None:
        raise InputError(
            f"its words were not noted, because {refused.reason}; to keep it all the same, enter "
            "it yourself with memchat memories add"
        )
    item = as_item(tx, refused)
    memory = _Acceptance(tx, settings, KEPT_REFUSAL, item, False).apply()
    refusals.remove(tx, [refused.id])
    return memory


def reject(tx: Tx, item: InboxItem) -> None:
    """Answer no: the same is not asked again. What was forgotten before gets a new tombstone, and
    the item is removed with its words."""
    tx, own = tx, tx.own
    found = marks(item)
    if item.relation == FORGET and item.memory_id is not None:
        hidden = _hidden(tx, item.memory_id)
        if hidden is not None:
            purge.unhide(tx, hidden)
    if forget_tombstones.find(tx, tx.ids, found):
        forget_tombstones.add(tx, own, 0, found, tx.now)
        facts_inbox.remove(tx, [item.id])
    else:
        facts_inbox.decide(tx, item.id, "rejected")


def marks(item: InboxItem) -> set[Mark]:
    """The marks by which it is known that the words of an item were forgotten."""
    return _marks(item.key, item.value, item.quote, item.message_id)


def current_question(tx: Tx, item: InboxItem) -> str:
    """The question of an item, for the memories as they are now."""
    tx, ids = tx, tx.ids
    if item.key is not None:
        asked = question(item, target_of(tx, ids, item))
        return f"{asked} Tags: {', '.join(item.tags)}." if item.tags else asked
    found = facts_memories.by_ids(tx, ids, [i for i in (item.memory_id, item.related_id) if i])
    newer = found.get(item.memory_id or 0)
    if newer is None and item.memory_id is not None and item.relation == FORGET:
        newer = _hidden(tx, item.memory_id)
    if item.related_id is None:
        return question(item, newer)
    return question(item, found.get(item.related_id), newer)


def question(item: InboxItem, target: Memory | None, newer: Memory | None = None) -> str:
    """What a yes to an item does, as a question. ``target`` is the memory that it would replace or
    end, None where that is gone or changed; of a pair, ``newer`` replaces it."""
    known = in_words(target) if target is not None else ""
    if item.key is None:
        if target is None or (item.related_id is not None and newer is None):
            return "What it is about is gone."
        if item.relation == FORGET:
            return f"Forget {known} for good?"
        if item.relation == PROMOTE:
            return f"Keep {known} in every app?"
        pair = f"Replace {known} by {in_words(newer)}?" if newer is not None else ""
        return pair or f"Is {known} over?"
    said = f"You said “{' '.join(item.quote.split())}”. " if item.quote else ""
    from_day = f" from {item.starts_at.isoformat()}" if item.starts_at is not None else ""
    if target is not None and item.relation == "ends":
        after = f" after {item.expires_at.isoformat()}" if item.expires_at is not None else ""
        return f"{said}Is {known} over{from_day or after}?"
    if item.relation == "ends":
        return f"{said}What that would end is gone or has changed."
    if target is not None and item.relation == "updates":
        return f"{said}Replace {known}{from_day}?"
    if target is not None and item.relation == "same":
        return f"{said}Does that confirm {known}?"
    gone = item.target_id is not None and item.relation in ("updates", "same")
    gone_words = "What that would replace is gone or has changed. " if gone else ""
    return f"{said}{gone_words}Remember {in_words(item)}{from_day}?"


@dataclass(frozen=True, slots=True)
class _Acceptance:
    """A yes to a proposal, inside the caller's transaction."""

    tx: Tx
    settings: Settings
    source: Source
    proposal: InboxItem
    reworded: bool
    """Whether the user gave the value with the yes, and so says it now."""

    def apply(self) -> Memory:
        """Store, replace, end or repeat, as proposed; the memory in question."""
        what, tx = self.proposal, self.tx
        target = target_of(tx, tx.ids, what)
        if what.relation == "ends":
            return self._end(target)
        if what.expires_at is not None and what.expires_at < tx.today:
            raise InputError(f"{self._name} was over on {what.expires_at}; reject it")
        fact = self._fact(target)
        forgotten = _marks(what.key, what.value, self._proof()[2], what.message_id)
        forgotten |= forget_tombstones.wording_marks(fact.key, fact.value)
        forget_tombstones.remove(tx, list(tx.ids), forgotten)
        done = ingest(self._writing_to(target), self.source, [fact], self.settings.merge_threshold)
        memory = done.changes[0].memory
        if memory is None:
            raise InputError(f"{self._name} cannot be kept: {done.changes[0].reason}")
        if what.relation == "updates" and target is not None:
            self._retire(target, memory)
        return memory

    @property
    def _name(self) -> str:
        kind = "refusal" if self.proposal.status == "refused" else "item"
        return f"{kind} {self.proposal.id}"

    @property
    def _cause(self) -> Cause:
        return Cause(self.tx.now, self.source.actor, self.source.cause)

    def _writing_to(self, target: Memory | None) -> Tx:
        """The transaction about the scope row of the target."""
        shared = self.tx.shared
        in_every_app = target is not None and target.app == EVERY_APP
        return self.tx.within(shared, shared) if in_every_app else self.tx

    def _end(self, target: Memory | None) -> Memory:
        if target is None:
            raise NotFound("what it would end is gone or has other words by now; reject it")
        tx = self.tx
        said_at, proofs, _ = self._proof()
        what = self.proposal
        last = last_day(what.starts_at, what.expires_at, target, self.tx.today)
        if last is not None:
            changes.set_expiry(tx, target, last, self._cause)
        else:
            changes.deactivate(tx, target, "ended", self._cause, said_at=said_at)
        history.add_evidence(tx, target.id, proofs)
        return facts_memories.by_ids(tx, self.tx.ids, [target.id])[target.id]

    def _fact(self, target: Memory | None) -> Fact:
        """The proposal as a fact; one that speaks of a memory takes over its type and key."""
        what = self.proposal
        fields = proposed(what) | {"value": one_line(what.value or "", "value", VALUE_LIMIT)}
        if target is None:
            fields |= {"relation": "new", "target_id": None}
        else:
            names = ("memory_type", "key", "many")
            fields |= {name: getattr(target, name) for name in names}
            fields["target_id"] = target.id
        if target is not None and what.relation == "same" and not self.reworded:
            fields["value"] = target.value
            fields["expires_at"] = what.expires_at or target.expires_at
        key, value = fields["key"], fields["value"]
        if (cardinality := keys.cardinality(key)) is not None:
            fields["many"] = cardinality == "many"
        said_at, proofs, quote = self._proof()
        said_at = self._after_what_it_replaces(said_at, key, target)
        text = search_text(key, value, said_at, self.tx.zone, quote, what.cues)
        return Fact(
            said_at=said_at,
            search_text=text,
            created_by="manual",
            proofs=proofs,
            tags=what.tags,
            **fields,
        )

    def _after_what_it_replaces(
        self, said_at: datetime, key: str, target: Memory | None
    ) -> datetime:
        """When it counts as said: as before, but now where it replaces something newer."""
        if self.proposal.relation == "same":
            return said_at
        rivals = [target] if target is not None else []
        if keys.cardinality(key) == "one":
            own = self._writing_to(target).own
            rivals += facts_memories.with_key(self.tx, [own] if own else [], key)
        newer = any(rival.said_at > said_at for rival in rivals)
        return self.tx.now if newer else said_at

    def _proof(self) -> tuple[datetime, tuple[tuple[int, int, str], ...], str]:
        """When it was said, the words that prove it, and the quote by itself."""
        what = self.proposal
        wanted = [what.message_id] if what.message_id is not None else []
        turn = next(iter(messages.by_ids(self.tx, wanted).values()), None)
        said_at = turn.created_at if turn is not None and not self.reworded else self.tx.now
        if turn is None or what.start is None or what.quote is None or what.masked:
            return said_at, (), ""
        quote = turn.content[what.start : what.start + len(what.quote)]
        return said_at, ((turn.id, what.start, quote),) if quote else (), quote

    def _retire(self, target: Memory, new: Memory) -> None:
        """Retire the replaced memory where consolidation did not, because another row had the new
        words already. A fact that starts later replaces nothing yet."""
        starts, tx = self.proposal.starts_at, self.tx
        if starts is not None and starts > self.tx.today:
            return
        left = facts_memories.get(tx, self.tx.ids, target.id)
        if left is not None and left.active and left.id != new.id:
            changes.deactivate(tx, left, "superseded", self._cause, replaced_by=new.id)


def _marks(
    key: str | None, value: str | None, quote: str | None, message_id: int | None
) -> set[Mark]:
    """The tombstone marks of a proposal."""
    if key is None or value is None:
        return set()
    found = forget_tombstones.fact_marks(key, value)
    if quote is not None and message_id is not None:
        found |= forget_tombstones.proof_marks(key, quote, message_id)
    return found


def _replace(tx: Tx, memory_id: int, related_id: int, item_id: int, cause: Cause) -> Memory:
    tx, ids = tx, tx.ids
    found = facts_memories.by_ids(tx, ids, [related_id])
    new, old = changes.current(tx, ids, [memory_id]).get(memory_id), found.get(related_id)
    if new is None or old is None or new.id == old.id:
        raise NotFound("one of the two memories is gone or retired; reject the item")
    if old.active:
        changes.deactivate(tx, old, "superseded", cause, replaced_by=new.id)
    facts_inbox.decide(tx, item_id, "accepted")
    return new


def _promote(tx: Tx, settings: Settings, memory_id: int, item_id: int) -> Memory:
    """Keep a memory of one app for every app of the person."""
    manual = ManualChanges(tx, settings)
    memory = manual.edit(_there(tx, memory_id), {"all_apps": True})
    facts_inbox.decide(tx, item_id, "accepted")
    return memory


def _hidden(tx: Tx, memory_id: int) -> Memory | None:
    """A memory that is out of use until the person decides whether it is forgotten."""
    there = changes.listed(tx, tx.ids)
    return next((memory for memory in there if memory.id == memory_id), None)


def _there(tx: Tx, memory_id: int) -> Memory:
    memory = facts_memories.get(tx, tx.ids, memory_id)
    if memory is None:
        raise NotFound("the memory is gone; reject the item")
    return memory


def _end(tx: Tx, memory_id: int, item_id: int, cause: Cause) -> Memory:
    tx, memory = tx, _there(tx, memory_id)
    if memory.active:
        changes.deactivate(tx, memory, "ended", cause)
    facts_inbox.decide(tx, item_id, "accepted")
    return memory


Row = Mapping[str, Any]
_CHANGED = (
    "app_id", "active", "inactive_reason", "replaced_by", "said_at", "last_seen_at", "seen_count",
    "expires_at", "starts_at", "pinned", "sensitive",
)  # fmt: skip
"""The columns that an answer may change. The words of a memory are not among them: forgetting may
have taken some of them away meanwhile."""


@dataclass(frozen=True, slots=True)
class RowImages:
    """What a transaction changed in one user's rows, with the rows as they were before."""

    memories: tuple[Row, ...]
    added: tuple[int, ...]
    """The ids of the memories that were added."""
    proofs: frozenset[int]
    """The ids of the evidence that the memories had before."""
    tags: tuple[Row, ...]
    """The tags that the memories had before."""
    inbox: tuple[Row, ...]
    left_items: frozenset[int]
    """The ids of the inbox items that were still there afterwards, with another status."""
    tombstones: tuple[Row, ...]
    """Those that were deleted or renewed."""
    new_tombstones: tuple[Row, ...]
    first_event: int
    last_event: int


def take(
    before: Tx, tx: Tx, item_ids: Sequence[int], app_ids: Sequence[int], since: int
) -> RowImages:
    """What ``tx`` changed since the event ``since`` in these scope rows, and its inbox items.

    ``before`` is another transaction, which does not see what ``tx`` has not committed yet.
    """
    touched = sorted({i for one in app_ids for i in history.changed_since(tx, one, since)})
    left = {row["id"] for row in _rows(tx, memories, "id", touched)}
    old = _rows(before, memories, "id", touched)
    marks, new_marks = _row_marks(before, app_ids), _row_marks(tx, app_ids)
    return RowImages(
        memories=tuple(row for row in old if row["id"] in left),
        added=tuple(sorted(left - {row["id"] for row in old})),
        proofs=frozenset(row["id"] for row in _rows(before, memory_sources, "memory_id", touched)),
        tags=tuple(_rows(before, memory_tags, "memory_id", touched)),
        inbox=tuple(_rows(before, inbox, "id", item_ids)),
        left_items=frozenset(row["id"] for row in _rows(tx, inbox, "id", item_ids)),
        tombstones=tuple(_rows(before, tombstones, "id", [i for i, _ in marks - new_marks])),
        new_tombstones=tuple(_rows(tx, tombstones, "id", [i for i, _ in new_marks - marks])),
        first_event=since + 1,
        last_event=max((history.latest_event(tx, one) for one in app_ids), default=0),
    )


def changed_meanwhile(tx: Tx, images: RowImages) -> bool:
    """Whether anything but upkeep has changed one of the memories since."""
    ids = [*images.added, *(row["id"] for row in images.memories)]
    e = memory_events.c
    later = select(e.id).where(
        e.id > images.last_event, e.memory_id.in_(ids), e.kind.not_in(UPKEEP)
    )
    return tx.execute(later.limit(1)).first() is not None


def put_back(tx: Tx, images: RowImages, cause: Cause) -> None:
    """Give the memories that were there, their evidence, their tags and the tombstones their state
    of before; each memory gets a ``restore`` event, and the cause of what happened to it becomes
    that of ``cause``. What was added is not touched."""
    s, e, ids = memory_sources.c, memory_events.c, [row["id"] for row in images.memories]
    past = e.memory_id.in_(ids), e.id.between(images.first_event, images.last_event)
    tx.execute(update(memory_events).where(*past, e.actor == "user").values(cause=cause.cause))
    for row in images.memories:
        m = memories.c
        home = tx.execute(select(m.app_id).where(m.id == row["id"])).scalar_one()
        if home != row["app_id"]:
            history.record_move(tx, row["id"], home, row["app_id"], cause)
        values = {name: row[name] for name in _CHANGED}
        tx.execute(update(memories).where(m.id == row["id"]).values(updated_at=cause.at, **values))
        passages.show(tx, row["id"], row["app_id"])
        if not row["active"] and row["inactive_reason"] != "superseded":
            passages.hide(tx, row["id"])
        history.record(tx, row["id"], row["app_id"], "restore", cause)
    tx.execute(delete(memory_sources).where(s.memory_id.in_(ids), s.id.not_in(images.proofs)))
    tx.execute(delete(memory_tags).where(memory_tags.c.memory_id.in_(ids)))
    for row in images.tags:
        tx.execute(insert(memory_tags).values(**row))
    for row in images.new_tombstones:
        t = tombstones.c
        renewed = t.id == row["id"], t.created_at == row["created_at"]
        tx.execute(delete(tombstones).where(*renewed))
    for row in images.tombstones:
        tx.execute(sqlite_insert(tombstones).values(**row).on_conflict_do_nothing())


def put_items_back(tx: Tx, images: RowImages, item_ids: Collection[int]) -> list[int]:
    """Store these inbox items as they were; their ids, which are new where others have them by now.

    One that stayed in the store and was deleted there since is left out.
    """
    ids = []
    for row in images.inbox:
        same = inbox.c.id == row["id"], inbox.c.created_at == row["created_at"]
        if row["id"] not in item_ids:
            continue
        if tx.execute(update(inbox).where(*same).values(**row)).rowcount:
            ids.append(int(row["id"]))
        elif row["id"] not in images.left_items:
            taken = tx.execute(select(inbox.c.id).where(inbox.c.id == row["id"])).first()
            values = {name: row[name] for name in row if name != "id" or taken is None}
            new = insert(inbox).values(**values).returning(inbox.c.id)
            ids.append(int(tx.execute(new).scalar_one()))
    return ids


def _row_marks(tx: Tx, app_ids: Sequence[int]) -> set[tuple[int, str]]:
    """The tombstones of these scope rows, each with the time that it was made or renewed."""
    sql = "SELECT id, created_at FROM tombstones WHERE app_id IN (SELECT value FROM json_each(?))"
    return {(row[0], row[1]) for row in tx.rows(sql, database.json_list(app_ids))}


def _rows(tx: Tx, table: Table, column: str, values: Sequence[int]) -> list[Row]:
    stored = select(*(one for one in table.c if one.computed is None))
    wanted = stored.where(table.c[column].in_(database.id_list(values)))
    return [dict(row._mapping) for row in tx.execute(wanted)]


def take_back(
    tx: Tx, items: Sequence[InboxItem], images: RowImages, answered_at: datetime
) -> tuple[list[InboxItem], set[int]]:
    """Take these answers back, in the caller's transaction. Gives the items that wait again, and
    the scope rows whose saved vector index must be dropped.

    Raises InputError where a memory was changed since; nothing is taken back then.
    """
    tx, ids = tx, tx.ids
    if changed_meanwhile(tx, images):
        raise InputError(
            "a memory that it concerns was changed or forgotten since, so nothing was taken back; "
            "see memchat memories list"
        )
    cause = Cause(tx.now, "user", TAKEN_BACK)
    stale = _remove_added(tx, images.added, cause)
    put_back(tx, images, cause)
    there = {item.id for item in items if _may_wait(tx, item, answered_at)}
    back = [facts_inbox.get(tx, ids, i) for i in put_items_back(tx, images, there)]
    return [item for item in back if item is not None], stale


def _remove_added(tx: Tx, added: Sequence[int], cause: Cause) -> set[int]:
    there = facts_memories.by_ids(tx, tx.ids, added)
    every = redaction.traces_of(tx, there.values())
    homes = {traces.memory.id: traces.app_id for traces in every}
    redaction.drop_receipt_lines(tx, every)
    changes.remove(tx, list(homes))
    history.blank_events(tx, homes)
    for memory_id, app_id in homes.items():
        history.record(tx, memory_id, app_id, "forget", cause)
    if homes:
        purge.request_scrub(tx)
    return set(homes.values())


def _may_wait(tx: Tx, item: InboxItem, answered_at: datetime) -> bool:
    """Whether an item may come back: its memories and its message are there, and nothing of what
    it says was forgotten since."""
    tx, ids = tx, tx.ids
    pair = {i for i in (item.memory_id, item.related_id) if i is not None}
    # What a program asked to forget may be hidden until the answer.
    hides = item.relation == FORGET
    there = changes.existing(tx, pair) if hides else facts_memories.by_ids(tx, ids, [*pair])
    if len(there) < len(pair):
        return False
    forgotten = forget_tombstones.find(tx, ids, marks(item)).values()
    return _is_still_said(tx, item) and all(at <= answered_at for at in forgotten)


def _is_still_said(tx: Tx, item: InboxItem) -> bool:
    """Whether the message that an item quotes is there, with the words that it quotes."""
    if item.message_id is None:
        return True
    turn = messages.by_ids(tx, [item.message_id]).get(item.message_id)
    if turn is None or item.masked or item.quote is None or item.start is None:
        return turn is not None
    return turn.content[item.start : item.start + len(item.quote)] == item.quote
