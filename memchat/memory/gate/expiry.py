"""Until when a candidate holds: the user's words for it, and the day that their code names."""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from memchat.errors import InputError
from memchat.memory.gate import calendar_words, passing, sentences
from memchat.memory.gate.agreement import agrees, agrees_in_digits
from memchat.memory.gate.calendar_words import Named
from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.clauses import clause_around
from memchat.memory.gate.dates import until_date
from memchat.memory.gate.starts import starts_later, starts_now
from memchat.memory.gate.text import UNSPACED, Span, find_spans, fold, normal_value, sentence_around

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings, Turn

_BESIDE = 25
"""Characters beside a phrase that tell "May" from "may"."""
_MOST_YEARS = 100
_SO_FAR = re.compile(
    r"(?<!\w)(?:have|has|had|i've|we've|'s) (?:just |always |only |already |now )?"
    r"(?:been|\w+ed|had|known|kept|taught|done)(?!\w)|(?<!\w)(?:seit|depuis|llevo|llevamos|sinds|schon)(?!\w)"
)
"""Before a length of time: "I have been learning it for three years"."""


_STATE = re.compile(
    r"(?<!\w)(?:married|engaged|together|divorced|single|sober|with|working|living|verheiratet|verlobt|zusammen|geschieden|mariée?s?|ensemble|divorcée?s?|casad[oa]s?|juntos|sposat[oa]|insieme|getrouwd|samen)(?!\w)"
)
"""What lasts for years: "I'm married for ten years" tells how long it has been so."""
_BY_NOW = re.compile(
    r"\s*(?:now|already|so far|schon|jetzt|nun|déjà|maintenant|ya|ahora|già|ormai|já|agora|al|nu|inmiddels)(?!\w)"
)


def check_until(
    candidate: Candidate, found: Findings, zone: ZoneInfo
) -> tuple[Candidate, date | None]:
    """The candidate with the last day it holds; the words for it must stand in a quoted message."""
    later = starts_later(candidate, found, zone)
    if later is not None:
        found.doubts.append(f"it only starts later: {later}")
    code, said = candidate.until, candidate.until_said
    until = None
    if said is None and code is None:
        if later is None and not starts_now(found):
            passing.check_passing(candidate, found)
    elif said is None or not (places := _places(said, found)):
        if code is None:
            found.doubts.append("it ends some time, but the date could not be read")
        else:
            found.notes.append("the end date was dropped: the user gave no words for it")
            passing.check_passing(candidate, found)
    else:
        until = _resolve(candidate, found, zone, places)
    if until is None:
        candidate = candidate.model_copy(update={"until": None, "until_said": None})
    return candidate, until


def _resolve(
    candidate: Candidate, found: Findings, zone: ZoneInfo, places: list[tuple[Turn, Span]]
) -> date | None:
    """The day, where the phrase and its code agree on it and it is said of the candidate."""
    own = [place for place in places if not _of_something_else(candidate, found, *place)]
    turn, span = (own or places)[-1]
    clause = clause_around(turn.text, span)
    named = calendar_words.read(
        span.text,
        turn.text[max(clause.sentence.start, span.start - _BESIDE) : span.start],
        turn.text[span.end : span.end + _BESIDE],
    )
    day = turn.said_at.astimezone(zone).date()
    if named.over and own:
        found.refusals.append("it was already over when it was said")
        return None
    if named.endless and own:
        found.notes.append("it was said to hold for good")
        return None
    if candidate.until is None:
        found.doubts.append("it ends some time, but the date could not be read")
        return None
    try:
        until = until_date(candidate.until, turn.said_at, zone)
    except InputError as error:
        found.doubts.append(str(error))
        return None
    if candidate.until.strip().casefold().startswith("weekday:"):
        until = _a_week_on(named, until, day)
    languages = sentences.languages_in(turn.text, span.start, span.end) or found.languages
    if not own:
        # Dropped, it would make a passing thing last; kept, it would end a lasting one.
        doubt = "the end date is said of something else; it may not end then"
    elif named.over or named.since or _counts_back(named, clause.rest, turn.text[span.end :]):
        doubt = f"“{span.text}” may be how long it has been so, not how long it will be"
    elif not _fits(named, candidate.until, until, day, languages):
        doubt = f"“{span.text}” and the date read from it do not agree"
    elif until.year - day.year > _MOST_YEARS:
        doubt = "its end is more than a hundred years away"
    else:
        if until < day:
            found.refusals.append("it was already over when it was said")
        return until
    found.doubts.append(doubt)
    return None


def _counts_back(named: Named, rest: str, behind: str) -> bool:
    """Whether a length of time is told from its end: since when it has been so."""
    if named.count is None:
        return False
    years = named.count[1] == "y" and _STATE.search(rest) is not None
    return years or bool(_SO_FAR.search(rest) or _BY_NOW.match(fold(behind).text))


def _places(said: str, found: Findings) -> list[tuple[Turn, Span]]:
    """Where the phrase stands in the quoted messages, in their order; where no spaces part words,
    of any length."""
    turns = sorted(found.quoted(), key=lambda turn: turn.message_id)
    return [(turn, span) for turn in turns for span in _spans(said, turn.text)]


def _spans(said: str, text: str) -> list[Span]:
    spans = find_spans(said, text)
    if spans or UNSPACED.search(said) is None:
        return spans
    hay, needle = fold(text), normal_value(said)
    at = hay.text.find(needle) if needle else -1
    if at < 0:
        return []
    start, end = hay.offsets[at], hay.ends[at + len(needle) - 1]
    return [Span(start, end, text[start:end], ((start, end),))]


def _fits(named: Named, code: str, until: date, day: date, languages: tuple[str, ...]) -> bool:
    known = bool(languages) and languages[0] in calendar_words.LANGUAGES
    if known or (not languages and named.led):
        return named.anything and agrees(named, until, day)
    same_day = named.weekday in (None, until.weekday())
    return same_day and not named.unread and agrees_in_digits(named, code.strip(), until)


def _a_week_on(named: Named, until: date, day: date) -> date:
    """ "Next Friday", said on a Friday, is the one in a week; "Friday of next week" always is."""
    this_week = until.isocalendar()[:2] == day.isocalendar()[:2]
    if named.next and (until == day or (this_week and named.unit == "w")):
        return date.fromordinal(until.toordinal() + 7)
    return until


def _of_something_else(candidate: Candidate, found: Findings, turn: Turn, span: Span) -> bool:
    """Whether the phrase stands in a clause with a subject of its own that is not the candidate."""
    clause = clause_around(turn.text, span)
    if clause.about(candidate):
        return False
    sentences_quoted = [
        sentence_around(turn.text, quote.start, quote.end)
        for quoted, quote in found.proofs
        if quoted.id == turn.id
    ]
    if any(
        s.start < clause.sentence.end and clause.sentence.start < s.end for s in sentences_quoted
    ):
        return clause.has_own_subject and clause.others_about(candidate)
    gaps = [
        turn.text[min(s.end, clause.sentence.end) : max(s.start, clause.sentence.start)]
        for s in sentences_quoted
    ]
    return clause.has_own_subject or all(gap.strip() for gap in gaps)
