"""Looking through what is remembered for what should not be there, or not like this.

Every finding names the memories, says in words what is wrong, and how it would be mended; nothing
is changed by looking. ``mend`` does what a finding says, always so that it can be undone, but for
secrets, which are forgotten.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import combinations
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.language import numbers, secrets, text
from memchat.memory.embedding.space import EmbeddingSpace
from memchat.memory.facts.in_force import as_of
from memchat.memory.forgetting import purge, redaction
from memchat.memory.gate.checks import guards, keys
from memchat.store import (
    apps,
    embeddings,
    evidence,
    inbox,
    jobs,
    keywords,
    memories,
    memory_changes,
    memory_lists,
    messages,
    receipts,
    refusals,
    values_in_force,
)
from memchat.store.apps import ScopeIds
from memchat.store.events import Cause
from memchat.types import Audit, Evidence, Finding, Memory, Scope, Wanted

SOON = timedelta(days=7)
OLD_PLAN = timedelta(days=90)
NEVER_USED = timedelta(days=30)
PLANS = frozenset({"appointment", "event", "next_step", "plan", "trip"})
"""Slots whose values are over some day, said or not."""
REASONS = {"duplicate": "merged", "contradiction": "superseded"}
GROUP_MOST = 60
"""Memories of one key that are compared with each other, the newest."""


@dataclass(slots=True)
class Auditor:
    """One look through the memories of a scope, in the caller's snapshot."""

    tx: Connection
    scope: Scope
    zone: ZoneInfo
    now: datetime
    meaning: EmbeddingSpace | None
    rows: list[Memory] = field(default_factory=list)
    proofs: dict[int, list[Evidence]] = field(default_factory=dict)

    def look(self) -> Audit:
        """Everything that was found, the worst first."""
        found = apps.find(self.tx, self.scope)
        now = as_of(self.tx, found.ids, self._today)
        self.rows = memory_lists.listed(self.tx, found.ids, Wanted(status="all"), now)
        held = [m for m in self.rows if m.active]
        self.proofs = evidence.of_memories(self.tx, [m.id for m in held])
        current = [m for m in held if m.expires_at is None or m.expires_at >= self._today]
        findings = [
            *self._secrets(held, found),
            *self._contradictions([m for m in current if values_in_force.holds_on(m, self._today)]),
            *self._duplicates(current),
            *self._stale(held),
            *self._unproven(held),
            *self._junk(held),
            *self._expiring(current),
            *self._never_recalled(current),
            *self._drift(found.ids),
        ]
        return Audit(self.now, len(held), len(self.rows) - len(held), tuple(findings))

    @property
    def _today(self) -> date:
        return self.now.astimezone(self.zone).date()

    def _secrets(self, held: Sequence[Memory], found: ScopeIds) -> Iterator[Finding]:
        for memory in held:
            kinds = _kinds(f"{memory.key.replace('_', ' ')}: {memory.value}")
            for proof in self._proofs(memory):
                kinds |= _kinds(proof.quote)
            own = memory.created_by == "manual"
            if kinds - (secrets.PERSONAL if own else frozenset()):
                what = f"memory {memory.id} ({memory.key}) holds {', '.join(sorted(kinds))}"
                # What a person entered is theirs to judge: it may only look like a secret.
                yield Finding("secret", (memory.id,), what, None if own else "forget it for good")
        if found.own is not None:
            for item_id, words in inbox.texts(self.tx, found.own).items():
                if kinds := _kinds(words):
                    what = f"inbox item {item_id} holds {', '.join(sorted(kinds))}"
                    yield Finding("secret", (), what, f"reject it: memchat inbox reject {item_id}")
            for refusal_id, words in refusals.texts(self.tx, found.own).items():
                if kinds := _kinds(words):
                    what = f"refusal {refusal_id} holds {', '.join(sorted(kinds))}"
                    fix = "delete its conversation: memchat sessions delete"
                    yield Finding("secret", (), what, fix)

    def _contradictions(self, current: Sequence[Memory]) -> Iterator[Finding]:
        """Several values where there is place for one, or a value beside its denial."""
        for group in _by_slot(current):
            if keys.cardinality(group[0].key) == "one" and len(group) > 1:
                newest, *others = group
                what = f"{newest.key} holds one value, and has {len(group)}: {_values(group)}"
                fix = f"keep the newest, {newest.id}; the others stay as replaced"
                yield Finding("contradiction", (newest.id, *(m.id for m in others)), what, fix)
                continue
            for new, old in combinations(group[:GROUP_MOST], 2):
                if guards.negated(new.value) != guards.negated(old.value) and (
                    guards.covers(new.value, old.value) and guards.covers(old.value, new.value)
                ):
                    what = f"{new.key}: {_values((new, old))} deny each other"
                    yield Finding("contradiction", (new.id, old.id), what, None)

    def _duplicates(self, current: Sequence[Memory]) -> Iterator[Finding]:
        told: set[int] = set()
        for group in _by_slot(current):
            for new, old in combinations(group[:GROUP_MOST], 2):
                if old.id not in told and guards.agree(new.value, old.value):
                    told.add(old.id)
                    yield _duplicate(new, old)
        same: defaultdict[tuple[str, str], list[Memory]] = defaultdict(list)
        for memory in current:
            same[memory.app, text.normal_value(memory.value)].append(memory)
        for group in same.values():
            new, *rest = group
            for old in rest:
                if old.key != new.key and old.id not in told:
                    told.add(old.id)
                    yield _duplicate(new, old)

    def _stale(self, held: Sequence[Memory]) -> Iterator[Finding]:
        for memory in held:
            if memory.expires_at is not None and memory.expires_at < self._today:
                what = f"{_line(memory)} was over on {memory.expires_at}, and is still in use"
                yield Finding("stale", (memory.id,), what, "retire it as expired")
            elif (
                keys.canonical(memory.key) in PLANS
                and memory.expires_at is None
                and memory.last_seen_at < self.now - OLD_PLAN
            ):
                days = (self.now - memory.last_seen_at).days
                what = f"{_line(memory)} is a plan without a last day, said {days} days ago"
                yield Finding("stale", (memory.id,), what, "retire it as ended")

    def _unproven(self, held: Sequence[Memory]) -> Iterator[Finding]:
        turns = messages.by_ids(
            self.tx, sorted({p.message_id for found in self.proofs.values() for p in found})
        )
        for memory in held:
            if memory.created_by != "auto":
                continue
            proofs = self._proofs(memory)
            if not proofs:
                what = f"{_line(memory)} has no words left that prove it"
                yield Finding("missing evidence", (memory.id,), what, None)
            elif all(redaction.FILLER in proof.quote for proof in proofs):
                what = f"the words that prove {_line(memory)} were blanked with a forgotten fact"
                yield Finding("missing evidence", (memory.id,), what, None)
            for proof in proofs:
                content = turns[proof.message_id].content
                if content[proof.start : proof.start + len(proof.quote)] != proof.quote:
                    what = f"a quote of {_line(memory)} is not where its message says"
                    yield Finding("missing evidence", (memory.id,), what, None)

    def _junk(self, held: Sequence[Memory]) -> Iterator[Finding]:
        for memory in held:
            why = _why_junk(memory)
            if why:
                yield Finding("suspected junk", (memory.id,), f"{_line(memory)}: {why}", None)

    def _expiring(self, current: Sequence[Memory]) -> Iterator[Finding]:
        soon = [m for m in current if m.expires_at and m.expires_at <= self._today + SOON]
        for memory in sorted(soon, key=lambda m: (m.expires_at or self._today, m.id)):
            what = f"{_line(memory)} holds until {memory.expires_at}"
            yield Finding("expiring", (memory.id,), what, None)

    def _never_recalled(self, current: Sequence[Memory]) -> Iterator[Finding]:
        old = [m for m in current if m.created_at < self.now - NEVER_USED]
        used = receipts.items_in_any(self.tx, "memory", [m.id for m in old])
        for memory in old:
            if memory.id not in used:
                what = f"{_line(memory)} was found for no message since {memory.created_at.date()}"
                yield Finding("never recalled", (memory.id,), what, None)

    def _drift(self, app_ids: Sequence[int]) -> Iterator[Finding]:
        """Where what is searched differs from the rows."""
        for app_id in app_ids:
            wanted = memory_lists.searched_texts(self.tx, app_id).keys()
            if keywords.ids(self.tx, "memories", app_id) != wanted:
                fix = "write the keyword rows anew"
                yield Finding("index drift", (), f"keyword rows differ in scope {app_id}", fix)
            if self.meaning is None:
                continue
            embedded = embeddings.embedded_ids(self.tx, self.meaning.service_id, app_id)
            if self.meaning.index.ids(self.tx, app_id) != embedded:
                fix = "drop the saved index; it is rebuilt from the rows"
                yield Finding("index drift", (), f"the index differs in scope {app_id}", fix)
            lacking = wanted - embedded - jobs.unfinished_targets(self.tx, "embed", app_id)
            if lacking:
                what = f"{len(lacking)} memories of scope {app_id} have no vector"
                yield Finding("index drift", (), what, "queue their embedding")

    def _proofs(self, memory: Memory) -> list[Evidence]:
        return [p for p in self.proofs.get(memory.id, ()) if p.role == "user"]


