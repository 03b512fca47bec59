"""Writing down what a reading did not keep, once it is certain whose words may stay."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import Connection

from memchat.language import secrets, text
from memchat.memory.extraction.proposals import BLANKED, FORGOTTEN, HIDDEN
from memchat.memory.extraction.session_reading import Reading
from memchat.memory.forgetting import tombstone_marks
from memchat.memory.forgetting.redaction import FILLER
from memchat.store import apps, refusals
from memchat.store.refusals import NewRefusal

_SHORTEST_PART = 4
"""Characters from which a word of a proposal may be a part of a secret."""


def keep(
    tx: Connection,
    own: int,
    reading: Reading,
    rows: Iterable[NewRefusal],
    now: datetime,
    *,
    altered: Collection[int] = (),
) -> None:
    """Note what a session's reading did not keep, in the transaction that marks it read.

    Of what was forgotten, or stood in a message of ``altered``, only the reason is noted.
    """
    ids, told = apps.find(tx, reading.scope).ids, _secrets(reading)
    written = [
        NewRefusal(HIDDEN)
        if _betrays(row, told)
        else _with_words_that_may_stay(tx, ids, reading, row, altered)
        for row in rows
    ]
    read_to = reading.session.extracted_to
    refusals.replace(tx, own, reading.session.id, written, now, read_to=read_to)


def _secrets(reading: Reading) -> list[tuple[int, int, int, str]]:
    """Where secrets stand in what was said (message, start, end), and their words."""
    said = [turn.content for turn in reading.turns]
    return [
        (reading.turns[number].id, found.start, found.end, said[number][found.start : found.end])
        for number, found in secrets.find_in_conversation(said)
    ]


def _betrays(row: NewRefusal, told: Iterable[tuple[int, int, int, str]]) -> bool:
    """Whether a proposal holds a telling part of a secret. Cut off from the words around it, a part
    is not recognised by itself; and the reason may repeat it."""
    if row.key is None:
        return False
    words = f"{row.key} {row.value or ''}\n{row.reason}"
    plain = text.normal_value(words)
    for message_id, start, end, secret in told:
        quoted = row.message_id == message_id and row.start is not None and row.end is not None
        if quoted and (row.start or 0) < end and start < (row.end or 0):
            return True
        if text.normal_value(secret) in plain or secrets.reveals(words, secret):
            return True
        if any(piece in secret.casefold() for piece in _pieces(row.value or "")):
            return True
    return False


def _pieces(value: str) -> list[str]:
    return [piece for piece in value.casefold().split() if len(piece) >= _SHORTEST_PART]


def _with_words_that_may_stay(
    tx: Connection, ids: Iterable[int], reading: Reading, row: NewRefusal, altered: Collection[int]
) -> NewRefusal:
    if row.key is None:
        return row
    if row.message_id in altered:
        return NewRefusal(BLANKED)
    if row.message_id is None and any(2 * FILLER in turn.content for turn in reading.turns):
        return NewRefusal(row.reason)  # nobody said it here, unless it is what was blanked
    said_at, proofs = reading.turns[-1].created_at, []
    turn = next((turn for turn in reading.turns if turn.id == row.message_id), None)
    if turn is not None:
        said_at = turn.created_at
        proofs.append((turn.id, turn.content[row.start : row.end]))
    stand = tombstone_marks.stand(tx, ids, row.key, row.value or "", proofs, said_at)
    return NewRefusal(FORGOTTEN) if stand == "refuse" else row
