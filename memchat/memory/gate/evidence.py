"""The gate: whether the words a model cites prove what it proposes.

``judge`` accepts what the user's own sentence says, sends what only a reader can tell to review,
and refuses what nobody said. A wrong acceptance is worse than a review.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal
from zoneinfo import ZoneInfo

from memchat.errors import InputError
from memchat.memory.gate import claims, echo, foreign, markers, orders, pointing, sentences
from memchat.memory.gate.candidate import Candidate, Quote
from memchat.memory.gate.expiry import check_until
from memchat.memory.gate.keys import canonical, cardinality, normalise_key
from memchat.memory.gate.links import check_link
from memchat.memory.gate.past import check_past
from memchat.memory.gate.secrets import PERSONAL, betrays, find_secrets, mask, spoken
from memchat.memory.gate.text import (
    Span,
    content_words,
    find_span,
    find_spans,
    next_sentence,
    normal_value,
    sentence_around,
    visible,
)
from memchat.types import MemoryType, Role

VALUE_LIMIT = 280
_SAMPLE = 20_000
"""Characters of the session from which its languages are told."""
Outcome = Literal["accept", "review", "refuse"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as the model was shown it, unmarked."""

    id: str
    role: Role
    text: str
    said_at: datetime
    message_id: int


@dataclass(frozen=True, slots=True)
class KnownFact:
    """One stored fact as the model was shown it."""

    id: str
    memory_id: int
    memory_type: MemoryType
    key: str
    value: str
    many: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """A span that proves something; offsets count characters of the stored message."""

    message_id: int
    turn_id: str
    role: Role
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a candidate, why, and the candidate as corrected (masked where refused for a
    secret). ``until`` is the last day it holds."""

    outcome: Outcome
    reasons: tuple[str, ...]
    spans: tuple[Proof, ...]
    candidate: Candidate
    until: date | None = None
    starts: date | None = None
    """The first day it holds, where that lies ahead."""


@dataclass
class Findings:
    """What the checks of one candidate have found so far."""

    turns: Sequence[Turn]
    languages: tuple[str, ...]
    refusals: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proofs: list[tuple[Turn, Span]] = field(default_factory=list)
    ref: tuple[Turn, Span] | None = None

    def quoted(self) -> list[Turn]:
        """The messages quoted, each once."""
        return list({turn.id: turn for turn, _ in self.proofs}.values())

    def said(self) -> str:
        """The words of all quotes together."""
        return " \n".join(turn.text[a:b] for turn, span in self.proofs for a, b in span.pieces)


def judge(
    candidate: Candidate,
    turns: Sequence[Turn],
    known: Sequence[KnownFact],
    *,
    prompt_text: str,
    injected: Collection[str],
    zone: ZoneInfo | None = None,
) -> Verdict:
    """Decide on one candidate. ``prompt_text`` and ``injected`` are what the models were told and
    shown, which proves nothing; ``zone`` is where the user's days are counted (default UTC)."""
    sample = "\n".join(t.text[:_SAMPLE] for t in turns if t.role == "user")[:_SAMPLE]
    found = Findings(turns, sentences.languages_in(sample, 0, len(sample)))
    candidate = _shape(candidate, found)
    candidate = _locate_quotes(candidate, found, prompt_text, injected)
    until = None
    if found.proofs and not found.refusals:
        candidate = pointing.check_ref(candidate, found, injected)
        candidate = check_link(candidate, found, known)
        target = next((fact for fact in known if fact.id == candidate.to), None)
        sentences.check_sentences(candidate, found)
        check_past(candidate, found)
        claims.check_claim(candidate, found, target)
        candidate = _check_flags(candidate, found)
        candidate = echo.check_echo(candidate, found, known, injected)
        candidate, until = check_until(candidate, found, zone or ZoneInfo("UTC"))
    secret = _check_secrets(candidate, found)
    return _verdict(candidate, found, until, masked=secret)


