"""Looks through what another product exported before any of it is imported, and writes a page of
what should not be taken along: mostly of the facts that the product had saved.

No store is opened, no model is asked, and nothing is kept. So it tells what code can know of words,
which is less than what they mean, and the page says so.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from memchat.errors import InputError
from memchat.facts import keys
from memchat.facts.audit import GROUP_MOST, why_junk
from memchat.language.calendar import parse_phrase
from memchat.language.secrets import find_secrets
from memchat.language.statements import SENTENCE_LIMIT, statements
from memchat.language.text import content_words, normal_value, visible_text
from memchat.learn.own_words import reads_as_instruction
from memchat.learn.values import VALUE_LIMIT, contains_words, difference
from memchat.transfer.export import as_markdown
from memchat.transfer.formats import SavedFact
from memchat.transfer.source import OWN, Source
from memchat.types import OnProgress, counted, first_words, timed

WORST = 10
_SHOWN = 200
"""Characters of a text on the page."""
_LONG = 400
"""Characters from which a message that was sent again is taken for one that was pasted."""
_RESTATED = 0.8
"""The share of a fact's words in one sentence of the rules from which it restates them."""
_SUBJECT = r"(?:the )?(?:user|person|she|he|they)"
_PERSON = (
    (re.compile(rf"{_SUBJECT}['’]s\b|(?=(?:name|job|birthday) is\b)", re.I), "My "),
    (re.compile(rf"(?:{_SUBJECT} )?(?:is|are)\b", re.I), "I am"),
    (re.compile(rf"(?:{_SUBJECT} )?has\b", re.I), "I have"),
    (re.compile(rf"(?:{_SUBJECT} )?(\w+[^\Ws])s\b", re.I), r"I \1"),
)
"""How a sentence about a person begins, as that person would say it."""


