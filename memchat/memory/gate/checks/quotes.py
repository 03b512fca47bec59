"""Checks that the quotes stand in the user's messages, in their own words."""

from __future__ import annotations

from collections.abc import Sequence

from memchat.language.quotes import find_span, find_spans
from memchat.language.sentences import Span
from memchat.memory.extraction.candidate import Quote
from memchat.memory.gate import quoted_text
from memchat.memory.gate.types import Case, Turn


def check(case: Case) -> None:
    """Find each quote. Words of the assistant, the instructions, shown memories or pasted text
    prove nothing; after a paste whose end is not marked the user decides."""
    quotes: list[Quote] = []
    for quote in case.candidate.quotes:
        turn, span = _locate(quote, case.turns)
        if turn is None or span is None:
            case.notes.append(_why_missing(quote, case))
            continue
        own = [s for s in find_spans(quote.text, turn.text) if not _is_quoted(turn.text, s)]
        if not own:
            case.notes.append("the words stand in pasted or quoted text")
            continue
        if own[0].start >= quoted_text.unmarked_paste_start(turn.text):
            case.reviews.append("it stands behind something pasted, whose end is not marked")
        case.proofs.append((turn, own[0]))
        quotes.append(Quote(msg=turn.id, text=quote.text))
    if not quotes:
        case.refusals += dict.fromkeys(case.notes)
        return
    if case.notes:
        case.signals += [f"part of what it rests on does not count: {note}" for note in case.notes]
        case.notes.clear()
    case.change(quotes=tuple(quotes))


def _locate(quote: Quote, turns: Sequence[Turn]) -> tuple[Turn | None, Span | None]:
    users = [turn for turn in turns if turn.role == "user"]
    for turn in users:
        if turn.id == quote.msg and (span := find_span(quote.text, turn.text)):
            return turn, span
    others = [(turn, span) for turn in users if (span := find_span(quote.text, turn.text))]
    return others[0] if len(others) == 1 else (None, None)


def _why_missing(quote: Quote, case: Case) -> str:
    if any(t.role == "user" and find_span(quote.text, t.text) for t in case.turns):
        return "the words stand in several messages and none of them is the one named"
    if any(find_span(quote.text, turn.text) for turn in case.turns):
        return "the words are the assistant's, not yours"
    if find_span(quote.text, case.prompt_text):
        return "the words come from the instructions"
    if any(find_span(quote.text, memory) for memory in case.injected):
        return "the words only repeat a memory that was shown"
    return "the words are in no message of yours"


def _is_quoted(text: str, span: Span) -> bool:
    return any(quoted_text.is_quoted(text, start, end) for start, end in span.pieces)
