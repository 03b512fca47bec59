"""Search by words: SQLite FTS5, stemmed, each word under the name of its scope.

A word's list is one person's own: a search costs their rows and never the table's, and a word is as
rare as it is with them. A row counts as the set of its words: short texts hold nearly each word
once, and to ask how often, and how long every row is, costs more than all the rest. Scripts that
do not separate words are asked for by overlapping pairs of characters.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Literal

from sqlalchemy import Connection

from memchat.store import raw_sql

Kind = Literal["memories", "messages", "sessions"]
Hit = tuple[int, float]
"""A row's id and its score."""
CONTEXT_WEIGHT = 0.44
"""What a word in a neighbouring turn counts, against 1 in the turn itself."""
_COLUMNS: dict[Kind, tuple[str, ...]] = {
    "memories": ("",),
    "messages": ("text:", "context:"),
    "sessions": ("",),
}
"""Where a word may stand: in the row itself, and beside it."""

UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u0640\u064b-\u065f\u0670\ufe00-\ufe0f]"
)
"""Accents, the vowel signs that Hebrew and Arabic are mostly written without, an emoji's colour."""
_ASIDE = re.compile(
    "[你我您他她吗呢吧嘛的了是在有]|什么|哪[里儿]?|谁|怎么|为什么|多少|几点|(?:です|ます|ました|でした)[かね]?|どこ|いつ|だれ|なに|なぜ"
    "|(?<=[\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff])[はがをにでのともかへや]"
)
"""What a Chinese or Japanese question holds beside the words that it looks for."""
_STROKES = str.maketrans(
    {"đ": "d", "ł": "l", "ø": "o", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}
)
"""Letters that no normal form takes apart, and the plain ones that people type for them."""
_WORD_CATEGORIES = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Co", "Mn", "Mc"}
"""What words are made of: all else separates them."""
_ASCII_BREAKS = re.compile("[^0-9A-Za-z]+")
_LETTERS = str.maketrans("0123456789abcdef", "bcdfghjkmnpqrtvw")
"""Half bytes as consonants, from which the stemmer takes nothing."""
_MOST_TERMS = 48
_DEEP_BYTES = 1_000

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
class KeywordText:
    """What a row is to hold, but for what stands beside it."""

    app_id: int
    text: str
    reply: bool = False


@dataclass(frozen=True, slots=True)
class Matches:
    """Every row of some scopes that holds any of a question's words: which, and what that tells.

    A row's score is BM25 with the row as a set of words: for each that it holds how rare that is
    among these rows, as a share of what all of them make. What stands beside it counts for less.
    """

    words: Sequence[str] = ()
    held: Mapping[int, int] = field(default_factory=dict)
    """For each row bits: of a word it holds itself, and behind those of one beside it."""
    scores: Mapping[int, float] = field(default_factory=dict)
    """For each such set of bits its score."""
    ranked: Sequence[tuple[float, Sequence[int]]] = ()
    """The rows by their score, the best first, of equal ones the newest."""
    known: float = 0.0
    """What the words that any row holds have of all that the question's words tell: one that nobody
    ever used tells the most."""

    def best(self, limit: int, without: Collection[int] = ()) -> list[Hit]:
        """The best of them, so many."""
        every = ((i, score) for score, rows in self.ranked for i in rows if i not in without)
        return list(islice(every, limit))

    def of(self, row_ids: Iterable[int]) -> dict[int, float]:
        """The scores of these rows, as far as they match."""
        return {i: self.scores[self.held[i]] for i in row_ids if i in self.held}

    def bits_of(self, row_id: int) -> int:
        """Bits of the words that a row holds, itself or beside it, whatever their endings."""
        bits = self.held.get(row_id, 0)
        return (bits | bits >> len(self.words)) & (1 << len(self.words)) - 1

    def bits(self, words: Collection[str]) -> int:
        """The bits of these words."""
        return sum(1 << k for k, word in enumerate(self.words) if word in words)


def query_terms(question: str) -> list[str]:
    """The distinct words of a question worth looking for, in order."""
    return _told(UNSPACED.sub(_asked, folded(question)))[:_MOST_TERMS]


