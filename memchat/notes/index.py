"""Writing a note: its row, its chunks and their keyword rows in one transaction; vectors follow
through the queue, and only for chunks whose text is new."""

from __future__ import annotations

from sqlalchemy import Connection

from memchat.language import secrets
from memchat.memory.context import Context
from memchat.notes.chunking import chunks as cut
from memchat.notes.chunking import profile_for
from memchat.store import chunks, jobs, notes, services
from memchat.store.chunks import NewChunk, NoteOf
from memchat.store.notes import NewNote


def write(
    ctx: Context,
    app_id: int,
    new: NewNote,
    *,
    pair_id: int | None = None,
    parent_id: int | None = None,
) -> int:
    """Store a note, or replace the one of the same type and external id; its id."""
    tx = ctx.tx
    note_id, _ = notes.put(tx, app_id, new, ctx.now)
    note = NoteOf(note_id, app_id, new.type, new.title, new.text, pair_id, parent_id)
    chunks.replace(tx, note, parts(tx, new.text, new.profile), ctx.now)
    if services.in_use(tx) is None or chunks.lacking(tx, note_id, services.in_use(tx) or 0):
        jobs.enqueue(tx, "note", app_id, note_id, ctx.now)
    return note_id


def parts(tx: Connection, text: str, profile: str) -> list[NewChunk]:
    """A text as chunks of a profile, none longer than the embedding model in use reads."""
    in_use = services.in_use(tx)
    service = services.get(tx, in_use) if in_use is not None else None
    return [
        NewChunk(
            part.start, part.end - part.start, part.tokens, _masked(text[part.start : part.end])
        )
        for part in cut(text, *profile_for(profile, service))
    ]


def _masked(text: str) -> str | None:
    masked = secrets.mask(text)
    return masked if masked != text else None
