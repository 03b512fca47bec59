"""From the gate's verdicts to the store: what becomes a fact, what waits for the user in the inbox,
and what is listed as refused, without words that may not be kept."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memchat.db import Tx
from memchat.facts import proposals
from memchat.facts.memories import Fact, search_text
from memchat.facts.proposals import BLANKED, FORGOTTEN, REJECTED, WITHOUT_WORDS
from memchat.forget import tombstones
from memchat.forget.wording import FILLER
from memchat.language import secrets, sentences, text
from memchat.learn import gate, values
from memchat.learn.candidate import Candidate, KnownFact, Proof, Verdict
from memchat.learn.model_calls import NOT_LOOKED_AT
from memchat.types import Change, Memory, Proposal

if TYPE_CHECKING:
    from memchat.learn.session_reading import SessionReading

SAID_LATER = "something else was said later in the conversation"
READ_BEFORE = "its words were read by an earlier extraction"
HIDDEN = "it holds something that is never remembered"
_MASKED = re.compile(r"\[[a-z][a-z -]*\]")
"""A masked secret, as ``secrets.mask`` writes it."""


def resolve(reading: SessionReading) -> tuple[list[Fact], list[Change]]:
    """The facts to store, in the order said, and the changes that the other verdicts are reported
    as."""
    kept, _ = settled(reading.verdicts)
    changes = [_refused(v) for v in kept if v.outcome != "accept"]
    return [to_fact(v, reading) for v in kept if v.outcome == "accept"], changes


def needing_review(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that wait for the user: those in review, and accepted ones that a later one puts
    in doubt."""
    return [
        verdict for part in settled(verdicts) for verdict in part if verdict.outcome == "review"
    ]


def refused_verdicts(reading: SessionReading) -> list[Proposal]:
    """The proposals that are not kept, leaving out those that another proposal keeps in the same
    words."""
    left, gone = settled(reading.verdicts)
    found = [verdict for verdict in reading.verdicts if verdict.outcome == "refuse"]
    found += [replace(v, reasons=(SAID_LATER,)) for v in gone if v.outcome == "accept"]
    kept = {_words(v.candidate) for v in left if v.outcome != "refuse"}
    return [refusal_entry(v, reading.known) for v in found if _words(v.candidate) not in kept]


def _words(item: Candidate) -> tuple[str, str, bool]:
    return item.key, text.normal_value(item.value), item.relation == "ends"


