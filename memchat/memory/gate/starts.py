"""What only starts in the future: "from next month I live in Porto" must not replace today's city.

There is no start date to keep, so a person is asked. English, German, French, Spanish, Italian,
Portuguese and Dutch.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from memchat.memory.gate import calendar_words
from memchat.memory.gate.calendar_words import MONTHS, SEASONS, UNITS, WEEKDAYS
from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.clauses import clause_around
from memchat.memory.gate.keys import cardinality
from memchat.memory.gate.text import Span, fold, sentence_around

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings, Turn


def _any(words: Mapping[str, object]) -> str:
    """The full names of a table, with or without the accents that it leaves out."""
    listed = sorted(
        (word for word in words if len(word) > 3 or word in _SHORT), key=len, reverse=True
    )
    return "|".join(_ACCENTED.sub(lambda m: _ACCENTS[m[0]], word) for word in listed)


_SHORT = ("may", "mai", "mei", "ete")
_ACCENTS = {
    "a": "[aàáâãä]",
    "e": "[eèéê]",
    "i": "[iìí]",
    "o": "[oòóôõö]",
    "u": "[uùúûü]",
    "c": "[cç]",
    "n": "[nñ]",
}
_ACCENTED = re.compile("[aeioucn]")
_MONTH, _WEEKDAY = _any(MONTHS), _any(WEEKDAYS)
_SEASON, _PERIOD = _any(SEASONS), _any(UNITS)
_UNIT = rf"{_PERIOD}|day|tag|jour|d[ií]a|dag|an|mes|mois|year|ano|año|{_SEASON}|{_MONTH}|{_WEEKDAY}"
_TOMORROW = r"tomorrow|(?:über)?morgen|demain|mañana|domani|amanhã|overmorgen"
_NEXT = (
    rf"(?:next|nächste\w?|kommende\w?|prochaine?|próxim[oa]|proxim[oa]|prossim[oa]|volgende?) (?:{_UNIT})\b"
    rf"|(?:{_UNIT}) (?:prochaine?|que viene|que vem|próxim[oa]|prossim[oa])\b"
)
_DAY = (
    rf"{_NEXT}|(?:{_TOMORROW})\b|(?:{_WEEKDAY})\b|\d{{1,2}}(?:st|nd|rd|th|er|º)?\.? (?:of |de )?(?:{_MONTH})\b(?:,? (?:de )?\d{{4}})?"
    rf"|(?:{_MONTH})\b(?:,? (?:de )?\d{{4}}| \d{{1,2}}(?:st|nd|rd|th)?\b)?|(?:this |the )?(?:{_SEASON})\b"
    r"|\d{1,2}(?:st|nd|rd|th|er)\b|20\d\d\b"
)
_FROM = (
    r"(?:(?<!am )(?<!'m )(?<!come )(?<!are )from|starting(?: from)?|beginning|as (?:of|from)|effective|(?:i |we )?(?:start|begin)(?:ing)?\b[^.,;]{0,60}? (?:on|in|from)) (?:on |in |the )?"
    r"|(?:ab|beginnend)(?: dem| der)? |(?:à|a) partir (?:du |de la |de l'|de |d'|del |da )?(?:el )?|dès (?:le |la )?|à compter d[ue] "
    r"|desde (?:el |la )?(?=mañana|pr[oó]xim|\w+ que viene)|a partire (?:da|dal|dalla|dall') ?|vanaf (?:de |het )?|(?:ich )?(?:fange|beginne)\b[^.,;]{0,60}? (?:am|im) "
    r"|(?:je )?commence\b[^.,;]{0,60}? (?:le |en |au )|(?:empiezo|comienzo)\b[^.,;]{0,60}? (?:el |en )"
)
_STARTS = re.compile(rf"(?<!\w)(?:{_FROM})(?P<day>{_DAY})", re.IGNORECASE)
_THEN = re.compile(rf"(?<!\w)(?P<day>{_NEXT})", re.IGNORECASE)
_NOW = re.compile(
    r"(?<!\w)(?:from|starting|beginning|as of|ab|à partir d'|à partir de|dès|desde|a partir de|da|vanaf) ?"
    r"(?:today|now|heute|sofort|jetzt|aujourd'hui|maintenant|hoy|ahora|oggi|ora|adesso|hoje|agora|vandaag|nu)(?!\w)",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"(?:until|till|by|for|over|during|before|the|bis(?: zu[mr])?|für|die|jusqu'\w+|pour|pendant|hasta|por|durante"
    r"|fino|per|até|tot|voor)(?: the| el| la| le| al?)?\s+$",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"\s*(?:to|through|thru|-|–)\s*(?:{_WEEKDAY}|{_MONTH})\b", re.IGNORECASE)


def starts_later(candidate: Candidate, found: Findings, zone: ZoneInfo) -> str | None:
    """The words by which a candidate's own clause says that it holds from a day ahead, or None."""
    for turn, quote in found.proofs:
        day = turn.said_at.astimezone(zone).date()
        sentence = sentence_around(turn.text, quote.start, quote.end)
        for match in _matches(candidate, turn, sentence):
            clause = clause_around(turn.text, Span(match.start(), match.end(), match[0]))
            elsewhere = clause.has_own_subject and clause.others_about(candidate)
            if (clause.about(candidate) or not elsewhere) and _ahead(match["day"], day):
                return match[0].strip()
    return None


def starts_now(found: Findings) -> bool:
    """Whether a quote says that it holds from now on, which "today" alone would not."""
    return any(_NOW.search(fold(turn.text[a.start : a.end]).text) for turn, a in found.proofs)


def _matches(candidate: Candidate, turn: Turn, sentence: Span) -> list[re.Match[str]]:
    text, ends = turn.text, sentence.end
    found = [
        match
        for match in _STARTS.finditer(text, sentence.start, ends)
        if not _RANGE.match(text, match.end())
    ]
    if cardinality(candidate.key) == "one" and candidate.relation != "ends":
        found += [
            match
            for match in _THEN.finditer(text, sentence.start, ends)
            if not _LASTING.search(text[sentence.start : match.start()])
        ]
    return found


def _ahead(words: str, day: date) -> bool:
    """Whether a day without a year may lie ahead; one with a year does."""
    named = calendar_words.read(words, before="from ")
    if named.year is None:
        return True
    return (named.year, named.month or 12) > (day.year, day.month)
