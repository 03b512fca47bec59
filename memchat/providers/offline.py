"""The offline stand-in: a chat model that works by patterns, without a network or a key.

It lets people try, test and demonstrate memchat; it is not a language model and says so.
``offline/extract`` proposes facts from plain first-person sentences. ``offline/chat`` repeats only
what the memories, the notes and the user's messages say, and says so when that is not enough. The
same input always gives the same output.
"""

from __future__ import annotations

import html
import json
import re
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from memchat.config.providers import DEFAULT_WINDOW
from memchat.language.secrets import find_secrets
from memchat.language.statements import (
    Statement,
    clauses,
    is_food,
    statements,
    stem,
    without_filler,
)
from memchat.language.telling import acting, sentence_of
from memchat.providers import Completion
from memchat.types import REPLY_LIMIT, ChatMessage, Usage, clean_text


class OfflineChat:
    """The stand-in as a ``ChatModel``; ``chat`` and ``extract`` are its two models."""

    stand_in = True
    tools = False
    sees = False
    schema_mode = False

    def __init__(self, name: str = "offline/chat", window: int = DEFAULT_WINDOW) -> None:
        self.name = name
        self.window = window

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> OfflineStream:
        """The answer, word by word."""
        return OfflineStream(self.name, messages)

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """The answer, whole."""
        stream = OfflineStream(self.name, messages, purpose)
        return Completion(clean_text("".join(stream))[:REPLY_LIMIT], stream.usage)


