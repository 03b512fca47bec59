"""What is not kept, or not without a person's yes: secrets, what they asked not to keep, what was
not meant, and what is sensitive."""

from __future__ import annotations

from collections.abc import Iterator

from memchat.language import markers
from memchat.language.secrets import (
    PERSONAL,
    Secret,
    find_in_conversation,
    find_in_fact,
    find_secrets,
    reveals,
)
from memchat.language.sentences import next_sentence, sentence_around
from memchat.language.text import fold, normal_value
from memchat.memory.gate.types import Case

NOT_KEPT = "you asked that it is not remembered"


def check(case: Case) -> None:
    """Flags of the model, and the wish not to keep it."""
    flags = case.candidate.flags
    if any(map(_not_to_keep, _around(case))):
        case.refusals.append(NOT_KEPT)
        case.wordless = True
    if "not_meant" in flags:
        case.refusals.append("it was not meant: play, irony, or taken back")
    if "sensitive" in flags:
        case.holds.append("it is sensitive: health, debts, faith, politics or sex")
    if "unsure" in flags:
        case.signals.append("the model was not sure")
    if "asked" in flags and not _asked(case):
        case.change(flags=tuple(flag for flag in flags if flag != "asked"))


def check_secrets(case: Case) -> None:
    """Refuse secrets in value, key and quotes, also where the word that gives them away stands
    outside the quote. What reaches a person is kept where they asked for it and say yes."""
    _drop_telling_cues(case)
    kinds = _kinds(case)
    if not kinds:
        return
    listed = ", ".join(sorted(kinds))
    if kinds <= PERSONAL and case.proofs and _asked(case):
        case.holds.append(f"it holds {listed}; keep it only if you want to")
        return
    case.refusals.append(f"it holds {listed}, which is never remembered")
    case.wordless = True


def _asked(case: Case) -> bool:
    return markers.REMEMBER.search(" \n".join(case.sentences())) is not None


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
        own or not markers.KEEP_ELSE.match(text, match.end())
        for match in markers.NOT_TO_KEEP.finditer(text)
    )


def _drop_telling_cues(case: Case) -> None:
    """Cues come with no quote: a secret said anywhere in the conversation may stand in them."""
    item = case.candidate
    hidden = {words for words, _secret in _own(case)}
    turns = [turn.text for turn in case.turns]
    hidden |= {turns[number][s.start : s.end] for number, s in find_in_conversation(turns)}
    folded = [words for words in map(normal_value, hidden) if words]
    telling = {
        cue
        for cue in item.cues
        if any(fold(cue).text in words or words in fold(cue).text for words in folded)
    }
    if telling:
        case.change(cues=tuple(cue for cue in item.cues if cue not in telling))


def _own(case: Case) -> Iterator[tuple[str, Secret]]:
    """The secrets of the key, the quotes and the value, each with its words."""
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
