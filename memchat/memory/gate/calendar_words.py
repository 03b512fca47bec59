"""Words of the calendar, and what a phrase such as "bis Ende Mai" names with them.

Full in English, German, French, Spanish, Italian, Portuguese and Dutch; of any other language the
digits are read. Words are written as ``plain`` leaves them: folded, without accents.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from memchat.memory.gate.number_words import DATE_WORDS, NUMBER_WORDS
from memchat.memory.gate.text import fold

LANGUAGES = frozenset(("en", "de", "fr", "es", "it", "pt", "nl"))
"""Where a phrase in which nothing is recognised names no day."""


def plain(text: str) -> str:
    """Text as the tables hold it."""
    folded = fold(text).text
    if folded.isascii():
        return folded
    parts = unicodedata.normalize("NFKD", folded)
    bare = "".join(c for c in parts if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", bare)


def _numbered(lists: tuple[str, ...]) -> dict[str, int]:
    return {word: number for names in lists for number, word in enumerate(names.split())}


_KNOWN = {plain(word): form.split(":") for word, form in DATE_WORDS.items()}
WEEKDAYS = {word: int(number) - 1 for word, (kind, number) in _KNOWN.items() if kind == "day"}
WEEKDAYS |= _numbered(
    ("mon tue wed thu fri sat sun", "segunda terca quarta quinta sexta", "- tues - thurs - - -")
)
MONTHS = {word: int(number) for word, (kind, number) in _KNOWN.items() if kind == "month"}
MONTHS |= {
    word: number + 1
    for word, number in _numbered(
        ("jan feb mar apr - jun jul aug sep oct nov dec", "- - - - - - - - sept okt - dez")
    ).items()
}
del WEEKDAYS["-"], MONTHS["-"]

UNITS = {
    word: unit
    for unit, words in {
        "d": "day days tag tage tagen jour jours dia dias giorno giorni dag dagen",
        "w": "week weeks woche wochen semaine semaines semana semanas settimana settimane weken",
        "m": "month months monat monate monaten monats mois mes meses mese mesi maand maanden",
        "y": "year years jahr jahre jahren jahres an ans annee annees ano anos anno anni jaar jaren",
    }.items()
    for word in words.split()
}
_SEASONS = {
    "spring": "spring fruhling fruhjahr printemps primavera lente voorjaar",
    "summer": "summer sommer ete verano estate verao zomer",
    "autumn": "autumn fall herbst automne otono autunno outono herfst najaar",
    "winter": "winter hiver invierno inverno",
}
SEASONS = {word: season for season, words in _SEASONS.items() for word in words.split()}
_FRAGMENTS = re.compile(r"[^\W\d_]+|\d+")
_NAMING = {
    part for word in (*UNITS, *WEEKDAYS, *MONTHS, *SEASONS) for part in _FRAGMENTS.findall(word)
}
_NAMING |= {"weekend", "end", "wochenende", "fin", "jahrs"}


def names_day(folded: str) -> bool:
    """Whether a digit, a unit, a month, a season or a day of the week stands in it."""
    parts = _FRAGMENTS.findall(folded)
    return not _NAMING.isdisjoint(parts) or any(part[0].isdigit() for part in parts)


_ONE = "a an one ein eine einen einem eines un une una um uma een"
_NUMBERS = {plain(word): number for word, number in NUMBER_WORDS.items()} | dict.fromkeys(
    _ONE.split(), 1
)
_FIRST = re.compile(r"first|ersten?r?|premier|primero|primo|primeiro|eerste")

_AMBIGUOUS = re.compile("may|march|mars?|mai|sun|sat|mon|wed|segunda|terca|quarta|quinta|sexta")
"""Also verbs, a planet, "never", "second": dates only behind a word that leads to one."""
_LED = re.compile(
    r"(?:\b(?:until|till?|through|thru|by|in|on|during|before|early|mid|late|next|coming|end of|middle of"
    r"|beginning of|bis|im|am|ende|anfang|mitte|ab|nachsten|diesen|jusqu'en|jusqu'a|en|d'ici|d'ici a|fin|debut"
    r"|mi|hasta|ate|ate a|na|tot|eind|begin)|\d(?:st|nd|rd|th|er|\.)?)[\s-]+$"
)
_MAYBE_LED = re.compile(r"(?:^\W*|\b(?:this|of|for|from|to|de|and|und|et|y|e|en)[\s-]+)$")
_DATE_ENDS = re.compile(
    r"\s*(?:$|[^\w\s']|-feira|\d|(?:and|or|at|in|of|this|next|then|when|because|with|for)\b)"
)

_UNTIL = re.compile(r".*\b(?=(?:until|till|to|bis|jusqu|hasta|fino|ate|tot)\b)")
_RANGE = re.compile(r"(?<![\d-])\d{1,2}\.?\s?-\s?(?=\d{1,2}\b(?!-))")
_PART_OF_DAY = re.compile(r"(?<=tag|och)(?:s|abend|nacht|morgen|(?:vor|nach)?mittag|fruh)\b")
_CLOCK = re.compile(
    r"\b(?:at|um|om|alle|a las?|as) \d{1,2}(?:[:.]\d{2})?(?:\s?(?:[ap]\.?m\b\.?|uhr|uur))?(?![\d.])|"
    r"\b\d{1,2}(?:[:.h]\d{2})?\s?(?:a\.?m\b\.?|p\.?m\b\.?|uhr|o'clock|heures?|uur)|\b\d{1,2}(?::|h)\d{2}\b"
    r"|\b(?:noon|midnight|mittags?|mitternacht|midi|minuit|mediodia|medianoche|mezzogiorno|mezzanotte)\b"
)
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_SLASHED = re.compile(r"\b(\d{1,2})[./](\d{1,2})(?:[./](\d{4}|\d{2}))?(?![\d/])")
_EAST_ASIAN = re.compile(r"(?:(\d{4})\s*[年년]\s*)?(\d{1,2})\s*[月월]\s*(?:(\d{1,2})\s*[日号일])?")
_EAST_ASIAN_DAY = re.compile(
    r"(?:周|星期|礼拜)(?P<zh>[一二三四五六日天])|(?P<ja>[月火水木金土日])曜|(?P<ko>[월화수목금토일])요일"
)
_EAST_ASIAN_DAYS = {
    c: n
    for days in ("一二三四五六日", "月火水木金土日", "월화수목금토일")
    for n, c in enumerate(days)
}
_EAST_ASIAN_DAYS["天"] = 6
_WEEK_AFTER_NEXT = re.compile("下下|再[来來]|다다음")
_SO_FAR = re.compile(
    r"\b(?:ago|since|seit|vor|depuis|il y a|hace|desde|fa|da|ha|sinds|geleden|already|schon|deja)\b"
)
_COUNTED = re.compile(
    rf"(?<![\w.])([a-z]+|\d{{1,5}})\s+(?:(?:more|weitere|autres?|mas)\s+)?({'|'.join(sorted(UNITS, key=len, reverse=True))})\b"
)
_HALF_YEAR = re.compile(
    r"\b(?:half a year|halbes jahr|halben jahres?|half jaar|medio ano|mezzo anno|meio ano)\b"
)
_HOLIDAYS = (
    (
        re.compile(r"\b(?:christmas|xmas|weihnachten|noel|navidad|natale|natal|kerst)\b"),
        (24, 25, 26),
    ),
    (re.compile(r"\b(?:new year's eve|silvester|nochevieja|new years eve)\b"), (31,)),
)
"""Both in December."""
_WEEKEND = re.compile(r"\b(?:week-?end|wochenendes?|fin de semana|fine settimana|fim de semana)\b")
_AFTER_TOMORROW = re.compile(
    r"\b(?:day after tomorrow|ubermorgen|apres[- ]demain|pasado manana|dopodomani|depois de amanha|overmorgen)\b"
)
_TODAY = re.compile(
    r"\b(?:today|tonight|this (?:morning|afternoon|evening)|heute|aujourd'hui|ce soir|hoy"
    r"|esta (?:noche|tarde|manana|noite)|oggi|stasera|hoje|vandaag|vanavond)\b"
)
_TOMORROW = re.compile(r"\b(?:tomorrow|morgen|demain|manana|domani|amanha)\b")
_YESTERDAY = re.compile(
    r"\b(?:yesterday|(?:vor)?gestern|jusqu'a hier|ayer|ieri|ontem|gisteren|(?:until|up to) now"
    r"|bis jetzt|hasta ahora|finora|ate agora|tot nu toe|jusqu'a (?:maintenant|present))\b"
)
_LAST = re.compile(
    r"\b(?:last|letzte\w*|derniere?|pasad[oa]|scors[oa]|passad[oa]|vorige|afgelopen)\b"
)
_NEXT = re.compile(
    r"\b(?:next|nachste\w*|prochaine?|proxim[oa]|prossim[oa]|volgende?|que (?:viene|vem)"
    r"|следующ\w+|gelecek|onumuzdeki|haftaya|القادم\w*|अगले)\b|(?P<week>(?<!下)下个?(?:周|星期|礼拜)|(?<!再)[来來]週|(?<!다)다음 ?주)"
)
_THIS = re.compile(r"\b(?:this|diese\w*|cette|ce|est[ea]|quest[oa]|deze|dit)\b")
_END = re.compile(r"\b(?:end|ende|rest|reste|resto|fin|final|finales|fine|fim|einde?)\b")
_ENDLESS = re.compile(
    r"\b(?:for ?ever|for good|always|for life|all my life|rest of my life|i die|my death|indefinitely"
    r"|permanently|fur immer|immer|ewig|lebenslang|mein lebtag|toujours|a vie"
    r"|siempre|indefinid\w+|sempre|altijd|eeuwig|voorgoed)\b"
)
_EVERY = re.compile(
    r"\b(?:every|each|jede[nmrs]?|chaque|tous les|toutes les|cada|todos los|todas las|ogni|tutti i|todos os|todas as|elke|iedere)\b"
)
"""A habit on those days, which does not end on the first of them."""
_VAGUE = re.compile(
    r"\b(?:before|vor(?= (?:de|mo|di|mi|do|fr|sa|so))|avant|antes|prima (?:di|del)|antes d[eoa]|voor(?= (?:ma|di|wo|do|vr|za|zo))"
    r"|(?:week|weekend|month|year|jahr|woche) after next|ubernachst\w+|or|oder)\b"
)
"""Names no day that could be told, or either of two."""
_EARLY = re.compile(
    r"\b(?:early|anfang|debut|principios|comienzos|inizio|inizi|inicio|comeco|begin)\b"
)
_MID = re.compile(r"\b(?:mid|middle|mitte|mi|milieu|mediados|meta|meados|midden|half)\b")
_TO_THE_HOUR = re.compile(r"\b(?:until|till?|bis|tot)\s+(?:2[0-4]|1?\d|0\d)\s*$")
_LEADS = re.compile(
    r"\b(?:until|till|by|for|through|this|next|bis|diese\w*|jusqu'\w*|pendant|pour|cette|hasta|durante|por"
    r"|para|esta|este|fino|per|quest\w|ate|tot|voor|deze)\b"
)
_QUARTER = re.compile(r"\bq([1-4])\b")
_THIS_QUARTER = re.compile(r"\b(?:quarter|quartals?|trimestre|kwartaal)\b")


@dataclass(frozen=True, slots=True)
class Named:
    """What a phrase names. Of several weekdays or months it is the last."""

    weekday: int | None = None
    """0 is Monday."""
    month: int | None = None
    day: int | None = None
    year: int | None = None
    dates: tuple[tuple[int, int], ...] = ()
    """(month, day) as 05/06 may be read."""
    near: int | None = None
    """Days from the message's: 0 is today."""
    count: tuple[int, str] | None = None
    """Two weeks: ``(2, "w")``."""
    unit: str | None = None
    """A week, month or year without a number."""
    season: str | None = None
    quarter: str | None = None
    weekend: bool = False
    clock: bool = False
    this: bool = False
    next: bool = False
    end: bool = False
    early: bool = False
    mid: bool = False
    """In the first, or the middle third of a month."""
    over: bool = False
    """It lies before the message."""
    since: bool = False
    """A length of time that ends now: "for the last two weeks"."""
    endless: bool = False
    numbers: frozenset[int] = frozenset()
    """Every number, whatever it counts."""
    led: bool = False
    """It opens with a word of these languages such as "until"."""
    unread: bool = False
    """It holds a number that is part of no date."""

    @property
    def anything(self) -> bool:
        """Whether any part of a date was recognised."""
        parts = (self.weekday, self.month, self.day, self.year, self.near, self.count, self.unit)
        more = (self.season, self.quarter, self.dates, self.weekend, self.clock)
        return any(part is not None for part in parts) or any(more)


