"""A person's answer to what was held back, or not kept. A yes counts as their own word."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import cast

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import InputError, NotFound
from memchat.memory.extraction.candidate import Relation
from memchat.memory.facts.consolidation import Consolidation, Fact, search_text
from memchat.memory.facts.fact import last_day
from memchat.memory.facts.manual import VALUE_LIMIT
from memchat.memory.facts.proposal import Proposal, of_item, of_refusal, target_of
from memchat.memory.forgetting import purge, tombstone_marks
from memchat.memory.gate.checks import keys
from memchat.store import (
    apps,
    evidence,
    inbox,
    jobs,
    memories,
    memory_changes,
    messages,
    new_memory,
    refusals,
    replacements,
    tombstones,
)
from memchat.store.events import Cause
from memchat.store.tombstones import Mark
from memchat.types import (
    EVERY_APP,
    InboxItem,
    Memory,
    Message,
    Refusal,
    Scope,
    one_line,
)


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
    """Do what an item proposes, with ``value`` in place of its own, or let a pair's newer memory
    replace the other; ``embeds`` says whether there is something to make its vector with.

    What would replace a memory that is gone or has other words by now is kept as new. Raises
    InputError for a masked value that nobody filled in, NotFound where there is nothing to end.
    """
    cause = Cause(now, "user", "accepted from the inbox")
    if item.memory_id is not None and item.related_id is not None:
        return _replace(tx, scope, item.memory_id, item.related_id, item.id, cause)
    if item.memory_id is not None:
        return _end(tx, scope, item.memory_id, item.id, cause)
    if item.memory_type is None or item.key is None:
        raise InputError(f"item {item.id} proposes nothing; reject it")
    if value is None and item.masked and item.relation != "ends":
        raise InputError("its value is hidden; say it again with --value to keep it")
    yes = _Yes(tx, scope, settings, cause, of_item(item, value), value is not None, embeds)
    memory = yes.carry_out()
    inbox.decide(tx, item.id, "accepted")
    return memory


def keep_refused(
    tx: Connection,
    scope: Scope,
    refused: Refusal,
    settings: Settings,
    now: datetime,
    *,
    embeds: bool = True,
) -> Memory:
    """Do what was proposed and not kept, on the person's own word; the refusal is gone then.

    Raises InputError where only the reason was noted, NotFound where there is nothing to end.
    """
    if refused.memory_type is None or refused.key is None:
        raise InputError(
            f"its words were not noted, because {refused.reason}; to keep it all the same, enter "
            "it yourself with memchat memories add"
        )
    cause = Cause(now, "user", "kept anyway")
    memory = _Yes(tx, scope, settings, cause, of_refusal(refused), False, embeds).carry_out()
    refusals.remove(tx, [refused.id])
    return memory


def reject(tx: Connection, scope: Scope, item: InboxItem, now: datetime) -> None:
    """Say no: the same is not asked again. What was forgotten before is forgotten anew, and its
    words do not stay behind as a rejected item."""
    own, shared = apps.ensure(tx, scope, now)
    marks = _marks(item)
    if tombstones.find(tx, (own, shared), marks):
        tombstones.add(tx, own, 0, marks, now)
        inbox.remove(tx, [item.id])
    else:
        inbox.decide(tx, item.id, "rejected")


def ask(tx: Connection, scope: Scope, item: InboxItem) -> str:
    """What an item asks, as the memories are now."""
    ids = apps.find(tx, scope).ids
    if item.key is not None:
        return question(item, target_of(tx, ids, of_item(item)))
    found = memories.by_ids(tx, ids, [i for i in (item.memory_id, item.related_id) if i])
    newer = found.get(item.memory_id or 0)
    if item.related_id is None:
        return question(item, newer)
    return question(item, found.get(item.related_id), newer)


def question(item: InboxItem, target: Memory | None, newer: Memory | None = None) -> str:
    """What a yes to an item does, in plain words. ``target`` is the memory that it would replace or
    end, None where that is gone or changed; of a pair, ``newer`` takes its place."""
    known = f"{target.key}: {target.value}" if target is not None else ""
    if item.key is None:
        if target is None or (item.related_id is not None and newer is None):
            return "What it is about is gone."
        pair = f"Replace {known} by {newer.key}: {newer.value}?" if newer is not None else ""
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
    return f"{said}{gone_words}Remember {item.key}: {item.value}{from_day}?"


@dataclass(frozen=True, slots=True)
class _Yes:
    """A person's yes to a proposal, inside the caller's transaction."""

    tx: Connection
    scope: Scope
    settings: Settings
    cause: Cause
    proposal: Proposal
    in_their_words: bool
    """Whether the value was given with the yes, and so was said now."""
    embeds: bool

    def carry_out(self) -> Memory:
        """Store, replace, end or repeat, as proposed; the memory that this is about."""
        what, now = self.proposal, self.cause.at
        own, shared = apps.ensure(self.tx, self.scope, now)
        target = target_of(self.tx, (own, shared), what)
        if what.relation == "ends":
            return self._end(own, shared, target)
        if what.expires_at is not None and what.expires_at < self._today:
            raise InputError(f"{what.name} was over on {what.expires_at}; reject it")
        here = shared if target is not None and target.app == EVERY_APP else own
        fact = self._fact(here, target)
        marks = tombstone_marks.marks_of_words(fact.key, fact.value) | self._marks()
        tombstones.remove(self.tx, [own, shared], marks)
        sha1 = new_memory.sha1_of(fact.memory_type, fact.key, fact.value)
        purge.make_way(self.tx, here, sha1, self.settings.zone, now)
        done = self._writer(here, shared).apply(fact)
        if done.memory is None:
            raise InputError(f"{what.name} cannot be kept: {done.reason}")
        if what.relation == "updates" and target is not None:
            self._retire(target, done.memory)
        self._queue(done.memory.id)
        return done.memory

    @property
    def _today(self) -> date:
        return self.cause.at.astimezone(self.settings.zone).date()

    def _writer(self, here: int, shared: int) -> Consolidation:
        zone, threshold = self.settings.zone, self.settings.merge_threshold
        return Consolidation(self.tx, here, shared, self.cause, threshold, zone)

    def _end(self, own: int, shared: int, target: Memory | None) -> Memory:
        if target is None:
            raise NotFound("what it would end is gone or has other words by now; reject it")
        scope = shared if target.app == EVERY_APP else own
        said_at, proofs, _ = self._proof()
        last = last_day(self.proposal.starts_at, self.proposal.expires_at, target, self._today)
        if last is not None:
            memory_changes.set_expiry(self.tx, target, scope, last, self.cause)
        else:
            memory_changes.deactivate(self.tx, target, scope, "ended", self.cause, said_at=said_at)
        evidence.add(self.tx, target.id, proofs)
        ended = memories.get(self.tx, (own, shared), target.id)
        assert ended is not None
        return ended

    def _fact(self, here: int, target: Memory | None) -> Fact:
        """The proposal as a fact; one that speaks of a memory takes that one's place as it is."""
        what = self.proposal
        kind, key, many = what.memory_type, what.key, what.many
        value, until = one_line(what.value, "value", VALUE_LIMIT), what.expires_at
        if target is not None:
            kind, key, many = target.memory_type, target.key, target.many
        if target is not None and what.relation == "same" and not self.in_their_words:
            value, until = target.value, until or target.expires_at
        said_at, proofs, quote = self._proof()
        said_at = self._after_what_it_replaces(said_at, here, key, target)
        zone = self.settings.zone
        return Fact(
            memory_type=kind,
            key=key,
            value=value,
            said_at=said_at,
            search_text=search_text(key, value, said_at, zone, quote, what.cues),
            created_by="manual",
            many=many if keys.cardinality(key) is None else keys.cardinality(key) == "many",
            expires_at=until,
            relation=cast(Relation, what.relation) if target is not None else "new",
            target_id=target.id if target is not None else None,
            proofs=proofs,
            starts_at=what.starts_at,
            cues=what.cues,
            sensitive=what.sensitive,
        )

    def _after_what_it_replaces(
        self, said_at: datetime, here: int, key: str, target: Memory | None
    ) -> datetime:
        """When it counts as said: as it was, but now where something newer gives way to the yes."""
        if self.proposal.relation == "same":
            return said_at
        rivals = [target] if target is not None else []
        if keys.cardinality(key) == "one":
            rivals += memories.with_key(self.tx, [here], key)
        newer = any(rival.said_at > said_at for rival in rivals)
        return self.cause.at if newer else said_at

    def _proof(self) -> tuple[datetime, tuple[tuple[int, int, str], ...], str]:
        """When it was said, the words that prove it, and the quote by itself."""
        what, turn = self.proposal, _turn(self.tx, self.proposal.message_id)
        said_at = turn.created_at if turn is not None and not self.in_their_words else self.cause.at
        if turn is None or what.start is None or what.end is None:
            return said_at, (), ""
        quote = turn.content[what.start : what.end]
        return said_at, ((turn.id, what.start, quote),) if quote else (), quote

    def _marks(self) -> set[Mark]:
        what = self.proposal
        marks = tombstone_marks.marks_of(what.key, what.value)
        if what.message_id is not None:
            marks |= tombstone_marks.marks_of_proof(what.key, self._proof()[2], what.message_id)
        return marks

    def _retire(self, target: Memory, new: Memory) -> None:
        """Take the replaced memory out of use, where that is not done: its new words were known in
        another row. What starts later replaces nothing yet."""
        starts = self.proposal.starts_at
        if starts is not None and starts > self._today:
            return
        ids = apps.find(self.tx, self.scope).ids
        left = memories.get(self.tx, ids, target.id)
        if left is not None and left.active and left.id != new.id:
            scope = memories.app_id_of(self.tx, left.id)
            memory_changes.deactivate(
                self.tx, left, scope, "superseded", self.cause, replaced_by=new.id
            )

    def _queue(self, memory_id: int) -> None:
        if self.embeds:
            app_id = memories.app_id_of(self.tx, memory_id)
            jobs.enqueue(self.tx, "embed", app_id, memory_id, self.cause.at)


