"""Keyword search: words are stemmed and carry the id of their scope as a prefix. The rows are those
of FTS5 in SQLite, and of a table with ``tsvector`` in PostgreSQL.

Because of the prefix a search reads only the rows of its scope, and how rare a word is counts
within the scope. A row is treated as the set of its words: short texts hold most words once, and
word counts and row lengths would cost more to read than everything else. Scripts without spaces
between words are indexed as overlapping pairs of characters.

Forgetting has to find every mention of a fact. The texts that the index does not hold, or only in
part, are therefore listed here as well.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice
from typing import Any, Literal, get_args

from memchat.db import Tx
from memchat.language.text import folded

Kind = Literal["fact", "turn", "summary", "chunk"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Hit = tuple[int, float]
"""A row's id and its score."""
CONTEXT_WEIGHT = 0.44
"""The weight of a word in a neighbouring message; in the message itself it is 1."""
_MARKS = "qtsn"
"""A consonant for each kind in the prefix of its words, which the stemmer leaves alone."""
_REPLY = "r"

UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_ASIDE = re.compile(
    "[你我您他她吗呢吧嘛的了是在有]|什么|哪[里儿]?|谁|怎么|为什么|多少|几点|(?:です|ます|ました|でした)[かね]?|どこ|いつ|だれ|なに|なぜ"
    "|(?<=[\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff])[はがをにでのともかへや]"
)
"""Particles and question words of Chinese and Japanese, which are not searched for."""
_WORD_CATEGORIES = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Co", "Mn", "Mc"}
"""The Unicode categories of the characters in words; all others separate words."""
_ASCII_BREAKS = re.compile("[^0-9A-Za-z]+")
_LETTERS = str.maketrans("0123456789abcdef", "bcdfghjkmnpqrtvw")
"""Hexadecimal digits as consonants, which the stemmer leaves alone."""
_MOST_TERMS = 48
_DEEP_BYTES = 1_000
_LONGEST = 2_000
"""Bytes of a stem at most: PostgreSQL takes no longer ones."""
Column = Literal["text", "context"]
"""Of an indexed passage: its own words, or those around it."""
AnyOfEach = Sequence[Sequence[str]]
"""What is searched for: one word of each list."""

_STOP_WORDS = """
    a about after all also am an and any are as at be because been before being but by can could
    did do does doing don for from had has have having he her here him his how i if in into is it
    its just let ll me more most my no nor not now of off on once only or other our out over own re
    s same she should so some such t than that the their them then there these they this those
    through to too under until up us ve very was we were what when where which while who whom why
    will with would you your
    der die das und ist ich du wir was wie wo ein eine mein meine mir mich hat habe
    le la les un une des et est je tu il elle nous que qui mon ma mes
    el los las una y es yo mi mis que como
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows of some scopes that hold any of a query's words, and their scores.

    A score is BM25 over sets of words: the sum of the rarities of the words that a row holds, as a
    share of the sum for all words found anywhere. Words of neighbouring messages count for less.
    """

    words: Sequence[str] = ()
    held: Mapping[int, int] = field(default_factory=dict)
    """For each row a bit for each word it holds itself, and above these one for each that a
    neighbour holds."""
    scores: Mapping[int, float] = field(default_factory=dict)
    """The score of each of these sets of bits."""
    ranked: Sequence[tuple[float, Sequence[int]]] = ()
    """The rows by score, the best first; rows with equal scores the newest first."""
    known: float = 0.0
    """The share of the query's total rarity that the words found anywhere have. A word that is
    found nowhere is the rarest."""

    def best(self, limit: int, without: Collection[int] = ()) -> list[Hit]:
        """The ``limit`` best rows, with their scores."""
        every = ((i, score) for score, rows in self.ranked for i in rows if i not in without)
        return list(islice(every, limit))

    def among(self, row_ids: Collection[int]) -> Matches:
        """These rows alone, with the scores that they have among all."""
        held = {i: bits for i, bits in self.held.items() if i in row_ids}
        kept = ((score, [i for i in rows if i in row_ids]) for score, rows in self.ranked)
        return replace(self, held=held, ranked=[(score, rows) for score, rows in kept if rows])

    def of(self, row_ids: Iterable[int]) -> dict[int, float]:
        """The scores of these rows; those that do not match are left out."""
        return {i: self.scores[self.held[i]] for i in row_ids if i in self.held}

    def bits_of(self, row_id: int) -> int:
        """A bit for each word that a row or its neighbours hold, with any ending."""
        bits = self.held.get(row_id, 0)
        return (bits | bits >> len(self.words)) & (1 << len(self.words)) - 1

    def bits(self, words: Collection[str]) -> int:
        """The bits of these words."""
        return sum(1 << k for k, word in enumerate(self.words) if word in words)