def read(phrase: str, before: str = "", after: str = "") -> Named:
    """What a phrase names; ``before`` and ``after`` are the words beside it in the message, by which
    "May" is told from "may"."""
    text = _PART_OF_DAY.sub("", _RANGE.sub("", _UNTIL.sub("", plain(phrase))))
    named = Named(
        numbers=frozenset(int(n) for n in re.findall(r"\d+", plain(phrase))[:20] if len(n) < 10),
        this=bool(_THIS.search(text)),
        endless=bool(_ENDLESS.search(text) or _EVERY.search(text)),
        clock=bool(_CLOCK.search(text) or _TO_THE_HOUR.search(text)),
        led=bool(_LEADS.search(text)),
    )
    text = _TO_THE_HOUR.sub(" ", _CLOCK.sub(" ", text))
    named, text = _numeric_date(named, text)
    named, text = _idioms(named, text)
    named, text = _counted(named, text)
    named = _words(named, text, plain(before), plain(after))
    if named.anything:
        early, mid = bool(_EARLY.search(text)), bool(_MID.search(text))
        vague = named.unread or bool(_VAGUE.search(text))
        named = replace(named, unread=vague, early=early, mid=mid)
    return _bare_numbers(named, text)


def _numeric_date(named: Named, text: str) -> tuple[Named, str]:
    if match := _ISO.search(text):
        found = replace(named, year=int(match[1]), dates=((int(match[2]), int(match[3])),))
    elif match := _SLASHED.search(text):
        one, two = int(match[1]), int(match[2])
        pairs = tuple(p for p in ((two, one), (one, two)) if p[0] <= 12)
        year = match[3] and (int(match[3]) if len(match[3]) == 4 else 2000 + int(match[3]))
        found = replace(named, dates=pairs, year=year or None, unread=not pairs)
    elif match := _EAST_ASIAN.search(text):
        year, month, day = (int(part) if part else None for part in match.groups())
        found = replace(named, year=year, month=month, day=day)
    else:
        return named, text
    return found, text[: match.start()] + " " + text[match.end() :]


