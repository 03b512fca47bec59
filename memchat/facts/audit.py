"""Looks through the stored memories: for what should not be there, and for figures.

A finding names the memories, says what is wrong and how it would be repaired; looking changes
nothing. ``mend`` carries out a finding. All of that can be undone, except for secrets, which are
forgotten.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import Any

from sqlalchemy import Integer, Select, cast, func, literal_column, select

from memchat.db import Tx, messages, schema
from memchat.facts import changes, keys, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.in_force import apply_due_dates, as_of
from memchat.forget import purge
from memchat.language import numbers, secrets, text
from memchat.learn.values import are_equivalent, contains_words, is_negated
from memchat.notes import rows
from memchat.search import embeddings, keywords, passages, receipts
from memchat.search.embed import EmbeddingSpace
from memchat.search.keywords import passage_id
from memchat.types import Audit, Evidence, Finding, Memory, Wanted, counted

SOON = timedelta(days=7)
OLD_PLAN = timedelta(days=90)
NEVER_USED = timedelta(days=30)
PLANS = frozenset({"appointment", "event", "next_step", "plan", "trip"})
"""Keys whose values end at some day, whether that day was said or not."""
REASONS = {"duplicate": "merged", "contradiction": "superseded"}
GROUP_MOST = 60
"""How many memories of one key, the newest, are compared with each other."""


@dataclass(slots=True)
class Auditor:
    """One look through the memories of a scope, in the caller's snapshot."""

    tx: Tx
    meaning: EmbeddingSpace | None
    rows: list[Memory] = field(default_factory=list)
    proofs: dict[int, list[Evidence]] = field(default_factory=dict)

    def look(self) -> Audit:
        """All findings, the most serious first."""
        tx, app_ids, today = self.tx, self.tx.ids, self.tx.today
        now = as_of(tx, app_ids, today)
        self.rows = memories.listed(tx, app_ids, Wanted(status="all"), now)
        held = [m for m in self.rows if m.active]
        self.proofs = changes.evidence_of_memories(tx, [m.id for m in held])
        current = [m for m in held if m.expires_at is None or m.expires_at >= self.tx.today]
        holding = [m for m in current if memories.holds_on(m, today)]
        coming = [m for m in current if not memories.holds_on(m, today)]
        findings = [
            *self._secrets(held),
            *self._contradictions(holding),
            *self._duplicates(holding),
            *self._duplicates(coming),
            *self._stale(held),
            *self._unproven(held),
            *self._junk(held),
            *self._expiring(current),
            *self._never_recalled(current),
            *self._drift(),
        ]
        return Audit(self.tx.now, len(held), len(self.rows) - len(held), tuple(findings))

    def _secrets(self, held: Sequence[Memory]) -> Iterator[Finding]:
        for memory in held:
            kinds = _kinds(f"{memory.key.replace('_', ' ')}: {memory.value}")
            for proof in self._proofs(memory):
                kinds |= _kinds(proof.quote)
            by_hand = memory.created_by == "manual"
            if kinds - (secrets.PERSONAL if by_hand else frozenset()):
                what = f"memory {memory.id} ({memory.key}) holds {', '.join(sorted(kinds))}"
                # The user decides about what they entered: it may only look like a secret.
                fix = None if by_hand else "forget it for good"
                yield Finding("secret", (memory.id,), what, fix)
        if (own := self.tx.own) is not None:
            for one in proposals.in_scopes(self.tx, [own]):
                if kinds := _kinds(proposals.words_of(one)):
                    kept_out = one.status == "refused"
                    what = f"{'refusal' if kept_out else 'inbox item'} {one.id}"
                    fix = f"reject it: memchat inbox reject {one.id}"
                    if kept_out:
                        fix = "delete its conversation: memchat sessions delete"
                    yield Finding("secret", (), f"{what} holds {', '.join(sorted(kinds))}", fix)

    def _contradictions(self, current: Sequence[Memory]) -> Iterator[Finding]:
        """Several values of a key that holds one, or a value beside its negation."""
        for group in _by_slot(current):
            if keys.cardinality(group[0].key) == "one" and len(group) > 1:
                newest, *others = group
                what = f"{newest.key} holds one value, and has {len(group)}: {_values(group)}"
                fix = f"keep the newest, {newest.id}; the others stay as replaced"
                yield Finding("contradiction", (newest.id, *(m.id for m in others)), what, fix)
                continue
            for new, old in combinations(group[:GROUP_MOST], 2):
                if is_negated(new.value) != is_negated(old.value) and (
                    contains_words(new.value, old.value) and contains_words(old.value, new.value)
                ):
                    what = f"{new.key}: {_values((new, old))} deny each other"
                    yield Finding("contradiction", (new.id, old.id), what, None)

    def _duplicates(self, current: Sequence[Memory]) -> Iterator[Finding]:
        reported: set[int] = set()
        for group in _by_slot(current):
            for new, old in combinations(group[:GROUP_MOST], 2):
                if old.id not in reported and are_equivalent(new.value, old.value):
                    reported.add(old.id)
                    yield _duplicate(new, old)
        same: defaultdict[tuple[str, str], list[Memory]] = defaultdict(list)
        for memory in current:
            same[memory.app, text.normal_value(memory.value)].append(memory)
        for group in same.values():
            new, *rest = group
            for old in rest:
                if old.key != new.key and old.id not in reported:
                    reported.add(old.id)
                    yield _duplicate(new, old)

    def _stale(self, held: Sequence[Memory]) -> Iterator[Finding]:
        for memory in held:
            if memory.expires_at is not None and memory.expires_at < self.tx.today:
                what = f"{_line(memory)} was over on {memory.expires_at}, and is still in use"
                yield Finding("stale", (memory.id,), what, "retire it as expired")
            elif (
                keys.canonical(memory.key) in PLANS
                and memory.expires_at is None
                and memory.last_seen_at < self.tx.now - OLD_PLAN
            ):
                days = (self.tx.now - memory.last_seen_at).days
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
            elif all(purge.FILLER in proof.quote for proof in proofs):
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
        soon = [m for m in current if m.expires_at and m.expires_at <= self.tx.today + SOON]
        for memory in sorted(soon, key=lambda m: (m.expires_at or self.tx.today, m.id)):
            what = f"{_line(memory)} holds until {memory.expires_at}"
            yield Finding("expiring", (memory.id,), what, None)

    def _never_recalled(self, current: Sequence[Memory]) -> Iterator[Finding]:
        old = [m for m in current if m.created_at < self.tx.now - NEVER_USED]
        used = receipts.items_in_any(self.tx, "memory", [m.id for m in old])
        for memory in old:
            if memory.id not in used:
                what = f"{_line(memory)} was found for no message since {memory.created_at.date()}"
                yield Finding("never recalled", (memory.id,), what, None)

    def _drift(self) -> Iterator[Finding]:
        """Keyword rows, index or vectors that differ from the rows of the memories."""
        tx = self.tx
        for app_id in self.tx.ids:
            wanted = memories.searched_ids(tx, app_id)
            if keywords.ids(tx, "fact", app_id) != wanted:
                fix = "write the keyword rows anew"
                yield Finding("index drift", (), f"keyword rows differ in scope {app_id}", fix)
            if self.meaning is None:
                continue
            embedded = passages.embedded_ids(tx, self.meaning.service_id, app_id, "fact")
            if self.meaning.index.ids(tx, app_id) != embedded:
                fix = "drop the saved index; it is rebuilt from the rows"
                yield Finding("index drift", (), f"the index differs in scope {app_id}", fix)
            lacking = passages.unqueued(tx, self.meaning.service_id, app_id, "fact")
            if lacking:
                what = f"{len(lacking)} memories of scope {app_id} have no vector"
                yield Finding("index drift", (), what, "queue their embedding")
        if notes_without_vectors := self._unqueued_notes():
            what = f"passages of {counted(notes_without_vectors, 'note')} have no vector"
            yield Finding("index drift", (), what, "queue their embedding")

    def _unqueued_notes(self) -> int:
        """How many notes lack vectors that no work makes."""
        tx, own = self.tx, self.tx.own
        if not own or self.meaning is None:
            return 0
        lacking = passages.unqueued(tx, self.meaning.service_id, own, "chunk")
        return rows.count_with_chunks(tx, lacking)

    def _proofs(self, memory: Memory) -> list[Evidence]:
        return [p for p in self.proofs.get(memory.id, ()) if p.role == "user"]


