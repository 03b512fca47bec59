"""Search by words: SQLite FTS5, stemmed, with the scope as an indexed token.

The scope stands in the match itself, so a common word costs one person's rows, not the table's.
Scripts that do not separate words are asked for by overlapping pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from sqlalchemy import Connection

from memchat.store import plain

Kind = Literal["memories", "messages", "sessions"]
Hit = tuple[int, float]
"""A row's id and its score."""
CONTEXT_WEIGHT = 0.3
"""What a word in a neighbouring turn counts, against 1 in the turn itself."""
_COLUMNS: dict[Kind, str] = {"memories": "text", "messages": "text context", "sessions": "text"}
_WEIGHTS: dict[Kind, str] = {
    "memories": "0.0, 1.0",
    "messages": f"0.0, 1.0, {CONTEXT_WEIGHT}",
    "sessions": "0.0, 1.0",
}

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u0640\u064b-\u065f\u0670]")
"""Accents, and the vowel signs that Hebrew and Arabic are mostly written without."""
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
"""Those of the tokenizer: what else separates words there separates them in a question."""
_ASCII_BREAKS = re.compile("[^0-9A-Za-z]+")
_MOST_TERMS = 48
_MINE = """
    SELECT id FROM memories WHERE id IN (SELECT value FROM json_each(?))
    AND +app_id IN (SELECT value FROM json_each(?))
"""
_SAMPLE = 8
_SAMPLED = f"""
    SELECT count(*) FROM json_each('{[*range(1, _SAMPLE + 1)]}') place CROSS JOIN memories m
    ON m.id = place.value * (SELECT max(id) FROM memories) / {_SAMPLE}
    WHERE +m.app_id IN (SELECT value FROM json_each(?))
"""
_AMONG = "+rowid IN (SELECT value FROM json_each(?))"
"""One pass over what matches; without the plus each row is a full-text search of its own."""
_DEEP_BYTES = 1_000
_SHORTEST = 2
"""Letters that are left of any word."""

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
class Words:
    """What a row is to hold, but for what stands beside it."""

    app_id: int
    text: str
    reply: bool = False


def terms(text: str) -> str:
    """The text as it is indexed: folded, runs without word breaks as pairs and characters."""
    # Not as prefixes of pairs: a prefix query between two writes of one transaction damages the
    # index in SQLite 3.40.
    return _UNSPACED.sub(lambda run: f" {_pairs(run[0])} {' '.join(run[0])} ", _folded(text))


def query_terms(question: str) -> list[str]:
    """The distinct words of a question worth looking for, in order."""
    paired = _UNSPACED.sub(_asked, _folded(question))
    if paired.isascii():
        words = _ASCII_BREAKS.sub(" ", paired)
    else:
        words = "".join(c if unicodedata.category(c) in _WORD_CATEGORIES else " " for c in paired)
    kept = dict.fromkeys(word for word in words.split() if word not in STOP_WORDS)
    return list(kept)[:_MOST_TERMS]


def _asked(run: re.Match[str]) -> str:
    parts = [part for part in _ASIDE.split(run[0]) if part] or [run[0]]
    return " " + " ".join(_pairs(part) or part for part in parts) + " "


def _pairs(run: str) -> str:
    return " ".join(run[i : i + 2] for i in range(len(run) - 1))


def _folded(text: str) -> str:
    # The tokenizer folds Latin letters one by one; this is what it leaves apart: ß and ss, strokes,
    # Greek accents, full-width forms, vowel signs.
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return unicodedata.normalize("NFC", bare.translate(_STROKES))


def write(tx: Connection, kind: Kind, row_id: int, app_id: int, text: str) -> None:
    """Index a row, or index it anew."""
    remove(tx, kind, [row_id])
    sql = f"INSERT INTO {kind}_fts (rowid, scope, text) VALUES (?, ?, ?)"
    plain.rows(tx, sql, row_id, _token(app_id), terms(text))


