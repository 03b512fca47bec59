"""Reading the statements of a message: its clauses, compared with the patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memchat.language.secrets import find_secrets
from memchat.language.statements.clauses import GREETING, clauses, without_filler
from memchat.language.statements.patterns import PATTERNS, Pattern, as_key, with_parts
from memchat.language.statements.statement import Statement
from memchat.language.statements.time_phrases import TimePhrase, time_phrases

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
    with_parts(r"\bwith (?:my|our) (?P<n>{PARTNERS}) (?P<v>(?-i:[A-ZÀ-Þ])[\w'’-]+)"),
    re.IGNORECASE,
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
