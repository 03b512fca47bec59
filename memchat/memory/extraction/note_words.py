"""Words of a message that stand in a note of the person: pasted from there, perhaps not their own.

They prove nothing by themselves; the person is asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlalchemy import Connection

from memchat.language.text import UNSPACED, fold, trim
from memchat.memory.gate.types import Proof, Verdict
from memchat.store import keywords, mentions, notes
from memchat.types import Message

IN_A_NOTE = "the same words stand in one of your notes"
_LONG = 30
"""Characters in a row that are hardly the same by chance."""
_LONG_UNSPACED = 12
"""The same in scripts without spaces between words."""


def ask_first(
    tx: Connection, app_id: int, verdict: Verdict, turns: Mapping[int, Message]
) -> Verdict:
    """A verdict that waits for the person where its words were pasted from a note of the app."""
    if verdict.outcome not in ("accept", "doubt") or not notes.any_in_app(tx, app_id):
        return verdict
    said = [proof for proof in verdict.spans if proof.role == "user"]
    if not any(_is_pasted(tx, app_id, turns[proof.message_id].content, proof) for proof in said):
        return verdict
    return replace(verdict, outcome="review", reasons=(*verdict.reasons, IN_A_NOTE))


def _is_pasted(tx: Connection, app_id: int, message: str, proof: Proof) -> bool:
    """Whether the words, with what stands around them, are the same in a note."""
    said, quote = fold(message), trim(fold(proof.quote).text)
    here = said.text.find(quote, bisect_left(said.offsets, proof.start))
    words = keywords.query_terms(proof.quote)
    for row in mentions.note_texts(tx, keywords.rows_holding_all(tx, "chunks", [app_id], words)):
        written = fold(row[2]).text
        for there in _places(quote, written) if here >= 0 else ():
            run = _same_around(said.text, here, written, there, len(quote))
            if len(run) >= (_LONG_UNSPACED if UNSPACED.search(run) else _LONG):
                return True
    return False


def _places(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _same_around(one: str, here: int, other: str, there: int, size: int) -> str:
    """The longest run of equal characters of two texts around equal words of both."""
    start, end = 0, size
    while min(here, there) + start > 0 and one[here + start - 1] == other[there + start - 1]:
        start -= 1
    while (
        here + end < len(one) and there + end < len(other) and one[here + end] == other[there + end]
    ):
        end += 1
    return one[here + start : here + end].strip()
