"""From judged candidates to facts: what is kept, what waits for a person, what is dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memchat.memory.consolidate import Fact, search_text
from memchat.memory.gate import evidence, secrets, text
from memchat.memory.gate.evidence import KnownFact, Verdict
from memchat.store.inbox import Held
from memchat.types import Change, Memory, Message


def settle(
    verdicts: Sequence[Verdict],
    as_fact: Callable[[Verdict], Fact],
) -> tuple[list[Fact], list[Change]]:
    """The facts to put in, as they were said, and what happened to the other proposals."""
    kept = evidence.dedupe_session(_without_overtaken(verdicts))
    changes = [_refused(v) for v in kept if v.outcome != "accept"]
    return [as_fact(v) for v in kept if v.outcome == "accept"], changes


def _without_overtaken(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Resolve what later windows said of earlier proposals (p1, p2, …), none of them stored yet."""
    overtaken: set[int] = set()
    kept: list[Verdict] = []
    for verdict in verdicts:
        item = verdict.candidate
        if verdict.outcome != "accept" or not (item.to or "").startswith("p"):
            kept.append(verdict)
            continue
        earlier = verdicts[int((item.to or "p1")[1:]) - 1]
        if item.relation in ("updates", "ends"):
            overtaken.add(id(earlier))
            verdict = _in_place_of(earlier, verdict)
        if verdict.candidate.relation != "same" and (
            verdict.candidate.relation != "ends" or verdict.candidate.to is not None
        ):
            kept.append(verdict)
    return [verdict for verdict in kept if id(verdict) not in overtaken]


def _in_place_of(earlier: Verdict, later: Verdict) -> Verdict:
    """The later proposal, speaking of the stored fact that the one it overtakes spoke of."""
    was, item = earlier.candidate, later.candidate
    relation = "ends" if item.relation == "ends" else was.relation
    return replace(later, candidate=item.model_copy(update={"to": was.to, "relation": relation}))


def to_fact(
    verdict: Verdict,
    turns: Mapping[int, Message],
    known: Mapping[str, KnownFact],
    user: str,
    zone: ZoneInfo,
) -> Fact:
    """An accepted candidate, ready for the store. ``turns`` by message id."""
    item = verdict.candidate
    proofs = [(p.message_id, p.start, p.quote) for p in verdict.spans]
    said_at = max(turns[p.message_id].created_at for p in verdict.spans if p.role == "user")
    target = known.get(item.to) if item.to else None
    quote = next(p.quote for p in verdict.spans if p.role == "user")
    return Fact(
        memory_type=item.type,
        key=item.key,
        value=item.value,
        said_at=said_at,
        search_text=search_text(item.type, item.key, item.value, user, said_at, zone, quote),
        created_by="auto",
        many=item.many,
        expires_at=verdict.until,
        relation=item.relation,
        target_id=target.memory_id if target is not None and target.memory_id > 0 else None,
        proofs=tuple(proofs),
    )


def held(verdict: Verdict) -> Held:
    """What the inbox keeps of a proposal that needs a person's yes."""
    item = verdict.candidate
    proof = verdict.spans[0] if verdict.spans else None
    words = item.value, proof.quote if proof else item.quotes[0].text
    value, quote = map(secrets.mask, words)
    return Held(
        reason="; ".join(verdict.reasons),
        message_id=proof.message_id if proof else None,
        memory_type=item.type,
        key=item.key,
        value=value,
        quote=quote,
        start=proof.start if proof else None,
        expires_at=verdict.until,
        many=item.many,
        masked=(value, quote) != words,
    )


def honest(words: str | None, said: Sequence[str]) -> str | None:
    """A title or summary, unless it holds a number or name that nobody said; secrets masked."""
    if not words:
        return None
    told = (said[number][s.start : s.end] for number, s in secrets.spoken(said))
    if any(secrets.betrays(words, secret) for secret in told):
        return None  # without the word beside it, it is not recognised as a secret
    transcript = " ".join(said)
    foreign = text.numbers(words) - text.numbers(transcript)
    plain = text.fold(transcript).text
    foreign |= {name for name in text.names(words) if text.fold(name).text not in plain}
    return None if foreign else secrets.mask(words)


def known_fact(short_id: str, memory: Memory) -> KnownFact:
    """A stored memory as the model is shown it."""
    return KnownFact(short_id, memory.id, memory.memory_type, memory.key, memory.value, memory.many)


def fallback_title(turns: Sequence[Message], limit: int = 60) -> str | None:
    """The first words a person said, where the model gave no title."""
    first = next((turn.content for turn in turns if turn.role == "user"), "")
    words = secrets.mask(" ".join(first.split()))
    return (words if len(words) <= limit else words[: limit - 1].rstrip() + "…") or None


def _refused(verdict: Verdict) -> Change:
    kind = "review" if verdict.outcome == "review" else "refused"
    quotes = tuple(secrets.mask(p.quote) for p in verdict.spans)
    return Change(kind, None, quotes, reason="; ".join(verdict.reasons))