def settled(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """What is left of the verdicts when all was said, and those whose place others took.

    Later windows speak of earlier proposals (p1, p2, …), none of them stored yet. What waited for
    the user and was then changed or ended is in neither list.
    """
    overtaken: list[Verdict] = []
    kept: list[Verdict] = []
    for verdict in verdicts:
        item = verdict.candidate
        if verdict.outcome == "accept" and (item.to or "").startswith("p"):
            earlier = verdicts[int((item.to or "p1")[1:]) - 1]
            if item.relation in ("updates", "ends"):
                overtaken.append(earlier)
                verdict = _in_place_of(earlier, verdict)
                if verdict.candidate.relation == "ends" and verdict.candidate.to is None:
                    continue  # what it ends was never stored
            elif item.relation == "same":
                if earlier.outcome == "accept":
                    continue
                # What it repeats is not kept, so it is a fact of its own.
                alone = item.model_copy(update={"to": None, "relation": "new"})
                verdict = replace(verdict, candidate=alone)
        kept.append(verdict)
    gone = {id(verdict): verdict for verdict in overtaken}
    standing = [verdict for verdict in kept if id(verdict) not in gone]
    left = gate.dedupe_session(standing)
    stays = {id(verdict.candidate) for verdict in left}
    slips = [verdict for verdict in standing if id(verdict.candidate) not in stays]
    return left, slips + [verdict for verdict in gone.values() if verdict.outcome == "accept"]


def _in_place_of(earlier: Verdict, later: Verdict) -> Verdict:
    """The later proposal, pointing at the stored fact that the earlier one pointed at."""
    was, item = earlier.candidate, later.candidate
    stored = was.to is not None and was.relation in ("same", "updates", "ends")
    relation = "ends" if item.relation == "ends" else "updates" if stored else was.relation
    return replace(later, candidate=item.model_copy(update={"to": was.to, "relation": relation}))


def to_fact(verdict: Verdict, reading: SessionReading) -> Fact:
    """An accepted verdict as a fact."""
    item = verdict.candidate
    said_at = max(reading.by_id[p.message_id].created_at for p in verdict.spans if p.role == "user")
    quote = next(p.quote for p in verdict.spans if p.role == "user")
    return Fact(
        said_at=said_at,
        search_text=search_text(item.key, item.value, said_at, reading.zone, quote, item.cues),
        created_by="import" if "import" in (reading.session.metadata or {}) else "auto",
        proofs=tuple((p.message_id, p.start, p.quote) for p in verdict.spans),
        detail=verdict.detail,
        around=None if verdict.bare else _around(verdict.spans[0], reading),
        asks=verdict.asks,
        **_proposed(verdict, reading.known) | {"key": item.key, "value": item.value},
    )


def inbox_entry(verdict: Verdict, reading: SessionReading) -> Proposal:
    """What the inbox keeps of a verdict that waits for the user's yes."""
    proof = verdict.spans[0] if verdict.spans else None
    fields = _proposed(verdict, reading.known)
    quoted = proof.quote if proof else verdict.candidate.quotes[0].text
    value, quote = secrets.mask(fields["value"]), secrets.mask(quoted)
    masked = (value, quote) != (fields["value"], quoted)
    return Proposal(
        reason="; ".join(verdict.reasons),
        quote=quote,
        masked=masked,
        # No model can be asked about words in which a secret was masked.
        status="unchecked" if NOT_LOOKED_AT in verdict.reasons and not masked else "pending",
        around=_around(proof, reading) if proof and not verdict.bare else None,
        **fields
        | _place(proof)
        | {"value": value, "sentence": None if masked else fields["sentence"]},
    )


def refusal_entry(verdict: Verdict, known: Mapping[str, KnownFact]) -> Proposal:
    """What is kept of a refused verdict: all of it, for a user who wants it anyway, or the reason
    alone where its words may not be kept."""
    private = [reason for reason in verdict.reasons if reason in WITHOUT_WORDS]
    if private or verdict.wordless:
        return Proposal("; ".join(private or verdict.reasons))
    proof = next((p for p in verdict.spans if p.role == "user"), None)
    fields = _proposed(verdict, known)
    words = [verdict.candidate.key, fields["value"], proof.quote if proof else ""]
    if any(_MASKED.search(part) or secrets.find_secrets(part) for part in words):
        return Proposal(HIDDEN)
    return Proposal(reason="; ".join(_reasons(verdict, known)), **fields | _place(proof))


def _place(proof: Proof | None) -> dict[str, Any]:
    if proof is None:
        return {}
    return {"message_id": proof.message_id, "start": proof.start, "end": proof.end}


def _proposed(verdict: Verdict, known: Mapping[str, KnownFact]) -> dict[str, Any]:
    """What is proposed, as keyword arguments for a fact or a proposal."""
    item = verdict.candidate
    target = known.get(item.to or "")
    of_this_session = target is not None and target.memory_id < 0
    # A change of what this session proposed has its key, by which it is found later.
    key = target.key if target is not None and of_this_session else item.key
    said = " \n".join(proof.quote for proof in verdict.spans)
    told = item.sentence if item.relation != "ends" else None
    return {
        "memory_type": item.type,
        "key": key,
        # An end without a value gets the value of what it ends.
        "value": item.value or (target.value if target is not None else ""),
        "sentence": values.true_sentence(told, key, item.value, said),
        "many": item.many,
        "relation": item.relation,
        "target_id": None if target is None or of_this_session else target.memory_id,
        "expires_at": verdict.until,
        "starts_at": verdict.starts,
        "cues": item.cues,
        "sensitive": "sensitive" in item.flags,
    }


def _reasons(verdict: Verdict, known: Mapping[str, KnownFact]) -> Sequence[str]:
    """The reasons as the user is told them: what was read before and is known is a repeat."""
    facts = [(fact.key, text.normal_value(fact.value), False) for fact in known.values()]
    repeats = READ_BEFORE in verdict.reasons and _words(verdict.candidate) in facts
    return [gate.KNOWN_ALREADY] if repeats else verdict.reasons


def _around(proof: Proof, reading: SessionReading) -> str | None:
    """The sentence around a quote; None where a secret stands in it."""
    turn = reading.by_id.get(proof.message_id)
    if turn is None:
        return None
    sentence = sentences.sentence_around(turn.content, proof.start, proof.end)
    for number, secret in secrets.find_in_conversation([one.content for one in reading.turns]):
        beside = secret.start < sentence.end and sentence.start < secret.end
        if reading.turns[number].id == turn.id and beside:
            return None
    return sentence.text


def known_fact(short_id: str, memory: Memory) -> KnownFact:
    """A stored memory as a fact that the model is shown."""
    kind, key, value = memory.memory_type, memory.key, memory.value
    return KnownFact(short_id, memory.id, kind, key, value, memory.many, memory.starts_at)


def _refused(verdict: Verdict) -> Change:
    kind = "review" if verdict.outcome == "review" else "refused"
    quotes = tuple(secrets.mask(p.quote) for p in verdict.spans)
    return Change(kind, None, quotes, reason="; ".join(verdict.reasons))


_SHORTEST_PART = 4
"""From how many characters on a word of a proposal is compared with parts of secrets."""


def add_refusals(
    tx: Tx, reading: SessionReading, rows: Iterable[Proposal], *, altered: Collection[int] = ()
) -> None:
    """Store what a session's reading refused. Of what was forgotten, or quoted from a message of
    ``altered``, only the reason is stored."""
    secret_words = _secrets(reading)
    written = [
        Proposal(HIDDEN)
        if _reveals_secret(row, secret_words)
        else _with_words_that_may_stay(tx, reading, row, altered)
        for row in rows
    ]
    proposals.add_refused(tx, tx.own, reading.session.id, written)


def _secrets(reading: SessionReading) -> list[tuple[int, int, int, str]]:
    """The secrets of the conversation: (message id, start, end, text)."""
    said = [turn.content for turn in reading.turns]
    told = [(*one.place, one.words) for one in reading.found_secrets]
    return told + [
        (reading.turns[number].id, found.start, found.end, said[number][found.start : found.end])
        for number, found in secrets.find_in_conversation(said)
    ]


def _reveals_secret(row: Proposal, secret_spans: Iterable[tuple[int, int, int, str]]) -> bool:
    """Whether a proposal holds a revealing part of a secret. Without the words around it such a
    part is not recognised by itself, and the reason may repeat it."""
    if row.key is None:
        return False
    words = f"{row.key} {row.value or ''}\n{row.sentence or ''}\n{row.reason}"
    plain = text.normal_value(words)
    pieces = [one for one in (row.value or "").casefold().split() if len(one) >= _SHORTEST_PART]
    for message_id, start, end, secret in secret_spans:
        quoted = row.message_id == message_id and row.start is not None and row.end is not None
        if quoted and (row.start or 0) < end and start < (row.end or 0):
            return True
        if text.normal_value(secret) in plain or secrets.reveals(words, secret):
            return True
        if any(piece in secret.casefold() for piece in pieces):
            return True
    return False


def _with_words_that_may_stay(
    tx: Tx, reading: SessionReading, row: Proposal, altered: Collection[int]
) -> Proposal:
    if row.key is None:
        return row
    if row.message_id in altered:
        return Proposal(BLANKED)
    if row.message_id is None and any(2 * FILLER in turn.content for turn in reading.turns):
        return Proposal(row.reason)  # nobody said it here, unless it is what was blanked
    said_at, proofs = reading.turns[-1].created_at, []
    turn = next((turn for turn in reading.turns if turn.id == row.message_id), None)
    if turn is not None:
        said_at = turn.created_at
        proofs.append((turn.id, turn.content[row.start : row.end]))
    stand = tombstones.match(tx, tx.ids, row.key, row.value or "", proofs, said_at)
    return Proposal(FORGOTTEN) if stand == "refuse" else row


def hold_for_review(tx: Tx, reading: SessionReading, altered: Collection[int]) -> list[Proposal]:
    """Put what waits for the user into the inbox. Gives what must not wait: what was forgotten, was
    quoted from a message of ``altered``, or got a no before."""
    refused = []
    for verdict in needing_review(reading.verdicts):
        # It may have been forgotten since the model was asked.
        still = reading.refuse_if_forgotten(tx, verdict)
        if any(proof.message_id in altered for proof in verdict.spans):
            still = replace(still, outcome="refuse", reasons=(BLANKED,))
        if still.outcome == "review":
            entry = inbox_entry(verdict, reading)
            if proposals.add(tx, tx.own, entry) == "rejected":
                still = replace(still, outcome="refuse", reasons=(REJECTED,))
        if still.outcome != "review":
            refused.append(refusal_entry(still, reading.known))
    return refused