def mend(
    tx: Connection, scope: Scope, finding: Finding, zone: ZoneInfo, now: datetime
) -> tuple[bool, set[int]]:
    """Do what a finding says, unless things have changed since; whether that was done, and the
    scope rows whose saved vectors are to be dropped."""
    ids = apps.find(tx, scope).ids
    if finding.kind == "index drift":
        return True, _rebuild(tx, ids, now)
    found = memories.by_ids(tx, ids, finding.memory_ids)
    chosen = [found[i] for i in finding.memory_ids if i in found and found[i].active]
    if len(chosen) < len(finding.memory_ids) or not chosen or finding.fix is None:
        return False, set()
    if finding.kind == "secret":
        return True, purge.forget(tx, chosen, zone, now)
    cause = Cause(now, "user", f"audit: {finding.kind}")
    if finding.kind in REASONS:
        first, *rest = chosen
        for memory in rest:
            home = memories.app_id_of(tx, memory.id)
            reason = REASONS[finding.kind]
            memory_changes.deactivate(tx, memory, home, reason, cause, replaced_by=first.id)
    else:
        _retire(tx, chosen[0], now.astimezone(zone).date(), cause)
    return True, set()


def _retire(tx: Connection, memory: Memory, today: date, cause: Cause) -> None:
    home = memories.app_id_of(tx, memory.id)
    over = memory.expires_at is not None and memory.expires_at < today
    back = as_of(tx, [home], today).back.get(memory.id)
    memory_changes.deactivate(tx, memory, home, "expired" if over else "ended", cause)
    for before in memories.by_ids(tx, [home], [back] if back else []).values():
        memory_changes.reactivate(tx, before, home, cause)