def write_turn(
    tx: Connection, row_id: int, app_id: int, text: str, context: str, *, reply: bool
) -> None:
    """Index a turn anew, with its neighbours' words as its context. A reply is for ``scores`` to
    find, and for ``search`` not."""
    remove(tx, "messages", [row_id])
    scope = _reply_token(app_id) if reply else _token(app_id)
    tx.exec_driver_sql(
        "INSERT INTO messages_fts (rowid, scope, text, context) VALUES (?, ?, ?, ?)",
        (row_id, scope, terms(text), terms(context)),
    )


def remove(tx: Connection, kind: Kind, row_ids: Sequence[int]) -> None:
    """Take rows out. Their words leave the file's bytes only with ``scrub``."""
    for row_id in row_ids:
        plain.rows(tx, f"DELETE FROM {kind}_fts WHERE rowid = ?", row_id)


def scrub(tx: Connection) -> None:
    """Rewrite the segments, the one way deleted words leave them."""
    for kind in _COLUMNS:
        # Each 'optimize' may add a level to the index, and SQLite takes one of more than 2,000 for
        # damaged (seen with 3.40). Its structure, record 10, holds two bytes a level.
        structure = f"SELECT length(block) FROM {kind}_fts_data WHERE id = 10"
        deep = tx.exec_driver_sql(structure).scalar_one() > _DEEP_BYTES
        command = "rebuild" if deep else "optimize"
        tx.exec_driver_sql(f"INSERT INTO {kind}_fts ({kind}_fts) VALUES ('{command}')")


def astray(tx: Connection, kind: Kind, wanted: Mapping[int, Words]) -> set[int]:
    """The ids whose rows are lacking, are too many, or hold another text or scope."""
    rows = tx.exec_driver_sql(f"SELECT rowid, scope, text FROM {kind}_fts").all()
    held = {row[0]: (row[1], row[2]) for row in rows}
    right = {
        i: (_reply_token(w.app_id) if w.reply else _token(w.app_id), terms(w.text))
        for i, w in wanted.items()
    }
    return {i for i in held.keys() | right.keys() if held.get(i) != right.get(i)}


def ids(tx: Connection, kind: Kind, app_id: int) -> set[int]:
    """The rows of a scope that are indexed."""
    match = f"scope:{_token(app_id)}"
    found = tx.exec_driver_sql(f"SELECT rowid FROM {kind}_fts WHERE {kind}_fts MATCH ?", (match,))
    return {row[0] for row in found}


def count(tx: Connection, kind: Kind) -> int:
    """How many rows of a kind are indexed."""
    return int(tx.exec_driver_sql(f"SELECT count(*) FROM {kind}_fts").scalar_one())


@dataclass(frozen=True, slots=True)
class Matches:
    """Every row that holds any of some words, with its BM25, higher is better."""

    tx: Connection
    app_ids: Sequence[int]
    scores: Mapping[int, float]
    """Best first, the newest of equal ones first. Rows of others are among them where ``mixed``."""
    mixed: bool = False

    def best(self, limit: int, without: Collection[int] = ()) -> list[Hit]:
        """The best of the scopes, so many of them."""
        every = ((i, score) for i, score in self.scores.items() if i not in without)
        if not self.mixed:
            return list(islice(every, limit))
        found: list[Hit] = []
        while len(found) < limit:
            batch = dict(islice(every, 2 * limit))
            if not batch:
                break
            mine = plain.rows(self.tx, _MINE, plain.listed(batch), plain.listed(self.app_ids))
            ours = {row[0] for row in mine}
            found += [(i, score) for i, score in batch.items() if i in ours]
        return found[:limit]

    def of(self, row_ids: Iterable[int]) -> dict[int, float]:
        """The scores of these rows of the scopes, as far as they match."""
        return {i: self.scores[i] for i in row_ids if i in self.scores}


def matches(tx: Connection, kind: Kind, app_ids: Sequence[int], words: Sequence[str]) -> Matches:
    """What holds any of the words in these scopes."""
    if not words or not app_ids:
        return Matches(tx, app_ids, {})
    # BM25 counts the rows of every word of a match, of the scope's token too, which weighs nothing.
    # Where most rows are of the scope, the others are sorted out afterwards.
    mixed = kind == "memories" and _most(tx, app_ids)
    match = _any_of(kind, words) if mixed else _match(kind, _scopes(app_ids), words)
    bm25 = f"-bm25({kind}_fts, {_WEIGHTS[kind]})"
    sql = f"SELECT rowid, {bm25} FROM {kind}_fts WHERE {kind}_fts MATCH ?"
    found = plain.rows(tx, sql, match)
    found.sort(key=lambda row: (row[1], row[0]), reverse=True)
    return Matches(tx, app_ids, dict(found), mixed)


