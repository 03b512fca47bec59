"""What a message states about its writer: its clauses, read by the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memchat.providers.offline.clauses import GREETING, clauses, is_secret, without_filler
from memchat.providers.offline.dates import When, find_when
from memchat.providers.offline.rules import ADV, IM, KIN_KEYS, PARTNERS, RULES, Rule, place_key
from memchat.types import MemoryType

VALUE_LIMIT = 60


@dataclass(frozen=True, slots=True)
class Stated:
    """One fact as a clause states it, before it is compared with what is known."""

    type: MemoryType
    key: str
    value: str
    many: bool
    quote: str
    until_said: str | None = None
    until: str | None = None
    asked: bool = False
    ends: bool = False
    """The clause says that something is over; ``value`` is then what."""


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
    rf"^(?:{IM}{ADV}(?:going|flying|travelling|traveling|driving|off)|i\s+(?:will\s+)?(?:fly|travel))"
    r"\s+to\s+(?P<v>.+)$",
    re.IGNORECASE,
)
_STAY = re.compile(rf"^{IM}{ADV}(?P<v>(?:in|at|on|visiting)\s+.+)$", re.IGNORECASE)
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
    rf"\bwith\s+(?:my|our)\s+(?P<n>{PARTNERS})\s+(?P<v>(?-i:[A-ZÀ-Þ])[\w'’-]+)", re.IGNORECASE
)
_NATIONS = ("ish", "ese", "german", "american", "italian", "russian", "french", "dutch", "back")
_TEMPORARY = ("until", "till", "up to", "through", "bis")


def stated(text: str) -> Iterator[Stated]:
    """The facts a message states about its writer, in order."""
    for clause in clauses(text):
        facts = [fact for fact in _read(clause) if len(fact.value) <= VALUE_LIMIT]
        asked = _ASKED.match(clause)
        if asked and not facts:
            facts = _note(clause, clause[asked.end() :])
        yield from (replace(fact, asked=asked is not None) for fact in facts)


def _read(clause: str) -> list[Stated]:
    hello = _HELLO.match(clause)
    if hello and not hello["v"].casefold().endswith(_NATIONS):
        return [Stated("profile", "name", hello["v"], False, clause)]
    plain = without_filler(clause)
    whens = find_when(plain)
    ended = _END.match(plain)
    if ended:
        what = next(group for group in ended.groups() if group)
        return [Stated("fact", "ended", what, False, clause, ends=True)]
    dated = _event(clause, plain, whens) if whens else []
    if dated:
        return dated
    for rule in RULES:
        match = rule.pattern.match(plain)
        if match:
            beside = _WITH.search(plain)
            more = [Stated("profile", "partner", beside["v"], False, clause)] if beside else []
            return [*_facts(rule, match, clause, whens), *more]
    return []


def _event(clause: str, plain: str, whens: list[When]) -> list[Stated]:
    """What has a day: a deadline, an appointment, a journey, a task."""
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
        return [Stated("fact", key, _tidy(value), False, clause, when.said, when.code)]
    for pattern, key, many in ((_TASK, "task", True), (_TRIP, "trip", True)):
        match = pattern.match(plain)
        if match:
            return [Stated("fact", key, _tidy(match["v"]), many, clause, when.said, when.code)]
    stay = _STAY.match(plain)
    if stay and _is_end(when):
        value = _tidy(stay["v"])
        return [Stated("fact", "current_stay", value, False, clause, when.said, when.code)]
    return []


def _is_end(when: When) -> bool:
    """Whether the words say how long something holds, and not when it is."""
    return when.lead in _TEMPORARY or when.code.startswith(("+", "end:"))


def _event_key(event: re.Match[str]) -> str:
    drop = {"new", "next", "final", "big", "first", "last", "old", "the", "an", "a", "another"}
    words = f"{event['for'] or ''} {event['of'] or ''} {event['what']}".casefold().split()
    return snake(" ".join(word for word in words if word not in drop))


def _facts(rule: Rule, match: re.Match[str], clause: str, whens: list[When]) -> list[Stated]:
    groups = match.groupdict()
    value = groups["v"]
    place = rule.key in (place_key, "hometown", "employer", "job", "planned_move", "learning")
    until = next((when for when in whens if _is_end(when)), None)
    if rule.key == "planned_move":
        until, place = (whens[-1] if whens else None), False
    if until is not None and rule.key != "planned_move":
        value = value.split(until.said)[0]
    value = _CUT.sub("", value)
    if place:
        value = _PLACE_CUT.sub("", value)
    items = _ITEMS.split(value) if rule.listed else [value]
    prefix = rule.prefix.format(**{k: (v or "").casefold() for k, v in groups.items()})
    facts = []
    for item in (_tidy(item) for item in items):
        if not item or _NOISE.match(item) or len(item.split()) > 8:
            break
        key = rule.key(item) if callable(rule.key) else _named(rule.key, groups)
        shown = re.sub(r"^(?:a|an|the|my)\s+", "", item) if key == "home" else item
        fact = Stated(rule.type, key, prefix + shown, rule.many, clause)
        facts.append(replace(fact, until_said=until.said, until=until.code) if until else fact)
    return facts


def _named(key: str, groups: dict[str, str | None]) -> str:
    name = (groups.get("k") or "").casefold()
    return snake(KIN_KEYS.get(name, key.format(k=name)))


def _note(clause: str, rest: str) -> list[Stated]:
    """Words the user asked to remember, where no pattern reads them."""
    value = _tidy(rest)
    if not 3 <= len(value) <= VALUE_LIMIT or len(value.split()) < 2 or is_secret(value):
        return []
    when = next(iter(find_when(value)), None)
    note = Stated("other", "note", value, True, clause)
    return [replace(note, until_said=when.said, until=when.code) if when else note]


def snake(text: str) -> str:
    """A key: lower case words joined by underscores, digits left out."""
    return re.sub(r"[\W\d_]+", "_", text.casefold().replace("'s", "").replace("’s", "")).strip("_")


def _tidy(value: str) -> str:
    return " ".join(value.split()).strip(" .,;:!\"“”'")
