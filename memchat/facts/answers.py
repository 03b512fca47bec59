"""A person's answers to proposals, and taking them back.

A yes counts as the person's own word. To take an answer back, the rows are kept as they were before
it (``RowImages``): what it added is deleted, and what it replaced, ended or repeated gets its
former state. The proposals wait again, but for those whose words were forgotten meanwhile or whose
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
from memchat.db import Tx, database, messages, schema
from memchat.errors import InputError, NotFound
from memchat.facts import changes, keys, memories, proposals
from memchat.facts.changes import UPKEEP, Cause
from memchat.facts.consolidation import (
    INBOX,
    KEPT_REFUSAL,
    Protection,
    Source,
    end_memory,
    ingest,
)
from memchat.facts.manual import ManualChanges
from memchat.facts.memories import Fact, search_text
from memchat.facts.proposals import FORGET, PROMOTE, proposed, question, target_of
from memchat.forget import purge, tombstones
from memchat.forget.tombstones import Mark
from memchat.forget.undo import TAKEN_BACK
from memchat.learn.values import VALUE_LIMIT
from memchat.search import passages
from memchat.types import EVERY_APP, Memory, Message, Proposal, one_line


def accept(
    tx: Tx,
    item: Proposal,
    settings: Settings,
    value: str | None = None,
) -> Memory:
    """Do what a proposal says, also one that was not kept, with ``value`` in place of its own; of
    a pair, the newer memory replaces the other.

    Where the memory that it would replace is gone or was reworded, it is stored as new. Raises
    InputError for a masked value without ``value``, where only the reason was noted, and for a
    request to forget, which ``forget`` answers; NotFound where there is nothing to end.
    """
    if item.memory_id is not None:
        memory = _accept_about(tx, item, item.memory_id, settings)
    elif item.memory_type is None or item.key is None:
        raise InputError(
            f"its words were not noted, because {item.reason}; to keep it all the same, enter it "
            "yourself with memchat memories add"
        )
    elif value is None and item.masked and item.relation != "ends":
        raise InputError("its value is hidden; say it again with --value to keep it")
    else:
        said = item if value is None else replace(item, value=value)
        source = KEPT_REFUSAL if item.status == "refused" else INBOX
        memory = _Acceptance(tx, settings, source, said, value is not None).apply()
    proposals.remove(tx, [item.id])
    return memory


def _accept_about(tx: Tx, item: Proposal, memory_id: int, settings: Settings) -> Memory:
    """Do what is proposed about a whole memory, or a pair."""
    cause = Cause(tx.now, INBOX.actor, INBOX.cause)
    if item.related_id is not None:
        old = memories.get(tx, tx.ids, item.related_id)
        new = changes.current(tx, tx.ids, [memory_id]).get(memory_id)
        if new is None or old is None or new.id == old.id:
            raise NotFound("one of the two memories is gone or retired; reject the item")
        if old.active:
            changes.deactivate(tx, old, "superseded", cause, replaced_by=new.id)
        return new
    if item.relation == FORGET:
        raise InputError("forgetting cannot be taken back; say yes to this one by itself")
    memory = _there(tx, memory_id)
    if item.relation == PROMOTE:
        return ManualChanges(tx, settings).edit(memory, {"all_apps": True})
    if memory.active:
        changes.deactivate(tx, memory, "ended", cause)
    return memory


def forget(tx: Tx, item: Proposal, hold: float) -> tuple[Memory, set[int]]:
    """Say yes to a request to forget: the memory is hidden, and its purge is due in ``hold``
    seconds. Gives also the scope rows whose saved vector index must be dropped.

    Raises NotFound where the memory is gone.
    """
    memory_id, stale = item.memory_id or 0, set[int]()
    hidden = _hidden(tx, memory_id)
    if hidden is not None:
        purge.queue_purge(tx, hidden, hold)
    else:
        own = tx.own
        stale = Protection(tx, own).hide_for_program(_there(tx, memory_id), hold)
    proposals.remove(tx, [item.id])
    memory = _hidden(tx, memory_id)
    assert memory is not None
    return memory, stale


def reject(tx: Tx, item: Proposal) -> None:
    """Answer no: the same is not asked again. What was forgotten before gets a new tombstone, and
    the item is removed with its words."""
    found = marks(item)
    if item.relation == FORGET and item.memory_id is not None:
        hidden = _hidden(tx, item.memory_id)
        if hidden is not None:
            purge.unhide(tx, hidden)
    if tombstones.find(tx, tx.ids, found):
        tombstones.add(tx, tx.own, 0, found, tx.now)
        proposals.remove(tx, [item.id])
    else:
        proposals.reject(tx, item.id)


def marks(item: Proposal) -> set[Mark]:
    """The marks by which it is known that the words of a proposal were forgotten."""
    if item.key is None or item.value is None:
        return set()
    found = tombstones.fact_marks(item.key, item.value)
    if item.quote is not None and item.message_id is not None:
        found |= tombstones.proof_marks(item.key, item.quote, item.message_id)
    return found


def current_question(tx: Tx, item: Proposal) -> str:
    """The question of an item, for the memories as they are now."""
    if item.key is not None:
        asked = question(item, target_of(tx, tx.ids, item))
        return f"{asked} Tags: {', '.join(item.tags)}." if item.tags else asked
    found = memories.by_ids(tx, tx.ids, [i for i in (item.memory_id, item.related_id) if i])
    newer = found.get(item.memory_id or 0)
    if newer is None and item.memory_id is not None and item.relation == FORGET:
        newer = _hidden(tx, item.memory_id)
    if item.related_id is None:
        return question(item, newer)
    return question(item, found.get(item.related_id), newer)


@dataclass(frozen=True, slots=True)
class _Acceptance:
    """A yes to a proposed fact, inside the caller's transaction."""

    tx: Tx
    settings: Settings
    source: Source
    proposal: Proposal
    reworded: bool
    """Whether the person gave the value with the yes, and so says it now."""

    def apply(self) -> Memory:
        """Store, replace, end or repeat, as proposed; the memory in question."""
        what, tx = self.proposal, self.tx
        target = target_of(tx, tx.ids, what)
        cause = Cause(tx.now, self.source.actor, self.source.cause)
        if what.relation == "ends":
            if target is None:
                raise NotFound("what it would end is gone or has other words by now; reject it")
            said_at, proofs, _ = self._proof()
            return end_memory(tx, target, what, said_at, proofs, cause)
        if what.expires_at is not None and what.expires_at < tx.today:
            raise InputError(f"{self._name} was over on {what.expires_at}; reject it")
        fact = self._fact(target)
        quote = fact.quotes[0] if fact.quotes else ""
        forgotten = marks(replace(what, quote=quote))
        forgotten |= tombstones.wording_marks(fact.key, fact.value)
        tombstones.remove(tx, list(tx.ids), forgotten)
        done = ingest(self._writing_to(target), self.source, [fact], self.settings.merge_threshold)
        memory = done.changes[0].memory
        if memory is None:
            raise InputError(f"{self._name} cannot be kept: {done.changes[0].reason}")
        if what.relation == "updates" and target is not None:
            self._retire(target, memory, cause)
        return memory

    @property
    def _name(self) -> str:
        kind = "refusal" if self.proposal.status == "refused" else "item"
        return f"{kind} {self.proposal.id}"

    def _writing_to(self, target: Memory | None) -> Tx:
        """The transaction about the scope row of the target."""
        shared = self.tx.shared
        in_every_app = target is not None and target.app == EVERY_APP
        return self.tx.within(shared, shared) if in_every_app else self.tx

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
        return Fact(said_at=said_at, search_text=text, created_by="manual", proofs=proofs, **fields)

    def _after_what_it_replaces(
        self, said_at: datetime, key: str, target: Memory | None
    ) -> datetime:
        """When it counts as said: as before, but now where it replaces something newer."""
        if self.proposal.relation == "same":
            return said_at
        rivals = [target] if target is not None else []
        if keys.cardinality(key) == "one":
            own = self._writing_to(target).own
            rivals += memories.with_key(self.tx, [own], key)
        newer = any(rival.said_at > said_at for rival in rivals)
        return self.tx.now if newer else said_at

    def _proof(self) -> tuple[datetime, tuple[tuple[int, int, str], ...], str]:
        """When it was said, the words that prove it, and the quote by itself."""
        what = self.proposal
        turn = _message(self.tx, what)
        said_at = turn.created_at if turn is not None and not self.reworded else self.tx.now
        if turn is None or what.start is None or what.masked:
            return said_at, (), ""
        quote = turn.content[what.start : what.end]
        return said_at, ((turn.id, what.start, quote),) if quote else (), quote

    def _retire(self, target: Memory, new: Memory, cause: Cause) -> None:
        """Retire the replaced memory where consolidation did not, because another row had the new
        words already. A fact that starts later replaces nothing yet."""
        starts, tx = self.proposal.starts_at, self.tx
        if starts is not None and starts > self.tx.today:
            return
        left = memories.get(tx, self.tx.ids, target.id)
        if left is not None and left.active and left.id != new.id:
            changes.deactivate(tx, left, "superseded", cause, replaced_by=new.id)


