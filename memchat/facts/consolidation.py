"""Consolidation: storing a new fact, and what it changes in the facts that are known.

Every new fact comes through here, but for those of an imported file. A model's candidates are
judged before, outside the transaction that writes: a model may take minutes. What the user enters
or accepts needs no judging, and is stored even if it was forgotten before; the ``Cause`` of facts
says which it is.

The first rule that applies decides: the fact ends a known one; it repeats one, in the same or equal
words; it was forgotten on request; it would change what the user entered, and waits for their yes;
it replaces the fact it updates; it replaces the other value of a key that holds one; it is merged
with a near copy of equal meaning; it is new. A fact that starts later replaces nothing before its
day. What is replaced or merged stays as an inactive row, with the reason and a link, and can be
restored. Nearness of vectors alone never decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import combinations

from memchat.db import Tx
from memchat.facts import changes, keys, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.in_force import (
    apply_due_dates,
    is_single_valued,
    planned_target,
    replaced_by_plan,
    said_order,
    values_of_key,
)
from memchat.facts.memories import Fact, NewMemory
from memchat.facts.proposals import BLANKED, FORGOTTEN, REJECTED, change_question
from memchat.forget import purge, tombstones
from memchat.language import text
from memchat.language.lexicon import is_sensitive
from memchat.learn.values import are_equivalent, contains_words, true_sentence
from memchat.types import EVERY_APP, LEARNED, Change, Memory, Proposal

ADDED_BY_HAND = "added by hand"
ACCEPTED = "accepted from the inbox"
KEPT_ANYWAY = "kept anyway"


@dataclass(frozen=True, slots=True)
class Protection:
    """Asks before what is the person's own is replaced, ended or learned again.

    Each of its checks gives None where nothing is to be asked.
    """

    tx: Tx

    def of_change(self, fact: Fact, target: Memory | None) -> Change | None:
        """The question before a fact replaces a memory that is the user's own."""
        old = target if fact.relation == "updates" else None
        if old is None:
            old = next(iter(values_of_key(self.tx, self.tx.own, fact.key)), None)
        if old is None or old.said_at > fact.said_at or not self.is_user_owned(fact, old):
            return None
        reason = change_question("updates", " … ".join(fact.quotes), old)
        return self._ask(replace(fact, relation="updates"), reason, old, before=old.value)

    def of_end(self, fact: Fact, target: Memory) -> Change | None:
        """The question before a memory that is the user's own is ended."""
        if not self.is_user_owned(fact, target):
            return None
        reason = change_question("ends", " … ".join(fact.quotes), target)
        return self._ask(fact, reason, target, known=target)

    def of_start(self, fact: Fact, known: Memory, target: Memory | None) -> Change | None:
        """The question before a memory that is the user's own holds from another day."""
        if fact.starts_at == known.starts_at or not self.is_user_owned(fact, known):
            return None
        since = f"from {fact.starts_at.isoformat()}" if fact.starts_at else "already"
        reason = change_question("updates", " … ".join(fact.quotes), known, since)
        return self._ask(fact, reason, target, known=known)

    def of_program(self, fact: Fact, known: Memory) -> Change | None:
        """The question before a program, by repeating it, gives a memory that is the user's own
        another last day or brings it back: what they entered holds as long as they said."""
        if fact.created_by != "mcp" or not self.is_user_owned(fact, known):
            return None
        return self._ask(fact, "a program asks to keep it", known=known)

    def of_forgotten(self, fact: Fact, target: Memory | None) -> Change | None:
        """A fact that was forgotten is refused; said again later, it is a question."""
        if fact.created_by == "manual":
            return None
        proofs = [(message_id, quote) for message_id, _, quote in fact.proofs]
        found = tombstones.match(self.tx, self.tx.ids, fact.key, fact.value, proofs, fact.said_at)
        if found == "refuse":
            return Change("refused", None, fact.quotes, reason=FORGOTTEN)
        if found == "alike":
            reason = "it has a word alike with what you had forgotten: is it something else?"
        elif found == "ask":
            reason = "you had it forgotten, and it was said again: learn it again?"
        elif target is None and self._is_kept_from_programs(fact):
            reason = "a program took what you had here out of use: does this take its place?"
        else:
            return None
        return self._ask(fact, reason, target if fact.relation == "updates" else None)

    def hide_for_program(self, memory: Memory, hold: float | None) -> None:
        """As ``purge.hide``, at the wish of a program: the keys of what is the user's own are kept
        from programs until the user enters something there."""
        tx = self.tx
        own = [one for one in purge.with_merged(tx, [memory]).values() if self._is_own(one)]
        purge.hide(self.tx, memory, hold=hold)
        for one in own:
            app_id, mark = memories.app_id_of(tx, one.id), tombstones.key_mark(one.key)
            tombstones.add(tx, app_id, one.id, [mark], self.tx.now)

    def _is_kept_from_programs(self, fact: Fact) -> bool:
        """Whether a fact would take the place that a program made free: one of a program, or one
        that was said before. ``home_city`` and ``city_now`` are the place of ``city``."""
        words = fact.key.split("_")
        runs = combinations(range(len(words) + 1), 2)
        marks = [tombstones.key_mark("_".join(words[slice(*run)])) for run in runs]
        freed = tombstones.find(self.tx, self.tx.ids, marks).values()
        return any(fact.created_by == "mcp" or fact.said_at <= at for at in freed)

    def is_user_owned(self, fact: Fact, memory: Memory, *, pins: bool = True) -> bool:
        """Whether a learned fact may not change a memory: the user entered or reworded it, keeps it
        for every app or, with ``pins``, pinned it."""
        return fact.created_by in LEARNED and self._is_own(memory, pins=pins)

    def _is_own(self, memory: Memory, *, pins: bool = True) -> bool:
        if memory.app == EVERY_APP or (pins and memory.pinned):
            return True
        tx = self.tx
        past = changes.events_of_memory(tx, memory.id)
        entered = any(e.actor == "user" and e.cause == ADDED_BY_HAND for e in past)
        unproven = memory.created_by == "manual" and not changes.messages_of(tx, memory.id)
        return entered or unproven or memory.id in changes.value_edits(tx, [memory.id])

    def _ask(
        self,
        fact: Fact,
        reason: str,
        target: Memory | None = None,
        *,
        known: Memory | None = None,
        before: str | None = None,
    ) -> Change:
        """Put a question to the user, unless they answered no to it before."""
        entry = proposals.asked(fact, reason, target)
        if proposals.add(self.tx, self.tx.own, entry) == "rejected":
            return Change("refused", None, fact.quotes, reason=REJECTED)
        return Change("review", known, fact.quotes, before=before, reason=reason)


