"""Playing a line of a corpus to a real store, and what became of each of its proposals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks import fate, names
from benchmarks.answers import Answers
from benchmarks.desk import USER, Desk, at_desk, slot
from benchmarks.fate import Fate
from benchmarks.second_look.corpus import Line, Proposal
from benchmarks.second_look.judges import Judge
from memchat.language.text import normal_value
from memchat.learn import gate
from memchat.learn.candidate import MAX_FACTS, Candidate, Verdict
from memchat.providers import Completion, Embedder
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Learned, Memory, Usage

AT = datetime(2026, 11, 18, 10, tzinfo=UTC)
ZONE = "Europe/Berlin"
RETRIES = 8
"""How often a failing second look is given another chance, an hour apart."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one proposal."""

    line: str
    proposal: Proposal
    fate: Fate
    applied: bool
    """For a change: the old value is no longer in force, and the new one is."""
    reasons: tuple[str, ...]
    """What the checks said of it: why it waits or is refused."""


@dataclass(slots=True)
class Played:
    """A whole corpus as one judge saw it."""

    results: list[Result] = field(default_factory=list)
    sessions: int = 0
    looked: int = 0
    tokens: int = 0
    """What all second looks took, estimated."""
    failed: int = 0
    """Conversations whose reading failed in the end."""
    by_hand: int = 0
    """Known facts that had to be entered by hand, so that a conversation may not change them."""
    kept: list[dict[str, str]] = field(default_factory=list)
    """The answers of the second look, to be recorded."""


class Proposer:
    """A ``ChatModel`` that answers a reading with a line's proposals, and asks a judge the rest."""

    name, stand_in, window, schema_mode, tools = "proposals/file", False, 128_000, True, False

    def __init__(self, judge: Judge) -> None:
        self.case = ""
        self._judge = judge
        self._batches: list[Sequence[Mapping[str, Any]]] = []

    def begin(self, case: str, facts: Sequence[Mapping[str, Any]]) -> None:
        """The line to be read next; ``to`` holds the known fact that is meant, or None."""
        self.case = case
        self._batches = [facts[i : i + MAX_FACTS] for i in range(0, len(facts), MAX_FACTS)]

    def stream(self, messages: Sequence[ChatMessage], tools: Sequence[Any] = ()) -> Any:
        """Not asked for: this model only reads."""
        raise NotImplementedError

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """The next proposals, or the judge's word on them."""
        if purpose == "verify":
            text = self._judge.say(self.case, messages, schema)
        else:
            facts = self._batches.pop(0) if self._batches else ()
            text = json.dumps({"facts": [_sent(fact, messages) for fact in facts], "forget": []})
        sent = sum(estimate_tokens(message.content) for message in messages)
        usage = Usage(purpose, self.name, sent, estimate_tokens(text), None, 0.0)
        return Completion(text, usage)


def play(lines: Sequence[Line], judge: Judge, embedder: Embedder | None) -> Played:
    """Every line in a store of its own."""
    played = Played()
    for line in lines:
        proposer = Proposer(judge)
        answers = Answers(proposer)

        def use(desk: Desk, line: Line = line, proposer: Proposer = proposer) -> None:
            _play(desk, line, proposer, judge, played)

        at_desk(answers, AT - timedelta(days=1), ZONE, embedder, use)
        played.kept += [one for one in answers.kept if one["purpose"] == "verify"]
        played.sessions += 1
        played.looked += line.id in answers.looked
        played.tokens += answers.looks.total()
    return played


def _play(desk: Desk, line: Line, proposer: Proposer, judge: Judge, played: Played) -> None:
    known = desk.teach(line.known)
    played.by_hand += len(desk.by_hand)
    desk.clock.advance(days=1)
    was = fate.before(desk)
    facts = [_meant(proposal, known) for proposal in line.proposals]
    proposer.begin(line.id, facts)
    with _watched() as verdicts:
        chat = desk.hold(line.id, line.turns)
        later = _tried_again(desk) if judge.fails else []
    played.failed += chat.failure is not None and not judge.fails
    left = fate.after(desk, was, chat, later)
    pairs = Counter(_pair(proposal) for proposal in line.proposals)
    for proposal in line.proposals:
        target = known.get(proposal.fact.get("to") or "")
        came = left.of(
            proposal.fact,
            target.id if target else None,
            rivals=_rivals(proposal, line.proposals),
            twin=pairs[_pair(proposal)] > 1,
        )
        applied = came == "stored" and not (target and left.in_force(target.id))
        said = _said_of(proposal, verdicts)
        played.results.append(Result(line.id, proposal, came, applied, said))


def _rivals(proposal: Proposal, others: Sequence[Proposal]) -> list[str]:
    """The values that other proposals of the conversation have for its key."""
    key = slot(proposal.fact["key"])
    same = [other for other in others if other is not proposal and slot(other.fact["key"]) == key]
    return [other.fact["value"] for other in same]


def _pair(proposal: Proposal) -> tuple[str, str]:
    return slot(proposal.fact["key"]), normal_value(proposal.fact["value"])


def _meant(proposal: Proposal, known: Mapping[str, Memory]) -> dict[str, Any]:
    """The fact as it is sent, with the known one it speaks of by key and value."""
    target = known.get(proposal.fact.get("to") or "")
    to = {"key": target.key, "value": target.value} if target else None
    return {**proposal.fact, "to": to}


def _sent(fact: Mapping[str, Any], messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """A fact with the id that this call gives to the known one."""
    return {**fact, "to": names.shown_as(fact["to"], messages) if fact["to"] else None}


def _tried_again(desk: Desk) -> list[Learned]:
    """Let the queue try again until it gives up."""
    learned: list[Learned] = []
    for _ in range(RETRIES):
        desk.clock.advance(seconds=3600)
        learned += desk.mc.jobs.run(user=USER).learned
    return learned


@contextmanager
def _watched() -> Iterator[list[tuple[Candidate, Verdict]]]:
    """What the gate says of each candidate while a conversation is read."""
    seen: list[tuple[Candidate, Verdict]] = []
    judge = gate.judge

    def listening(candidate: Candidate, *args: Any, **more: Any) -> Verdict:
        verdict = judge(candidate, *args, **more)
        seen.append((candidate, verdict))
        return verdict

    gate.judge = listening
    try:
        yield seen
    finally:
        gate.judge = judge


def _said_of(proposal: Proposal, seen: Sequence[tuple[Candidate, Verdict]]) -> tuple[str, ...]:
    wanted = [quote["text"] for quote in proposal.fact["quotes"]]
    for candidate, verdict in seen:
        same = candidate.key == proposal.fact["key"] and candidate.value == proposal.fact["value"]
        if same and [quote.text for quote in candidate.quotes] == wanted:
            # Without what stands behind a colon: the words of this one case.
            reasons = verdict.reasons if verdict.outcome != "accept" else ()
            named = (f"{verdict.outcome}: {reason.partition(':')[0]}" for reason in reasons)
            return tuple(dict.fromkeys(named))
    return ()
