"""Changes that wait for the user's yes: of what they entered, pinned, share or had forgotten."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memchat.memory.context import Context
from memchat.memory.facts.fact import ADDED_BY_HAND, FORGOTTEN, REJECTED, Fact, inbox_entry
from memchat.memory.facts.in_force import change_question, in_words, values_of_key
from memchat.memory.forgetting import purge, tombstone_marks
from memchat.store import events, evidence, inbox, memories, tombstones
from memchat.store.inbox import NewInboxItem
from memchat.types import EVERY_APP, LEARNED, Change, Memory


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Decides whether a change is made unasked, and puts the question into the inbox if not.

    Each of its checks gives None where nothing is to be asked.
    """

    ctx: Context
    app_id: int
    """The scope row that is written to."""

    def of_change(self, fact: Fact, target: Memory | None) -> Change | None:
        """The question before a fact replaces a memory that is the user's own."""
        old = target if fact.relation == "updates" else None
        if old is None:
            old = next(iter(values_of_key(self.ctx, self.app_id, fact.key)), None)
        if old is None or old.said_at > fact.said_at or not self.is_user_owned(fact, old):
            return None
        reason = change_question("updates", " … ".join(fact.quotes), old)
        entry = inbox_entry(replace(fact, relation="updates"), reason, old)
        return self._ask(entry, Change("review", None, fact.quotes, before=old.value))

    def of_end(self, fact: Fact, target: Memory) -> Change | None:
        """The question before a memory that is the user's own is ended."""
        if not self.is_user_owned(fact, target):
            return None
        reason = change_question("ends", " … ".join(fact.quotes), target)
        return self._ask(inbox_entry(fact, reason, target), Change("review", target, fact.quotes))

    def of_start(self, fact: Fact, known: Memory, target: Memory | None) -> Change | None:
        """The question before a memory that is the user's own holds from another day."""
        if fact.starts_at == known.starts_at or not self.is_user_owned(fact, known):
            return None
        since = f"from {fact.starts_at.isoformat()}" if fact.starts_at else "already"
        words = " ".join(" … ".join(fact.quotes).split())
        reason = f"You said “{words}”. Does {in_words(known)} hold {since}?"
        return self._ask(inbox_entry(fact, reason, target), Change("review", known, fact.quotes))

    def of_program(self, fact: Fact, known: Memory) -> Change | None:
        """The question before a program, by repeating it, gives a memory that is the user's own
        another last day or brings it back: what they entered holds as long as they said."""
        if fact.created_by != "mcp" or not self.is_user_owned(fact, known):
            return None
        asked = replace(fact, relation="new", target_id=None)
        entry = inbox_entry(asked, "a program asks to keep it", None)
        return self._ask(entry, Change("review", known, fact.quotes))

    def of_forgotten(self, fact: Fact, target: Memory | None) -> Change | None:
        """A fact that was forgotten is refused; said again later, it is a question."""
        if fact.created_by == "manual":
            return None
        proofs = [(message_id, quote) for message_id, _, quote in fact.proofs]
        found = tombstone_marks.match(
            self.ctx.tx, self.ctx.scope.ids, fact.key, fact.value, proofs, fact.said_at
        )
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
        old = target if fact.relation == "updates" else None
        return self._ask(inbox_entry(fact, reason, old), Change("review", None, fact.quotes))

    def hide_for_program(self, memory: Memory, hold: float | None) -> set[int]:
        """As ``purge.hide``, at the wish of a program: the keys of what is the user's own are kept
        from programs until the user enters something there."""
        tx = self.ctx.tx
        own = [one for one in purge.with_merged(tx, [memory]).values() if self._is_own(one)]
        stale = purge.hide(self.ctx, memory, hold=hold)
        for one in own:
            app_id, mark = memories.app_id_of(tx, one.id), tombstone_marks.key_mark(one.key)
            tombstones.add(tx, app_id, one.id, [mark], self.ctx.now)
        return stale

    def _is_kept_from_programs(self, fact: Fact) -> bool:
        """Whether a fact would take the place that a program made free: one of a program, or one
        that was said before."""
        mark = tombstone_marks.key_mark(fact.key)
        freed_at = tombstones.find(self.ctx.tx, self.ctx.scope.ids, [mark]).get(mark)
        return freed_at is not None and (fact.created_by == "mcp" or fact.said_at <= freed_at)

    def is_user_owned(self, fact: Fact, memory: Memory, *, pins: bool = True) -> bool:
        """Whether a learned fact may not change a memory: the user entered or reworded it, keeps it
        for every app or, with ``pins``, pinned it."""
        return fact.created_by in LEARNED and self._is_own(memory, pins=pins)

    def _is_own(self, memory: Memory, *, pins: bool = True) -> bool:
        if memory.app == EVERY_APP or (pins and memory.pinned):
            return True
        tx = self.ctx.tx
        past = events.of_memory(tx, memory.id)
        entered = any(e.actor == "user" and e.cause == ADDED_BY_HAND for e in past)
        unproven = memory.created_by == "manual" and not evidence.messages_of(tx, memory.id)
        return entered or unproven or memory.id in events.value_edits(tx, [memory.id])

    def _ask(self, entry: NewInboxItem, change: Change) -> Change:
        """Put a question to the user, unless they answered no to it before."""
        if inbox.add(self.ctx.tx, self.app_id, entry, self.ctx.now) == "rejected":
            return Change("refused", None, change.quotes, reason=REJECTED)
        return replace(change, reason=entry.reason)
