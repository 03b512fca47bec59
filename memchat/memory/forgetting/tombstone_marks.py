"""How a forgotten fact is recognised when it comes again, in the same words or in others.

A tombstone is a set of keyed hashes: of key and value, of the quotes, of the key with each message
that proved it, of the value's words under that key, and of the names and numbers in it. Words said
before the forgetting never bring it back. Said later, the same is a question for the person.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection

from memchat.language import numbers, text
from memchat.store import tombstones
from memchat.store.tombstones import Mark

Stand = Literal["refuse", "ask"]
_SHORT = 3
"""Words of a value that is a bare name: a capital at its start means something there."""


def marks_of(key: str, value: str) -> set[Mark]:
    """What of a fact is recognised, wherever it was said."""
    return marks_of_words(key, value) | {("name", word) for word in _distinctive(value)}


def marks_of_words(key: str, value: str) -> set[Mark]:
    """What is lifted when a person says it by hand: this fact, not others that share a name."""
    return {
        ("value", f"{key}|{text.normal_value(value)}"),
        *(("word", f"{key}|{word}") for word in _words(value)),
    }


def marks_of_proof(key: str, quote: str, message_id: int) -> set[Mark]:
    """What of a fact's proof is recognised."""
    return {("quote", text.normal_value(quote)), ("source", f"{key}|{message_id}")}


def stand(
    tx: Connection,
    app_ids: Iterable[int],
    key: str,
    value: str,
    proofs: Iterable[tuple[int, str]],
    said_at: datetime,
) -> Stand | None:
    """What a forgotten fact says to a new one: nothing, refuse it, or ask the person.

    ``proofs`` are (message id, quote). What was said before the forgetting is refused where it
    shares a quote, a message under the same key, a word under the same key, or a name or number.
    """
    # A forgotten name is one in small letters too.
    marks = marks_of(key, value) | {("name", word) for word in _words(value)}
    for message_id, quote in proofs:
        marks |= marks_of_proof(key, quote, message_id)
    found = tombstones.find(tx, app_ids, marks)
    if any(said_at <= at for at in found.values()):
        return "refuse"
    kinds = {kind for kind, _ in found}
    words = [mark for mark in marks if mark[0] == "word"]
    same_words = bool(words) and all(mark in found for mark in words)
    if kinds & {"value", "quote"} or same_words or kinds >= {"name", "word"}:
        return "ask"
    return None


def _words(value: str) -> set[str]:
    return text.content_words(value) | numbers.numbers(value)


def _distinctive(value: str) -> set[str]:
    """Names, and numbers of some length: a "2" is in everything."""
    short = len(value.split()) <= _SHORT
    named = {text.fold(name).text for name in text.names(value, from_start=short)}
    return named | {number for number in numbers.numbers(value) if len(number) > 2}