def query_terms(question: str) -> list[str]:
    """The distinct words of a query to search for, in order; stop words are left out."""
    return _told(UNSPACED.sub(_asked, folded(question)))[:_MOST_TERMS]


def matches(
    tx: Tx, kind: Kind, app_ids: Sequence[int], words: Sequence[str], *, replies: bool = False
) -> Matches:
    """The rows of these scopes that hold any of the words, as ``query_terms`` returns them.

    Of messages only the user's are searched, unless ``replies`` is set.
    """
    if not words or not app_ids:
        return Matches(words)
    names = _prefixes(kind, app_ids, replies=replies)
    # Only turns have a context.
    columns: tuple[Column, ...] = ("text", "context") if kind == "turn" else ("text",)
    held: dict[int, int] = {}
    count = [0] * len(words)
    for k, word in enumerate(words):
        any_of = [f"{name}{_coded(word)}" for name in names]
        found = [_table(tx).owners(tx, [any_of], column) for column in columns]
        count[k] = len(set(chain.from_iterable(found)))
        for place, rows in enumerate(found):
            bit = 1 << k + place * len(words)
            for i in rows:
                held[i] = held.get(i, 0) | bit
    rare = [math.log(1 + (len(held) - n + 0.5) / (n + 0.5)) for n in count]
    known = sum(weight for weight, n in zip(rare, count, strict=True) if n)
    scores = {bits: round(_score(bits, rare) / known, 9) for bits in set(held.values())}
    by_score = defaultdict(list)
    for i, bits in held.items():
        by_score[scores[bits]].append(i)
    ranked = [(s, sorted(by_score[s], reverse=True)) for s in sorted(by_score, reverse=True)]
    return Matches(words, held, scores, ranked, known / sum(rare))


def rows_holding_all(tx: Tx, kind: Kind, app_ids: Sequence[int], words: Sequence[str]) -> set[int]:
    """The ids of the rows of some scopes that hold all of these words themselves, with any
    endings."""
    terms = [term for word in words for term in query_terms(word)]
    if not terms or not app_ids:
        return set()
    names = _prefixes(kind, app_ids, replies=kind == "turn")
    each = [[f"{name}{_coded(term)}" for name in names] for term in terms]
    return set(_table(tx).owners(tx, each, "text"))


def is_held_by_more(tx: Tx, kind: Kind, app_ids: Sequence[int], word: str, most: int) -> bool:
    """Whether more than ``most`` rows of some scopes hold a word. Stops reading once that is
    known."""
    terms = query_terms(word)
    names = _prefixes(kind, app_ids)
    any_of = [f"{name}{_coded(term)}" for name in names for term in terms]
    return bool(any_of) and _table(tx).count(tx, [any_of], most + 1) > most


def stems(words: Iterable[str]) -> dict[str, str]:
    """The stems under which the index holds these folded words, by word."""
    name = _prefix(0)
    coded = {word: f"{name}{_coded(word)}" for word in words}
    found = _stemmed(coded.values())
    return {word: found[one].removeprefix(name) for word, one in coded.items()}


def _score(bits: int, rare: Sequence[float]) -> float:
    beside = bits >> len(rare)
    total = 0.0
    for k, weight in enumerate(rare):
        if bits >> k & 1:
            total += weight
        elif beside >> k & 1:
            total += CONTEXT_WEIGHT * weight
    return total


def passage_id(kind: Kind, owner_id: Any) -> Any:
    """The id of the passage of this owner, or of those in a column: both are read from it."""
    return owner_id * 4 + KINDS.index(kind)


def write(
    tx: Tx, passage_id: int, app_id: int, text: str, context: str = "", *, reply: bool
) -> None:
    """Index a passage that has no keyword row. Replies are indexed apart, and found only by
    searches that ask for them."""
    name = _prefix(app_id, passage_id & 3, reply)
    _table(tx).add(tx, passage_id, _indexed(name, text), _indexed(name, context))


def remove(tx: Tx, passage_ids: Iterable[int]) -> None:
    """Delete keyword rows. Their words stay in the bytes of the file until ``scrub``."""
    _table(tx).remove(tx, passage_ids)


def scrub(tx: Tx) -> None:
    """Remove deleted words from the bytes of the index, where that can be done."""
    _table(tx).scrub(tx)


def wrong_rows(tx: Tx, wanted: Iterable[tuple[int, int, bool, str]]) -> set[int]:
    """The passages whose keyword rows are missing, superfluous, or hold another text or scope.
    ``wanted`` has id, scope row, whether it is a reply, and words of each."""
    right = {
        i: _indexed(_prefix(app_id, i & 3, reply), words) for i, app_id, reply, words in wanted
    }
    return _table(tx).wrong(tx, right)


