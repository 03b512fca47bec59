"""What is asked in a second look, and what its answers make of a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memchat.language.sentences import sentence_around
from memchat.memory.extraction.second_look import Doubt, LookAnswer
from memchat.memory.gate.checks import content
from memchat.memory.gate.types import KnownFact, Turn, Verdict

NOT_LOOKED_AT = "it is looked at once more when the model can be reached"
NOBODY_LOOKED = "no model has looked at it once more"
UNCLEAR = "a second look could not tell whether it holds"


def is_asked(verdict: Verdict, mode: str) -> bool:
    """Whether a verdict is looked at once more, under MEMCHAT_VERIFY."""
    if mode == "off" or verdict.outcome not in ("accept", "doubt"):
        return False
    return mode == "always" or verdict.outcome == "doubt" or verdict.beside


def is_certain(verdict: Verdict) -> bool:
    """Whether a verdict may be stored while nobody can look at it once more."""
    return verdict.outcome == "accept" and not verdict.beside


def to_doubt(verdict: Verdict, turns: Mapping[str, Turn], known: Mapping[str, KnownFact]) -> Doubt:
    """What the second look is asked about a verdict. ``turns`` by id."""
    item = verdict.candidate
    said: dict[tuple[str, int, int], None] = {}
    for proof in verdict.spans:
        around = sentence_around(turns[proof.turn_id].text, proof.start, proof.end)
        said[proof.turn_id, around.start, around.end] = None
    target = known.get(item.to) if item.to else None
    return Doubt(
        tuple(said),
        item.key,
        item.value,
        item.relation,
        f"{target.key}: {target.value}" if target else None,
        verdict.until.isoformat() if verdict.until else None,
        verdict.starts.isoformat() if verdict.starts else None,
    )


def answered(
    verdict: Verdict, look: LookAnswer, messages: Sequence[str], known: str, model: str
) -> Verdict:
    """The verdict after its second look. What the look makes of a value may take its words from
    the quoted ``messages`` and from the ``known`` fact that is changed."""
    detail = {"verdict": look.answer, "reason": look.reason or ", ".join(verdict.signals)}
    verdict = replace(verdict, detail={**detail, "model": model})
    if look.answer == "not":
        return replace(verdict, outcome="refuse", reasons=(look.reason,))
    if look.answer == "unclear":
        return replace(verdict, outcome="review", reasons=(UNCLEAR, *verdict.signals))
    item = verdict.candidate
    if look.now and item.relation == "updates":
        if content.may_stand_for(item.value, look.now, messages, known):
            item = item.model_copy(update={"value": look.now})
        verdict = replace(verdict, candidate=item)
    return replace(verdict, outcome="accept", reasons=())


def postponed(verdict: Verdict) -> Verdict:
    """A verdict whose second look comes later: until then it waits in the inbox."""
    return replace(verdict, outcome="review", reasons=(NOT_LOOKED_AT, *verdict.signals))


def left_to_person(verdict: Verdict) -> Verdict:
    """A doubtful verdict that no model looks at: the person decides."""
    return replace(verdict, outcome="review") if verdict.outcome == "doubt" else verdict
