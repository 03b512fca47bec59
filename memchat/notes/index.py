"""Writing a note: its row, its chunks and their keyword rows in one transaction; vectors follow
through the queue, and only for chunks whose text is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memchat.language import secrets
from memchat.memory.context import Context
from memchat.notes.chunking import chunks as cut
from memchat.notes.profile import DOCUMENT, MEMO, Profile, effective_profile
from memchat.notes.token_count import CountTokens, token_counter
from memchat.providers import Embedder
from memchat.store import chunks, jobs, notes, services
from memchat.store.chunks import NewChunk, NoteOf
from memchat.store.notes import NewNote

PROFILES: Mapping[str, Profile] = {"memo": MEMO, "document": DOCUMENT}


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts texts into chunks that one embedding model reads whole."""

    embedder: Embedder | None

    def parts(self, text: str, profile: str) -> list[NewChunk]:
        """A text as chunks of a profile."""
        size, count = self._size(profile), self._count()
        return [
            NewChunk(
                part.start, part.end - part.start, part.tokens, _masked(text[part.start : part.end])
            )
            for part in cut(text, size, count)
        ]

    def _size(self, profile: str) -> Profile:
        chosen = PROFILES[profile]
        if self.embedder is None:
            return chosen
        return effective_profile(chosen, self.embedder.service)

    def _count(self) -> CountTokens:
        return token_counter(self.embedder)


def write(
    ctx: Context,
    app_id: int,
    new: NewNote,
    parts: Sequence[NewChunk],
    *,
    pair_id: int | None = None,
    parent_id: int | None = None,
) -> int:
    """Store a note, or replace the one of the same type and external id; its id."""
    tx = ctx.tx
    note_id, _ = notes.put(tx, app_id, new, ctx.now)
    note = NoteOf(note_id, app_id, new.type, new.title, new.text, pair_id, parent_id)
    chunks.replace(tx, note, parts, ctx.now)
    in_use = services.in_use(tx)
    if in_use is None or chunks.lacking(tx, note_id, in_use):
        jobs.enqueue(tx, "note", app_id, note_id, ctx.now)
    return note_id


def _masked(text: str) -> str | None:
    masked = secrets.mask(text)
    return masked if masked != text else None
