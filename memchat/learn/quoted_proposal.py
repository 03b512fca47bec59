"""A proposal of a program with words of the person, judged over the conversation they stand in as
the gate judges a model's own. No second look is made of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from memchat.db import Tx, messages, sessions
from memchat.errors import NotFound
from memchat.facts.fact import Fact
from memchat.facts.inbox import NewInboxItem
from memchat.language import text
from memchat.language.text import holds_word
from memchat.learn import session_reading
from memchat.learn.candidate import Candidate, Outcome, Verdict
from memchat.learn.gate import judge
from memchat.learn.model_calls import NOBODY_LOOKED, unlooked
from memchat.learn.outcomes import inbox_entry, to_fact
from memchat.learn.session_reading import SessionReading, shown_memory_lines
from memchat.learn.values import is_negated
from memchat.types import Message

DAYS_UNPROVED = "its days are not proved by the quote"


@dataclass(frozen=True, slots=True)
class QuotedProposal:
    """A judged proposal: what becomes of it, and in which form it is kept."""

    tx: Tx
    verdict: Verdict
    reading: SessionReading

    @classmethod
    def read(cls, tx: Tx, item: Candidate, session_id: int, instructions: str) -> QuotedProposal:
        """Judge a proposal whose quotes stand in a conversation of the scope. ``instructions`` are
        those of models that took part in it, which prove nothing. Raises NotFound for a
        conversation elsewhere."""
        found = sessions.by_id(tx, session_id)
        if found is None or found[1] != tx.own:
            raise NotFound(f"there is no session {session_id} here; recall gives its number")
        turns = messages.of_session(tx, session_id, learnable=True)
        reading = SessionReading(*found, turns, 0, injected=shown_memory_lines(tx, turns))
        verdict = judge(
            _linked(tx, reading, item),
            reading.gate_turns(),
            list(reading.known.values()),
            prompt_text=instructions,
            injected=reading.injected,
            zone=tx.zone,
        )
        by_id = {turn.id: turn for turn in turns}
        verdict = session_reading.ask_first(tx, found[1], verdict, by_id)
        if not _is_plainly_said(verdict):
            verdict = unlooked(verdict, NOBODY_LOOKED)
        verdict = reading.refuse_if_forgotten(tx, tx.ids, verdict)
        return cls(tx, verdict, reading)

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    @property
    def reason(self) -> str:
        """Why it waits or was refused."""
        return "; ".join(self.verdict.reasons)

    def on_days(self, starts_at: date | None, expires_at: date | None) -> QuotedProposal:
        """The proposal with days that the program gave, which the person has to confirm."""
        given: dict[str, Any] = {"starts": starts_at, "until": expires_at}
        given = {name: day for name, day in given.items() if day is not None}
        if self.outcome == "refuse" or not given:
            return self
        reasons = (*self.verdict.reasons, DAYS_UNPROVED)
        return replace(
            self, verdict=replace(self.verdict, outcome="review", reasons=reasons, **given)
        )

    def fact(self) -> Fact:
        """What is stored, with the person's words as its proof."""
        return to_fact(self.verdict, self._turns, self.reading.known, self.tx.zone)

    def inbox_entry(self) -> NewInboxItem:
        """What waits in the inbox, with the person's words."""
        return inbox_entry(self.verdict, self.reading.known, self._turns)

    @property
    def _turns(self) -> dict[int, Message]:
        return {turn.id: turn for turn in self.reading.turns}


def _linked(tx: Tx, reading: SessionReading, item: Candidate) -> Candidate:
    """The proposal with a link to the stored fact that it repeats or changes."""
    linked = reading.link_by_key(tx, item)
    known = reading.known.get(linked.to or "")
    if known is None or text.normal_value(known.value) != text.normal_value(item.value):
        return linked
    return linked.model_copy(update={"relation": "same"})


def _is_plainly_said(verdict: Verdict) -> bool:
    """Whether the quotes hold every word of the value, and deny it or not as the value does."""
    value, said = verdict.candidate.value, " \n".join(proof.quote for proof in verdict.spans)
    held = all(holds_word(said, word) for word in text.content_words(value))
    return held and is_negated(said) == is_negated(value)