def ids(tx: Tx, kind: Kind, app_id: int) -> set[int]:
    """The owners in a scope that are indexed with any word. Reads all rows."""
    return _table(tx).owners_with_prefix(tx, _prefix(app_id, KINDS.index(kind)))


def counts(tx: Tx) -> dict[int, int]:
    """How many rows there are, by the number of the kind."""
    return _table(tx).counts(tx)


def _prefix(app_id: int, kind: int = 0, reply: bool = False) -> str:
    """That of each word of a kind in a scope: digits and a letter, so that no prefix begins
    another."""
    return f"{app_id}{_REPLY if reply else _MARKS[kind]}"


def _prefixes(kind: Kind, app_ids: Sequence[int], *, replies: bool = False) -> list[str]:
    return [
        _prefix(app_id, KINDS.index(kind), reply)
        for app_id in app_ids
        for reply in (False, True)[: 1 + replies]
    ]


def _indexed(name: str, text: str) -> str:
    """The words of a text as they are indexed, each with the scope's prefix ``name``."""
    # Single characters are indexed too: searching them as prefixes of pairs, between two writes of
    # one transaction, damages the index in SQLite 3.40.
    paired = UNSPACED.sub(lambda run: f" {_pairs(run[0])} {' '.join(run[0])} ", folded(text))
    return " ".join(f"{name}{_coded(word)}" for word in _told(paired))


def _told(text: str) -> list[str]:
    """The distinct words of a folded text but for stop words, in order."""
    if text.isascii():
        words = _ASCII_BREAKS.sub(" ", text)
    else:
        words = "".join(c if unicodedata.category(c) in _WORD_CATEGORIES else " " for c in text)
    return list(dict.fromkeys(word for word in words.split() if word not in STOP_WORDS))


def _coded(word: str) -> str:
    """The word in ASCII letters and digits. Other characters are encoded, since the tokenizer would
    change them, and so are short words, which the stemmer would change behind a prefix."""
    return word if word.isascii() and len(word) > 2 else word.encode().hex().translate(_LETTERS)


def _asked(run: re.Match[str]) -> str:
    parts = [part for part in _ASIDE.split(run[0]) if part] or [run[0]]
    return " " + " ".join(_pairs(part) or part for part in parts) + " "


def _pairs(run: str) -> str:
    return " ".join(run[i : i + 2] for i in range(len(run) - 1))


class _Fts5:
    """Keyword rows in SQLite."""

    def owners(self, tx: Tx, words: AnyOfEach, column: Column) -> list[int]:
        """The owners of the passages that hold one word of each list in a column."""
        # As one JSON text: building a tuple for each row takes longer than the search.
        sql = "SELECT json_group_array(rowid >> 2) FROM passages_fts WHERE passages_fts MATCH ?"
        found: list[int] = json.loads(_run(tx, sql, _match(words, column))[0][0])
        return found

    def count(self, tx: Tx, words: AnyOfEach, most: int) -> int:
        """How many passages that is, counted up to ``most``."""
        found = "SELECT rowid FROM passages_fts WHERE passages_fts MATCH ? LIMIT ?"
        return int(_run(tx, f"SELECT count(*) FROM ({found})", _match(words, "text"), most)[0][0])

    def add(self, tx: Tx, passage_id: int, text: str, context: str) -> None:
        """Add the row of a passage that has none."""
        sql = "INSERT INTO passages_fts (rowid, text, context) VALUES (?, ?, ?)"
        _run(tx, sql, passage_id, text, context)

    def remove(self, tx: Tx, passage_ids: Iterable[int]) -> None:
        """Delete rows."""
        rows = ((i,) for i in passage_ids)
        tx.driver.executemany("DELETE FROM passages_fts WHERE rowid = ?", rows)

    def scrub(self, tx: Tx) -> None:
        """Rewrite the segments, which is the only way to remove deleted words from them."""
        # Each 'optimize' may add a level, and SQLite 3.40 takes an index of more than 2,000 levels
        # for damaged. Record 10 describes the structure, with two bytes for each level.
        structure = "SELECT length(block) FROM passages_fts_data WHERE id = 10"
        command = "rebuild" if _run(tx, structure)[0][0] > _DEEP_BYTES else "optimize"
        _run(tx, "INSERT INTO passages_fts (passages_fts) VALUES (?)", command)

    def wrong(self, tx: Tx, right: Mapping[int, str]) -> set[int]:
        """The passages that have another text than this one, or a row although they are not among
        these."""
        return _differing(dict(_run(tx, "SELECT rowid, text FROM passages_fts")), right)

    def owners_with_prefix(self, tx: Tx, prefix: str) -> set[int]:
        """The owners of the passages whose words begin so. Reads all rows."""
        sql = "SELECT rowid >> 2 FROM passages_fts WHERE text GLOB ?"
        return {row[0] for row in _run(tx, sql, f"{prefix}*")}

    def counts(self, tx: Tx) -> dict[int, int]:
        """How many rows there are, by the number of the kind."""
        return dict(_run(tx, "SELECT rowid & 3, count(*) FROM passages_fts GROUP BY 1"))