def _rebuild(tx: Connection, ids: Iterable[int], now: datetime) -> set[int]:
    """Write the keyword rows anew, and queue what lacks a vector."""
    for app_id in ids:
        keywords.remove(tx, "memories", sorted(keywords.ids(tx, "memories", app_id)))
        for memory_id, words in memory_lists.searched_texts(tx, app_id).items():
            keywords.write(tx, "memories", memory_id, app_id, words)
            jobs.enqueue(tx, "embed", app_id, memory_id, now)
    return set(ids)


def _by_slot(current: Iterable[Memory]) -> list[list[Memory]]:
    """The memories of each scope and key, newest said first."""
    slots: defaultdict[tuple[str, str], list[Memory]] = defaultdict(list)
    for memory in current:
        slots[memory.app, memory.key].append(memory)
    return [sorted(g, key=lambda m: (m.said_at, m.id), reverse=True) for g in slots.values()]


def _duplicate(new: Memory, old: Memory) -> Finding:
    what = f"{_line(new)} and {_line(old)} say the same"
    fix = f"keep the newer, {new.id}; the other stays as merged"
    return Finding("duplicate", (new.id, old.id), what, fix)


def _why_junk(memory: Memory) -> str | None:
    words = text.content_words(memory.value) | numbers.numbers(memory.value)
    if not words:
        return "no word of it means anything"
    if text.normal_value(memory.value).replace(" ", "_") == memory.key:
        return "its value is only its key"
    if "?" in text.fold(memory.value).text:
        return "it is a question"
    most = Counter(memory.value.casefold().split()).most_common(1)[0][1]
    if most > 3:
        return "one word of it stands there again and again"
    return None


def _kinds(words: str) -> set[str]:
    return {secret.kind for secret in secrets.find_secrets(words)}


def _values(group: Iterable[Memory]) -> str:
    return ", ".join(f"“{secrets.mask(m.value)}” ({m.id})" for m in group)


def _line(memory: Memory) -> str:
    return f"{memory.id} “{memory.key}: {secrets.mask(memory.value)}”"