def matches(
    tx: Connection,
    kind: Kind,
    app_ids: Sequence[int],
    words: Sequence[str],
    *,
    replies: bool = False,
) -> Matches:
    """What holds any of the words in these scopes; of turns the user's, and with ``replies`` all.

    The words are as ``query_terms`` gives them.
    """
    if not words or not app_ids:
        return Matches(words)
    names = [_scope(app_id, reply) for app_id in app_ids for reply in (False, True)[: 1 + replies]]
    held: dict[int, int] = {}
    count = [0] * len(words)
    for k, word in enumerate(words):
        any_of = " OR ".join(f'"{name}{_coded(word)}"' for name in names)
        found = [_rows(tx, kind, f"{column}({any_of})") for column in _COLUMNS[kind]]
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


def rows_holding_all(
    tx: Connection, kind: Kind, app_ids: Sequence[int], words: Sequence[str]
) -> set[int]:
    """Every row of some scopes that itself holds all of these words, with whatever endings."""
    terms = [term for word in words for term in query_terms(word)]
    if not terms or not app_ids:
        return set()
    names = [_scope(app_id, reply) for app_id in app_ids for reply in (False, True)]
    each = (" OR ".join(f'"{name}{_coded(term)}"' for name in names) for term in terms)
    column = _COLUMNS[kind][0]
    return set(_rows(tx, kind, " AND ".join(f"{column}({any_of})" for any_of in each)))


def is_held_by_more(
    tx: Connection, kind: Kind, app_ids: Sequence[int], word: str, most: int
) -> bool:
    """Whether more than so many rows of some scopes hold a word; no more are looked at."""
    terms = query_terms(word)
    any_of = " OR ".join(f'"{_scope(i)}{_coded(term)}"' for i in app_ids for term in terms)
    if not any_of:
        return False
    found = f"SELECT rowid FROM {kind}_fts WHERE {kind}_fts MATCH ? LIMIT ?"
    return int(raw_sql.rows(tx, f"SELECT count(*) FROM ({found})", any_of, most + 1)[0][0]) > most


def stems(words: Iterable[str]) -> dict[str, str]:
    """The stem under which the index holds each of these folded words."""
    listed = sorted(set(words))
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE said USING fts5(word, tokenize = 'porter ascii')")
        memory.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(said, instance)")
        rows = ((n, f"{_scope(0)}{_coded(word)}") for n, word in enumerate(listed))
        memory.executemany("INSERT INTO said (rowid, word) VALUES (?, ?)", rows)
        found = memory.execute("SELECT doc, term FROM stem").fetchall()
    return {listed[n]: term.removeprefix(_scope(0)) for n, term in found}


def _rows(tx: Connection, kind: Kind, match: str) -> list[int]:
    # As one text: making a tuple of each row takes longer than finding it.
    sql = f"SELECT json_group_array(rowid) FROM {kind}_fts WHERE {kind}_fts MATCH ?"
    found: list[int] = json.loads(raw_sql.rows(tx, sql, match)[0][0])
    return found


def _score(bits: int, rare: Sequence[float]) -> float:
    beside = bits >> len(rare)
    total = 0.0
    for k, weight in enumerate(rare):
        if bits >> k & 1:
            total += weight
        elif beside >> k & 1:
            total += CONTEXT_WEIGHT * weight
    return total


def write(tx: Connection, kind: Kind, row_id: int, app_id: int, text: str) -> None:
    """Index a row, or index it anew."""
    remove(tx, kind, [row_id])
    sql = f"INSERT INTO {kind}_fts (rowid, text) VALUES (?, ?)"
    raw_sql.rows(tx, sql, row_id, _indexed(_scope(app_id), text))


def write_turn(
    tx: Connection, row_id: int, app_id: int, text: str, context: str, *, reply: bool
) -> None:
    """Index a turn anew, with its neighbours' words as its context. A reply is found only where
    replies are asked for."""
    remove(tx, "messages", [row_id])
    name = _scope(app_id, reply)
    sql = "INSERT INTO messages_fts (rowid, text, context) VALUES (?, ?, ?)"
    raw_sql.rows(tx, sql, row_id, _indexed(name, text), _indexed(name, context))


