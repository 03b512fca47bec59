"""How a forgotten fact is recognised when it comes again, in the same words or in others.

A tombstone is a set of keyed hashes: of key and value, of the quotes, of the key with each message
that proved it, of each word of the value with its key, and of the names and numbers in it. Words
said before the forgetting never bring the fact back. Said later, the same is a question for the
user, and so is what was said before and has no more than an ordinary word alike: it may be another
fact.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection

from memchat.language import numbers, text
from memchat.store import tombstones
from memchat.store.tombstones import Mark

TombstoneMatch = Literal["refuse", "ask", "alike"]
_SHORT = 3
"""Up to so many words a value may be a bare name, whose first capital means something."""


def fact_marks(key: str, value: str) -> set[Mark]:
    """The marks of a fact, wherever it was said."""
    return wording_marks(key, value) | {("name", word) for word in _distinctive(value)}


def wording_marks(key: str, value: str) -> set[Mark]:
    """The marks that are lifted when the user enters it by hand: those of this fact, not of others
    that share a name."""
    return {
        value_mark(key, value),
        *(("word", f"{key}|{word}") for word in _words(value)),
    }


def key_mark(key: str) -> Mark:
    """The mark of a key under which a program had something forgotten that was the user's own."""
    return "key", key


def value_mark(key: str, value: str) -> Mark:
    """The mark of exactly this fact."""
    return "value", f"{key}|{text.normal_value(value)}"


def proof_marks(key: str, quote: str, message_id: int) -> set[Mark]:
    """The marks of a quote that proves a fact."""
    return {("quote", text.normal_value(quote)), ("source", f"{key}|{message_id}")}


def match(
    tx: Connection,
    app_ids: Iterable[int],
    key: str,
    value: str,
    proofs: Iterable[tuple[int, str]],
    said_at: datetime,
) -> TombstoneMatch | None:
    """What the tombstones say to a new fact: None, refuse it, or ask the user, whether it is the
    same or only alike.

    ``proofs`` are (message id, quote). What was said before the forgetting is refused where it
    shares a quote or a name, or under the same key a message, a number or all its words.
    """
    # A forgotten name is recognised in lower case too.
    marks = fact_marks(key, value) | {("name", word) for word in _words(value)}
    for message_id, quote in proofs:
        marks |= proof_marks(key, quote, message_id)
    found = tombstones.find(tx, app_ids, marks)
    words = {mark for mark in marks if mark[0] == "word"}
    ordinary = words - {("word", f"{key}|{number}") for number in numbers.numbers(value)}
    before = {mark for mark, at in found.items() if said_at <= at}
    if before - ordinary or (words and words <= before):
        return "refuse"
    kinds = {kind for kind, _ in found}
    same_words = bool(words) and words <= found.keys()
    if kinds & {"value", "quote"} or same_words or kinds >= {"name", "word"}:
        return "ask"
    return "alike" if before else None


def _words(value: str) -> set[str]:
    return text.content_words(value) | numbers.numbers(value)


def _distinctive(value: str) -> set[str]:
    """Names, and numbers of more than two characters."""
    short = len(value.split()) <= _SHORT
    named = {text.fold(name).text for name in text.names(value, from_start=short)}
    return named | {number for number in numbers.numbers(value) if len(number) > 2}
