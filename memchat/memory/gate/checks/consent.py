"""What the user asked not to keep, did not mean, or must say yes to first."""

from __future__ import annotations

from collections.abc import Iterator

from memchat.language import markers
from memchat.language.sentences import next_sentence, sentence_around
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
        case.reviews.append("it is sensitive: health, debts, faith, politics or sex")
    if "unsure" in flags:
        case.signals.append("the model was not sure")
    if "asked" in flags and not asked_to_keep(case):
        case.change(flags=tuple(flag for flag in flags if flag != "asked"))


def asked_to_keep(case: Case) -> bool:
    """Whether the user asked for it to be remembered."""
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