def search(
    tx: Connection, kind: Kind, app_ids: Sequence[int], words: Sequence[str], limit: int
) -> list[Hit]:
    """The best (row id, BM25) for any of the words."""
    return matches(tx, kind, app_ids, words).best(limit)


def scores(
    tx: Connection, kind: Kind, app_ids: Sequence[int], words: Sequence[str], row_ids: Sequence[int]
) -> dict[int, float]:
    """The BM25 of these rows, where any word matches."""
    if not words or not row_ids or not app_ids:
        return {}
    rows = plain.rows(
        tx,
        f"SELECT rowid, -bm25({kind}_fts, {_WEIGHTS[kind]}) FROM {kind}_fts"
        f" WHERE {kind}_fts MATCH ? AND {_AMONG}",
        _match(kind, _with_replies(kind, app_ids), words),
        plain.listed(row_ids),
    )
    return dict(rows)


def held(
    tx: Connection, kind: Kind, words: Sequence[str], row_ids: Sequence[int]
) -> dict[int, set[str]]:
    """Which of the words each of these rows holds, itself or beside it, whatever their endings.

    Read from the rows, not asked of the index: a word in it costs everything that holds the word.
    """
    if not words or not row_ids:
        return {}
    stems = {word: _stem(word) for word in words}
    columns = _COLUMNS[kind].replace(" ", " || ' ' || ")
    rows = plain.rows(
        tx,
        f"SELECT rowid, {columns} FROM {kind}_fts WHERE rowid IN (SELECT value FROM json_each(?))",
        plain.listed(row_ids),
    )
    return {
        i: {word for word, stem in stems.items() if _within(text, stem)}
        for i, text in ((row[0], row[1] or "") for row in rows)
    }


def _within(text: str, stem: str) -> bool:
    """Whether a word of the text has this stem. By hand: compiling a pattern takes longer."""
    begins = stem[:-1] if stem.endswith("i") else stem  # city and cities share "cit"
    at = text.find(begins)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum():  # else each letter of "xxxx…" reads the rest
            end = at + len(begins)
            while end < len(text) and text[end].isalnum():
                end += 1
            if _stem(text[at:end]) == stem:
                return True
        at = text.find(begins, at + 1)
    return False


def _stem(word: str) -> str:
    """A word without its ending, nearly as the index's stemmer has it: "cook" of "cooking", "citi"
    of "city" and "cities". Of a number, and of other scripts' words, all of it."""
    if not word.isascii() or not word.isalpha():
        return word
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    for ending in ("ing", "ed", "en", "e"):
        if len(word) - len(ending) >= _SHORTEST:
            word = word.removesuffix(ending)
    if len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]  # plan of planned
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > _SHORTEST else word


def _match(kind: Kind, scopes: str, words: Sequence[str]) -> str:
    return f"scope:({scopes}) AND {_any_of(kind, words)}"


def _any_of(kind: Kind, words: Sequence[str]) -> str:
    return f"{{{_COLUMNS[kind]}}}:({' OR '.join(map(_quoted, words))})"


def _most(tx: Connection, app_ids: Sequence[int]) -> bool:
    """Whether most memories are of these scopes, by a sample of them."""
    return bool(plain.rows(tx, _SAMPLED, plain.listed(app_ids))[0][0] > _SAMPLE / 2)


def _scopes(app_ids: Sequence[int]) -> str:
    return " OR ".join(_token(app_id) for app_id in app_ids)


def _with_replies(kind: Kind, app_ids: Sequence[int]) -> str:
    replies = map(_reply_token, app_ids) if kind == "messages" else ()
    return " OR ".join([_scopes(app_ids), *replies])


def _token(app_id: int) -> str:
    return f"a{app_id}"


def _reply_token(app_id: int) -> str:
    return f"r{app_id}"


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'