def _message(tx: Tx, item: Proposal) -> Message | None:
    """The message that a proposal quotes."""
    if item.message_id is None:
        return None
    return messages.by_ids(tx, [item.message_id]).get(item.message_id)


def _hidden(tx: Tx, memory_id: int) -> Memory | None:
    """A memory that is out of use until the person decides whether it is forgotten."""
    there = memories.hidden(tx, tx.ids)
    return next((memory for memory in there if memory.id == memory_id), None)


def _there(tx: Tx, memory_id: int) -> Memory:
    memory = memories.get(tx, tx.ids, memory_id)
    if memory is None:
        raise NotFound("the memory is gone; reject the item")
    return memory


Row = Mapping[str, Any]
_CHANGED = (
    "app_id", "active", "inactive_reason", "replaced_by", "said_at", "last_seen_at", "seen_count",
    "expires_at", "starts_at", "pinned", "sensitive",
)  # fmt: skip
"""The columns that an answer may change. The words of a memory are not among them: forgetting may
have taken some of them away meanwhile."""
_i, _t = schema.proposals.c, schema.tombstones.c


@dataclass(frozen=True, slots=True)
class RowImages:
    """The rows of one user that a transaction changed, by table."""

    before: Mapping[str, Sequence[Row]]
    """As they were before it."""
    after: Mapping[str, Sequence[Row]]
    first_event: int
    last_event: int

    @property
    def added(self) -> list[int]:
        """The ids of the memories that were added."""
        known = {row["id"] for row in self.before["memories"]}
        return [row["id"] for row in self.after["memories"] if row["id"] not in known]