def may_merge(old: Memory, new: Fact) -> bool:
    """Whether two near facts may be merged without asking: same type, key and days, and values of
    equal meaning."""
    names = ("memory_type", "key", "expires_at", "starts_at")
    same = all(getattr(old, name) == getattr(new, name) for name in names)
    return same and are_equivalent(old.value, new.value)


def in_the_slot_of(fact: Fact, target: Memory) -> Fact:
    """The fact under the key of the memory that it updates."""
    text = fact.search_text.replace(memories.slot(fact.key), memories.slot(target.key), 1)
    return replace(fact, key=target.key, many=target.many, search_text=text)


def without_cues(fact: Fact, common: Collection[str]) -> Fact:
    """The fact with a search text that leaves out the ``common`` cues. The row keeps all of
    them."""
    words = fact.search_text.removesuffix(f"\n{' '.join(fact.cues)}")
    left = [cue for cue in fact.cues if cue not in common]
    return replace(fact, search_text="\n".join([words, *([" ".join(left)] if left else [])]))


def end_memory(
    tx: Tx,
    target: Memory,
    said: Fact | Proposal,
    said_at: datetime,
    proofs: Iterable[tuple[int, int, str]],
    cause: Cause,
) -> Memory:
    """End a memory now, or give it the last day that was said, which is never later than the one
    that it has; the memory as it is then."""
    changes.add_evidence(tx, target.id, proofs)
    before = said.starts_at - timedelta(days=1) if said.starts_at is not None else None
    last = min(filter(None, (before, said.expires_at)), default=None)
    if last is None or last < tx.today:
        changes.deactivate(tx, target, "ended", cause, said_at=said_at)
    else:
        changes.set_day(tx, target, "expires_at", min(last, target.expires_at or last), cause)
    return memories.by_ids(tx, tx.ids, [target.id])[target.id]


