"""What word patterns can say about meaning: each a signal that a reader should look, never more.

A signal holds or refuses nothing by itself. The lists are data, one file a language; a language
without lists gives a signal of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memchat.language.markers import find_markers, languages_of, opens_with
from memchat.language.sentences import Span, next_sentence, sentence_around
from memchat.language.text import fold, holds_word
from memchat.memory.gate import quoted_text
from memchat.memory.gate.checks.known_fact_relation import NO_WORD_OF_CHANGE
from memchat.memory.gate.types import Case, Turn

_AROUND = 400
"""Characters beside a span from which its language is recognised."""
_ENGLISH_I = re.compile(r"(?<!\w)I (?=[a-z])")
_CLAUSE = re.compile(
    r"[,;:.!?、，。！？]|\s[-–—]\s|(?<!\w)(?:and|but|und|aber|et|mais|y|pero|e|ma|mas|en|maar|ve|ama|и|но|а)(?!\w)"
)
_LABEL = re.compile(r"^[^\w\n]*(?:\w+ )?(\w+) ?: *", re.MULTILINE)
_DENYING_SLOT = re.compile(
    r"dislike|avoid|hate|aversion|allerg|intoleran|restrict|former|free|past|previous|quit|sober|vegan|vegetari"
)
"""Slots that deny something by their name: a negation in the quote belongs there."""
_BESIDE = ("negation", "supposition", "reported", "question", "withdrawn", "fiction")
_LINES = 3
_NEAR = 4_000
"""Characters beside a quote, and of the next message, in which something may stand beside it."""


@dataclass(frozen=True, slots=True)
class QuotePlace:
    """A quote where it stands, all folded."""

    turn: Turn
    span: Span
    clause: str
    sentence: str
    next: str
    languages: tuple[str, ...]


def check(case: Case) -> None:
    """Look for every signal, in each place where a quote stands."""
    value = f"{case.candidate.key.replace('_', ' ')} {fold(case.candidate.value).text}"
    for place in _places(case):
        case.signals += _in_words(case, place, value)
        case.signals += _in_surroundings(case, place)


def has_marker_nearby(case: Case) -> bool:
    """Whether a marker stands in the quoted messages, near the quote in a very long one, or in the
    next message."""
    texts = [turn.text[max(0, span.start - _NEAR) : span.end + _NEAR] for turn, span in case.proofs]
    texts += [t.text[:_NEAR] for turn in case.quoted_turns() for t in _later(case, turn)[:1]]
    for text in dict.fromkeys(texts):
        languages = languages_in(text, 0, len(text)) or case.languages
        if "?" in text or any(find_markers(kind, fold(text).text, languages) for kind in _BESIDE):
            return True
    return NO_WORD_OF_CHANGE in case.signals


def languages_in(text: str, start: int, end: int) -> tuple[str, ...]:
    """The languages of the words around a span, likeliest first; empty where no list is known."""
    window = text[max(0, start - _AROUND) : end + _AROUND]
    found = languages_of(fold(window).text)
    # "I adore jazz." holds no other function word, and folding takes the capital away.
    return found or (("en",) if _ENGLISH_I.search(window) else ())


def _places(case: Case) -> Iterator[QuotePlace]:
    for turn, span in case.proofs:
        around = sentence_around(turn.text, span.start, span.end)
        breaks = [m.span() for m in _CLAUSE.finditer(turn.text, around.start, around.end)]
        start = max((end for _, end in breaks if end <= span.start), default=around.start)
        end = min((at for at, _ in breaks if at >= span.end), default=around.end)
        yield QuotePlace(
            turn,
            span,
            fold(turn.text[start:end]).text,
            fold(around.text).text,
            fold(next_sentence(turn.text, around.end)).text,
            languages_in(turn.text, span.start, span.end) or case.languages,
        )


def _in_words(case: Case, place: QuotePlace, value: str) -> Iterator[str]:
    """Signals in the clause and the sentence of the quote."""
    if case.candidate.relation != "ends":
        yield from _denial(case, place, value)
    if find_markers("supposition", place.sentence, place.languages) and not find_markers(
        "supposition", value, place.languages
    ):
        yield "it may be an if, a wish or a guess"
    if place.sentence.rstrip(" \"')*_").endswith(("?", "؟")) or opens_with(
        "question", place.sentence, place.languages
    ):
        yield "it stands in a question"
    for kind in ("reported", "somebody_else"):
        people = [
            w for m in find_markers(kind, place.sentence, place.languages) for w in m[0].split()
        ]
        if people and not any(holds_word(value, word) for word in people):
            yield "it may be about somebody else, or what they say"
            break
    if not place.languages:
        yield "its language is not known well enough to check it"
    if len(re.findall(r"\w+", place.span.text)) < 2 and not case.ref and _is_part(place):
        yield "it rests on a single word"


def _denial(case: Case, place: QuotePlace, value: str) -> Iterator[str]:
    denied = bool(find_markers("negation", place.clause, place.languages))
    carried = bool(find_markers("negation", value, place.languages)) or _DENYING_SLOT.search(value)
    if denied and not carried:
        yield "a “not” stands beside it, which may belong to it"
    elif find_markers(
        "negation", fold(case.candidate.value).text, place.languages
    ) and not find_markers("negation", place.sentence, place.languages):
        yield "it denies something, and your words do not"


def _in_surroundings(case: Case, place: QuotePlace) -> Iterator[str]:
    """Signals in the message, the one before and the next."""
    text = place.turn.text
    if any(
        a < place.span.start and place.span.end < b
        for a, b in quoted_text.quotation_mark_spans(text)
    ):
        yield "it stands in quotation marks"
    upto = fold(text[: place.span.end]).text
    played = [upto, *(fold(t.text).text for t in case.turns if _before(t, place.turn))]
    if any(find_markers("fiction", said, place.languages) for said in played):
        yield "it may be part of a game or of a text to be written"
    following = [place.next, *(fold(t.text).text for t in _later(case, place.turn)[:1])]
    if any(opens_with("withdrawn", said, place.languages) for said in following) or (
        find_markers("withdrawn", place.sentence, place.languages)
    ):
        yield "what follows may take it back"
    if quoted_text.mentions_a_text(text) or any(
        quoted_text.announces_a_text(t.text) for t in case.turns if _before(t, place.turn)
    ):
        yield "the message speaks of a text, which may be somebody else's"
    if text.count("\n") >= _LINES - 1:
        yield "the message has several lines, as pasted text has"
    label = _LABEL.search(text, 0, place.span.start)
    if label is not None and len(label[0]) <= 20:
        yield "a name and a colon stand before it"
    if case.ref is None and _answers(case, place):
        yield "it answers a question, so it may mean something else"


def _answers(case: Case, place: QuotePlace) -> bool:
    before = [t for t in case.turns if t.message_id < place.turn.message_id][-1:]
    return bool(
        before
        and before[0].role == "assistant"
        and "?" in fold(before[0].text).text
        and opens_with("acceptance", place.sentence, place.languages)
        and not find_markers("first_person", place.sentence, place.languages)
    )


def _is_part(place: QuotePlace) -> bool:
    quoted = set(re.findall(r"\w+", fold(place.span.text).text))
    return bool(set(re.findall(r"\w+", place.sentence)) - quoted)


def _before(turn: Turn, other: Turn) -> bool:
    return turn.role == "user" and turn.message_id < other.message_id


def _later(case: Case, turn: Turn) -> list[Turn]:
    return [t for t in case.turns if t.role == "user" and t.message_id > turn.message_id]