def remove(tx: Connection, kind: Kind, row_ids: Iterable[int]) -> None:
    """Take rows out. Their words leave the file's bytes only with ``scrub``."""
    for row_id in row_ids:
        raw_sql.rows(tx, f"DELETE FROM {kind}_fts WHERE rowid = ?", row_id)


def scrub(tx: Connection) -> None:
    """Rewrite the segments, the one way deleted words leave them."""
    for kind in _COLUMNS:
        # Each 'optimize' may add a level to the index, and SQLite takes one of more than 2,000 for
        # damaged (seen with 3.40). Its structure, record 10, holds two bytes a level.
        structure = f"SELECT length(block) FROM {kind}_fts_data WHERE id = 10"
        deep = tx.exec_driver_sql(structure).scalar_one() > _DEEP_BYTES
        command = "rebuild" if deep else "optimize"
        tx.exec_driver_sql(f"INSERT INTO {kind}_fts ({kind}_fts) VALUES ('{command}')")


def wrong_rows(tx: Connection, kind: Kind, wanted: Mapping[int, KeywordText]) -> set[int]:
    """The ids whose rows are lacking, are too many, or hold another text or scope."""
    held = dict(raw_sql.rows(tx, f"SELECT rowid, text FROM {kind}_fts"))
    right = {i: _indexed(_scope(w.app_id, w.reply), w.text) for i, w in wanted.items()}
    return {i for i in held.keys() | right.keys() if held.get(i) != right.get(i)}


def ids(tx: Connection, kind: Kind, app_id: int) -> set[int]:
    """The rows of a scope that are indexed with any word; all rows of the kind are read for it."""
    sql = f"SELECT rowid FROM {kind}_fts WHERE text GLOB ?"
    return {row[0] for row in raw_sql.rows(tx, sql, f"{app_id}[qr]*")}


def count(tx: Connection, kind: Kind) -> int:
    """How many rows of a kind are indexed."""
    return int(raw_sql.rows(tx, f"SELECT count(*) FROM {kind}_fts")[0][0])


def _scope(app_id: int, reply: bool = False) -> str:
    """What stands before each word of a scope: digits and a letter, so that none passes for
    another's."""
    return f"{app_id}{'r' if reply else 'q'}"


def _indexed(name: str, text: str) -> str:
    """The words of a text as they are indexed under a scope's name."""
    # Not as prefixes of pairs: a prefix query between two writes of one transaction damages the
    # index in SQLite 3.40.
    paired = UNSPACED.sub(lambda run: f" {_pairs(run[0])} {' '.join(run[0])} ", folded(text))
    return " ".join(f"{name}{_coded(word)}" for word in _told(paired))


def _told(text: str) -> list[str]:
    """The distinct words of a folded text that tell anything, in order."""
    if text.isascii():
        words = _ASCII_BREAKS.sub(" ", text)
    else:
        words = "".join(c if unicodedata.category(c) in _WORD_CATEGORIES else " " for c in text)
    return list(dict.fromkeys(word for word in words.split() if word not in STOP_WORDS))


def _coded(word: str) -> str:
    """The word in ASCII letters and digits, since what the tokenizer makes of others is its own; a
    short one so that the stemmer leaves it alone, which behind a name would take "ds" for "d"."""
    return word if word.isascii() and len(word) > 2 else word.encode().hex().translate(_LETTERS)


def _asked(run: re.Match[str]) -> str:
    parts = [part for part in _ASIDE.split(run[0]) if part] or [run[0]]
    return " " + " ".join(_pairs(part) or part for part in parts) + " "


def _pairs(run: str) -> str:
    return " ".join(run[i : i + 2] for i in range(len(run) - 1))


def folded(text: str) -> str:
    """A text as the index compares it: without case, width and accents."""
    # Letters for mathematics fall apart into capitals.
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()).casefold())
    return unicodedata.normalize("NFC", bare.translate(_STROKES))
