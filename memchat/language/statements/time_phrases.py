"""Time phrases of a clause, each with its code: the language-free form of a date."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTH_NAMES = (
    "jan january januar",
    "feb february februar",
    "mar march märz",
    "apr april",
    "may mai",
    "jun june juni",
    "jul july juli",
    "aug august",
    "sep sept september",
    "oct october oktober",
    "nov november",
    "dec december dezember",
)
_MONTH_NUMBER = {
    name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()
}
_MONTHS = "|".join(sorted(_MONTH_NUMBER, key=len, reverse=True))
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_GERMAN_DAYS = {
    "montag": "mon",
    "dienstag": "tue",
    "mittwoch": "wed",
    "donnerstag": "thu",
    "freitag": "fri",
    "samstag": "sat",
    "sonntag": "sun",
}
_COUNTS = {"a": 1, "eine": 1, "einen": 1, "ein": 1} | {
    word: number
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "- zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split(), 1)
    if word != "-"
}
_PERIODS = {"woche": "week", "monat": "month", "monats": "month", "jahr": "year", "jahres": "year"}
_UNITS = {"t": "d", "j": "y"}
"""Tage and Jahre; the other units begin as in English."""
_NOT_AHEAD = re.compile(
    r"\b(?:last|past|every|each|since|letzte[nrs]?|jede[nrs]?|seit(?:\ dem)?)\s+$", re.IGNORECASE
)
_AT = r"(?:\s+at\s+\d{1,2}(?:[:.]\d{2})?(?:\s?[ap]\.?m\b\.?)?)?"

_PHRASE = re.compile(
    rf"""(?<![\w-])
    (?P<lead>(?:until|till|up\ to|through|by|on|before|from|in|during|for|at|to|bis|am|im|für)\s+)?
    (?P<when>
        (?P<iso>\d{{4}}-\d{{2}}-\d{{2}})
      | (?:the\s+)?end\s+of\s+(?:the\s+|this\s+)?(?P<end>week|month|year|q[1-4]|{_MONTHS})
      | (?:zum\s+)?ende\s+(?:der\s+|des\s+)?(?P<ende>{"|".join(_PERIODS)}|{_MONTHS})
      | (?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<month>{_MONTHS})
        (?:,?\s+(?P<year>\d{{4}}))?
      | (?P<month2>{_MONTHS})\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)
        (?:,?\s+(?P<year2>\d{{4}}))?
      | (?:next\s+|this\s+|coming\s+|nächsten\s+)?(?P<weekday>{_DAYS}|{"|".join(_GERMAN_DAYS)})
      | this\s+(?P<this>week|month|year|spring|summer|autumn|winter)
      | diese[nrs]?\s+(?P<diese>{"|".join(_PERIODS)})
      | (?:the\s+next\s+)?(?P<count>\d{{1,3}}|{"|".join(_COUNTS)})\s+
        (?P<unit>days?|weeks?|months?|years?|tage?|wochen?|monate?|jahre?)
      | a\s+(?P<fortnight>fortnight)
      | (?P<near>today|tonight|tomorrow|heute|morgen)
      | (?P<bare>{_MONTHS})
    )(?![\w-]){_AT}""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """A time phrase of a clause."""

    words: str
    """The day itself, without the preposition."""
    said: str
    """With the preposition, as it was said."""
    start: int
    """Offset of ``said`` in the clause."""
    lead: str
    """The preposition, lower case, or ``""``."""
    code: str


def time_phrases(clause: str) -> list[TimePhrase]:
    """The time phrases of a clause, in their order."""
    found = []
    for match in _PHRASE.finditer(clause):
        if _NOT_AHEAD.search(clause[: match.start()]):
            continue
        lead = (match["lead"] or "").strip().casefold()
        code = _code(match, lead)
        if code is not None:
            words = match[0][len(match["lead"] or "") :]
            found.append(TimePhrase(words.strip(), match[0].strip(), match.start(), lead, code))
    return found


def _code(match: re.Match[str], lead: str) -> str | None:
    part = {name: text.casefold() for name, text in match.groupdict().items() if text}
    if "iso" in part:
        return part["iso"]
    if "end" in part:
        return _month(part["end"]) if part["end"] in _MONTH_NUMBER else f"end:{part['end']}"
    if "ende" in part or "diese" in part:
        name = part.get("ende") or part["diese"]
        return _month(name) if name in _MONTH_NUMBER else f"end:{_PERIODS[name]}"
    if "fortnight" in part:
        return "+2w" if lead == "for" else None
    if "day" in part or "day2" in part:
        return _day(part)
    if "weekday" in part:
        return f"weekday:{_GERMAN_DAYS.get(part['weekday'], part['weekday'][:3])}"
    if "this" in part:
        return f"end:{part['this']}"
    if "count" in part and lead in ("for", "für"):
        count, unit = part["count"], part["unit"][0]
        return f"+{_COUNTS.get(count) or int(count)}{_UNITS.get(unit, unit)}"
    if "near" in part:
        return "tomorrow" if part["near"] in ("tomorrow", "morgen") else "today"
    if "bare" in part and lead in ("until", "till", "by", "in", "through", "during", "bis", "im"):
        return _month(part["bare"])
    return None


def _month(name: str) -> str:
    return f"month:{_MONTH_NAMES[_MONTH_NUMBER[name] - 1][:3]}"


def _day(part: dict[str, str]) -> str | None:
    day, month = int(part.get("day") or part["day2"]), part.get("month") or part["month2"]
    if not 1 <= day <= 31:
        return None
    year = part.get("year") or part.get("year2")
    return f"{year + '-' if year else ''}{_MONTH_NUMBER[month]:02}-{day:02}"
