"""The user's answer to what waits in the inbox, or was refused. A yes counts as their own word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from memchat.config import Settings
from memchat.errors import InputError, NotFound
from memchat.memory.context import Context
from memchat.memory.facts.confirmation import Confirmation
from memchat.memory.facts.fact import Fact, last_day, proposed, search_text
from memchat.memory.facts.in_force import in_words
from memchat.memory.facts.ingest import INBOX, KEPT_REFUSAL, Source, ingest, queue_embedding
from memchat.memory.facts.manual import ManualChanges
from memchat.memory.facts.proposal import Proposal, of_item, of_refusal, target_of
from memchat.memory.forgetting import purge, tombstone_marks
from memchat.memory.gate import keys
from memchat.memory.gate.checks.key_and_value import VALUE_LIMIT
from memchat.store import (
    evidence,
    hidden_memories,
    inbox,
    memories,
    memory_changes,
    messages,
    refusals,
    replacements,
    tombstones,
)
from memchat.store.apps import ScopeIds
from memchat.store.events import Cause
from memchat.store.inbox import FORGET, PROMOTE
from memchat.store.tombstones import Mark
from memchat.types import EVERY_APP, InboxItem, Memory, Refusal, one_line


def accept(
    ctx: Context,
    item: InboxItem,
    settings: Settings,
    value: str | None = None,
    *,
    embeds: bool,
) -> Memory:
    """Do what an item proposes, with ``value`` in place of its own; of a pair, the newer memory
    replaces the other. With ``embeds`` its vector is queued.

    Where the memory that it would replace is gone or was reworded, it is stored as new. Raises
    InputError for a masked value without ``value`` and for a request to forget, which ``forget``
    answers, and NotFound where there is nothing to end.
    """
    cause = Cause(ctx.now, INBOX.actor, INBOX.cause)
    if item.memory_id is not None and item.related_id is not None:
        return _replace(ctx, item.memory_id, item.related_id, item.id, cause)
    if item.memory_id is not None and item.relation == FORGET:
        raise InputError("forgetting cannot be taken back; say yes to this one by itself")
    if item.memory_id is not None and item.relation == PROMOTE:
        return _promote(ctx, settings, item.memory_id, item.id, embeds=embeds)
    if item.memory_id is not None:
        return _end(ctx, item.memory_id, item.id, cause)
    if item.memory_type is None or item.key is None:
        raise InputError(f"item {item.id} proposes nothing; reject it")
    if value is None and item.masked and item.relation != "ends":
        raise InputError("its value is hidden; say it again with --value to keep it")
    yes = _Acceptance(ctx, settings, INBOX, of_item(item, value), value is not None, embeds)
    memory = yes.apply()
    inbox.decide(ctx.tx, item.id, "accepted")
    return memory


def forget(ctx: Context, item: InboxItem, hold: float) -> tuple[Memory, set[int]]:
    """Say yes to a request to forget: the memory is hidden, and its purge is due in ``hold``
    seconds. Gives also the scope rows whose saved vector index must be dropped.

    Raises NotFound where the memory is gone.
    """
    hidden = _hidden(ctx, item.memory_id or 0)
    stale: set[int] = set()
    if hidden is not None:
        purge.queue_purge(ctx, hidden, hold)
    else:
        own = ctx.scope.own
        assert own is not None
        there = _there(ctx, item.memory_id or 0)
        stale = Confirmation(ctx, own).hide_for_program(there, hold)
    inbox.decide(ctx.tx, item.id, "accepted")
    memory = _hidden(ctx, item.memory_id or 0)
    assert memory is not None
    return memory, stale


def keep_refused(ctx: Context, refused: Refusal, settings: Settings, *, embeds: bool) -> Memory:
    """Do what a refusal proposed, on the user's word, and remove the refusal.

    Raises InputError where only the reason was noted, NotFound where there is nothing to end.
    """
    if refused.memory_type is None or refused.key is None:
        raise InputError(
            f"its words were not noted, because {refused.reason}; to keep it all the same, enter "
            "it yourself with memchat memories add"
        )
    proposal = of_refusal(refused)
    memory = _Acceptance(ctx, settings, KEPT_REFUSAL, proposal, False, embeds).apply()
    refusals.remove(ctx.tx, [refused.id])
    return memory


def reject(ctx: Context, item: InboxItem) -> None:
    """Answer no: the same is not asked again. What was forgotten before gets a new tombstone, and
    the item is removed with its words."""
    tx, own = ctx.tx, ctx.scope.own
    found = marks(item)
    assert own is not None
    if item.relation == FORGET and item.memory_id is not None:
        hidden = _hidden(ctx, item.memory_id)
        if hidden is not None:
            purge.unhide(ctx, hidden)
    if tombstones.find(tx, ctx.scope.ids, found):
        tombstones.add(tx, own, 0, found, ctx.now)
        inbox.remove(tx, [item.id])
    else:
        inbox.decide(tx, item.id, "rejected")


def marks(item: InboxItem) -> set[Mark]:
    """The marks by which it is known that the words of an item were forgotten."""
    return _marks(item.key, item.value, item.quote, item.message_id)


def current_question(ctx: Context, item: InboxItem) -> str:
    """The question of an item, for the memories as they are now."""
    tx, ids = ctx.tx, ctx.scope.ids
    if item.key is not None:
        asked = question(item, target_of(tx, ids, of_item(item)))
        return f"{asked} Tags: {', '.join(item.tags)}." if item.tags else asked
    found = memories.by_ids(tx, ids, [i for i in (item.memory_id, item.related_id) if i])
    newer = found.get(item.memory_id or 0)
    if newer is None and item.memory_id is not None and item.relation == FORGET:
        newer = _hidden(ctx, item.memory_id)
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

    ctx: Context
    settings: Settings
    source: Source
    proposal: Proposal
    reworded: bool
    """Whether the user gave the value with the yes, and so says it now."""
    embeds: bool

    def apply(self) -> Memory:
        """Store, replace, end or repeat, as proposed; the memory in question."""
        what, ctx = self.proposal, self.ctx
        target = target_of(ctx.tx, ctx.scope.ids, what)
        if what.relation == "ends":
            return self._end(target)
        if what.expires_at is not None and what.expires_at < ctx.today:
            raise InputError(f"{what.name} was over on {what.expires_at}; reject it")
        fact = self._fact(target)
        forgotten = _marks(what.key, what.value, self._proof()[2], what.message_id)
        forgotten |= tombstone_marks.wording_marks(fact.key, fact.value)
        tombstones.remove(ctx.tx, list(ctx.scope.ids), forgotten)
        done = ingest(self._writing_to(target), self.source, [fact], self.settings.merge_threshold)
        memory = done.changes[0].memory
        if memory is None:
            raise InputError(f"{what.name} cannot be kept: {done.changes[0].reason}")
        if what.relation == "updates" and target is not None:
            self._retire(target, memory)
        if self.embeds:
            queue_embedding(ctx, [memory.id])
        return memory

    @property
    def _cause(self) -> Cause:
        return Cause(self.ctx.now, self.source.actor, self.source.cause)

    def _writing_to(self, target: Memory | None) -> Context:
        """The context that writes to the scope row of the target."""
        _, shared = self.ctx.scope
        in_every_app = target is not None and target.app == EVERY_APP
        return replace(self.ctx, scope=ScopeIds(shared, shared)) if in_every_app else self.ctx

    def _end(self, target: Memory | None) -> Memory:
        if target is None:
            raise NotFound("what it would end is gone or has other words by now; reject it")
        tx = self.ctx.tx
        said_at, proofs, _ = self._proof()
        what = self.proposal
        last = last_day(what.starts_at, what.expires_at, target, self.ctx.today)
        if last is not None:
            memory_changes.set_expiry(tx, target, last, self._cause)
        else:
            memory_changes.deactivate(tx, target, "ended", self._cause, said_at=said_at)
        evidence.add(tx, target.id, proofs)
        return memories.by_ids(tx, self.ctx.scope.ids, [target.id])[target.id]

    def _fact(self, target: Memory | None) -> Fact:
        """The proposal as a fact; one that speaks of a memory takes over its type and key."""
        what = self.proposal
        fields = proposed(what) | {"value": one_line(what.value, "value", VALUE_LIMIT)}
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
        text = search_text(key, value, said_at, self.ctx.zone, quote, what.cues)
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
            own = self._writing_to(target).scope.own
            rivals += memories.with_key(self.ctx.tx, [own] if own is not None else [], key)
        newer = any(rival.said_at > said_at for rival in rivals)
        return self.ctx.now if newer else said_at

    def _proof(self) -> tuple[datetime, tuple[tuple[int, int, str], ...], str]:
        """When it was said, the words that prove it, and the quote by itself."""
        what = self.proposal
        wanted = [what.message_id] if what.message_id is not None else []
        turn = next(iter(messages.by_ids(self.ctx.tx, wanted).values()), None)
        said_at = turn.created_at if turn is not None and not self.reworded else self.ctx.now
        if turn is None or what.start is None or what.end is None:
            return said_at, (), ""
        quote = turn.content[what.start : what.end]
        return said_at, ((turn.id, what.start, quote),) if quote else (), quote

    def _retire(self, target: Memory, new: Memory) -> None:
        """Retire the replaced memory where consolidation did not, because another row had the new
        words already. A fact that starts later replaces nothing yet."""
        starts, tx = self.proposal.starts_at, self.ctx.tx
        if starts is not None and starts > self.ctx.today:
            return
        left = memories.get(tx, self.ctx.scope.ids, target.id)
        if left is not None and left.active and left.id != new.id:
            memory_changes.deactivate(tx, left, "superseded", self._cause, replaced_by=new.id)


def _marks(
    key: str | None, value: str | None, quote: str | None, message_id: int | None
) -> set[Mark]:
    """The tombstone marks of a proposal."""
    if key is None or value is None:
        return set()
    found = tombstone_marks.fact_marks(key, value)
    if quote is not None and message_id is not None:
        found |= tombstone_marks.proof_marks(key, quote, message_id)
    return found


def _replace(ctx: Context, memory_id: int, related_id: int, item_id: int, cause: Cause) -> Memory:
    tx, ids = ctx.tx, ctx.scope.ids
    found = memories.by_ids(tx, ids, [related_id])
    new, old = replacements.current(tx, ids, [memory_id]).get(memory_id), found.get(related_id)
    if new is None or old is None or new.id == old.id:
        raise NotFound("one of the two memories is gone or retired; reject the item")
    if old.active:
        memory_changes.deactivate(tx, old, "superseded", cause, replaced_by=new.id)
    inbox.decide(tx, item_id, "accepted")
    return new


def _promote(
    ctx: Context, settings: Settings, memory_id: int, item_id: int, *, embeds: bool
) -> Memory:
    """Keep a memory of one app for every app of the person."""
    manual = ManualChanges(ctx, settings, embeds)
    memory = manual.edit(_there(ctx, memory_id), {"all_apps": True})
    inbox.decide(ctx.tx, item_id, "accepted")
    return memory


def _hidden(ctx: Context, memory_id: int) -> Memory | None:
    """A memory that is out of use until the person decides whether it is forgotten."""
    there = hidden_memories.listed(ctx.tx, ctx.scope.ids)
    return next((memory for memory in there if memory.id == memory_id), None)


def _there(ctx: Context, memory_id: int) -> Memory:
    memory = memories.get(ctx.tx, ctx.scope.ids, memory_id)
    if memory is None:
        raise NotFound("the memory is gone; reject the item")
    return memory


def _end(ctx: Context, memory_id: int, item_id: int, cause: Cause) -> Memory:
    tx, memory = ctx.tx, _there(ctx, memory_id)
    if memory.active:
        memory_changes.deactivate(tx, memory, "ended", cause)
    inbox.decide(tx, item_id, "accepted")
    return memory