_MEANS = {
    "Secrets": "Saved facts that look like a password, a key, a card number or an address. They "
    "are counted and nowhere shown, and the lists below leave them out.",
    "Duplicates": "The same words, or all the words of another one, apart from endings and case.",
    "Contradictions": "What looks like one: several values of something that has one value, newest "
    "first, read in plain English and German sentences or “key: value”; or the same words with a "
    "“not”. Both may be true, each in its time.",
    "Stale": "Their last day is over; the day that they name lay ahead when they were saved, and "
    "is past; or they say “tomorrow” or “next week”, which means another day by now.",
    "Junk": "Questions, words without content, and long texts. Whether a plain sentence is worth "
    "keeping only a reader can tell.",
    "Restated system prompts": "They tell the assistant what to do, hide letters, or have their "
    "words from the instructions that are in the export.",
    "Secrets in messages": "Messages of yours that hold one. They are counted and nowhere shown.",
    "Pasted again": "Long messages that were sent again in the same words. Often they are "
    "instructions, or a text to work on, and tell nothing of you.",
    "Left out": "What was not looked at, with the reason.",
}
"""What is found, and how far code can tell."""
_LIMITS = (
    "Code looked at words here, and no model read them: a finding is a reason to look, and what "
    "has none need not be true. Nothing of the export was kept."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with an export."""

    kind: str
    count: int
    worst: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryAudit:
    """What was found in an export."""

    product: str
    saved: int
    """How many facts the product had saved."""
    conversations: int
    messages: int
    """How many messages the person wrote."""
    findings: tuple[Finding, ...]
    left_out: dict[str, int]


def audit(path: Path, today: date, progress: OnProgress | None = None) -> HistoryAudit:
    """Look through an export. Raises InputError where nothing in it is known, or there is nothing
    to look at."""
    source, look, report = Source(path), _Look(today), timed(progress, "items")
    talks = 0
    for number, (_, item) in enumerate(source.items(), 1):
        if isinstance(item, SavedFact):
            look.facts.append(item)
        else:
            talks += 1
            for turn in item.turns:
                if turn.role == "user":
                    look.hear(turn.text)
        report(number, number)
    if OWN in source.products:
        raise InputError(f"{path} is an export of memchat; memchat audit looks through its store")
    if not (talks or look.facts):
        raise InputError(f"nothing in {path} can be looked at{source.why}")
    of_facts = look.of_facts(source.rules) if look.facts else ()
    product, left_out = " and ".join(source.products), dict(source.left_out)
    findings = (*of_facts, *look.of_messages())
    return HistoryAudit(product, len(look.facts), talks, look.heard, findings, left_out)


@dataclass(slots=True)
class _Look:
    """What is gathered of an export, and looked through."""

    today: date
    facts: list[SavedFact] = field(default_factory=list)
    heard: int = 0
    _secrets: Counter[str] = field(default_factory=Counter)
    _in_messages: int = 0
    _long: set[int] = field(default_factory=set)
    """The hashes of the long messages."""
    _again: Counter[int] = field(default_factory=Counter)
    """How often each of them was sent again."""
    _begins: dict[int, str] = field(default_factory=dict)
    """How those begin."""

    def hear(self, text: str) -> None:
        """Count a message of the person."""
        self.heard += 1
        kinds = {one.kind for one in find_secrets(text)}
        self._secrets.update(kinds)
        self._in_messages += bool(kinds)
        if len(text) >= _LONG:
            name = hash(text)
            if name in self._long:
                self._again[name] += 1
                self._begins[name] = "(it holds a secret)" if kinds else _short(text)
            self._long.add(name)

    def of_messages(self) -> Iterator[Finding]:
        """What was found in the person's messages."""
        if self.heard:
            yield _of_kinds("Secrets in messages", self._in_messages, self._secrets)
            most = self._again.most_common(WORST)
            shown = (f"{count + 1} × {self._begins[name]}" for name, count in most)
            yield Finding("Pasted again", self._again.total(), tuple(shown))

    def of_facts(self, rules: Iterable[str]) -> Iterator[Finding]:
        """What was found in the saved facts. Those with a secret are not looked at any further, so
        that no list shows one. ``rules`` are what the assistant had been told."""
        held = [{one.kind for one in find_secrets(fact.text)} for fact in self.facts]
        kinds = Counter(kind for one in held for kind in one)
        yield _of_kinds("Secrets", sum(map(bool, held)), kinds)
        groups = defaultdict[str, list[SavedFact]](list)
        for fact, secret in zip(self.facts, held, strict=True):
            if not secret:
                groups[normal_value(fact.text)].append(fact)
        known = sorted(groups.values(), key=lambda group: group[0].day or date.min, reverse=True)
        facts = [group[0] for group in known]
        pairs = [*_alike([fact.text for fact in facts])]
        near, denied = (
            [f"{_quote(facts[a])} / {_quote(facts[b])}" for a, b, denies in pairs if denies == kind]
            for kind in (False, True)
        )
        copies = sorted((group for group in known if len(group) > 1), key=len, reverse=True)
        again = sum(len(group) - 1 for group in copies)
        shown = [*(f"{len(group)} × {_quote(group[0])}" for group in copies), *near]
        yield Finding("Duplicates", again + len(near), tuple(shown[:WORST]))
        slots = [*self._slots(facts), *denied]
        yield Finding("Contradictions", len(slots), tuple(slots[:WORST]))
        checks = {"Stale": self._why_stale, "Junk": _why_junk}
        checks["Restated system prompts"] = _Rules(rules).why
        for kind, check in checks.items():
            found = [f"{_quote(fact)}: {why}" for fact in facts[::-1] if (why := check(fact))]
            yield Finding(kind, len(found), tuple(found[:WORST]))

    def _slots(self, facts: Sequence[SavedFact]) -> list[str]:
        """The keys that hold one value and have several, with them, those with the most first."""
        held = defaultdict[str, dict[str, str]](dict)
        for fact in facts:
            for key, value in _read(fact.text):
                day = f" ({fact.day})" if fact.day else ""
                held[key].setdefault(normal_value(value), f"“{_short(value)}”{day}")
        found = sorted(
            ((key, [*one.values()]) for key, one in held.items()), key=lambda p: -len(p[1])
        )
        return [f"{key}: {', '.join(values[:WORST])}" for key, values in found if len(values) > 1]

    def _why_stale(self, fact: SavedFact) -> str | None:
        if fact.until and fact.until < self.today:
            return f"its last day was {fact.until}"
        if len(fact.text) > VALUE_LIMIT:
            return None
        named, day = parse_phrase(fact.text), None
        if named.year and (named.month or named.dates):
            month, of_month = named.dates[0] if named.dates else (named.month or 1, named.day or 28)
            try:
                day = date(named.year, month, of_month)
            except ValueError:
                return None
            ahead = fact.day is not None and fact.day < day < self.today
            return f"{day} lay ahead when it was saved" if ahead else None
        part = (named.weekday, named.month, named.unit)
        is_next = named.next and any(one is not None for one in part)
        then = fact.day is None or fact.day < self.today
        return "its day is told as seen from then" if then and (named.near or is_next) else None


def _of_kinds(kind: str, count: int, kinds: Counter[str]) -> Finding:
    shown = (f"{kind}: {count:,}" for kind, count in kinds.most_common(WORST))
    return Finding(kind, count, tuple(shown))


def _alike(texts: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Pairs of texts of which one has all words of the other, and nothing keeps them apart, or a
    negation alone, of which it tells. Each is compared with some that share its rarest word."""
    words = [{word[:3] for word in content_words(text)} for text in texts]
    common = Counter(word for one in words for word in one)
    by_word = defaultdict[str, list[int]](list)
    for new in sorted(range(len(texts)), key=lambda number: -len(words[number])):
        mine = words[new] if len(texts[new]) <= VALUE_LIMIT else set()
        rarest = min(mine, key=lambda word: (common[word], word), default="")
        for old in by_word[rarest][-GROUP_MOST:]:
            one, other, more = texts[old], texts[new], len(words[old]) - len(mine)
            if not mine <= words[old] or (len(mine) == 1 and more > 1):
                continue
            why = difference(one, other)
            if (why is None and contains_words(one, other)) or (why == "negation" and more < 2):
                yield old, new, why is not None
                break
        for word in mine:
            by_word[word].append(new)


def _read(text: str) -> Iterator[tuple[str, str]]:
    """The keys of one value that a text names, each with the value."""
    key, colon, value = text.partition(":")
    if colon and value.strip() and len(key) < 40 and re.search(r"[^\W\d_]", key):
        found = [(keys.canonical(keys.normalise_key(key)), value.strip())]
    elif len(text) <= SENTENCE_LIMIT:
        told = text.strip()
        for begins, own in _PERSON:
            if begins.match(told) and not re.match(r"(?:i|my)\b", told, re.IGNORECASE):
                told = begins.sub(own, told, count=1)
                break
        found = [(one.key, one.value) for one in statements(told) if not one.ends]
    else:
        found = []
    yield from ((key, value) for key, value in found if keys.cardinality(key) == "one")


def _why_junk(fact: SavedFact) -> str | None:
    if len(fact.text) > VALUE_LIMIT:
        return f"it is a text of {len(fact.text):,} characters"
    return why_junk(fact.text)


class _Rules:
    """What an assistant had been told, sentence by sentence."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_word = defaultdict[str, set[int]](set)
        sentences = (part for text in texts for part in re.split(r"[\n.!?]+", text))
        for number, sentence in enumerate(sentences):
            for word in content_words(sentence):
                self._by_word[word].add(number)

    def why(self, fact: SavedFact) -> str | None:
        """Why a fact restates them, or None."""
        words = content_words(fact.text)
        shared = Counter(n for word in words for n in self._by_word.get(word, ()))
        if len(words) > 3 and max(shared.values(), default=0) >= _RESTATED * len(words):
            return "its words are in the instructions"
        is_order = len(fact.text) <= SENTENCE_LIMIT and reads_as_instruction(fact.text)
        return "it tells the assistant what to do, or hides letters" if is_order else None


def _short(text: str) -> str:
    return first_words(visible_text(text), _SHOWN)


def _quote(fact: SavedFact) -> str:
    return f"“{_short(fact.text)}”" + (f" ({fact.day})" if fact.day else "")


def page(done: HistoryAudit, name: str, today: date, *, as_html: bool) -> str:
    """The audit as one page for people, in Markdown or HTML; what was in the export is shown as it
    is and never carried out."""
    escape = html.escape if as_html else as_markdown
    title, limits = escape(visible_text(f"Audit of {name}")), escape(_LIMITS)
    facts, talks = counted(done.saved, "saved fact"), counted(done.conversations, "conversation")
    about = f"{done.product}, looked at on {today}: {facts}, {talks}, "
    about = escape(f"{about}{done.messages:,} of your messages.")
    left = [f"{what}: {count:,}" for what, count in done.left_out.items()]
    rows = (*done.findings, Finding("Left out", sum(done.left_out.values()), tuple(left)))
    parts = [(one, escape(_MEANS[one.kind]), map(escape, one.worst)) for one in rows if one.count]
    if not as_html:
        counts = "\n".join(f"| {one.kind} | {one.count:,} |" for one in rows)
        lines = [f"# {title}", about, limits, f"| what | how many |\n| --- | ---: |\n{counts}"]
        for one, means, worst in parts:
            lines += [f"## {one.kind}: {one.count:,}", means, "\n".join(f"- {it}" for it in worst)]
        return "\n\n".join(lines) + "\n"
    counts = "".join(f"<tr><td>{one.kind}<td>{one.count:,}" for one in rows)
    made = [_HEAD.format(title, about, limits, counts)]
    for one, means, worst in parts:
        items = "".join(f"<li>{it}" for it in worst)
        made.append(f"<h2>{one.kind}: {one.count:,}</h2><p>{means}<ul>{items}</ul>\n")
    return "".join(made)


_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{0}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: auto; padding: 1rem; }}
body {{ overflow-wrap: anywhere; }}
td {{ padding: .2rem 1.5rem .2rem 0; }}
td + td {{ text-align: right; }}
</style><h1>{0}</h1><p>{1}<p>{2}<table>{3}</table>
"""