def take(
    before: Tx, tx: Tx, item_ids: Sequence[int], app_ids: Sequence[int], since: int
) -> RowImages:
    """What ``tx`` changed since the event ``since`` in these scope rows, and its inbox items.

    ``before`` is another transaction, which does not see what ``tx`` has not committed yet.
    """
    touched = sorted({i for one in app_ids for i in changes.changed_since(tx, one, since)})
    wanted = (
        (schema.memories, "id", touched),
        (schema.memory_sources, "memory_id", touched),
        (schema.memory_tags, "memory_id", touched),
        (schema.proposals, "id", item_ids),
        (schema.tombstones, "app_id", app_ids),
    )
    changed: tuple[dict[str, list[Row]], dict[str, list[Row]]] = ({}, {})
    for table, column, ids in wanted:
        old, new = _rows(before, table, column, ids), _rows(tx, table, column, ids)
        changed[0][table.name] = [row for key, row in old.items() if key not in new]
        changed[1][table.name] = [row for key, row in new.items() if key not in old]
    return RowImages(
        *changed,
        first_event=since + 1,
        last_event=max((changes.latest_event(tx, one) for one in app_ids), default=0),
    )


def changed_meanwhile(tx: Tx, images: RowImages) -> bool:
    """Whether anything but upkeep has changed one of the memories since."""
    ids = [*images.added, *(row["id"] for row in images.before["memories"])]
    past = changes.events_of_memories(tx, ids).values()
    return any(e.id > images.last_event and e.kind not in UPKEEP for all_ in past for e in all_)


def put_back(tx: Tx, images: RowImages, cause: Cause) -> None:
    """Give the memories that were there, their evidence, their tags and the tombstones their state
    of before; each memory gets a ``restore`` event, and the cause of what happened to it becomes
    that of ``cause``. What was added is not touched."""
    old, new = images.before, images.after
    e, ids = schema.memory_events.c, [row["id"] for row in old["memories"]]
    past = e.memory_id.in_(ids), e.id.between(images.first_event, images.last_event)
    by_person = update(schema.memory_events).where(*past, e.actor == "user")
    tx.execute(by_person.values(cause=cause.cause))
    for row in old["memories"]:
        home = memories.app_id_of(tx, row["id"])
        if home != row["app_id"]:
            changes.record_move(tx, row["id"], home, row["app_id"], cause)
        values = {name: row[name] for name in _CHANGED}
        changes.set_columns(tx, row["id"], updated_at=cause.at, **values)
        passages.show(tx, row["id"], row["app_id"])
        if not row["active"] and row["inactive_reason"] != "superseded":
            passages.hide(tx, row["id"])
        changes.record(tx, row["id"], row["app_id"], "restore", cause)
    for table, key in (("memory_sources", "id"), ("memory_tags", "tag"), ("tombstones", "id")):
        stored = schema.metadata.tables[table]
        for row in new[table]:
            same = [stored.c[name] == row[name] for name in ("memory_id", key)]
            same += [_t.created_at == row["created_at"]] if table == "tombstones" else []
            tx.execute(delete(stored).where(*same))
        for row in old[table] if table != "memory_sources" else ():
            tx.execute(sqlite_insert(stored).values(**row).on_conflict_do_nothing())


