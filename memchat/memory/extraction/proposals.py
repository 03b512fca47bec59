"""From judged candidates to facts: what is kept, what waits for a person, what is dropped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memchat.language import secrets, sentences, text
from memchat.language.numbers import numbers
from memchat.memory.extraction.candidate import Candidate
from memchat.memory.facts.consolidation import Fact, search_text
from memchat.memory.facts.fact import REJECTED as REJECTED
from memchat.memory.gate import judge
from memchat.memory.gate.types import KnownFact, Proof, Verdict
from memchat.store.inbox import NewInboxItem
from memchat.store.refusals import NewRefusal
from memchat.types import Change, Memory, Message

FORGOTTEN = "it was forgotten on request"
BLANKED = "its words were forgotten meanwhile"
"""Reasons of refusals whose proposals leave no word behind."""
_WORDLESS = (FORGOTTEN, BLANKED)
SAID_LATER = "something else was said later in the conversation"
REPEATED = "it only repeats what is known already"
_READ_BEFORE = "its words were read by an earlier extraction"
HIDDEN = "it holds something that is never remembered"
_MASKED = re.compile(r"\[[a-z][a-z -]*\]")
"""What stands in the place of a secret, as ``secrets.mask`` writes it."""


def settle(
    verdicts: Sequence[Verdict],
    as_fact: Callable[[Verdict], Fact],
) -> tuple[list[Fact], list[Change]]:
    """The facts to put in, as they were said, and what happened to the other proposals."""
    kept = judge.dedupe_session(_without_overtaken(verdicts))
    changes = [_refused(v) for v in kept if v.outcome != "accept"]
    return [as_fact(v) for v in kept if v.outcome == "accept"], changes


def waiting(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """What is to wait for a person: proposals in review, and accepted ones that something said
    later puts in doubt."""
    gone = {id(verdict) for verdict in _overtaken(verdicts)}
    judged = [v for v in verdicts if v.outcome == "review" and id(v) not in gone]
    known = {id(verdict.candidate) for verdict in judged}
    settled = judge.dedupe_session(_without_overtaken(verdicts))
    doubted = [v for v in settled if v.outcome == "review" and id(v.candidate) not in known]
    return judged + doubted


def not_kept(verdicts: Sequence[Verdict], known: Mapping[str, KnownFact]) -> list[NewRefusal]:
    """What the reading of a session proposed and does not keep. What another proposal keeps in the
    same words is no loss, and is left out."""
    standing = _without_overtaken(verdicts)
    settled = judge.dedupe_session(standing)
    stays = {id(verdict.candidate) for verdict in settled}
    slips = [v for v in standing if v.outcome == "accept" and id(v.candidate) not in stays]
    slips += [v for v in _overtaken(verdicts) if v.outcome == "accept"]
    found = [verdict for verdict in verdicts if verdict.outcome == "refuse"]
    found += [replace(verdict, reasons=(SAID_LATER,)) for verdict in slips]
    kept = {_words(v.candidate) for v in settled if v.outcome != "refuse"}
    return [refusal(v, known) for v in found if _words(v.candidate) not in kept]


def _words(item: Candidate) -> tuple[str, str, bool]:
    return item.key, text.normal_value(item.value), item.relation == "ends"


def _overtaken(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Earlier proposals (p1, p2, …) that later windows change or end."""
    later = [verdict.candidate for verdict in verdicts if _speaks_of_proposal(verdict)]
    numbers = [int((item.to or "p1")[1:]) for item in later if item.relation in ("updates", "ends")]
    return [verdicts[number - 1] for number in dict.fromkeys(numbers)]


def _speaks_of_proposal(verdict: Verdict) -> bool:
    return verdict.outcome == "accept" and (verdict.candidate.to or "").startswith("p")


