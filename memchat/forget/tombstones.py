"""Tombstones: keyed hashes by which a forgotten fact is recognised when it comes again.

A text can be recognised by them, but not read from them. A fact leaves hashes of key and value, of
the quotes, of the key with each message that proved it, of each word of the value with its key, and
of the names and numbers in it.

Words said before the forgetting never bring the fact back. The user is asked where the same is said
later, and where what was said before shares no more than an ordinary word with it: that may be
another fact.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from memchat.db import Tx, records
from memchat.db import schema as t
from memchat.db.records import among, upsert
from memchat.language import text

Mark = tuple[str, str]
"""A kind (value, quote, source, word, name or key; for a note: note) and a text."""
_t = t.tombstones.c
_ADD = upsert(t.tombstones, "created_at", key=("app_id", "memory_id", "kind", "hash"))
_THESE = (among(_t.app_id, "app_ids"), among(_t.hash, "hashes"))
_FIND = sa.select(_t.kind, _t.hash, sa.func.max(_t.created_at)).where(*_THESE)
_FIND = _FIND.group_by(_t.kind, _t.hash)
_REMOVE = sa.delete(t.tombstones).where(
    _THESE[0], _t.kind == sa.bindparam("of"), _t.hash == sa.bindparam("hashed")
)
_REMOVE_OF_MEMORY = sa.delete(t.tombstones).where(_t.memory_id == sa.bindparam("memory"))
_ANY = sa.select(_t.id).where(_t.app_id == sa.bindparam("app")).limit(1)


def add(tx: Tx, app_id: int, memory_id: int, marks: Iterable[Mark], now: datetime) -> None:
    """Store that these texts of a memory were forgotten in a scope, or update the time.

    ``memory_id`` is 0 for what never was a memory.
    """
    about = {"app_id": app_id, "memory_id": memory_id, "created_at": now}
    hashed = _hashed(tx, marks)
    tx.run_many(_ADD, (about | {"kind": kind, "hash": one} for kind, one in hashed))


def remove_of_memory(tx: Tx, memory_id: int) -> None:
    """Delete a memory's tombstones. Those of other memories with the same words stay."""
    tx.rows(_REMOVE_OF_MEMORY, memory=memory_id)


def any_in(tx: Tx, app_id: int) -> bool:
    """Whether anything was forgotten in a scope."""
    return bool(tx.rows(_ANY, app=app_id))


def remove(tx: Tx, app_ids: Iterable[int], marks: Iterable[Mark]) -> None:
    """Delete the tombstones of these texts, of any memory, because a person wants them known
    again."""
    found = {"app_ids": [*app_ids]}
    tx.run_many(_REMOVE, (found | {"of": kind, "hashed": one} for kind, one in _hashed(tx, marks)))


def find(tx: Tx, app_ids: Iterable[int], marks: Iterable[Mark]) -> dict[Mark, datetime]:
    """Those of these texts that were forgotten in one of the scopes, and when last."""
    by_hash = _hashed(tx, marks)
    rows = tx.rows(_FIND, app_ids=app_ids, hashes=[hashed for _, hashed in by_hash])
    # Another kind of mark may have the same words.
    return {by_hash[kind, one]: at for kind, one, at in rows if (kind, one) in by_hash}


def _hashed(tx: Tx, marks: Iterable[Mark]) -> dict[tuple[str, str], Mark]:
    """The marks by their kinds and hashes."""
    key = records.hash_key(tx)
    every = sorted({*marks})
    return {(mark[0], hmac.digest(key, mark[1].encode(), "sha256").hex()): mark for mark in every}


TombstoneMatch = Literal["refuse", "ask", "alike"]
_SHORT = 3
"""Up to so many words a value may be a bare name, whose first capital means something."""
_NOUN = re.compile(r"(?<!\w)(?i:[dkms]?eine?[mnrs]?)(?: [a-zäöüß]+)? ([A-ZÄÖÜ]\w+)")
"""A German noun behind "ein" or "mein", which has a capital and is no name."""


def fact_marks(key: str, value: str) -> set[Mark]:
    """The marks of a fact, wherever it was said."""
    return wording_marks(key, value) | {("name", word) for word in _distinctive(value)}


def wording_marks(key: str, value: str) -> set[Mark]:
    """The marks that are lifted when the user enters it by hand: those of this fact, not of others
    that share a name."""
    return {value_mark(key, value), *(("word", f"{key}|{word}") for word in _words(value))}


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
    tx: Tx,
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
        marks -= {("name", text.fold(noun).text) for noun in _NOUN.findall(quote)}
        marks |= proof_marks(key, quote, message_id)
    found = find(tx, app_ids, marks)
    words = {mark for mark in marks if mark[0] == "word"}
    ordinary = words - {("word", f"{key}|{number}") for number in text.numbers(value)}
    before = {mark for mark, at in found.items() if said_at <= at}
    if before - ordinary or (words and words <= before):
        return "refuse"
    kinds = {kind for kind, _ in found}
    if kinds & {"value", "quote"} or kinds >= {"name", "word"} or (words and words <= found.keys()):
        return "ask"
    return "alike" if before else None


def _words(value: str) -> set[str]:
    return text.content_words(value) | text.numbers(value)


def names(value: str) -> Iterable[str]:
    """The names in a value."""
    return text.names(value, from_start=len(value.split()) <= _SHORT)


def _distinctive(value: str) -> set[str]:
    """Names, and numbers of more than two characters."""
    named = {text.fold(name).text for name in names(value)}
    return named | {number for number in text.numbers(value) if len(number) > 2}