def mend(tx: Tx, finding: Finding) -> bool:
    """Carry out a finding, unless the memories have changed since; whether that was done."""
    if finding.kind == "index drift":
        _rebuild(tx)
        return True
    found = memories.by_ids(tx, tx.ids, finding.memory_ids)
    chosen = [found[i] for i in finding.memory_ids if i in found and found[i].active]
    if len(chosen) < len(finding.memory_ids) or not chosen or finding.fix is None:
        return False
    if finding.kind == "secret":
        purge.forget(tx, chosen)
        return True
    cause = Cause(tx.now, "user", f"audit: {finding.kind}")
    if finding.kind in REASONS:
        first, *rest = chosen
        for memory in rest:
            reason = REASONS[finding.kind]
            changes.deactivate(tx, memory, reason, cause, replaced_by=first.id)
    else:
        _retire(tx, chosen[0], cause)
    return True


def _retire(tx: Tx, memory: Memory, cause: Cause) -> None:
    if memory.expires_at is not None and memory.expires_at < tx.today:
        apply_due_dates(tx)
    else:
        changes.deactivate(tx, memory, "ended", cause)


def _rebuild(tx: Tx) -> None:
    """Write the keyword rows of memories again, and queue the embedding of memories and notes."""
    for app_id in tx.ids:
        wanted = memories.searched_ids(tx, app_id)
        for memory_id in keywords.ids(tx, "fact", app_id) - wanted:
            passages.hide(tx, memory_id)
        for memory_id in wanted:
            passages.show(tx, memory_id, app_id)
        if (in_use := embeddings.in_use(tx)) is not None:
            parts = passages.unqueued(tx, in_use, app_id, "chunk")
            passages.queue_lacking(tx, in_use, [passage_id("chunk", i) for i in parts])
    tx.forget_bytes(*tx.ids)


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