def _without_overtaken(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Resolve what later windows said of earlier proposals (p1, p2, …), none of them stored yet."""
    overtaken: set[int] = set()
    kept: list[Verdict] = []
    for verdict in verdicts:
        item = verdict.candidate
        if not _speaks_of_proposal(verdict):
            kept.append(verdict)
            continue
        earlier = verdicts[int((item.to or "p1")[1:]) - 1]
        if item.relation in ("updates", "ends"):
            overtaken.add(id(earlier))
            verdict = _in_place_of(earlier, verdict)
        if item.relation == "same":
            if earlier.outcome != "accept":  # what it repeats is not kept: it stands by itself
                alone = item.model_copy(update={"to": None, "relation": "new"})
                kept.append(replace(verdict, candidate=alone))
        elif verdict.candidate.relation != "ends" or verdict.candidate.to is not None:
            kept.append(verdict)
    return [verdict for verdict in kept if id(verdict) not in overtaken]


def _in_place_of(earlier: Verdict, later: Verdict) -> Verdict:
    """The later proposal, speaking of the stored fact that the one it overtakes spoke of."""
    was, item = earlier.candidate, later.candidate
    stored = was.to is not None and was.relation in ("same", "updates", "ends")
    relation = "ends" if item.relation == "ends" else "updates" if stored else was.relation
    return replace(later, candidate=item.model_copy(update={"to": was.to, "relation": relation}))


def to_fact(
    verdict: Verdict,
    turns: Mapping[int, Message],
    known: Mapping[str, KnownFact],
    zone: ZoneInfo,
) -> Fact:
    """An accepted candidate, ready for the store. ``turns`` by message id."""
    item = verdict.candidate
    proofs = [(p.message_id, p.start, p.quote) for p in verdict.spans]
    said_at = max(turns[p.message_id].created_at for p in verdict.spans if p.role == "user")
    target = _target(verdict, known)
    quote = next(p.quote for p in verdict.spans if p.role == "user")
    return Fact(
        memory_type=item.type,
        key=item.key,
        value=item.value,
        said_at=said_at,
        search_text=search_text(item.key, item.value, said_at, zone, quote, item.cues),
        created_by="auto",
        many=item.many,
        expires_at=verdict.until,
        starts_at=verdict.starts,
        cues=item.cues,
        sensitive="sensitive" in item.flags,
        relation=item.relation,
        target_id=_stored_id(target),
        proofs=tuple(proofs),
        detail=verdict.detail,
    )


def held(
    verdict: Verdict, known: Mapping[str, KnownFact], turns: Mapping[int, Message]
) -> NewInboxItem:
    """What the inbox keeps of a proposal that needs a person's yes: all that a yes then does.

    ``turns`` by message id.
    """
    item, target = verdict.candidate, _target(verdict, known)
    proof = verdict.spans[0] if verdict.spans else None
    words = _value(item, target), proof.quote if proof else item.quotes[0].text
    value, quote = map(secrets.mask, words)
    return NewInboxItem(
        reason="; ".join(verdict.reasons),
        message_id=proof.message_id if proof else None,
        memory_type=item.type,
        key=_key(item, target),
        value=value,
        quote=quote,
        start=proof.start if proof else None,
        expires_at=verdict.until,
        many=item.many,
        masked=(value, quote) != words,
        relation=item.relation,
        target_id=_stored_id(target),
        starts_at=verdict.starts,
        sentence=_sentence(proof, turns) if proof else None,
        cues=item.cues,
        sensitive="sensitive" in item.flags,
    )


def refusal(verdict: Verdict, known: Mapping[str, KnownFact]) -> NewRefusal:
    """What is kept of a proposal that is not kept: all of it, for a person who wants it anyway, or
    the reason alone where its words may not stay."""
    private = [reason for reason in verdict.reasons if reason in _WORDLESS]
    if private or verdict.wordless:
        return NewRefusal("; ".join(private or verdict.reasons))
    item, target = verdict.candidate, _target(verdict, known)
    proof = next((p for p in verdict.spans if p.role == "user"), None)
    words = [item.key, _value(item, target), proof.quote if proof else ""]
    if any(_MASKED.search(part) or secrets.find_secrets(part) for part in words):
        return NewRefusal(HIDDEN)
    return NewRefusal(
        reason="; ".join(_told(verdict, known)),
        message_id=proof.message_id if proof else None,
        start=proof.start if proof else None,
        end=proof.end if proof else None,
        memory_type=item.type,
        key=_key(item, target),
        value=_value(item, target),
        relation=item.relation,
        target_id=_stored_id(target),
        expires_at=verdict.until,
        starts_at=verdict.starts,
        many=item.many,
        cues=item.cues,
        sensitive="sensitive" in item.flags,
    )


def turned_down(fact: Fact, reason: str) -> NewRefusal:
    """The same of a fact that passed the gate, and that the store did not take."""
    if reason in _WORDLESS:
        return NewRefusal(reason)
    message_id, start, quote = fact.proofs[0] if fact.proofs else (None, None, "")
    return NewRefusal(
        reason=reason,
        message_id=message_id,
        start=start,
        end=None if start is None else start + len(quote),
        memory_type=fact.memory_type,
        key=fact.key,
        value=fact.value,
        relation=fact.relation,
        target_id=fact.target_id,
        expires_at=fact.expires_at,
        starts_at=fact.starts_at,
        many=fact.many,
        cues=fact.cues,
        sensitive=fact.sensitive,
    )


def _told(verdict: Verdict, known: Mapping[str, KnownFact]) -> list[str]:
    """The reasons as a person is told them: what was read before and is known is a repeat."""
    same = _words(verdict.candidate)
    if _READ_BEFORE in verdict.reasons and any(
        (fact.key, text.normal_value(fact.value), False) == same for fact in known.values()
    ):
        return [REPEATED]
    return list(verdict.reasons)


def _target(verdict: Verdict, known: Mapping[str, KnownFact]) -> KnownFact | None:
    return known.get(verdict.candidate.to) if verdict.candidate.to else None


def _stored_id(target: KnownFact | None) -> int | None:
    """The memory that a known fact is; None for one that this session proposed itself."""
    return target.memory_id if target is not None and target.memory_id > 0 else None


def _key(item: Candidate, target: KnownFact | None) -> str:
    """A change of what the session proposed itself is found by that one's key when it is asked."""
    proposed = target is not None and target.memory_id < 0
    return target.key if target is not None and proposed else item.key


def _value(item: Candidate, target: KnownFact | None) -> str:
    """An end names what it ends where the model gave no words for it."""
    return item.value or (target.value if target is not None else "")


def _sentence(proof: Proof, turns: Mapping[int, Message]) -> str | None:
    """The sentence that a quote stands in; none where a secret stands beside it."""
    turn = turns.get(proof.message_id)
    if turn is None:
        return None
    sentence = sentences.sentence_around(turn.content, proof.start, proof.end)
    order = list(turns.values())
    for number, secret in secrets.find_in_conversation([one.content for one in order]):
        beside = secret.start < sentence.end and sentence.start < secret.end
        if order[number].id == turn.id and beside:
            return None
    return sentence.text


def honest(words: str | None, said: Sequence[str]) -> str | None:
    """A title or summary, unless it holds a number or name that nobody said; secrets masked."""
    if not words:
        return None
    told = {said[number][s.start : s.end] for number, s in secrets.find_in_conversation(said)}
    if any(secrets.reveals(words, secret) for secret in told):
        return None  # without the word beside it, it is not recognised as a secret
    transcript = " ".join(said)
    foreign = numbers(words) - numbers(transcript)
    plain = text.fold(transcript).text
    foreign |= {name for name in text.names(words) if text.fold(name).text not in plain}
    return None if foreign else secrets.mask(words)


def known_fact(short_id: str, memory: Memory) -> KnownFact:
    """A stored memory as the model is shown it."""
    return KnownFact(
        short_id,
        memory.id,
        memory.memory_type,
        memory.key,
        memory.value,
        memory.many,
        memory.starts_at,
    )


def fallback_title(turns: Sequence[Message], limit: int = 60) -> str | None:
    """The first words a person said, where the model gave no title."""
    first = next((turn.content for turn in turns if turn.role == "user"), "")
    words = secrets.mask(" ".join(first.split()))
    return (words if len(words) <= limit else words[: limit - 1].rstrip() + "…") or None


def _refused(verdict: Verdict) -> Change:
    kind = "review" if verdict.outcome == "review" else "refused"
    quotes = tuple(secrets.mask(p.quote) for p in verdict.spans)
    return Change(kind, None, quotes, reason="; ".join(verdict.reasons))
