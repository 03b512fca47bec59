"""What word patterns can say about meaning: each a signal that a reader should look, never more.

A signal holds or refuses nothing by itself. The lists are data, one file a language; a language
without lists gives a signal of its own.

The clause around a time phrase, and what it is about.

Signals that something holds only for a while, or was so once and is no longer.

What a candidate says about a fact already stored: same, updates, ends, beside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from memchat.facts.keys import canonical, cardinality
from memchat.language import calendar, lexicon
from memchat.language.lexicon import find_markers, languages_of, opens_with
from memchat.language.sentences import Span, next_sentence, sentence_around
from memchat.language.text import content_words, fold, holds_word
from memchat.learn import values, verdict
from memchat.learn.candidate import Candidate
from memchat.learn.verdict import Case, KnownFact, Turn

if TYPE_CHECKING:
    from memchat.learn.verdict import Case

BREAK = re.compile(
    r"[;:、，]|,(?!\d)|\s[-–—]\s|(?<!\w)(?:and|but|while|because|und|aber|weil|et|mais|y|pero|e|ma|mas|maar"
    r"|en(?= (?:ik|mijn|we|het|de)\b))(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """The folded text around a phrase; ``rest`` is the clause without the phrase."""

    sentence: Span
    phrase: str
    rest: str

    def about(self, candidate: Candidate) -> bool:
        """Whether the clause holds a word of the candidate's value or key."""
        words = content_words(candidate.value) | content_words(candidate.key.replace("_", " "))
        return any(
            holds_word(self.rest, word) for word in words if not holds_word(self.phrase, word)
        )

    @property
    def has_own_subject(self) -> bool:
        """Whether the clause says something by itself: not "it lasts", "staying", "only"."""
        return len(content_words(self.rest)) > 1


def clause_around(text: str, phrase: Span) -> Clause:
    """The clause around a phrase of a message."""
    sentence = sentence_around(text, phrase.start, phrase.end)
    start, end = clause_edges(text, phrase.start, phrase.end)
    rest = f"{text[start : phrase.start]} {text[phrase.end : end]}"
    return Clause(sentence, fold(phrase.text).text, fold(rest).text)


def clause_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """A span widened to the clause breaks around it in its sentence."""
    sentence = sentence_around(text, start, end)
    breaks = _breaks(text, sentence.start, sentence.end)
    left = max((b for _, b in breaks if b <= start), default=sentence.start)
    right = min((a for a, _ in breaks if a >= end), default=sentence.end)
    return left, right


@lru_cache(maxsize=512)
def _breaks(text: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
    return tuple(m.span() for m in BREAK.finditer(text, start, end))


NO_WORD_OF_CHANGE = "no word says that something has changed"
_PARTS = re.compile(r"\s*(?:[,;/&+、，]|(?<!\w)(?:and|und|et|y|e|en|ve|и|と|和)(?!\w))\s*")


def check_relation(case: Case) -> None:
    """Check the fact that a candidate points at. A change applies to a fact that was shown; what
    no plain word of change stands for is a signal."""
    target = case.target
    if target is None:
        _without_target(case)
        return
    item = case.candidate
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


def _without_target(case: Case) -> None:
    item = case.candidate
    if item.relation == "ends":
        case.signals.append("it may end something that is remembered, and it is not clear what")
        case.change(to=None)
        return
    if item.to is not None:
        case.signals.append("it may change something that is remembered, and it is not clear what")
    case.change(to=None, relation="new")


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
        case.signals.append(f"it may repeat what is remembered, but the {difference} differs")
        case.change(relation="beside")


def _check_update(case: Case, target: KnownFact) -> None:
    item, said = case.candidate, " \n".join(case.sentences())
    other_slot = canonical(target.key) != canonical(item.key)
    if other_slot:
        case.signals.append(f"it may replace what is remembered as {target.key.replace('_', ' ')}")
    changed = values.says_it_changed(said, target.value, case.languages)
    if not changed:
        case.signals.append(NO_WORD_OF_CHANGE)
    if values.says_it_is_added(said):
        case.signals.append("a word says that it comes beside what there is")
    if len(value_parts(target.value)) > 1:
        case.signals.append("what is remembered has several parts, and it may change only one")
    stands_apart = other_slot or target.many
    difference = values.difference(item.value, target.value) if stands_apart else None
    if difference and not changed and _near(item.value, target.value):
        # Two trips to one town, two sisters: nearly the same words, and both are true.
        case.reviews.append(f"it may be another one beside it: the {difference} differs")
    case.change(key=target.key, many=target.many)


def _near(one: str, other: str) -> bool:
    words, others = content_words(one), content_words(other)
    shared = sum(holds_word(other, word) for word in words)
    opposed = values.is_negated(one) != values.is_negated(other)
    return bool(shared) and (opposed or 2 * shared >= max(len(words), len(others)))


def value_parts(value: str) -> list[str]:
    """The parts of a value that lists several."""
    return [part for part in _PARTS.split(value) if part.strip()]


def _check_end(case: Case, target: KnownFact) -> None:
    words = content_words(target.value) | content_words(target.key.replace("_", " "))
    if not any(holds_word(case.own_message_words(), word) for word in words):
        case.signals.append("the words do not say what is over")
    said = " \n".join(case.sentences())
    if not values.says_it_ended(said, target.value, case.languages):
        case.signals.append("no word says that it is over")
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


def check_ambiguity(case: Case) -> None:
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
        a < place.span.start and place.span.end < b for a, b in verdict.quotation_mark_spans(text)
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
    if verdict.mentions_a_text(text) or any(
        verdict.announces_a_text(t.text) for t in case.turns if _before(t, place.turn)
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


_PHRASE = 40
"""Characters after "until" that say until when."""
_FROM = re.compile(rf"(?<!\w)(?:{calendar.words_for('from')})\s*$")
_TRUE_FOR_EVER = frozenset(("birthday",))


def check_temporary(case: Case) -> None:
    """A signal where the words speak of a limited time: "this week", "until I finish school"."""
    if case.candidate.relation == "ends":
        return
    for text, languages in quoted_clauses(case):
        found = lexicon.find_markers("passing", text, languages)
        if any(_passes(text, m.start()) for m in found):
            case.signals.append("it holds for a while only, and no end is given")
            return


def check_past(case: Case) -> None:
    """A signal where the words of a key that holds one value speak of the past only."""
    candidate = case.candidate
    one = cardinality(candidate.key) == "one" and candidate.key not in _TRUE_FOR_EVER
    if not one or candidate.relation == "ends" or case.ref:
        return
    value = fold(candidate.value).text
    for text, languages in quoted_clauses(case):
        past = [m for m in lexicon.find_markers("past", text, languages) if m[0] not in value]
        if past and not lexicon.find_markers("change", text, languages):
            case.signals.append("it tells what was once so, and not what is")
            return


def quoted_clauses(case: Case) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each quote with the rest of its clause, folded, and its likely languages."""
    for turn, span in case.proofs:
        start, end = clause_edges(turn.text, span.start, span.end)
        languages = languages_in(turn.text, span.start, span.end)
        yield fold(turn.text[start:end]).text, languages or case.languages


def _passes(text: str, at: int) -> bool:
    """Whether it ends: not "until noon", which ends no habit, nor "starting today"."""
    named = calendar.parse_phrase(text[at : at + _PHRASE])
    before = text[max(0, at - _PHRASE) : at]
    return (not named.clock or named.dated) and _FROM.search(before) is None
