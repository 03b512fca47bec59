"""``offline/extract``: proposes facts from plain first-person sentences, by patterns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memchat.language.secrets import find_secrets
from memchat.language.statements.clauses import clauses, without_filler
from memchat.language.statements.reader import statements
from memchat.language.statements.statement import Statement
from memchat.providers.offline.topics import content_words

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