def dedupe_session(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts of one session without slips of the tongue: of two for one key that holds one
    value the later message wins; where the later one is only in review, so is the earlier."""
    kept: list[Verdict] = []
    latest: dict[str, Verdict] = {}
    for verdict in sorted(verdicts, key=_said_order, reverse=True):
        item = verdict.candidate
        if verdict.outcome == "refuse" or item.relation == "ends" or item.many:
            kept.append(verdict)
            continue
        later = latest.setdefault(item.key, verdict)
        if later is verdict:
            kept.append(verdict)
        elif later.outcome == "review" and normal_value(later.candidate.value) != normal_value(
            item.value
        ):
            reason = "something else may have been said later in the session"
            kept.append(replace(verdict, outcome="review", reasons=(*verdict.reasons, reason)))
    order = {id(verdict.candidate): place for place, verdict in enumerate(verdicts)}
    return sorted(kept, key=lambda verdict: order[id(verdict.candidate)])


def _said_order(verdict: Verdict) -> tuple[int, int]:
    users = [(p.message_id, p.start) for p in verdict.spans if p.role == "user"]
    return max(users, default=(-1, -1))


def _shape(candidate: Candidate, found: Findings) -> Candidate:
    try:
        key = normalise_key(candidate.key)
    except InputError as error:
        letters = "".join(c for c in candidate.key if not c.isnumeric())
        try:
            key = normalise_key(letters)
            candidate = candidate.model_copy(update={"many": True})
        except InputError:
            key = "note"
            found.doubts.append(f"the key cannot be used: {error}")
    claims.check_key(key, found)
    key, many = canonical(key), candidate.many
    candidate = candidate.model_copy(update={"value": visible(candidate.value)})
    words = content_words(candidate.value)
    if words and words <= set(key.split("_")) and cardinality(key) is None:
        many = True
        rest = "_".join(part for part in key.split("_") if part not in words)
        key = canonical(rest) if rest else key
    table = cardinality(key)
    if len(candidate.value) > VALUE_LIMIT:
        found.doubts.append(f"the value is longer than {VALUE_LIMIT} characters")
    many = table == "many" if table else many
    return candidate.model_copy(update={"key": key, "many": many})


def _locate_quotes(
    candidate: Candidate, found: Findings, prompt_text: str, injected: Collection[str]
) -> Candidate:
    quotes: list[Quote] = []
    for quote in candidate.quotes:
        turn, span = _locate(quote, found.turns)
        if turn is None or span is None:
            found.notes.append(_why_missing(quote, found.turns, prompt_text, injected))
            continue
        every = find_spans(quote.text, turn.text)
        own = [s for s in every if not _foreign(turn.text, s)]
        if not own:
            found.notes.append("the words stand in pasted or quoted text")
            continue
        if own[0].start >= foreign.open_paste(turn.text):
            found.doubts.append("it stands behind something pasted, whose end is not marked")
        found.proofs.append((turn, own[0]))
        quotes.append(Quote(msg=turn.id, text=quote.text))
        if len(own) > 1:
            sentences.check_places(candidate, found, turn, own[1:])
    if not quotes:
        found.refusals += found.notes
        return candidate
    if found.notes:
        found.doubts += [f"one of its quotes does not count: {note}" for note in found.notes]
        found.notes.clear()
    return candidate.model_copy(update={"quotes": tuple(quotes)})


def _locate(quote: Quote, turns: Sequence[Turn]) -> tuple[Turn | None, Span | None]:
    users = [turn for turn in turns if turn.role == "user"]
    for turn in users:
        if turn.id == quote.msg and (span := find_span(quote.text, turn.text)):
            return turn, span
    others = [(turn, span) for turn in users if (span := find_span(quote.text, turn.text))]
    return others[0] if len(others) == 1 else (None, None)


def _why_missing(
    quote: Quote, turns: Sequence[Turn], prompt_text: str, injected: Collection[str]
) -> str:
    users = [t for t in turns if t.role == "user" and find_span(quote.text, t.text)]
    if users:
        return "the words stand in several messages and none of them is the one named"
    if any(find_span(quote.text, turn.text) for turn in turns):
        return "the words are the assistant's, not the user's"
    if find_span(quote.text, prompt_text):
        return "the words come from the instructions"
    if any(find_span(quote.text, memory) for memory in injected):
        return "the words only repeat a memory that was shown"
    return "the words are in no message of the user"


def _foreign(text: str, span: Span) -> bool:
    return any(
        a < end and start < b for a, b in foreign.foreign_spans(text) for start, end in span.pieces
    )


def _check_flags(candidate: Candidate, found: Findings) -> Candidate:
    flags = candidate.flags
    if "sensitive" in flags:
        found.doubts.append("the model marked it as sensitive")
    if "unsure" in flags:
        found.doubts.append("the model was not sure")
    if "asked" in flags and not markers.REMEMBER.search(claims.sentences_said(found)):
        flags = tuple(flag for flag in flags if flag != "asked")
    if any(map(_not_to_keep, _said_here(found))):
        found.refusals.append("the person asked that it is not remembered")
    _check_orders(candidate, found)
    return candidate.model_copy(update={"flags": flags})


def _said_here(found: Findings) -> Iterator[tuple[str, bool]]:
    """The sentence that each quote stands in, or only the quote's clause where it is its own, and
    then what stands around it; with whether the text is the quote's own."""
    alone = sentences.stands_alone(found)
    for turn, span in found.proofs:
        sentence = sentence_around(turn.text, span.start, span.end)
        if alone:
            yield turn.text[span.start : span.end], True
            yield turn.text[sentence.start : span.start], False
            yield turn.text[span.end : sentence.end], False
        else:
            yield sentence.text, True
        yield next_sentence(turn.text, sentence.end), False


def _not_to_keep(said: tuple[str, bool]) -> bool:
    """Whether words ask not to keep the quote. "Don't save me a seat" beside it asks for
    something else."""
    text, own = said
    return any(
        own or not markers.KEEP_ELSE.match(text, match.end())
        for match in markers.NOT_TO_KEEP.finditer(text)
    )


def _check_orders(candidate: Candidate, found: Findings) -> None:
    messages = [turn.text for turn in found.quoted()]
    texts = (candidate.value, claims.sentences_said(found))
    wish = candidate.type == "preference"
    if any(map(orders.override, (*texts, *messages))) or any(
        orders.order(text, wish=wish) for text in texts
    ):
        found.doubts.append("it reads as an instruction, not as a fact about the user")
    disguises = map(orders.disguised, (candidate.value, candidate.key, *messages))
    found.doubts += list(filter(None, disguises))[:1]


def _check_secrets(candidate: Candidate, found: Findings) -> bool:
    """Refuse secrets in value, key and quotes, also where the word that gives them away stands
    outside the quote. True where the candidate must be masked."""
    texts = [
        candidate.value,
        candidate.key,
        f"{candidate.key.replace('_', ' ')}: {candidate.value}",
    ]
    texts += [quote.text for quote in candidate.quotes]
    kinds = {secret.kind for text in texts for secret in find_secrets(text)}
    compact = normal_value(candidate.value)
    for number, secret in spoken([turn.text for turn in found.turns]):
        turn = found.turns[number]
        words = turn.text[secret.start : secret.end]
        in_quote = any(
            t.id == turn.id and a < secret.end and secret.start < b
            for t, span in found.proofs
            for a, b in span.pieces
        )
        if in_quote or normal_value(words) in compact:
            kinds.add(secret.kind)
        if normal_value(words) not in compact and betrays(candidate.value, words):
            kinds.add(f"part of a {secret.kind}")
    if not kinds:
        return False
    listed = ", ".join(sorted(kinds))
    asked = found.proofs and markers.REMEMBER.search(claims.sentences_said(found))
    if kinds <= PERSONAL and asked:
        found.doubts.append(f"it holds {listed}; keep it only if you want to")
        return False
    found.refusals.append(f"it holds {listed}, which is never remembered")
    return True


def _verdict(candidate: Candidate, found: Findings, until: date | None, *, masked: bool) -> Verdict:
    cited = [*found.proofs, *([found.ref] if found.ref else [])]
    spans = tuple(
        Proof(turn.message_id, turn.id, turn.role, a, b, turn.text[a:b])
        for turn, span in cited
        for a, b in span.pieces
    )
    if masked:
        shown = {quote.msg: Quote(msg=quote.msg, text="[secret]") for quote in candidate.quotes}
        hidden = {"value": mask(candidate.value), "quotes": tuple(shown.values())}
        if hidden["value"] == candidate.value:
            hidden["value"] = "[secret]"
        candidate = candidate.model_copy(update=hidden)
        spans = tuple(replace(span, quote="[secret]") for span in spans)
    outcome: Outcome = "refuse" if found.refusals else "review" if found.doubts else "accept"
    reasons = dict.fromkeys((*found.refusals, *found.doubts, *found.notes))
    return Verdict(outcome, tuple(reasons), spans, candidate, until)