class _Tsvector:
    """Keyword rows in PostgreSQL, with the same verbs."""

    def owners(self, tx: Tx, words: AnyOfEach, column: Column) -> list[int]:
        sql = f"SELECT array_agg(passage_id >> 2) FROM passage_words WHERE {column} @@ %s::tsquery"
        return _run(tx, sql, _tsquery(words))[0][0] or []

    def count(self, tx: Tx, words: AnyOfEach, most: int) -> int:
        found = "SELECT 1 FROM passage_words WHERE text @@ %s::tsquery LIMIT %s"
        sql = f"SELECT count(*) FROM ({found}) AS found"
        return int(_run(tx, sql, _tsquery(words), most)[0][0])

    def add(self, tx: Tx, passage_id: int, text: str, context: str) -> None:
        held = [words.split() for words in (text, context)]
        stem = _stemmed(chain(*held))
        sql = "INSERT INTO passage_words VALUES (%s, array_to_tsvector(%s), array_to_tsvector(%s))"
        _run(tx, sql, passage_id, *([stem[word] for word in words] for words in held))

    def remove(self, tx: Tx, passage_ids: Iterable[int]) -> None:
        _run(tx, "DELETE FROM passage_words WHERE passage_id = ANY (%s)", [*passage_ids])

    def scrub(self, tx: Tx) -> None:
        """Nothing: what stands in the files of PostgreSQL is its own."""

    def wrong(self, tx: Tx, right: Mapping[int, str]) -> set[int]:
        held = _run(tx, "SELECT passage_id, tsvector_to_array(text) FROM passage_words")
        stem = _stemmed(word for words in right.values() for word in words.split())
        wanted = {i: {stem[word] for word in words.split()} for i, words in right.items()}
        return _differing({i: {*words} for i, words in held}, wanted)

    def owners_with_prefix(self, tx: Tx, prefix: str) -> set[int]:
        sql = "SELECT passage_id >> 2 FROM passage_words WHERE text @@ %s::tsquery"
        return {row[0] for row in _run(tx, sql, f"'{prefix}':*")}

    def counts(self, tx: Tx) -> dict[int, int]:
        return dict(_run(tx, "SELECT passage_id & 3, count(*) FROM passage_words GROUP BY 1"))


_FTS5, _TSVECTOR = _Fts5(), _Tsvector()


def _table(tx: Tx) -> _Fts5 | _Tsvector:
    """The keyword rows of a store."""
    return _TSVECTOR if tx.on_postgres else _FTS5


def _stemmed(words: Iterable[str]) -> dict[str, str]:
    """The stem of each of these words as SQLite's tokenizer makes it."""
    listed = sorted(set(words))
    memory, one_at_a_time = _stemmer(os.getpid())
    with one_at_a_time:
        memory.execute("BEGIN")
        try:
            memory.executemany("INSERT INTO said (rowid, word) VALUES (?, ?)", enumerate(listed))
            found = memory.execute("SELECT doc, term FROM stem").fetchall()
        finally:
            memory.execute("ROLLBACK")  # it keeps no words
    return {listed[n]: term[:_LONGEST] for n, term in found}


@cache
def _stemmer(_process: int) -> tuple[sqlite3.Connection, threading.Lock]:
    """A process's tables for stemming, which take 1 ms to make, and their lock."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    memory.execute("CREATE VIRTUAL TABLE said USING fts5(word, tokenize = 'porter ascii')")
    memory.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(said, instance)")
    return memory, threading.Lock()


def _match(words: AnyOfEach, column: Column) -> str:
    parts = (" OR ".join(f'"{word}"' for word in any_of) for any_of in words)
    return " AND ".join(f"{column}:({any_of})" for any_of in parts)


def _tsquery(words: AnyOfEach) -> str:
    stem = _stemmed(chain(*words))
    parts = (" | ".join(f"'{stem[word]}'" for word in any_of) for any_of in words)
    return " & ".join(f"({any_of})" for any_of in parts)


def _differing(
    held: Mapping[int, Collection[str]], right: Mapping[int, Collection[str]]
) -> set[int]:
    return {i for i in held.keys() | right.keys() if held.get(i) != right.get(i)}


def _run(tx: Tx, sql: str, *values: Any) -> list[Any]:
    """All rows of plain SQL: SQLAlchemy has no words for either."""
    cursor = tx.driver.execute(sql, values)
    found: list[Any] = cursor.fetchall() if cursor.description else []
    return found