def put_items_back(tx: Tx, images: RowImages, item_ids: Collection[int]) -> list[int]:
    """Store these inbox items as they were; their ids, which are new where others have them by now.

    One that stayed in the store and was deleted there since is left out.
    """
    ids, stayed = [], {row["id"] for row in images.after["proposals"]}
    for row in images.before["proposals"]:
        if row["id"] not in item_ids:
            continue
        same = _i.id == row["id"], _i.created_at == row["created_at"]
        if tx.execute(update(schema.proposals).where(*same).values(**row)).rowcount:
            ids.append(int(row["id"]))
        elif row["id"] not in stayed:
            taken = tx.execute(select(_i.id).where(_i.id == row["id"])).first()
            values = {name: row[name] for name in row if name != "id" or taken is None}
            new = insert(schema.proposals).values(**values).returning(_i.id)
            ids.append(int(tx.execute(new).scalar_one()))
    return ids


def _rows(tx: Tx, table: Table, column: str, values: Sequence[int]) -> dict[tuple[Any, ...], Row]:
    stored = select(*(one for one in table.c if one.computed is None))
    wanted = stored.where(table.c[column].in_(database.id_list(values)))
    return {tuple(row): dict(row._mapping) for row in tx.execute(wanted)}


def take_back(
    tx: Tx, items: Sequence[Proposal], images: RowImages, answered_at: datetime
) -> tuple[list[Proposal], set[int]]:
    """Take these answers back, in the caller's transaction. Gives the items that wait again, and
    the scope rows whose saved vector index must be dropped.

    Raises InputError where a memory was changed since; nothing is taken back then.
    """
    if changed_meanwhile(tx, images):
        raise InputError(
            "a memory that it concerns was changed or forgotten since, so nothing was taken back; "
            "see memchat memories list"
        )
    cause = Cause(tx.now, "user", TAKEN_BACK)
    stale = _remove_added(tx, images.added, cause)
    put_back(tx, images, cause)
    there = {item.id for item in items if _may_wait(tx, item, answered_at)}
    back = [proposals.get(tx, tx.ids, i) for i in put_items_back(tx, images, there)]
    return [item for item in back if item is not None], stale


def _remove_added(tx: Tx, added: Sequence[int], cause: Cause) -> set[int]:
    there = memories.by_ids(tx, tx.ids, added)
    every = purge.traces_of(tx, there.values())
    homes = {traces.memory.id: traces.app_id for traces in every}
    purge.drop_receipt_lines(tx, every)
    changes.remove(tx, list(homes))
    changes.blank_events(tx, homes)
    for memory_id, app_id in homes.items():
        changes.record(tx, memory_id, app_id, "forget", cause)
    if homes:
        purge.request_scrub(tx)
    return set(homes.values())


def _may_wait(tx: Tx, item: Proposal, answered_at: datetime) -> bool:
    """Whether an item may come back: its memories and its message are there, with the words that
    it quotes, and nothing of what it says was forgotten since."""
    pair = {i for i in (item.memory_id, item.related_id) if i is not None}
    # What a program asked to forget may be hidden until the answer.
    hides = item.relation == FORGET
    there = changes.existing(tx, pair) if hides else memories.by_ids(tx, tx.ids, [*pair])
    forgotten = tombstones.find(tx, tx.ids, marks(item)).values()
    if len(there) < len(pair) or any(at > answered_at for at in forgotten):
        return False
    turn = _message(tx, item)
    if item.message_id is None or turn is None or item.masked or item.quote is None:
        return item.message_id is None or turn is not None
    return turn.content[item.start : item.end] == item.quote
