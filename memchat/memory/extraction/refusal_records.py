"""Storing what a reading refused, without words that may not be kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import Connection

from memchat.language import secrets, text
from memchat.memory.context import Context
from memchat.memory.extraction.session_reading import SessionReading
from memchat.memory.extraction.verdict_outcomes import HIDDEN
from memchat.memory.facts.fact import BLANKED, FORGOTTEN
from memchat.memory.forgetting import tombstone_marks
from memchat.memory.forgetting.redaction import FILLER
from memchat.store import apps, refusals
from memchat.store.refusals import NewRefusal

_SHORTEST_PART = 4
"""From how many characters on a word of a proposal is compared with parts of secrets."""


def record(
    ctx: Context,
    reading: SessionReading,
    rows: Iterable[NewRefusal],
    *,
    altered: Collection[int] = (),
) -> None:
    """Store what a session's reading refused, in the transaction that marks it read.

    Of what was forgotten, or quoted from a message of ``altered``, only the reason is stored.
    """
    own = ctx.scope.own
    assert own is not None
    ids, secret_words = apps.find(ctx.tx, reading.scope).ids, _secrets(reading)
    written = [
        NewRefusal(HIDDEN)
        if _reveals_secret(row, secret_words)
        else _with_words_that_may_stay(ctx.tx, ids, reading, row, altered)
        for row in rows
    ]
    session = reading.session
    refusals.replace(ctx.tx, own, session.id, written, ctx.now, read_to=session.extracted_to)


def _secrets(reading: SessionReading) -> list[tuple[int, int, int, str]]:
    """The secrets of the conversation: (message id, start, end, text)."""
    said = [turn.content for turn in reading.turns]
    told = [(*one.place, one.words) for one in reading.told_secrets]
    return told + [
        (reading.turns[number].id, found.start, found.end, said[number][found.start : found.end])
        for number, found in secrets.find_in_conversation(said)
    ]


def _reveals_secret(row: NewRefusal, secret_spans: Iterable[tuple[int, int, int, str]]) -> bool:
    """Whether a proposal holds a revealing part of a secret. Without the words around it such a
    part is not recognised by itself, and the reason may repeat it."""
    if row.key is None:
        return False
    words = f"{row.key} {row.value or ''}\n{row.reason}"
    plain = text.normal_value(words)
    for message_id, start, end, secret in secret_spans:
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
    tx: Connection,
    ids: Iterable[int],
    reading: SessionReading,
    row: NewRefusal,
    altered: Collection[int],
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
    stand = tombstone_marks.match(tx, ids, row.key, row.value or "", proofs, said_at)
    return NewRefusal(FORGOTTEN) if stand == "refuse" else row
