"""Finding the facts that a message states about its writer, by patterns and without a model.

Used for commands to memory that are read without a model, and by the offline stand-in. Clauses in
the first person are compared with the patterns, most of which are in ``patterns.toml``.
Time phrases are given as codes, the same in every language, which ``calendar`` turns into days.

Left out: pasted text between ⟦ and ⟧, code, longer quotations, questions, hypotheses, opinions of
others, tasks such as "translate", jokes, and everything with a secret.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files

from memchat.language import lexicon
from memchat.language.calendar import DAYS, MONTH_CODES, NUMBERS, PERIODS, UNITS
from memchat.language.secrets import find_secrets

SENTENCE_LIMIT = 600
"""Characters of the longest sentence that is read; longer ones are not plain statements."""

_QUOTED = re.compile(
    r"""⟦.*?(?:⟧|\Z)            # marked by memchat as pasted
      | ```.*?(?:```|\Z)         # a fenced block
      | `[^`\n]*`
      | ^[ \t]*>[^\n]*           # a quoted line
      | [“"„«](?:[^”"“»\s]+\s+){2,}[^”"“»]*[”"“»]   # a quotation of three words or more
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
GREETING = (
    r"(?:hi|hello|hey|hallo|good\s+(?:morning|evening|afternoon)|guten\s+(?:tag|morgen|abend))"
)
_SENTENCE = re.compile(
    rf"(?:{GREETING}\s*[.!]\s+)?[^\n]+?(?:[.!?…。！？]+(?=\s|$|[\"”’')])|(?=\n)|\Z)", re.IGNORECASE
)
_SUBJECT = r"(?:i|i['’](?:m|ve)|my|our|we|ich|mein\w*)\b"
_JOIN = re.compile(
    rf"""(?:(?<!\bhi)(?<!\bhey)(?<!hello)(?<!hallo)\s*[,;:–—]\s*
          (?:(?:and|but|so|also|though|while|that|und|aber)\s+)*
        |\s+(?:and|but|so|though|while|und|aber)\s+(?:that\s+)?
        |\s+-\s+)
        (?=(?:also\s+|now\s+|please\s+)?{_SUBJECT})""",
    re.IGNORECASE | re.VERBOSE,
)
_UNREAL = re.compile(
    r"""\b(?:if|would|could|might|maybe|perhaps|imagine|suppose|pretend|hypothetical\w*|i\ wish
        |let['’]?s\ say|unless|wenn|falls|würde|könnte|vielleicht)\b|\bi['’]d\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SAID_BY_OTHERS = re.compile(
    r"\b(?:says?|said|thinks?|claims?|told|asks?|asked|believes?|wants me|according|sagt|meint)\b",
    re.IGNORECASE,
)
_SAID_BY_ME = re.compile(r"\b(?:as i (?:said|told)|i (?:said|think|told you))\b", re.IGNORECASE)
_ORDER = re.compile(
    r"""^\W*(?:please\s+|can\ you\s+|could\ you\s+|now\s+)*(?:translate|write|draft|rewrite|rephrase
        |proofread|summari[sz]e|correct|complete|continue|quote|read|analy[sz]e|role-?play|act\ as
        |you\ are|here\ is|here['’]s|schreib\w*|übersetz\w*)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_JOKE = re.compile(r"\b(?:kidding|joking|just a joke|/s)(?:\W|$)", re.IGNORECASE)
_FILLER = re.compile(
    r"""^(?:(?:and|but|so|also|well|oh|ok(?:ay)?|yes|yeah|yep|no|hi|hello|hey|hallo|btw|by\ the\ way
        |actually|anyway|please|thanks|thank\ you|great|right|sure|fine|sorry|fyi|for\ the\ record
        |just\ so\ you\ know|as\ i\ (?:said|told\ you)|as\ you\ know|in\ fact|now|today|currently
        |(?:please\s+)?(?:remember|note|keep\ in\ mind|(?:do(?:n['’]t|\ not)|never)\ forget)
         (?:\ that)?
        |i\ said|i\ think|i\ told\ you(?:\ that)?|und|aber|also|übrigens)\b[\s,:!.–-]*)+""",
    re.IGNORECASE | re.VERBOSE,
)


def clauses(text: str) -> list[str]:
    """The clauses of a message that may state a fact, verbatim and in order."""
    if _JOKE.search(text):
        return []
    open_text = _QUOTED.sub(lambda match: "\n" * len(match[0]), text)
    found: list[str] = []
    for match in _SENTENCE.finditer(open_text):
        sentence = match[0].strip()
        if len(sentence) > SENTENCE_LIMIT:
            continue
        if _ORDER.search(sentence):
            if sentence.rstrip().endswith(":"):
                break  # what follows is the text to work on
            continue
        if states(sentence):
            found.extend(_split(sentence))
    return [clause for clause in found if not find_secrets(clause)]


def states(sentence: str) -> bool:
    """Whether a sentence speaks for the writer and of the present."""
    if _UNREAL.search(sentence):
        return False
    return not _SAID_BY_OTHERS.search(sentence) or bool(_SAID_BY_ME.search(sentence))


def without_filler(clause: str) -> str:
    """The clause from its subject on: no greeting, "by the way" or "remember that"."""
    return _FILLER.sub("", clause, count=1)


def _split(sentence: str) -> list[str]:
    question = sentence.rstrip("\"”’')").endswith(("?", "？"))
    pieces = [piece.strip(' \t"“”.!…;,:') for piece in _JOIN.split(sentence)]
    if question:  # "I am vegetarian, any dinner ideas?" states before it asks
        front, comma, _ = pieces[-1].rpartition(",")
        pieces = [*pieces[:-1], *([front.strip()] if comma else [])]
    return [piece for piece in pieces if piece]


_WORD = re.compile(r"\w+(?:['’]\w+)?")
_DATA = tomllib.loads((files("memchat.language") / "patterns.toml").read_text("utf-8"))
_FOODS = frozenset(_DATA["foods"].split())
_KIN_KEYS = {"son": "child", "daughter": "child", "brother": "sibling", "sister": "sibling"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for the beginning of a clause: its group ``v`` is the value."""

    match: re.Pattern[str]
    type: str
    key: str
    many: bool = False
    listed: bool = False
    """Whether ``v`` is a list of several values."""
    prefix: str = ""

    @property
    def is_place(self) -> bool:
        """Whether the value is a place, an employer or the like, without what is said after it."""
        return self.key in ("{place}", "hometown", "employer", "job", "learning")

    def key_of(self, value: str, groups: Mapping[str, str | None]) -> str:
        """The key of a fact with this value."""
        if self.key == "{place}":
            return "home" if re.match(r"(?:a|an|the|my)\s", value, re.IGNORECASE) else "city"
        if self.key in ("{liked}", "{disliked}"):
            taste = self.key[1:-2]  # without the braces and the d
            return f"food_{taste}" if is_food(value) else taste
        name = (groups.get("k") or "").casefold()
        return as_key(_KIN_KEYS.get(name, self.key.format(k=name)))


def with_parts(text: str) -> str:
    """A regular expression with its ``{NAME}`` parts put in; a space stands for any white space."""
    return lexicon.with_parts(text, _DATA["parts"]).replace(" ", r"\s+")


def as_key(text: str) -> str:
    """A key: lower-case words joined by underscores, without digits."""
    return re.sub(r"[\W\d_]+", "_", text.casefold().replace("'s", "").replace("’s", "")).strip("_")


def stem(word: str) -> str:
    """A word without its commonest English endings, casefolded."""
    word = word.casefold().replace("’", "'").removesuffix("'s")
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending) + rest
    return word


def is_food(text: str) -> bool:
    """Whether a word of the text is a food or a drink."""
    words = {word.casefold() for word in _WORD.findall(text)}
    forms = words | {stem(word) for word in words} | {word.removesuffix("s") for word in words}
    return not _FOODS.isdisjoint(forms)


def _pattern(match: str, **rest: str | bool) -> Pattern:
    return Pattern(re.compile(with_parts(match), re.IGNORECASE), **rest)  # type: ignore[arg-type]


PATTERNS = tuple(_pattern(**entry) for entry in _DATA["patterns"])


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as its clause states it; it is not yet compared with what is known."""

    type: str
    """A memory type: profile, preference, fact or other."""
    key: str
    value: str
    many: bool
    """Whether the key holds several values."""
    quote: str
    """The clause, verbatim."""
    until_said: str | None = None
    """The words of the time phrase that ends it."""
    until: str | None = None
    """The same as a code, such as ``weekday:fri`` or ``10-15``."""
    asked: bool = False
    """Whether the clause asks to remember it."""
    ends: bool = False
    """Whether the clause says that ``value`` is over."""


def _listed(*kinds: str) -> dict[str, int]:
    """The English and German names of days or months, the first of which is 0."""
    tables = (lexicon.calendar()[code][kind] for code in ("en", "de") for kind in kinds)
    return {word: n for table in tables for n, words in enumerate(table) for word in words}


_MONTHS = _listed("months", "short_months") | {"sept": 8}
_DAYS = _listed("weekdays")
_COUNTS = {word: n for word, n in NUMBERS.items() if n <= 12} | {"fünf": 5, "elf": 11, "zwölf": 12}


def _one_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_NOT_AHEAD = re.compile(
    r"\b(?:last|past|every|each|since|letzte[nrs]?|jede[nrs]?|seit(?:\ dem)?)\s+$", re.IGNORECASE
)
_AT = r"(?:\s+at\s+\d{1,2}(?:[:.]\d{2})?(?:\s?[ap]\.?m\b\.?)?)?"

_PERIOD = "week|month|year|woche|monats?|jahr(?:es)?"
_PHRASE = re.compile(
    rf"""(?<![\w-])
    (?P<lead>(?:until|till|up\ to|through|by|on|before|from|in|during|for|at|to|bis|am|im|für)\s+)?
    (?P<when>
        (?P<iso>\d{{4}}-\d{{2}}-\d{{2}})
      | (?:(?:the\s+)?end\s+of\s+(?:the\s+|this\s+)?|(?:zum\s+)?ende\s+(?:der\s+|des\s+)?)
        (?P<end>{_PERIOD}|q[1-4]|{_one_of(_MONTHS)})
      | (?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<month>{_one_of(_MONTHS)})
        (?:,?\s+(?P<year>\d{{4}}))?
      | (?P<month2>{_one_of(_MONTHS)})\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)
        (?:,?\s+(?P<year2>\d{{4}}))?
      | (?:next\s+|this\s+|coming\s+|nächsten\s+)?(?P<weekday>{_one_of(_DAYS)})
      | (?:this|diese[nrs]?)\s+(?P<this>{_PERIOD}|spring|summer|autumn|winter)
      | (?:the\s+next\s+)?(?P<count>\d{{1,3}}|{_one_of(_COUNTS)})\s+
        (?P<unit>days?|weeks?|months?|years?|tage?|wochen?|monate?|jahre?)
      | a\s+(?P<fortnight>fortnight)
      | (?P<near>today|tonight|tomorrow|heute|morgen)
      | (?P<bare>{_one_of(_MONTHS)})
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
    name = part.get("end") or part.get("this")
    if "iso" in part:
        return part["iso"]
    if name:
        return _month(name) if name in _MONTHS else f"end:{PERIODS.get(UNITS.get(name, ''), name)}"
    if "fortnight" in part:
        return "+2w" if lead == "for" else None
    if "day" in part or "day2" in part:
        return _day(part)
    if "weekday" in part:
        return f"weekday:{DAYS[_DAYS[part['weekday']]]}"
    if "count" in part and lead in ("for", "für"):
        count = part["count"]
        return f"+{int(count) if count.isdigit() else _COUNTS[count]}{UNITS[part['unit']]}"
    if "near" in part:
        return "tomorrow" if part["near"] in ("tomorrow", "morgen") else "today"
    if "bare" in part and lead in ("until", "till", "by", "in", "through", "during", "bis", "im"):
        return _month(part["bare"])
    return None


def _month(name: str) -> str:
    return f"month:{MONTH_CODES[_MONTHS[name]]}"


def _day(part: dict[str, str]) -> str | None:
    day, month = int(part.get("day") or part["day2"]), part.get("month") or part["month2"]
    year = part.get("year") or part.get("year2")
    return (
        f"{year + '-' if year else ''}{_MONTHS[month] + 1:02}-{day:02}" if 1 <= day <= 31 else None
    )


VALUE_LIMIT = 60


_END = re.compile(
    r"""^(?:i\s+no\s+longer\s+(?P<a>.+)
      | i(?:\s+am|['’]m)\s+no\s+longer\s+(?P<b>.+)
      | i\s+(?:have\s+|['’]ve\s+|just\s+)?(?:quit|stopped|gave\s+up|given\s+up)\s+(?P<c>.+)
      | i(?:\s+am|['’]m)\s+not\s+(?P<d>.+?)\s+any\s?more
      | i\s+(?:do\s+not|don['’]t)\s+(?P<e>.+?)\s+any\s?more
      | (?:the|my|our)\s+(?P<f>.+?)\s+(?:is|are|was|has\s+been|got)\s+(?:over|finished|done
        |cancelled|canceled|called\s+off|off)$ )""",
    re.IGNORECASE | re.VERBOSE,
)
_EVENTS = (
    "deadline|due date|appointment|meeting|interview|exam|test|flight|trip|wedding|conference"
    "|holiday|vacation|visit|delivery|contract|lease|visa|passport|presentation|talk|course|party|concert"
    "|check-?up|hand-?over|move|move-in|termin|frist"
)
_EVENT = re.compile(
    rf"""^(?:(?:the|my|our|i\s+have\s+(?:an?|my|the)|there\s+is\s+an?|mein\w*)\s+)
        (?P<of>(?:[\w'’-]+\s+){{0,4}}?)(?P<what>{_EVENTS})\b
        (?:\s+(?:for|of)\s+(?:the\s+|my\s+|our\s+)?(?P<for>[\w-]+(?:\s+[\w-]+){{0,2}}?)
           (?=\s+(?:is|has|was|got|moved|ends|expires|starts|slipped|on|at|now)\b))?
        (?P<rest>.*)$""",
    re.IGNORECASE | re.VERBOSE,
)
_TASK = re.compile(
    r"^i\s+(?:have\s+to|need\s+to|must|am\s+supposed\s+to)\s+(?P<v>.+)$", re.IGNORECASE
)
_TRIP = re.compile(
    with_parts(
        "^(?:{IM}{ADV}(?:going|flying|travelling|traveling|driving|off)|i (?:will )?(?:fly|travel))"
        " to (?P<v>.+)$"
    ),
    re.IGNORECASE,
)
_STAY = re.compile(with_parts("^{IM}{ADV}(?P<v>(?:in|at|on|visiting) .+)$"), re.IGNORECASE)
_ASKED = re.compile(
    r"^(?:please\s+)?(?:remember|note|keep\s+in\s+mind|(?:do(?:n['’]t|\s+not)|never)\s+forget)\b"
    r"(?:\s+that)?[\s,:]*",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"^(?:it|this|that|them|these|those|you|your|him|her|us|how|when|what|where|to know|the idea"
    r"|the sound|to see|to hear|to think|nothing|das|es|dich)\b",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"""\s*(?:[;(\[–—]|\s-\s|,?\s+\b(?:since|because|so|but|although|though|when|while|too|as\ well
        |these\ days|right\ now|at\ the\ moment|currently|any\ ?more|a\ lot|very\ much|so\ much
        |most\ of\ all|especially|anyway|again|now|please|you\ know|which|who|nowadays|und|aber
        |seit)\b
        ).*$""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_PLACE_CUT = re.compile(
    r"\s*(?:,|\s(?:with|for|near|and|to|at|from|where|last|this|next|yesterday|recently)\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_ITEMS = re.compile(r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|und|oder)\s+")
_HELLO = re.compile(
    rf"^{GREETING}\W+(?:i\s+am|i['’]m|this\s+is|ich\s+bin)\s+(?P<v>(?-i:[A-ZÀ-Þ])[\w'’-]+"
    r"(?:\s+(?-i:[A-ZÀ-Þ])[\w'’-]+)?)(?=\W*$)",
    re.IGNORECASE,
)
_WITH = re.compile(
    with_parts(r"\bwith (?:my|our) (?P<n>{PARTNERS}) (?P<v>(?-i:[A-ZÀ-Þ])[\w'’-]+)"), re.IGNORECASE
)
_NATIONS = ("ish", "ese", "german", "american", "italian", "russian", "french", "dutch", "back")
_TEMPORARY = ("until", "till", "up to", "through", "bis")


def statements(text: str) -> Iterator[Statement]:
    """The facts that a message states about its writer, in order."""
    for clause in clauses(text):
        facts = [fact for fact in _read(clause) if len(fact.value) <= VALUE_LIMIT]
        asked = _ASKED.match(clause)
        if asked and not facts:
            facts = _note(clause, clause[asked.end() :])
        yield from (replace(fact, asked=asked is not None) for fact in facts)


def _read(clause: str) -> list[Statement]:
    greeting = _HELLO.match(clause)
    if greeting and not greeting["v"].casefold().endswith(_NATIONS):
        return [Statement("profile", "name", greeting["v"], False, clause)]
    plain = without_filler(clause)
    whens = time_phrases(plain)
    ended = _END.match(plain)
    if ended:
        what = next(group for group in ended.groups() if group)
        return [Statement("fact", "ended", what, False, clause, ends=True)]
    dated = _event(clause, plain, whens) if whens else []
    if dated:
        return dated
    for pattern in PATTERNS:
        match = pattern.match.match(plain)
        if match:
            beside = _WITH.search(plain)
            more = [Statement("profile", "partner", beside["v"], False, clause)] if beside else []
            return [*_facts(pattern, match, clause, whens), *more]
    return []


def _event(clause: str, plain: str, whens: list[TimePhrase]) -> list[Statement]:
    """Facts with a date: a deadline, an appointment, a journey, a task."""
    when = whens[-1]
    if re.search(r"\b(?:not|n['’]t|nicht|kein)\b|n['’]t\b", plain, re.IGNORECASE):
        return []
    event = _EVENT.match(plain)
    if event and when.start >= event.start("rest"):
        key = _event_key(event)
        verb = re.search(
            r"\b(?:ends|expires|starts|begins|runs out)\b", event["rest"], re.IGNORECASE
        )
        if re.search(r"\bwas\s+(?:on|in|at|\d)", event["rest"], re.IGNORECASE):
            return []
        if verb:
            value = event["rest"][verb.start() :]
        else:
            place = re.match(r"\s*(?:at|with|in|about)\s", event["rest"], re.IGNORECASE)
            value = event["rest"] if place and when.words not in place[0] else when.words
        return [Statement("fact", key, _tidy(value), False, clause, when.said, when.code)]
    for pattern, key, many in ((_TASK, "task", True), (_TRIP, "trip", True)):
        match = pattern.match(plain)
        if match:
            return [Statement("fact", key, _tidy(match["v"]), many, clause, when.said, when.code)]
    stay = _STAY.match(plain)
    if stay and _is_duration(when):
        value = _tidy(stay["v"])
        return [Statement("fact", "current_stay", value, False, clause, when.said, when.code)]
    return []


def _is_duration(when: TimePhrase) -> bool:
    """Whether the phrase says how long something holds, not when it is."""
    return when.lead in _TEMPORARY or when.code.startswith(("+", "end:"))


def _event_key(event: re.Match[str]) -> str:
    drop = {"new", "next", "final", "big", "first", "last", "old", "the", "an", "a", "another"}
    words = f"{event['for'] or ''} {event['of'] or ''} {event['what']}".casefold().split()
    return as_key(" ".join(word for word in words if word not in drop))


def _facts(
    pattern: Pattern, match: re.Match[str], clause: str, whens: list[TimePhrase]
) -> list[Statement]:
    groups = match.groupdict()
    value = groups["v"]
    until = next((when for when in whens if _is_duration(when)), None)
    if pattern.key == "planned_move":
        until = whens[-1] if whens else None
    elif until is not None:
        value = value.split(until.said)[0]
    value = _CUT.sub("", value)
    if pattern.is_place:
        value = _PLACE_CUT.sub("", value)
    items = _ITEMS.split(value) if pattern.listed else [value]
    prefix = pattern.prefix.format(**{k: (v or "").casefold() for k, v in groups.items()})
    facts = []
    for item in (_tidy(item) for item in items):
        if not item or _NOISE.match(item) or len(item.split()) > 8:
            break
        key = pattern.key_of(item, groups)
        shown = re.sub(r"^(?:a|an|the|my)\s+", "", item) if key == "home" else item
        fact = Statement(pattern.type, key, prefix + shown, pattern.many, clause)
        facts.append(replace(fact, until_said=until.said, until=until.code) if until else fact)
    return facts


def _note(clause: str, rest: str) -> list[Statement]:
    """What the user asked to remember, as a note, where no pattern fits."""
    value = _tidy(rest)
    if not 3 <= len(value) <= VALUE_LIMIT or len(value.split()) < 2 or find_secrets(value):
        return []
    when = next(iter(time_phrases(value)), None)
    note = Statement("other", "note", value, True, clause)
    return [replace(note, until_said=when.said, until=when.code) if when else note]


def _tidy(value: str) -> str:
    return " ".join(value.split()).strip(" .,;:!\"“”'")
