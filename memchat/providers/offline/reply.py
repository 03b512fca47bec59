"""``offline/chat``: answers from recalled memories and notes and this conversation, by patterns.

It repeats only what these or the user's messages say, and says so when that is not enough.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memchat.language.statements.clauses import without_filler
from memchat.language.statements.reader import statements
from memchat.language.statements.statement import Statement
from memchat.providers.offline.topics import (
    SENTENCES,
    VERBS,
    content_words,
    memory_topics,
    question_topics,
)

SHOWN = 4
READ = 1000
"""Characters of a message, half of them from its end, in which a question is looked for."""
_BLOCK = re.compile(r"<memories mark=\"([^\"]*)\">\n(.*?)</memories mark=\"\1\">", re.DOTALL)
_NOTES = re.compile(r"<notes mark=\"([^\"]*)\">\n(.*?)</notes mark=\"\1\">", re.DOTALL)
_PASSAGE = re.compile(
    r"^- “(?P<title>.*?)”, (?P<day>\d{4}-\d\d-\d\d): (?P<words>.*)$", re.MULTILINE
)
_LINE = re.compile(r"^- (?:#(?P<id>\d+)|\[conversation\]) (?P<text>.*)$", re.MULTILINE)
_FACT = re.compile(
    r"^(?P<key>[^:]+): (?P<value>.*?)"
    r"(?: \((?:said (?P<said>[\d-]+)|stored [\d-]+|from [\d-]+|until [\d-]+|before: )[^()]*\))?$"
)
_PAST_TURN = re.compile(r"^(?P<said>[\d-]+) user: (?P<value>.*)$")
_ABOUT_ME = re.compile(
    r"""\b(?:what|everything|anything|all)\b.*\b(?:know|remember(?:ed)?|learn(?:ed|t)?)\b.*\b(?:about|of)\s+
        (?:me|us)\b | \bwho\s+am\s+i\b | \b(?:was|alles)\b.*\bweißt\b.*\bmich\b
        | \bwhat\s+do\s+you\s+remember\s*\??$ | \btell\s+me\s+about\s+(?:me|myself)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REQUEST = re.compile(
    r"""[?？] | ^\W*(?:please\s+)?(?:suggest|recommend|plan|help|give|tell|find|list|show|make|write
        |draft|explain|what|where|when|which|who|how|why|can|could|should|do|does|is|are|any
        |was|wo|wann|wer|wie|welche\w*|empfiehl\w*)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HELLO = re.compile(r"^\W*(?:hi|hello|hey|hallo|good\s+\w+|guten\s+\w+)\W*$", re.IGNORECASE)

STAND_IN = "I am the offline stand-in, not a real model"


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory of the block, or a fact from this conversation."""

    key: str
    value: str
    said: str | None = None
    """The day it was said, if the block has it; None for this conversation."""
    past_turn: bool = False
    """Whether it is an earlier message and not a typed fact."""


def reply(messages: Sequence[Mapping[str, Any]]) -> str:
    """The stand-in's answer to the last user message."""
    system = "\n".join(_text(m) for m in messages if m.get("role") == "system")
    said = [_text(m) for m in messages if m.get("role") == "user"]
    if not said or not said[-1].strip():
        return f"{STAND_IN}; tell me something about yourself, or ask what I remember."
    remembered, now = memories(system), said[-1]
    focus = now if len(now) <= READ else f"{now[: READ // 2]} {now[-READ // 2 :]}"
    before = _latest(remembered, [fact for text in said[:-1] for fact in statements(text)])
    told = list(statements(now))
    facts = _latest(before, told)
    if _ABOUT_ME.search(focus):
        return _everything(facts)
    parts = [_acknowledge(told, before)] if told else []
    question = _question(focus, told)
    if question:
        new = {(fact.key, fact.value) for fact in told}
        known = [fact for fact in facts if (fact.key, fact.value) not in new]
        parts.append(_answer(question, known, _best_passage(system), has_told=bool(told)))
    return " ".join(parts) or _small_talk(focus)


def memories(system: str) -> list[Fact]:
    """The memories of the block in a system message, in its order."""
    block = _BLOCK.search(system)
    found: dict[str, Fact] = {}
    for line in _LINE.finditer(block[2] if block else ""):
        text = html.unescape(line["text"]).strip()
        past_turn = line["id"] is None
        match = (_PAST_TURN if past_turn else _FACT).match(text)
        if match:
            key = "" if past_turn else match["key"].strip()
            # A fact may occur twice: in the list, and with the value it replaced.
            found[line["id"] or text] = Fact(key, match["value"].strip(), match["said"], past_turn)
    return list(found.values())


def _question(text: str, told: Sequence[Statement]) -> str:
    """The question in a message, without its statements; empty if there is none."""
    for fact in told:
        text = text.replace(fact.quote, " ")
    text = text.strip(" .,;!")
    return text if _REQUEST.search(without_filler(text)) else ""


def _latest(facts: Sequence[Fact], told: Sequence[Statement]) -> list[Fact]:
    """The facts with later statements added: a new value replaces the old one of its key."""
    facts = list(facts)
    for new in told:
        if new.ends:
            over = content_words(new.value)
            facts = [old for old in facts if not over & content_words(f"{old.key} {old.value}")]
            continue
        facts = [
            old
            for old in facts
            if old.past_turn
            or not _same_slot(old.key, new)
            or (new.many and old.value != new.value)
        ]
        facts.append(Fact(new.key, new.value))
    return facts


def _same_slot(key: str, new: Statement) -> bool:
    mine, theirs = set(new.key.split("_")), set(key.split("_"))
    same_event = new.until is not None and not new.many and (mine <= theirs or theirs <= mine)
    return key == new.key or (same_event and key.split("_")[-1] == new.key.split("_")[-1])


def _everything(facts: Sequence[Fact]) -> str:
    lines = [f"- {_tell(fact)}{_when(fact)}" for fact in facts if not fact.past_turn]
    if not lines:
        return "I remember nothing about you yet. Tell me something about yourself."
    return "This is what I have at hand about you:\n" + "\n".join(lines)


def _acknowledge(told: Sequence[Statement], before: Sequence[Fact]) -> str:
    sentences = []
    for fact in told:
        if fact.ends:
            sentences.append(f"you said “{fact.quote}”")
            continue
        old = next((f for f in before if f.key and _same_slot(f.key, fact)), None)
        changed = old is not None and not fact.many and old.value != fact.value
        past = f" (before: {old.value})" if changed and old is not None else ""
        sentences.append(_tell(Fact(fact.key, fact.value)) + past)
    return "Noted: " + "; ".join(sentences) + "."


def _best_passage(system: str) -> str:
    """The first passage of the person's notes in a system message, in a sentence; or nothing."""
    block = _NOTES.search(system)
    first = _PASSAGE.search(block[2]) if block else None
    return (
        f"Your note “{first['title']}” of {first['day']} says: “{first['words']}”" if first else ""
    )


def _answer(question: str, facts: Sequence[Fact], note: str, *, has_told: bool) -> str:
    chosen = _relevant(question, facts)
    if not chosen and note:
        return note
    if not chosen and _is_lookup(question):
        return "You have not told me that."
    if not chosen:
        sorry = f"{STAND_IN}, so I cannot help with that"
        return f"{sorry}." if has_told else f"I have nothing about that from you. {sorry}."
    told = "; ".join(f"{_tell(fact)}{_when(fact)}" for fact in chosen)
    if _is_lookup(question):
        return f"{told[:1].upper()}{told[1:]}."
    return f"From what you told me: {told}. {STAND_IN}, so that is all."


def _is_lookup(question: str) -> bool:
    """Whether the question asks for a fact about the user, not for advice."""
    low = question.casefold()
    if re.search(r"\b(?:should|could|can|suggest|recommend|ideas?|help|plan)\b", low):
        return False
    asks = r"\b(?:what(?:['’]s|\s+is|\s+are|\s+was)?|which|do|am|is|are|was|wie)\b"
    mine = r"\b(?:i|my|me|our|ich|mein\w*)\b"
    place_or_time = r"^\W*(?:and\s+)?(?:where|when|who|how old|wo|wann|wer)\b"
    return bool(re.search(place_or_time, low) or (re.search(asks, low) and re.search(mine, low)))


def _relevant(question: str, facts: Sequence[Fact]) -> list[Fact]:
    """The facts with a word or topic of the question, best first."""
    words, topics = content_words(question), question_topics(question)
    scored = []
    for place, fact in enumerate(facts):
        shared = len(words & content_words(f"{fact.key} {fact.value}"))
        about = 0 if fact.past_turn else len(topics & memory_topics(fact.key, fact.value))
        if shared or about:
            scored.append((-(2 * shared + 2 * about - fact.past_turn), place, fact))
    scored.sort(key=lambda item: item[:2])
    best = [fact for _, _, fact in scored if not fact.past_turn] or [fact for _, _, fact in scored]
    if _is_lookup(question) and scored:
        top = scored[0][0]
        best = [fact for score, _, fact in scored if score == top]
    return best[:SHOWN]


def _tell(fact: Fact) -> str:
    """A fact in the second person: ``you live in Lisbon``."""
    if fact.past_turn:
        return f"you said “{fact.value}”"
    for verb, yours in VERBS.items():
        if fact.value.startswith(verb + " "):
            return f"you {yours}{fact.value.removeprefix(verb)}"
    key, value = fact.key.replace("_", " "), fact.value
    if fact.key == "job" and value[:1].islower() and not re.match(r"(?:an?|the)\s", value):
        value = f"{'an' if value[0] in 'aeiou' else 'a'} {value}"
    shape = SENTENCES.get(fact.key)
    if shape is None and re.match(r"(?:ends|expires|starts|begins|runs out)\b", value):
        shape = "your {k} {v}"
    elif shape is None:
        plain = fact.key.startswith("favourite_") or "dates" in memory_topics(fact.key, "")
        shape = "your {k} is {v}" if plain else "your {k}: {v}"
    return shape.format(k=key, v=value)


def _when(fact: Fact) -> str:
    return f" (said {fact.said})" if fact.said else ""


def _small_talk(text: str) -> str:
    if _HELLO.match(text):
        return f"Hello! {STAND_IN}, but I do remember: tell me something about yourself."
    return f"I have read that. {STAND_IN}, so I only answer from what you told me."


def _text(message: Mapping[str, Any]) -> str:
    return str(message.get("content") or "")