ENDS_FIRST = "it would end before it starts"
SAID_AGAIN = "what it ends was said again later"


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Stores facts one after another."""

    tx: Tx
    cause: Cause

    def apply(self, fact: Fact) -> Change:
        """Store one fact, and say what that did."""
        apply_due_dates(self.tx)
        if fact.starts_at is not None and fact.starts_at <= self.tx.today:
            fact = replace(fact, starts_at=None)
        common = set(fact.cues).difference(
            memories.distinctive_cues(self.tx, self.tx.own, fact.cues)
        )
        if common:
            fact = without_cues(fact, common)
        if fact.starts_at and fact.expires_at and fact.expires_at < fact.starts_at:
            return Change("refused", None, fact.quotes, reason=ENDS_FIRST)
        target = self._target(fact)
        if fact.relation == "ends":
            return self._end(fact, target)
        if fact.relation == "updates" and target is not None:
            fact = in_the_slot_of(fact, target)
        known = self._find_same_value(fact)
        if known is not None and known.active:
            return self._repeat(fact, known, target)
        waits = self._confirm.of_forgotten(fact, target) or self._confirm.of_change(fact, target)
        if waits is not None:
            return waits
        if known is not None:
            return self._confirm.of_program(fact, known) or self._reactivate(fact, known, target)
        if fact.relation == "same" and target is not None:
            return self._merge_restatement(fact, target)
        return self._insert(fact, target)

    def _target(self, fact: Fact) -> Memory | None:
        target = memories.get(self.tx, self.tx.ids, fact.target_id or 0)
        return target if target is not None and target.active else None

    def _end(self, fact: Fact, target: Memory | None) -> Change:
        if target is None:
            return self._end_unknown(fact)
        if target.last_seen_at > fact.said_at:
            return Change("refused", None, fact.quotes, reason=SAID_AGAIN)
        if (waits := self._confirm.of_end(fact, target)) is not None:
            return waits
        ended = end_memory(self.tx, target, fact, fact.said_at, fact.proofs, self.cause)
        return Change("ended", ended, fact.quotes, before=target.value)

    def _end_unknown(self, fact: Fact) -> Change:
        """An import of newer conversations may tell of the end of what older ones, imported later,
        say: it is noted as over, so that they do not bring it into force."""
        waits = self._confirm.of_forgotten(fact, None)
        if fact.created_by != "import" or waits or self._find_same_value(fact):
            return Change("refused", None, fact.quotes, reason="the fact it ends is not there")
        memory_id = self._add_row(fact)
        changes.deactivate(self.tx, self._reload(memory_id), "ended", self.cause)
        return Change("ended", self._reload(memory_id), fact.quotes, before=fact.value)

    def _over_since(self, fact: Fact) -> Memory | None:
        """What took the place of an imported fact under a key that holds one value, and is over by
        now: so the fact is past, too, though no value holds."""
        if fact.created_by != "import" or self._holds_many(fact):
            return None
        there = memories.of_key(self.tx, [self.tx.own], fact.key)
        over = (m for m in there if m.inactive_reason in ("ended", "expired"))
        return max((m for m in over if m.said_at > fact.said_at), key=said_order, default=None)

    def _find_same_value(self, fact: Fact) -> Memory | None:
        known = memories.by_sha1(self.tx, self.tx.ids, fact.sha1)
        if known is not None and not known.active and self._is_protected_in_every_app(fact, known):
            known = memories.by_sha1(self.tx, [self.tx.own], fact.sha1)
        if known is not None:
            return known
        normal = text.normal_value(fact.value)
        there = memories.with_key(self.tx, self.tx.ids, fact.key)
        return next((one for one in there if text.normal_value(one.value) == normal), None)

    def _repeat(self, fact: Fact, known: Memory, target: Memory | None = None) -> Change:
        moves = self._reschedules(fact, known)
        if moves and (planned := self._planned_replacement(fact, known, target)) is not None:
            fact, target = replace(fact, relation="updates"), planned
        updates = fact.relation == "updates" and target is not None and target.id != known.id
        asked = self._confirm.of_change(fact, target) if moves or updates else None
        if asked is None and moves:
            asked = self._confirm.of_start(fact, known, target if updates else None)
        if asked is None and self._changes_last_day(fact, known):
            asked = self._confirm.of_program(fact, known)
        if asked is not None:
            return asked
        messages = {message_id for message_id, _, _ in fact.proofs}
        # A message that was read before, as by "remember that …", does not count twice.
        if not messages or messages - changes.messages_of(self.tx, known.id):
            start = known.starts_at if fact.relation == "same" else fact.starts_at
            changes.count_repeat(self.tx, known, fact.said_at, self.cause, starts_at=start)
        if self._changes_last_day(fact, known):
            changes.set_day(self.tx, known, "expires_at", fact.expires_at, self.cause)
        changes.add_evidence(self.tx, known.id, fact.proofs)
        self._tell(fact, known)
        if moves and fact.starts_at != known.starts_at:
            changes.set_day(self.tx, known, "starts_at", fact.starts_at, self.cause)
        before = None
        if fact.starts_at is None:
            before = self._take_place(fact, target, known.id, anew=moves)
        kind = "repeated" if before is None else "superseded"
        return Change(kind, self._reload(known.id), fact.quotes, before=before)

    def _reschedules(self, fact: Fact, known: Memory) -> bool:
        """Whether a fact gives another first day to a known memory that has not started yet."""
        coming = known.starts_at is not None and known.starts_at > self.tx.today
        return coming and fact.relation != "same" and fact.said_at >= known.said_at

    def _planned_replacement(
        self, fact: Fact, known: Memory, target: Memory | None
    ) -> Memory | None:
        """The memory that a planned value was to replace, where that value is now said to hold
        already."""
        spoken_of = target is not None and target.id != known.id
        if fact.starts_at is not None or is_single_valued(known.key) or spoken_of:
            return None
        return replaced_by_plan(self.tx, self.tx.ids, known, {})

    def _merge_restatement(self, fact: Fact, known: Memory) -> Change:
        """Merge a fact with a memory that says the same in other words. Both rows stay, the fuller
        one active, so that it can be undone."""
        if contains_words(known.value, fact.value) or self._confirm.is_user_owned(
            fact, known, pins=False
        ):
            return self._repeat(fact, known)
        over = memories.is_over(known, self._day(fact.said_at))
        until = fact.expires_at if fact.expires_at or over else known.expires_at
        start = fact.starts_at or known.starts_at
        new = self._reload(self._add_row(replace(fact, expires_at=until, starts_at=start)))
        fuller = len(text.content_words(fact.value)) >= len(text.content_words(known.value))
        if fact.said_at < known.said_at or not fuller:
            changes.deactivate(self.tx, new, "merged", self.cause, replaced_by=known.id)
            return self._repeat(fact, known)
        changes.deactivate(self.tx, known, "merged", self.cause, replaced_by=new.id)
        return Change("merged", self._reload(new.id), fact.quotes, before=known.value)

    def _changes_last_day(self, fact: Fact, known: Memory) -> bool:
        """Whether a known memory gets the last day of a fact. A fact without one removes a last day
        that has passed; one that the user entered removes any."""
        if fact.said_at < known.said_at or self._is_protected_in_every_app(fact, known):
            return False
        over = memories.is_over(known, self._day(fact.said_at))
        changes = fact.expires_at is not None or fact.created_by == "manual" or over
        return changes and fact.expires_at != known.expires_at

    def _reactivate(self, fact: Fact, known: Memory, target: Memory | None) -> Change:
        winner = changes.current(self.tx, self.tx.ids, [known.id]).get(known.id)
        if winner is not None and known.inactive_reason == "merged":
            return self._repeat(fact, winner)
        others = self._rivals(fact.key, known.id) if winner is None else [winner]
        late = any(other.said_at > fact.said_at for other in others) or self._over_since(fact)
        over = known.inactive_reason == "ended" and known.last_seen_at > fact.said_at
        if over or (late and fact.starts_at is None):
            changes.add_evidence(self.tx, known.id, fact.proofs)
            return Change("repeated", known, fact.quotes)
        if fact.starts_at != known.starts_at:
            changes.set_day(self.tx, known, "starts_at", fact.starts_at, self.cause)
        changes.reactivate(
            self.tx, known, self.cause, instead_of=self._replaced_on_start(fact, target)
        )
        before = self._take_place(fact, target, known.id)
        changes.count_repeat(self.tx, known, fact.said_at, self.cause, starts_at=fact.starts_at)
        if fact.expires_at != known.expires_at:
            changes.set_day(self.tx, known, "expires_at", fact.expires_at, self.cause)
        changes.add_evidence(self.tx, known.id, fact.proofs)
        self._tell(fact, known)
        kind = "superseded" if before else "revived"
        return Change(kind, self._reload(known.id), fact.quotes, before=before)

    def _tell(self, fact: Fact, known: Memory) -> None:
        """Give a memory without a sentence that of a fact, where it is true to both."""
        said = " \n".join(fact.quotes)
        told = None if known.sentence else fact.sentence
        if told := true_sentence(told, known.key, known.value, said):
            changes.set_columns(self.tx, known.id, sentence=told)

    def _insert(self, fact: Fact, target: Memory | None) -> Change:
        memory_id = self._add_row(fact, self._replaced_on_start(fact, target))
        for rival in self._rivals(fact.key, memory_id) if fact.starts_at is not None else ():
            changes.inherit_tags(self.tx, memory_id, rival.tags, self.cause)
        before = self._take_place(fact, target, memory_id)
        if before is not None:
            return Change("superseded", self._reload(memory_id), fact.quotes, before=before)
        if not self._reload(memory_id).active:
            return Change("added", self._reload(memory_id), fact.quotes)
        merged = self._merge_near(fact, memory_id)
        kind = "added" if merged is None else "merged"
        return Change(kind, self._reload(memory_id), fact.quotes, before=merged)

    def _replaced_on_start(self, fact: Fact, target: Memory | None) -> int | None:
        """The memory that a fact is to replace on its first day."""
        if fact.starts_at is None or fact.relation != "updates" or target is None:
            return None
        if target.starts_at is not None and target.starts_at > self.tx.today:
            # A plan replaces another at once; what holds now is replaced when the new one starts.
            return planned_target(self.tx, target.id) or target.id
        return target.id

    def _add_row(self, fact: Fact, instead_of: int | None = None) -> int:
        new = replace(
            fact, many=self._holds_many(fact), sensitive=fact.sensitive or is_sensitive(fact.key)
        )
        memory_id = changes.add(self.tx, self.tx.own, new, self.cause, instead_of=instead_of)
        changes.add_evidence(self.tx, memory_id, fact.proofs)
        return memory_id

    def _take_place(
        self, fact: Fact, target: Memory | None, memory_id: int, *, anew: bool = True
    ) -> str | None:
        """Let a memory replace the one that its fact updates and, where it holds ``anew``, the
        other values of its key; or be replaced by one that was said later, as when an old session
        is read late. Gives the value that it replaces.

        A plan replaces only another plan: it is compared with what holds on its first day.
        """
        aimed = target if fact.relation == "updates" and target is not None else None
        there = [aimed] if aimed is not None and aimed.id != memory_id else []
        if fact.starts_at is not None:
            there = [plan for plan in there if not memories.holds_on(plan, self.tx.today)]
        elif anew:
            known = {memory_id, *(m.id for m in there)}
            there += [m for m in self._rivals(fact.key, memory_id) if m.id not in known]
            holding = (m for m in there if memories.holds_on(m, self.tx.today))
            newer = next((m for m in holding if m.said_at > fact.said_at), self._over_since(fact))
            if newer is not None:
                new = self._reload(memory_id)
                changes.deactivate(self.tx, new, "superseded", self.cause, replaced_by=newer.id)
                return None
        older = [m for m in there if m.said_at <= fact.said_at]
        for old in older:
            changes.deactivate(self.tx, old, "superseded", self.cause, replaced_by=memory_id)
        return older[0].value if older else None

    def _rivals(self, key: str, new_id: int | None) -> list[Memory]:
        """The other values of a key that holds one."""
        return [m for m in values_of_key(self.tx, self.tx.own, key) if m.id != new_id]

    def _merge_near(self, fact: Fact, new_id: int) -> str | None:
        if fact.relation == "beside":
            return None
        for other in memories.by_ids(self.tx, [self.tx.own], fact.near).values():
            if not other.active or other.id == new_id:
                continue
            if may_merge(other, fact):
                changes.deactivate(self.tx, other, "merged", self.cause, replaced_by=new_id)
                return other.value
            reason = "close to another memory: the same, or not?"
            pair = Proposal(reason, memory_id=new_id, related_id=other.id)
            proposals.add(self.tx, self.tx.own, pair)
        return None

    def _holds_many(self, fact: Fact) -> bool:
        built_in = keys.cardinality(fact.key)
        if built_in is not None:
            return built_in == "many"
        so_far = memories.holds_many(self.tx, self.tx.ids, fact.key)
        return fact.many if so_far is None else so_far

    def _is_protected_in_every_app(self, fact: Fact, memory: Memory) -> bool:
        """Whether a learned fact may not change a memory that the user keeps for every app."""
        return memory.app == EVERY_APP and fact.created_by in LEARNED

    @property
    def _confirm(self) -> Protection:
        return Protection(self.tx)

    def _day(self, at: datetime) -> date:
        return at.astimezone(self.tx.zone).date()

    def _reload(self, memory_id: int) -> Memory:
        found = memories.get(self.tx, self.tx.ids, memory_id)
        assert found is not None
        return found


MANUAL = Cause("user", ADDED_BY_HAND)
INBOX = Cause("user", ACCEPTED)
KEPT_REFUSAL = Cause("user", KEPT_ANYWAY)


def session_end(session_id: int) -> Cause:
    """The source of what an ended conversation teaches, at once or after a late second look."""
    return Cause("model", "extracted", session_id)


def ingest(
    tx: Tx, source: Cause, facts: Iterable[Fact], *, blanked: Collection[int] = ()
) -> list[Change]:
    """Store facts one after another, in the order in which they were said; what each of them did.

    Those quoted from a message of ``blanked``, whose words were forgotten meanwhile, are refused.
    Raises InputError where a memory would have too many tags.
    """
    done = []
    for fact in facts:
        if any(message_id in blanked for message_id, _, _ in fact.proofs):
            change = Change("refused", None, reason=BLANKED)
        else:
            by_person = source.actor == "user"
            if by_person:
                allow_again(tx, fact)
            cause = replace(source, detail=fact.detail)
            if source.message_id is None and fact.proofs and not by_person:
                cause = replace(cause, message_id=fact.proofs[0][0])
            change = Consolidation(tx, cause).apply(fact)
            if fact.tags and change.memory is not None and change.kind not in ("review", "refused"):
                changes.add_tags(tx, change.memory.id, fact.tags, cause)
                tagged = memories.get(tx, tx.ids, change.memory.id)
                change = replace(change, memory=tagged)
            if fact.asks and change.memory is not None and change.kind == "added":
                question = Proposal(fact.asks, memory_id=change.memory.id)
                proposals.add(tx, memories.app_id_of(tx, change.memory.id), question)
        done.append(change)
    return done


def allow_again(tx: Tx, new: NewMemory) -> None:
    """Remove what keeps a forgotten memory from being stored: the user asks for it now."""
    own = tx.own
    held = [app_id for app_id in tx.ids if tombstones.any_in(tx, app_id)]
    tombstones.remove(tx, held, [tombstones.key_mark(new.key)])
    if own in held:
        tombstones.remove(tx, [own], tombstones.wording_marks(new.key, new.value))
    purge.purge_hidden_duplicate(tx, own, new.sha1)