def _idioms(named: Named, text: str) -> tuple[Named, str]:
    """What several words name together, taken out so that none of them is read alone."""
    if _HALF_YEAR.search(text):
        named, text = replace(named, count=(6, "m")), _HALF_YEAR.sub(" ", text)
    if re.search(r"\bfortnight\b", text):
        named = replace(named, count=(2, "w"))
    if _WEEKEND.search(text):
        named, text = replace(named, weekend=True), _WEEKEND.sub(" ", text)
    if match := _QUARTER.search(text):
        named, text = replace(named, quarter=f"q{match[1]}"), _QUARTER.sub(" ", text)
    elif _THIS_QUARTER.search(text):
        named = replace(named, quarter="quarter")
    if _AFTER_TOMORROW.search(text):
        named, text = replace(named, near=2), _AFTER_TOMORROW.sub(" ", text)
    elif _TODAY.search(text):
        named = replace(named, near=0)
    elif _TOMORROW.search(text):
        named = replace(named, near=1)
    for holiday, days in _HOLIDAYS:
        if holiday.search(text):
            named = replace(named, dates=tuple((12, day) for day in days))
    if match := _EAST_ASIAN_DAY.search(text):
        named = replace(named, weekday=_EAST_ASIAN_DAYS[match[match.lastgroup or 0]])
    if _WEEK_AFTER_NEXT.search(text):
        named = replace(named, unread=True)
    ahead = _NEXT.search(text)
    if ahead and ahead["week"]:
        named = replace(named, unit="w")
    flags = {"next": bool(ahead), "end": bool(_END.search(text))}
    return replace(named, **flags), text  # type: ignore[arg-type]


