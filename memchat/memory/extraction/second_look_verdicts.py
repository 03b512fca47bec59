"""Requests for a second look, and what its answers change in a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memchat.language.quotes import find_spans
from memchat.language.secrets import reveals
from memchat.language.sentences import sentence_around
from memchat.memory.extraction.candidate import Candidate, Quote, Relation
from memchat.memory.extraction.second_look import SECRET, LookAnswer, LookRequest
from memchat.memory.gate.checks import value_evidence
from memchat.memory.gate.keys import cardinality
from memchat.memory.gate.types import KnownFact, Proof, Turn, Verdict

NOT_LOOKED_AT = "it is looked at once more when the model can be reached"
NOBODY_LOOKED = "no model has looked at it once more"
UNCLEAR = "a second look could not tell whether it holds"
OTHER_RELATION = "it holds, and it is not clear what it does to what is remembered"
HIDDEN_WORDS = "[secret]"


Place = tuple[int, int, int]
"""(message id, start, end)."""


@dataclass(frozen=True, slots=True)
class ToldSecret:
    """A secret that the second look named, and where it stands."""

    place: Place
    words: str

    def is_in(self, places: Iterable[Place], words: str = "") -> bool:
        """Whether it stands in one of these places, or words give it away."""
        message_id, start, end = self.place
        inside = any(i == message_id and a < end and start < b for i, a, b in places)
        return inside or reveals(words, self.words)


def told_secrets(
    value: str, quotes: Iterable[Place], said: Mapping[int, str]
) -> Iterator[ToldSecret]:
    """The secret of a candidate where it stands in its quotes; all of a quote that does not have
    the value in one piece. ``said`` by message id."""
    for message_id, start, end in quotes:
        found = [(span.start, span.end) for span in find_spans(value, said[message_id])]
        own = [place for place in found if start <= place[0] < end] or [(start, end)]
        yield from (ToldSecret((message_id, *place), value) for place in own)


def place_of(proof: Proof) -> Place:
    """Where a proof stands."""
    return proof.message_id, proof.start, proof.end


def needs_second_look(verdict: Verdict, mode: str) -> bool:
    """Whether a verdict needs a second look, under MEMCHAT_VERIFY. What waits for the person is
    looked at for secrets alone."""
    if mode == "off" or verdict.outcome == "refuse" or not verdict.spans:
        return False
    return mode == "always" or waits_for_second_look(verdict)


def waits_for_second_look(verdict: Verdict) -> bool:
    """Whether a verdict waits while no second look can be made."""
    return verdict.outcome == "doubt" or (verdict.outcome == "accept" and verdict.beside)


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
    if look.answer == "secret":
        return as_secret(verdict)
    if verdict.outcome not in ("accept", "doubt"):
        return verdict
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


def as_secret(verdict: Verdict) -> Verdict:
    """The verdict on a secret, without any of its words."""
    quotes = tuple(Quote(msg=quote.msg, text=HIDDEN_WORDS) for quote in verdict.candidate.quotes)
    hidden = {"key": "secret", "value": HIDDEN_WORDS, "quotes": quotes, "cues": ()}
    return replace(
        verdict,
        outcome="refuse",
        reasons=(SECRET,),
        spans=tuple(replace(span, quote=HIDDEN_WORDS) for span in verdict.spans),
        candidate=verdict.candidate.model_copy(update=hidden),
        wordless=True,
    )


def without_secrets(
    verdict: Verdict, told: Sequence[ToldSecret], said: Mapping[int, str]
) -> Verdict:
    """A verdict that gives none of these secrets away; ``said`` by message id."""
    if not told or verdict.wordless:
        return verdict
    item, places = verdict.candidate, [place_of(proof) for proof in verdict.spans]
    words = " \n".join((item.key, item.value, *(quote.text for quote in item.quotes)))
    if any(secret.is_in(places, words) for secret in told):
        return as_secret(verdict)
    around = [(i, sentence_around(said[i], start, end)) for i, start, end in places]
    sentences = [(i, sentence.start, sentence.end) for i, sentence in around]
    bare = any(secret.is_in(sentences) for secret in told)
    cues = tuple(cue for cue in item.cues if not any(one.is_in((), cue) for one in told))
    return replace(verdict, candidate=item.model_copy(update={"cues": cues}), bare=bare)


def with_relation(
    verdict: Verdict,
    relation: Relation | None,
    known: Mapping[str, KnownFact],
    judge: Callable[[Candidate], Verdict],
) -> Verdict:
    """The verdict with the relation of a second look, as far as the checks let that stand."""
    item = verdict.candidate
    if relation in (None, item.relation) or verdict.outcome == "review":
        return verdict
    target = known.get(item.to or "")
    judged = judge(item.model_copy(update={"relation": relation}))
    if judged.outcome not in ("accept", "doubt"):
        return judged
    now = judged.candidate
    if relation in ("new", "beside"):
        fits = may_stand_beside(now.key, target.key if target else None)
    else:
        fits = target is not None and now.relation == relation
    return judged if fits else replace(judged, outcome="review", reasons=(OTHER_RELATION,))


def may_stand_beside(key: str, target_key: str | None) -> bool:
    """Whether a fact can hold beside a known one: not in the same built-in key that holds one."""
    return key != target_key or cardinality(key) != "one"


def postponed(verdict: Verdict) -> Verdict:
    """A verdict that waits in the inbox for a later second look."""
    return replace(verdict, outcome="review", reasons=(NOT_LOOKED_AT, *verdict.signals))


def leave_to_person(verdict: Verdict) -> Verdict:
    """A doubtful verdict without a second look: the user decides."""
    return replace(verdict, outcome="review") if verdict.outcome == "doubt" else verdict