class OfflineStream:
    """An answer of the stand-in as a ``ChatStream``."""

    calls = ()

    def __init__(self, name: str, messages: Sequence[ChatMessage], purpose: str = "chat") -> None:
        self._name, self._messages, self._purpose = name, messages, purpose
        self._came: list[str] = []
        self._closed = self.whole = False
        self._started = time.perf_counter()

    def __iter__(self) -> Iterator[str]:
        text = answer(self._name, [{"role": m.role, "content": m.content} for m in self._messages])
        for word in re.findall(r"\s*\S+\s*", text):
            if self._closed:
                return
            self._came.append(word)
            yield word
        self.whole = not self._closed

    def close(self) -> None:
        """Stop the answer."""
        self._closed = True

    @property
    def usage(self) -> Usage:
        """Tokens, estimated as a quarter of the characters."""
        asked = sum(len(message.content) for message in self._messages) // 4
        told = max(1, len("".join(self._came)) // 4)
        spent = time.perf_counter() - self._started
        return Usage(self._purpose, self._name, asked, told, 0.0, spent)


def answer(model: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """The answer of the model ``chat`` or ``extract`` to these messages."""
    if model.rpartition("/")[2] == "extract":
        return json.dumps(extract_messages(messages), ensure_ascii=False)
    return reply(messages)


_WORD = re.compile(r"\w+(?:['’]\w+)?")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")
_DATA = tomllib.loads((files("memchat.providers") / "offline_words.toml").read_text("utf-8"))
SENTENCES: dict[str, str] = _DATA["sentences"]
"""Sentences for keys whose values have the form that the patterns give them."""
_STOP = frozenset(_DATA["stop"].split())


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


_ASKED = {topic: _stems(words["question"]) for topic, words in _DATA["topics"].items()}
_KEYS = {
    topic: _stems(words["key"]) | {*words["key"].split()}
    for topic, words in _DATA["topics"].items()
}


def content_words(text: str) -> frozenset[str]:
    """The stems that carry meaning; scripts without spaces give overlapping pairs of characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.replace("_", " ")):
        for run in _UNSPACED.findall(word):
            found.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        if not _UNSPACED.search(word) and word.casefold() not in _STOP:
            found.add(stem(word))
    return frozenset(found)


def question_topics(text: str) -> frozenset[str]:
    """What a question is about."""
    return _topics(_ASKED, {stem(word) for word in _WORD.findall(text)}, text)


def memory_topics(key: str, value: str) -> frozenset[str]:
    """What a memory is about, by its key, and by its value where that names a food."""
    return _topics(_KEYS, {stem(part) for part in key.split("_")} | {key}, value)


def _topics(words: dict[str, frozenset[str]], given: set[str], text: str) -> frozenset[str]:
    found = {topic for topic, known in words.items() if not known.isdisjoint(given)}
    return frozenset(found | ({"food"} if is_food(text) else set()))


FACT_LIMIT = 10
_FENCE = re.compile(r"<data mark=\"[^\"]*\">\s*(\{.*\})\s*</data", re.DOTALL)
_FORGET = re.compile(
    r"^(?:please\s+)?(?:forget|delete|do\s+not\s+remember|don['’]t\s+remember|vergiss)\b"
    r"(?!\s+it\b)\s*(?:about\s+|that\s+)?(?P<what>.+)",
    re.IGNORECASE,
)

Known = Mapping[str, Any]


def extract_messages(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer to an extraction call; empty where its data cannot be read.

    If the call contains an earlier answer, only the facts after that.
    """
    given: list[Any] = []
    for message in reversed(messages):
        content = str(message.get("content") or "")
        match = _FENCE.search(content)
        if message.get("role") == "assistant" and not given:
            given = _object(content).get("facts") or []
        elif match and message.get("role") == "user":
            return extract(_object(match[1]), after=given[-1] if given else None)
    return extract({})


def extract(data: Mapping[str, Any], *, after: dict[str, Any] | None = None) -> dict[str, Any]:
    """The facts, forget requests, title and summary of a transcript; with ``after``, only the facts
    that follow that one."""
    known: list[Known] = list(data.get("known") or [])
    turns = [turn for turn in data.get("transcript") or [] if turn.get("role") == "user"]
    facts: list[dict[str, Any]] = []
    forget: list[dict[str, Any]] = []
    for turn in turns:
        for fact in statements(str(turn["text"])):
            proposed = _propose(fact, turn["id"], known)
            if proposed is not None:
                facts = [old for old in facts if not _replaced(old, proposed)] + [proposed]
        forget += _forget_requests(turn, known)
    if after is not None:
        rest = facts[facts.index(after) + 1 :] if after in facts else []
        return {"facts": rest[:FACT_LIMIT], "forget": [], "title": None, "summary": None}
    return {
        "facts": facts[:FACT_LIMIT],
        "forget": forget,
        "title": _title(turns),
        "summary": _summary(facts[:FACT_LIMIT]),
    }


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _propose(fact: Statement, message_id: str, known: Sequence[Known]) -> dict[str, Any] | None:
    target, verdict = _end_target(fact, known) if fact.ends else _compare(fact, known)
    if fact.ends and target is None:
        return None
    key, kind, value, many = fact.key, fact.type, fact.value, fact.many
    if target is not None:
        key, kind = target["key"], target.get("type", kind)
        many = target.get("holds", "many" if many else "one") == "many"
        value = target["value"] if fact.ends else value
    return {
        "quotes": [{"msg": message_id, "text": fact.quote}],
        "ref": None,
        "type": kind,
        "key": key,
        "value": value,
        "sentence": None if fact.ends else sentence_of(key, value, fact.quote),
        "many": many,
        "until_said": fact.until_said,
        "until": fact.until,
        "to": target["id"] if target is not None else None,
        "is": verdict,
        "flags": ["asked"] if fact.asked else [],
    }


def _compare(fact: Statement, known: Sequence[Known]) -> tuple[Known | None, str]:
    slot = [item for item in known if _same_slot(fact, item)]
    for item in slot:
        if _folded(item["value"]) == _folded(fact.value):
            return item, "same"
    single = [item for item in slot if item.get("holds") == "one" and not fact.many]
    return (single[0], "updates") if len(single) == 1 else (None, "new")


def _same_slot(fact: Statement, item: Known) -> bool:
    """Whether the key is the same, or both name the same event, one more fully than the other."""
    key = str(item["key"])
    if key == fact.key:
        return True
    if fact.many or fact.until is None or item.get("holds") != "one":
        return False
    mine, theirs = fact.key.split("_"), key.split("_")
    return mine[-1] == theirs[-1] and (set(mine) <= set(theirs) or set(theirs) <= set(mine))


def _end_target(fact: Statement, known: Sequence[Known]) -> tuple[Known | None, str]:
    """The known fact that a clause ends: the one with most words in common."""
    words = content_words(fact.value)
    scored = [
        (len(words & content_words(f"{item['key']} {item['value']}")), item) for item in known
    ]
    best = max(scored, key=lambda pair: pair[0], default=(0, None))
    return (best[1] if best[0] else None), "ends"


def _replaced(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a later fact of the session replaces an earlier one."""
    if old["key"] != new["key"]:
        return False
    return not new["many"] or _folded(old["value"]) == _folded(new["value"])


def _forget_requests(turn: Mapping[str, Any], known: Sequence[Known]) -> list[dict[str, Any]]:
    found = []
    for clause in clauses(str(turn["text"])):
        match = _FORGET.match(clause) or _FORGET.match(without_filler(clause))
        if match:
            target, _ = _end_target(Statement("fact", "", match["what"], False, clause), known)
            to = target["id"] if target is not None else None
            found.append({"msg": turn["id"], "quote": clause, "to": to})
    return found


def _title(turns: Sequence[Mapping[str, Any]]) -> str | None:
    """The first words of the conversation, without a greeting."""
    for turn in turns:
        # Without pasted text and what was redacted, which is shown as runs of dots.
        text = re.sub(r"⟦.*?(?:⟧|\Z)|·{2,}", " ", str(turn["text"])[:1000], flags=re.DOTALL)
        words = without_filler(" ".join(text.split()))
        sentence = re.split(r"(?<=[.!?。！？])\s", words)[0].strip(" .!,;:")
        if sentence and not find_secrets(sentence):
            cut = sentence if len(sentence) <= 50 else sentence[:50].rsplit(" ", 1)[0]
            return cut[:1].upper() + cut[1:]
    return None


def _summary(facts: Sequence[Mapping[str, Any]]) -> str | None:
    said = [f"{fact['key'].replace('_', ' ')}: {fact['value']}" for fact in facts[:4]]
    return f"The user spoke of {'; '.join(said)}." if said else None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


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
            or not _names_same_slot(old.key, new)
            or (new.many and old.value != new.value)
        ]
        facts.append(Fact(new.key, new.value))
    return facts


def _names_same_slot(key: str, new: Statement) -> bool:
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
        old = next((f for f in before if f.key and _names_same_slot(f.key, fact)), None)
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
    shape, told = SENTENCES.get(fact.key), sentence_of(fact.key, fact.value)
    if told is not None and (shape is None or acting(fact.key, fact.value)):
        return f"{told[0].lower()}{told[1:-1]}"
    key, value = fact.key.replace("_", " "), fact.value
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
