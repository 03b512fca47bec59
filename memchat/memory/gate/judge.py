"""The gate: an ordered list of checks decides about a candidate what code can decide.

They check that the quote stands in a message and is the user's own words, that numbers and names
were said, and look for secrets, instructions and repeats. What only a reader can tell becomes a
signal, for the second look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memchat.language.secrets import mask
from memchat.language.text import normal_value
from memchat.memory.extraction.candidate import Candidate, Quote
from memchat.memory.gate.checks import (
    ambiguity,
    consent,
    instructions,
    key_and_value,
    known_fact_relation,
    quotes,
    references,
    repeats,
    secret_content,
    timing,
    value_evidence,
)
from memchat.memory.gate.types import Case, KnownFact, Outcome, Proof, Turn, Verdict

_SAMPLE = 20_000
"""How many characters of the session are read to tell its languages."""

Check = Callable[[Case], None]
CHECKS: tuple[Check, ...] = (
    key_and_value.check,
    quotes.check,
    references.check,
    known_fact_relation.check,
    value_evidence.check,
    consent.check,
    instructions.check,
    repeats.check,
    timing.check,
    ambiguity.check,
)
"""In this order. After a refusal the others are skipped."""


def judge(
    candidate: Candidate,
    turns: Sequence[Turn],
    known: Sequence[KnownFact],
    *,
    prompt_text: str,
    injected: Collection[str],
    zone: ZoneInfo | None = None,
) -> Verdict:
    """Decide about one candidate. ``prompt_text`` and ``injected`` are the instructions and memory
    lines that models were given, which prove nothing; days are counted in ``zone`` (default UTC).
    """
    sample = "\n".join(t.text[:_SAMPLE] for t in turns if t.role == "user")[:_SAMPLE]
    languages = ambiguity.languages_in(sample, 0, len(sample))
    case = Case(candidate, turns, known, prompt_text, injected, zone or ZoneInfo("UTC"), languages)
    for check in CHECKS:
        if not case.refusals:
            check(case)
    secret_content.check(case)
    return _verdict(case)


def dedupe_session(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts without slips of the tongue: of two for one key that holds one value the later
    message wins. Where the later one waits for the user, so does the earlier."""
    kept: list[Verdict] = []
    latest: dict[str, Verdict] = {}
    for verdict in sorted(verdicts, key=_said_order, reverse=True):
        item = verdict.candidate
        if verdict.outcome == "refuse" or item.relation == "ends" or item.many or verdict.starts:
            kept.append(verdict)
            continue
        later = latest.setdefault(item.key, verdict)
        if later is verdict or verdict.outcome == "doubt" or later.outcome == "doubt":
            kept.append(verdict)
        elif later.outcome != "review":
            continue
        elif normal_value(later.candidate.value) == normal_value(item.value):
            # The same was said again, less certainly: the certain one stays.
            kept = [one for one in kept if one is not later]
            kept.append(verdict)
            latest[item.key] = verdict
        else:
            reason = "something else may have been said later in the conversation"
            kept.append(replace(verdict, outcome="review", reasons=(*verdict.reasons, reason)))
    order = {id(verdict.candidate): place for place, verdict in enumerate(verdicts)}
    return sorted(kept, key=lambda verdict: order[id(verdict.candidate)])


def _said_order(verdict: Verdict) -> tuple[int, int]:
    users = [(p.message_id, p.start) for p in verdict.spans if p.role == "user"]
    return max(users, default=(-1, -1))


def _verdict(case: Case) -> Verdict:
    cited = [*case.proofs, *([case.ref] if case.ref else [])]
    spans = tuple(
        Proof(turn.message_id, turn.id, turn.role, a, b, turn.text[a:b])
        for turn, span in cited
        for a, b in span.pieces
    )
    if case.wordless:
        _hide(case)
        spans = tuple(replace(span, quote="[secret]") for span in spans)
    remarks = [] if case.wordless else [*case.reviews, *case.signals, *case.notes]
    reasons = dict.fromkeys((*case.refusals, *remarks))
    return Verdict(
        _outcome(case),
        tuple(reasons),
        spans,
        case.candidate,
        case.until,
        case.starts,
        tuple(dict.fromkeys(case.signals)),
        not case.refusals and ambiguity.has_marker_nearby(case),
        case.wordless,
    )


def _outcome(case: Case) -> Outcome:
    if case.refusals:
        return "refuse"
    return "review" if case.reviews else "doubt" if case.signals else "accept"


def _hide(case: Case) -> None:
    item = case.candidate
    shown = {quote.msg: Quote(msg=quote.msg, text="[secret]") for quote in item.quotes}
    value = mask(item.value)
    case.change(
        value="[secret]" if value == item.value else value, quotes=tuple(shown.values()), cues=()
    )
