"""Refuses secrets: passwords, card numbers, tokens."""

from __future__ import annotations

from collections.abc import Iterator

from memchat.language.secrets import (
    PERSONAL,
    Secret,
    find_in_conversation,
    find_in_fact,
    find_secrets,
    reveals,
)
from memchat.language.text import fold, normal_value
from memchat.memory.gate.checks.consent import asked_to_keep
from memchat.memory.gate.types import Case


def check(case: Case) -> None:
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
