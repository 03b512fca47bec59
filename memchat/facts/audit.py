"""Looks through the stored memories: for what should not be there, and for figures.

A finding names the memories, says what is wrong and how it would be repaired; looking changes
nothing. ``mend`` carries out a finding. All of that can be undone, except for secrets, which are
forgotten for good.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import Any

import sqlalchemy as sa

from memchat.db import Tx, jobs, messages
from memchat.db import schema as t
from memchat.db.records import among
from memchat.facts import changes, keys, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.in_force import apply_due_dates, as_of
from memchat.forget import purge
from memchat.forget.wording import FILLER
from memchat.language import secrets, text
from memchat.learn.values import are_equivalent, contains_words, is_negated
from memchat.notes import rows
from memchat.search import embeddings, keywords, passages, receipts
from memchat.search.embed import EmbeddingSpace
from memchat.search.keywords import passage_id
from memchat.types import Audit, Evidence, Finding, Insights, Memory, Wanted, counted

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

    proofs: dict[int, list[Evidence]] = field(default_factory=dict)

    def look(self) -> Audit:
        """All findings, the most serious first."""
        tx, app_ids, today = self.tx, self.tx.ids, self.tx.today
        now = as_of(tx, app_ids)
        every = memories.listed(tx, app_ids, Wanted(status="all"), now)
        held = [m for m in every if m.active]
        self.proofs = changes.evidence_of_memories(tx, [m.id for m in held])
        current = [m for m in held if not memories.is_over(m, today)]
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
        return Audit(self.tx.now, len(held), len(every) - len(held), tuple(findings))

    def _secrets(self, held: Sequence[Memory]) -> Iterator[Finding]:
        for memory in held:
            by_hand = memory.created_by == "manual"
            # Of letters alone the second look said that they are none.
            kinds = _kinds(f"{memory.key.replace('_', ' ')}: {memory.value}", plain=by_hand)
            for proof in self._proofs(memory):
                kinds |= _kinds(proof.quote, plain=by_hand)
            if kinds - (secrets.PERSONAL if by_hand else frozenset()):
                what = f"memory {memory.id} ({memory.key}) holds {', '.join(sorted(kinds))}"
                # The user decides about what they entered: it may only look like a secret.
                fix = None if by_hand else "forget it for good"
                yield Finding("secret", (memory.id,), what, fix)
        for one in proposals.in_scopes(self.tx, [self.tx.own]):
            if kinds := _kinds(proposals.words_of(one)):
                what, fix = f"inbox item {one.id}", f"reject it: memchat inbox reject {one.id}"
                if one.status == "refused":
                    what = f"refusal {one.id}"
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
        """Of one key alone: a town is a birthplace and a home, and both stay."""
        reported: set[int] = set()
        for group in _by_slot(current):
            for new, old in combinations(group[:GROUP_MOST], 2):
                if old.id not in reported and are_equivalent(new.value, old.value):
                    reported.add(old.id)
                    yield _duplicate(new, old)

    def _stale(self, held: Sequence[Memory]) -> Iterator[Finding]:
        for memory in held:
            if memories.is_over(memory, self.tx.today):
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
            if memory.created_by not in ("auto", "import"):
                continue
            proofs = self._proofs(memory)
            if not proofs:
                what = f"{_line(memory)} has no words left that prove it"
                yield Finding("missing evidence", (memory.id,), what, None)
            elif all(FILLER in proof.quote for proof in proofs):
                what = f"the words that prove {_line(memory)} were blanked with a forgotten fact"
                yield Finding("missing evidence", (memory.id,), what, None)
            for proof in proofs:
                content = turns[proof.message_id].content
                if content[proof.start : proof.start + len(proof.quote)] != proof.quote:
                    what = f"a quote of {_line(memory)} is not where its message says"
                    yield Finding("missing evidence", (memory.id,), what, None)

    def _junk(self, held: Sequence[Memory]) -> Iterator[Finding]:
        for memory in held:
            why = why_junk(memory.value, memory.key)
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
        if self.meaning is not None:
            lacking = passages.unqueued(tx, self.meaning.service_id, tx.own, "chunk")
            if notes := rows.count_with_chunks(tx, lacking):
                what = f"passages of {counted(notes, 'note')} have no vector"
                yield Finding("index drift", (), what, "queue their embedding")

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
    cause = Cause("user", f"audit: {finding.kind}")
    if finding.kind in REASONS:
        first, *rest = chosen
        for memory in rest:
            reason = REASONS[finding.kind]
            changes.deactivate(tx, memory, reason, cause, replaced_by=first.id)
    elif memories.is_over(chosen[0], tx.today):
        apply_due_dates(tx)
    else:
        changes.deactivate(tx, chosen[0], "ended", cause)
    return True


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


def why_junk(value: str, key: str = "") -> str | None:
    """Why the value of a memory is no fact, as far as code can tell; None where it may be one."""
    if not text.content_words(value) | text.numbers(value):
        return "no word of it means anything"
    if text.normal_value(value).replace(" ", "_") == key:
        return "its value is only its key"
    if "?" in text.fold(value).text:
        return "it is a question"
    words = value.casefold().split()
    most = Counter(words).most_common(1)[0][1]
    return "one word of it stands there again and again" if most > max(3, len(words) / 3) else None


def _kinds(words: str, *, plain: bool = True) -> set[str]:
    return {one.kind for one in secrets.find_secrets(words) if plain or not one.plain}


def _values(group: Iterable[Memory]) -> str:
    return ", ".join(f"“{secrets.mask(m.value)}” ({m.id})" for m in group)


def _line(memory: Memory) -> str:
    return f"{memory.id} “{memory.key}: {secrets.mask(memory.value)}”"


def insights(tx: Tx, top: int) -> Insights:
    """Figures about the memories of the scope, by days of the user's time zone; of keys and of the
    most used memories the ``top`` ones."""
    facts, turns = t.memories.c, t.messages.c
    here, number = among(facts.app_id, tx.ids), sa.func.count()
    active = facts.active == 1

    def numbers_of(
        what: sa.ColumnElement[Any], *only: sa.ColumnElement[bool], most: int | None = None
    ) -> dict[Any, int]:
        group = what.label("what")
        query = sa.select(group, number).where(here, *only).group_by(group)
        return dict(tx.execute(query.order_by(number.desc(), group).limit(most)).all())

    def minute(at: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        return sa.func.substr(sa.type_coerce(at, sa.String), 1, len("2026-11-21T09:30"))

    def by_day(minutes: dict[str, int]) -> dict[date, int]:
        days: Counter[date] = Counter()
        for at, count in minutes.items():
            days[datetime.fromisoformat(f"{at}Z").astimezone(tx.zone).date()] += count
        return dict(sorted(days.items()))

    at = minute(turns.created_at).label("at")
    said = sa.select(at, number).join_from(t.messages, t.sessions).group_by(at)
    said = said.where(turns.role == "user", turns.copied_from.is_(None))
    read = sa.select(facts.id, facts.read_count).where(here, active, facts.read_count > 0)
    used = tx.execute(read.order_by(facts.read_count.desc(), facts.id).limit(top)).all()
    there = memories.by_ids(tx, tx.ids, [i for i, _ in used])
    states = numbers_of(sa.func.coalesce(facts.inactive_reason, "in use"), memories.visible)
    return Insights(
        kept=by_day(numbers_of(minute(facts.created_at), memories.visible)),
        said=by_day(dict(tx.execute(said.where(t.sessions.c.app_id == tx.own)).all())),
        types=numbers_of(facts.memory_type, active),
        keys=numbers_of(facts.key, active, most=top),
        states=dict(sorted(states.items())),
        most_used=tuple((there[i], count) for i, count in used),
        never_used=sum(numbers_of(facts.app_id, active, facts.read_count == 0).values()),
        queue=jobs.in_apps(tx, tx.ids),
    )