_m = schema.memories.c
QUARTER = 900
"""Seconds. Every time zone differs from UTC by a multiple of this."""


def memories_by_day(tx: Tx, app_ids: Sequence[int]) -> dict[date, int]:
    """How many memories were stored on each day, in the user's time zone."""
    quarter = _quarter(_m.created_at)
    query = select(quarter, func.count()).where(_m.app_id.in_(app_ids), memories.visible)
    return _by_day(tx, query.group_by(quarter))


def messages_by_day(tx: Tx, app_id: int) -> dict[date, int]:
    """How many messages the user sent on each day, in the user's time zone."""
    quarter = _quarter(schema.messages.c.created_at)
    query = select(quarter, func.count()).join(
        schema.sessions, schema.sessions.c.id == schema.messages.c.session_id
    )
    said = (schema.messages.c.role == "user") & schema.messages.c.copied_from.is_(None)
    query = query.where(schema.sessions.c.app_id == app_id, said)
    return _by_day(tx, query.group_by(quarter))


def by_type(tx: Tx, app_ids: Sequence[int]) -> dict[str, int]:
    """How many active memories each type has."""
    return _counted(tx, select(_m.memory_type, func.count()), _m.memory_type, app_ids)


def by_key(tx: Tx, app_ids: Sequence[int], limit: int) -> dict[str, int]:
    """The keys with the most active memories, and how many they have."""
    query = select(_m.key, func.count()).limit(limit)
    return _counted(tx, query, _m.key, app_ids)


def by_state(tx: Tx, app_ids: Sequence[int]) -> dict[str, int]:
    """How many memories are in use, and how many are inactive for each reason."""
    state = func.coalesce(_m.inactive_reason, "in use")
    query = select(state, func.count()).where(_m.app_id.in_(app_ids), memories.visible)
    return {row[0]: row[1] for row in tx.execute(query.group_by(state))}


def most_used(tx: Tx, app_ids: Sequence[int], limit: int) -> list[tuple[Memory, int]]:
    """The active memories that were sent to a model most often, and how often."""
    query = memories.with_scope.where(_m.app_id.in_(app_ids), _m.active == 1, _m.read_count > 0)
    query = query.order_by(_m.read_count.desc(), _m.id).limit(limit)
    return [(memories.memory_of(row), row.read_count) for row in tx.execute(query)]


def never_used(tx: Tx, app_ids: Sequence[int]) -> int:
    """How many active memories were never sent to a model."""
    query = select(func.count()).where(_m.app_id.in_(app_ids), _m.active == 1, _m.read_count == 0)
    return int(tx.execute(query).scalar_one())


def _quarter(at: Any) -> Any:
    """A time as the number of its quarter of an hour since 1970: no day of any zone begins
    within."""
    return cast(func.strftime("%s", at), Integer) // literal_column(str(QUARTER), Integer)


def _by_day(tx: Tx, query: Select[Any]) -> dict[date, int]:
    days: Counter[date] = Counter()
    for quarter, count in tx.execute(query):
        days[datetime.fromtimestamp(quarter * QUARTER, tx.zone).date()] += count
    return dict(sorted(days.items()))


def _counted(tx: Tx, query: Select[Any], column: Any, app_ids: Sequence[int]) -> dict[str, int]:
    query = query.where(_m.app_id.in_(app_ids), _m.active == 1).group_by(column)
    return {row[0]: row[1] for row in tx.execute(query.order_by(func.count().desc(), column))}
