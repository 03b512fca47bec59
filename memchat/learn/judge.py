"""The gate: checks by code that accept or refuse a proposed memory, or leave it to the user.

A quote must stand in a message and be the user's own words, and the numbers and names of the value
must have been said. Secrets, instructions to the assistant, repeats, and what the user asked not to
keep are looked for. What only a reader can tell is left to the second look of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memchat.facts.keys import canonical, cardinality
from memchat.language import lexicon
from memchat.language.secrets import (
    PERSONAL,
    Secret,
    find_in_conversation,
    find_in_fact,
    find_secrets,
    reveals,
)
from memchat.language.sentences import next_sentence, sentence_around
from memchat.language.text import content_words, fold, holds_word, normal_value
from memchat.learn import dates, instructions, quotes, values
from memchat.learn.candidate import Candidate
from memchat.learn.verdict import Case, KnownFact, Proof, Turn, Verdict

NOT_KEPT = "you asked that it is not remembered"


def check_consent(case: Case) -> None:
    """Flags of the model, and the wish not to keep it."""
    flags = case.candidate.flags
    if any(map(_not_to_keep, _around(case))):
        case.refusals.append(NOT_KEPT)
        case.wordless = True
    if "not_meant" in flags:
        case.refusals.append("it was not meant: play, irony, or taken back")
    if "sensitive" in flags:
        case.reviews.append("it is sensitive: health, debts, faith, politics or sex")
    if "asked" in flags and not asked_to_keep(case):
        case.change(flags=tuple(flag for flag in flags if flag != "asked"))


def asked_to_keep(case: Case) -> bool:
    """Whether the user asked for it to be remembered."""
    return lexicon.REMEMBER.search(" \n".join(case.sentences())) is not None


def _around(case: Case) -> Iterator[tuple[str, bool]]:
    """The sentence of each quote and the one behind it, and whether it is the quote's own."""
    for turn, span in case.proofs:
        sentence = sentence_around(turn.text, span.start, span.end)
        yield sentence.text, True
        yield next_sentence(turn.text, sentence.end), False


def _not_to_keep(said: tuple[str, bool]) -> bool:
    """Whether words ask not to keep the quote. "Don't save me a seat" beside it asks for
    something else."""
    text, own = said
    return any(
        own or not lexicon.KEEP_ELSE.match(text, match.end())
        for match in lexicon.NOT_TO_KEEP.finditer(text)
    )


def check_secrets(case: Case) -> None:
    """Refuse secrets in value, key and quotes, also where the word that marks them stands outside
    the quote. Addresses and phone numbers are kept if the user asked for it and says yes."""
    _drop_revealing_cues(case)
    kinds = _kinds(case)
    if not kinds:
        return
    listed = ", ".join(sorted(kinds))
    if kinds <= PERSONAL and case.proofs and asked_to_keep(case):
        case.reviews.append(f"it holds {listed}; keep it only if you want to")
        return
    case.refusals.append(f"it holds {listed}, which is never remembered")
    case.wordless = True


def _drop_revealing_cues(case: Case) -> None:
    """Drop cues that hold a secret said anywhere in the conversation; cues have no quote."""
    item = case.candidate
    hidden = {words for words, _secret in _own(case)}
    turns = [turn.text for turn in case.turns]
    hidden |= {turns[number][s.start : s.end] for number, s in find_in_conversation(turns)}
    folded = [words for words in map(normal_value, hidden) if words]
    revealing = {
        cue
        for cue in item.cues
        if any(fold(cue).text in words or words in fold(cue).text for words in folded)
    }
    if revealing:
        case.change(cues=tuple(cue for cue in item.cues if cue not in revealing))


def _own(case: Case) -> Iterator[tuple[str, Secret]]:
    """The secrets of the key, the quotes and the value, with their text."""
    item = case.candidate
    for text in (item.key, *(quote.text for quote in item.quotes)):
        yield from ((text[s.start : s.end], s) for s in find_secrets(text))
    yield from find_in_fact(item.key, item.value)


def _kinds(case: Case) -> set[str]:
    item = case.candidate
    kinds = {secret.kind for _words, secret in _own(case)}
    compact = normal_value(item.value)
    looked_at = set()
    for number, secret in find_in_conversation([turn.text for turn in case.turns]):
        turn = case.turns[number]
        words = turn.text[secret.start : secret.end]
        in_quote = any(
            t.id == turn.id and a < secret.end and secret.start < b
            for t, span in case.proofs
            for a, b in span.pieces
        )
        if (in_quote, secret.kind, words) in looked_at:
            continue  # a list may say the same address a thousand times
        looked_at.add((in_quote, secret.kind, words))
        if in_quote or normal_value(words) in compact:
            kinds.add(secret.kind)
        if normal_value(words) not in compact and reveals(item.value, words):
            kinds.add(f"part of a {secret.kind}")
    return kinds


