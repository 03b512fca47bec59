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
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from sqlalchemy import delete, func, literal, select, true
from sqlalchemy.dialects.sqlite import insert

from memchat.db import Tx, records
from memchat.db.schema import UtcTime, tombstones
from memchat.language import numbers, text

Mark = tuple[str, str]
"""A kind (value, quote, source, word, name or key; for a note: note) and a text."""
_t = tombstones.c


def add(tx: Tx, app_id: int, memory_id: int, marks: Iterable[Mark], now: datetime) -> None:
    """Store that these texts of a memory were forgotten in a scope, or update the time.

    ``memory_id`` is 0 for what never was a memory.
    """
    key = records.hash_key(tx)
    hashes = [(kind, _hash(key, text)) for kind, text in sorted(set(marks))]
    each = func.json_each(json.dumps(hashes)).table_valued("value").c.value
    values = select(
        literal(app_id),
        literal(memory_id),
        func.json_extract(each, "$[0]"),
        func.json_extract(each, "$[1]"),
        literal(now, UtcTime),
    ).where(true())  # without a condition SQLite takes ON CONFLICT for one of a join
    same = [_t.app_id, _t.memory_id, _t.kind, _t.hash]
    rows = insert(tombstones).from_select([*same, _t.created_at], values)
    tx.execute(rows.on_conflict_do_update(same, set_={"created_at": rows.excluded.created_at}))


def remove_of_memory(tx: Tx, memory_id: int) -> None:
    """Delete a memory's tombstones. Those of other memories with the same words stay."""
    tx.execute(delete(tombstones).where(_t.memory_id == memory_id))


def any_in(tx: Tx, app_id: int) -> bool:
    """Whether anything was forgotten in a scope."""
    return bool(tx.rows("SELECT 1 FROM tombstones WHERE app_id = ? LIMIT 1", app_id))


def remove(tx: Tx, app_ids: Iterable[int], marks: Iterable[Mark]) -> None:
    """Delete the tombstones of these texts, of any memory, because a person wants them known
    again."""
    scopes, key = records.json_list(app_ids), records.hash_key(tx)
    wanted = {(kind, _hash(key, text)) for kind, text in marks}
    for kind in {kind for kind, _ in wanted}:
        hashes = [hashed for of_kind, hashed in wanted if of_kind == kind]
        tx.rows(
            "DELETE FROM tombstones WHERE app_id IN (SELECT value FROM json_each(?)) AND kind = ?"
            " AND hash IN (SELECT value FROM json_each(?))",
            *(scopes, kind, records.json_list(hashes)),
        )


def find(tx: Tx, app_ids: Iterable[int], marks: Iterable[Mark]) -> dict[Mark, datetime]:
    """Those of these texts that were forgotten in one of the scopes, and when last."""
    key = records.hash_key(tx)
    by_hash = {(kind, _hash(key, text)): (kind, text) for kind, text in marks}
    query = select(_t.kind, _t.hash, func.max(_t.created_at)).where(
        _t.app_id.in_(list(app_ids)), _t.hash.in_([hashed for _, hashed in by_hash])
    )
    rows = tx.execute(query.group_by(_t.kind, _t.hash)).all()
    return {by_hash[row[0], row[1]]: row[2] for row in rows if (row[0], row[1]) in by_hash}


def _hash(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha256").hex()


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
        marks |= proof_marks(key, quote, message_id)
    found = find(tx, app_ids, marks)
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