def _counted(named: Named, text: str) -> tuple[Named, str]:
    for match in _COUNTED.finditer(text):
        number = int(match[1]) if match[1].isdigit() else _NUMBERS.get(match[1])
        if number is not None:
            rest = text[: match.start()] + " " + text[match.end() :]
            return replace(named, count=(number, UNITS[match[2]])), rest
    return named, text


def _words(named: Named, text: str, before: str, after: str) -> Named:
    found: dict[str, int | str | None] = {}
    around = f"{before} {text}{after}"
    shift = len(before) + 1
    for match in re.finditer(r"[a-z]+", text):
        word = match[0]
        start, end = match.start() + shift, match.end() + shift
        if _AMBIGUOUS.fullmatch(word) and not _is_date(around, start, end):
            continue
        if word in WEEKDAYS:
            found["weekday"] = WEEKDAYS[word]
        elif word in MONTHS:
            found["month"] = MONTHS[word]
        elif word in SEASONS:
            found["season"] = SEASONS[word]
        elif word in UNITS and word not in ("an", "day", "dag", "dia"):
            found["unit"] = UNITS[word]
    named = replace(named, **found)  # type: ignore[arg-type]
    return _past(named, text)


def _is_date(text: str, start: int, end: int) -> bool:
    before = text[:start]
    numbered = re.match(r"\.?\s+(?:the\s+)?\d", text[end:])
    if numbered or _LED.search(before):
        return True
    return bool(_MAYBE_LED.search(before) and _DATE_ENDS.match(text, end))


def _past(named: Named, text: str) -> Named:
    if named.count is not None and _SO_FAR.search(text):
        return replace(named, since=True)
    if _YESTERDAY.search(text):
        return replace(named, over=True)
    if not _LAST.search(text):
        return named
    if named.count is not None:
        return replace(named, since=True)
    parts = (named.weekday, named.month, named.unit, named.season)
    return replace(named, over=sum(part is not None for part in parts) == 1)


def _bare_numbers(named: Named, text: str) -> Named:
    """Digits that no unit follows: a day or a year; a number word counts beside a month."""
    for number in map(int, re.findall(r"\d{1,9}", text)):
        if 1 <= number <= 31 and named.day is None and not named.dates:
            named = replace(named, day=number)
        elif 1900 <= number <= 9999 and named.year is None:
            named = replace(named, year=number)
        else:
            named = replace(named, unread=True)
    if named.month is not None and named.day is None and named.count is None:
        words = [
            w for w in re.findall(r"[a-z]+", text) if _FIRST.fullmatch(w) or _NUMBERS.get(w, 0) > 1
        ]
        if len(words) == 1:
            named = replace(named, day=_NUMBERS.get(words[0], 1))
    return named