def check_relation(case: Case) -> None:
    """Check the fact that a candidate points at: a change applies to a fact that was shown."""
    target, item = case.target, case.candidate
    if target is None:
        case.change(to=None, relation="ends" if item.relation == "ends" else "new")
        return
    if canonical(target.key) == item.key and item.key != target.key:
        case.change(key=target.key)
    if item.relation == "new":
        case.change(to=None)
    elif item.relation == "same":
        _check_same(case, target)
    elif item.relation == "ends":
        _check_end(case, target)
    if case.candidate.relation == "updates":
        _check_update(case, target)


def _check_same(case: Case, target: KnownFact) -> None:
    """What differs in a number, name or negation is not the same: in a slot that holds one value
    it takes the other's place, elsewhere both hold."""
    item = case.candidate
    difference = values.difference(item.value, target.value)
    if not values.is_negated(f"{item.value} {target.value}"):
        difference = difference or values.negation_in(case.sentences(), case.languages)
    one_slot = item.key == target.key and not target.many
    if one_slot and (difference or values.words_differ(item.value, target.value)):
        case.change(relation="updates")
    elif difference is None:
        case.change(key=target.key, many=target.many)
    else:
        case.change(relation="beside")


def _check_update(case: Case, target: KnownFact) -> None:
    item, said = case.candidate, " \n".join(case.sentences())
    stands_apart = target.many or canonical(target.key) != canonical(item.key)
    difference = values.difference(item.value, target.value) if stands_apart else None
    changed = values.says_it_changed(said, target.value, case.languages)
    if difference and not changed and _near(item.value, target.value):
        # Two trips to one town, two sisters: nearly the same words, and both are true.
        case.reviews.append(f"it may be another one beside it: the {difference} differs")
    case.change(key=target.key, many=target.many)


def _near(one: str, other: str) -> bool:
    words, others = content_words(one), content_words(other)
    shared = sum(holds_word(other, word) for word in words)
    opposed = values.is_negated(one) != values.is_negated(other)
    return bool(shared) and (opposed or 2 * shared >= max(len(words), len(others)))


def _check_end(case: Case, target: KnownFact) -> None:
    words = content_words(target.value) | content_words(target.key.replace("_", " "))
    said = " \n".join(case.sentences())
    if not values.says_it_ended(said, target.value, case.languages):
        near = any(holds_word(said, word) for word in words)
        changed = values.says_it_changed(said, target.value, case.languages)
        one = cardinality(target.key) == "one"
        if values.names_another(said, target.value) and (near or changed or one):
            case.reviews.append(
                "the words speak of another number or name than what they would end"
            )
        elif near and values.is_negated(said) and not changed:
            case.reviews.append("the words deny something else than what they would end")
    case.change(key=target.key, many=target.many)


_SAMPLE = 20_000
"""How many characters of the session are read to tell its languages."""

Check = Callable[[Case], None]
CHECKS: tuple[Check, ...] = (
    values.check_key,
    quotes.check_quotes,
    values.check_references,
    check_relation,
    values.check_value,
    check_consent,
    instructions.check_instructions,
    quotes.check_repeats,
    dates.check_expiry,
    dates.check_start,
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
    languages = dates.languages_in(sample, 0, len(sample))
    case = Case(candidate, turns, known, prompt_text, injected, zone or ZoneInfo("UTC"), languages)
    for check in CHECKS:
        if not case.refusals:
            check(case)
    check_secrets(case)
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
        if verdict.asks and any(_is_rival(verdict, other) for other in verdicts):
            kept.append(replace(verdict, outcome="review", reasons=(verdict.asks,)))
            continue
        later = latest.setdefault(item.key, verdict)
        if later is verdict:
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


def _is_rival(one: Verdict, other: Verdict) -> bool:
    """Whether two proposals are two values for one slot."""
    same_slot = one.candidate.key == other.candidate.key
    return same_slot and other.outcome == "accept" and other.candidate is not one.candidate


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
    remarks = [] if case.wordless else [*case.reviews, *case.notes]
    verdict = Verdict(
        "refuse" if case.refusals else "review" if case.reviews else "accept",
        tuple(dict.fromkeys((*case.refusals, *remarks))),
        spans,
        case.candidate,
        case.until,
        case.starts,
        asks=case.asks,
    )
    return verdict.without_words() if case.wordless else verdict