def _marks(item: InboxItem) -> set[Mark]:
    """By what a proposal is recognised as forgotten."""
    if item.key is None or item.value is None:
        return set()
    marks = tombstone_marks.marks_of(item.key, item.value)
    if item.quote is not None and item.message_id is not None:
        marks |= tombstone_marks.marks_of_proof(item.key, item.quote, item.message_id)
    return marks


def _turn(tx: Connection, message_id: int | None) -> Message | None:
    return messages.by_ids(tx, [message_id]).get(message_id) if message_id is not None else None


def _replace(
    tx: Connection, scope: Scope, memory_id: int, related_id: int, item_id: int, cause: Cause
) -> Memory:
    ids = apps.find(tx, scope).ids
    found = memories.by_ids(tx, ids, [related_id])
    new, old = replacements.current(tx, ids, [memory_id]).get(memory_id), found.get(related_id)
    if new is None or old is None or new.id == old.id:
        raise NotFound("one of the two memories is gone or retired; reject the item")
    if old.active:
        memory_changes.deactivate(
            tx, old, memories.app_id_of(tx, old.id), "superseded", cause, replaced_by=new.id
        )
    inbox.decide(tx, item_id, "accepted")
    return new


def _end(tx: Connection, scope: Scope, memory_id: int, item_id: int, cause: Cause) -> Memory:
    memory = memories.get(tx, apps.find(tx, scope).ids, memory_id)
    if memory is None:
        raise NotFound("the memory is gone; reject the item")
    if memory.active:
        memory_changes.deactivate(tx, memory, memories.app_id_of(tx, memory_id), "ended", cause)
    inbox.decide(tx, item_id, "accepted")
    return memory
