"""Writing a note: its row, its chunks and their keyword rows in one transaction; vectors follow
through the queue, and only for chunks whose text is new."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import Connection

from memchat.language.secrets import Secret, find_in_document
from memchat.memory.context import Context
from memchat.notes.chunking import chunks as cut
from memchat.notes.profile import DOCUMENT, MEMO, Profile, effective_profile
from memchat.notes.token_count import CountTokens, token_counter
from memchat.providers import Embedder
from memchat.store import chunks, jobs, notes, services
from memchat.store.chunks import NewChunk, NoteOf
from memchat.types import NewNote

PROFILES: Mapping[str, Profile] = {"memo": MEMO, "document": DOCUMENT}


@dataclass(frozen=True)
class Cutter:
    """Cuts texts into chunks that one embedding model reads whole. Without a model they have the
    sizes of the profiles."""

    embedder: Embedder | None

    @property
    def model(self) -> str | None:
        """The embedding model and how many tokens it reads; None without a model."""
        if self.embedder is None:
            return None
        return f"{self.embedder.service.name} {self.embedder.service.max_tokens}"

    def parts(self, text: str, profile: str) -> list[NewChunk]:
        """A text as chunks of a profile; a part without words makes none."""
        found = find_in_document(text)
        return [
            NewChunk(part.start, len(said), part.tokens, _masked(said, part.start, found))
            for part in cut(text, self._size(profile), self._count)
            if has_words(said := text[part.start : part.end]) and part.tokens > self._special
        ]

    def reads_whole(self, text: str) -> bool:
        """Whether the model reads all of a text at once."""
        return self.embedder is None or self._count(text) <= self.embedder.service.max_tokens

    def _size(self, profile: str) -> Profile:
        chosen = PROFILES[profile]
        if self.embedder is None:
            return chosen
        return effective_profile(chosen, self.embedder.service)

    @cached_property
    def _count(self) -> CountTokens:
        return token_counter(self.embedder)

    @cached_property
    def _special(self) -> int:
        """The tokens of no text at all: some tokenizers drop characters that cannot be seen."""
        return self._count("")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A note with its chunks, ready to be written."""

    note: NewNote
    parts: Sequence[NewChunk]
    sized_for: str | None
    """The embedding model that reads each of them whole."""


def prepare(note: NewNote, embedder: Embedder | None) -> Prepared:
    """Cut a note for an embedding model. It may take a while for a long text."""
    cutter = Cutter(embedder)
    return Prepared(note, cutter.parts(note.text, note.profile), cutter.model)


def write(ctx: Context, app_id: int, prepared: Prepared) -> tuple[int, bool]:
    """Store a note, or replace the one of the same type and external id; its id, and whether
    other words were there before. Where nothing changes its chunks stay as they are."""
    tx, new = ctx.tx, prepared.note
    note_id, reworded = notes.put(tx, app_id, new, ctx.now, sized_for=prepared.sized_for)
    note = NoteOf(note_id, app_id, new.type, new.title, new.text, new.pair_id, new.parent_id)
    linked = new.pair_id is not None or new.parent_id is not None
    if reworded or linked or chunks.parts(tx, note_id) != prepared.parts:
        chunks.replace(tx, note, prepared.parts, ctx.now)
    queue(tx, note_id, app_id, ctx.now)
    return note_id, reworded


def queue(tx: Connection, note_id: int, app_id: int, now: datetime) -> None:
    """Queue a note for its vectors, where any is lacking."""
    in_use = services.in_use(tx)
    if in_use is None or chunks.lacking(tx, note_id, in_use):
        jobs.enqueue(tx, "note", app_id, note_id, now)


def has_words(text: str) -> bool:
    """Whether a text has anything that can be searched for: a letter, a digit or an emoji."""
    return any(
        (kind := unicodedata.category(char))[0] in "LN" or (kind == "So" and char != "\ufffd")
        for char in text
    )


def _masked(said: str, start: int, found: Sequence[Secret]) -> str | None:
    """A part of a text without its secrets, which were found in the whole text: one that is cut in
    two is recognised in neither part. None where it has none."""
    out, at, end = [], 0, start + len(said)
    for secret in found:
        if secret.start < end and secret.end > start:
            out.append(f"{said[at : max(0, secret.start - start)]}[{secret.kind}]")
            at = min(secret.end, end) - start
    return "".join(out) + said[at:] if out else None
