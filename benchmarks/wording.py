"""Whether a row says what an expected sentence says, by its words and numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memchat.language.text import content_words, fold, names, numbers

FOUND_SHARE = 0.5
"""The share of an expected fact's words and numbers that one memory and its quotes must hold."""
STALE_SHARE = 0.6
"""The same for the old fact that a change replaces."""


def says(row: str, quotes: str, item: Mapping[str, Any]) -> bool:
    """Whether a row (its key and value) with its quotes says an expected fact. Where the fact
    contradicts an earlier one, the row itself must hold something that only the new one says."""
    if share(item["fact"], f"{row} {quotes}") < FOUND_SHARE:
        return False
    return "contradicts" not in item or _is_new(row, item)


def is_stale(row: str, quotes: str, item: Mapping[str, Any]) -> bool:
    """Whether a row still says the earlier fact that an expected one contradicts."""
    old = item["contradicts"]
    held = share(old, f"{row} {quotes}") >= STALE_SHARE and share(old, row) >= FOUND_SHARE
    return held and not _is_new(row, item)


def share(fact: str, text: str) -> float:
    """The share of a sentence's words and numbers that a text holds."""
    wanted, counted = _words(fact), numbers(fact)
    plain, there = fold(text).text, numbers(text)
    held = sum(word in plain for word in wanted) + len(counted & there)
    return held / max(1, len(wanted) + len(counted))


def holds(text: str, words: Sequence[str]) -> bool:
    """Whether a text holds all of the words."""
    folded = fold(text).text
    return all(fold(word).text in folded for word in words)


def holds_any(text: str, words: Sequence[str]) -> bool:
    """Whether a text holds one of the words."""
    return any(holds(text, [word]) for word in words)


def _is_new(row: str, item: Mapping[str, Any]) -> bool:
    """Whether a row holds a word or number that the new fact has and the old one lacks. Where the
    new one brings numbers, it must be one of these or a name: "people" is in every team size."""
    fact, old = item["fact"], item["contradicts"]
    counted, words = numbers(fact) - numbers(old), _words(fact) - _words(old)
    if counted:
        words &= {fold(name).text for name in names(fact)}
    plain = fold(row).text
    return bool(counted & numbers(row)) or any(word in plain for word in words)


def _words(text: str) -> set[str]:
    """Content words without a plural's or a verb's ``s``; numbers are compared apart."""
    found = content_words(text) - numbers(text)
    return {re.sub(r"(?<=[^\W\d_]{3})s$", "", word) for word in found if not word[0].isdigit()}
