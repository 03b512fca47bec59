"""Requests for a second look, and what its answers change in a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memchat.language.sentences import sentence_around
from memchat.memory.extraction.second_look import LookAnswer, LookRequest
from memchat.memory.gate.checks import value_evidence
from memchat.memory.gate.types import KnownFact, Turn, Verdict

NOT_LOOKED_AT = "it is looked at once more when the model can be reached"
NOBODY_LOOKED = "no model has looked at it once more"
UNCLEAR = "a second look could not tell whether it holds"


def needs_second_look(verdict: Verdict, mode: str) -> bool:
    """Whether a verdict needs a second look, under MEMCHAT_VERIFY."""
    if mode == "off" or verdict.outcome not in ("accept", "doubt"):
        return False
    return mode == "always" or verdict.outcome == "doubt" or verdict.beside


def may_be_stored_unchecked(verdict: Verdict) -> bool:
    """Whether a verdict may be stored while no second look can be made."""
    return verdict.outcome == "accept" and not verdict.beside


def to_request(
    verdict: Verdict, turns: Mapping[str, Turn], known: Mapping[str, KnownFact]
) -> LookRequest:
    """The request for a verdict. ``turns`` by id."""
    item = verdict.candidate
    said: dict[tuple[str, int, int], None] = {}
    for proof in verdict.spans:
        around = sentence_around(turns[proof.turn_id].text, proof.start, proof.end)
        said[proof.turn_id, around.start, around.end] = None
    target = known.get(item.to) if item.to else None
    return LookRequest(
        tuple(said),
        item.key,
        item.value,
        item.relation,
        f"{target.key}: {target.value}" if target else None,
        verdict.until.isoformat() if verdict.until else None,
        verdict.starts.isoformat() if verdict.starts else None,
    )


def apply_answer(
    verdict: Verdict, look: LookAnswer, messages: Sequence[str], known: str, model: str
) -> Verdict:
    """The verdict after its second look. A new value may take its words from the quoted
    ``messages`` and from the ``known`` fact that it changes."""
    detail = {"verdict": look.answer, "reason": look.reason or ", ".join(verdict.signals)}
    verdict = replace(verdict, detail={**detail, "model": model})
    if look.answer == "not":
        return replace(verdict, outcome="refuse", reasons=(look.reason,))
    if look.answer == "unclear":
        return replace(verdict, outcome="review", reasons=(UNCLEAR, *verdict.signals))
    item = verdict.candidate
    if look.now and item.relation == "updates":
        if value_evidence.is_supported_rewording(item.value, look.now, messages, known):
            item = item.model_copy(update={"value": look.now})
        verdict = replace(verdict, candidate=item)
    return replace(verdict, outcome="accept", reasons=())


def postponed(verdict: Verdict) -> Verdict:
    """A verdict that waits in the inbox for a later second look."""
    return replace(verdict, outcome="review", reasons=(NOT_LOOKED_AT, *verdict.signals))


def leave_to_person(verdict: Verdict) -> Verdict:
    """A doubtful verdict without a second look: the user decides."""
    return replace(verdict, outcome="review") if verdict.outcome == "doubt" else verdict
