"""Cutting notes into chunks for an embedding model, and writing them with their passages in one
transaction. Vectors follow through the queue, and only for chunks whose text is new. Where a model
that is to be used cannot read a chunk whole, its note is cut again.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from memchat.db import Tx
from memchat.db.database import Database
from memchat.errors import MemChatError
from memchat.language.secrets import Secret, find_in_document
from memchat.language.text import has_words
from memchat.notes import chunking, rows
from memchat.notes.rows import NewChunk
from memchat.providers import Embedder
from memchat.search import embeddings, passages
from memchat.search.embed import embed_documents
from memchat.types import NewNote
from memchat.workflows import rows as workflows

PROFILES: Mapping[str, chunking.Profile] = {"memo": chunking.MEMO, "document": chunking.DOCUMENT}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A note with its chunks, ready to be written."""

    note: NewNote
    parts: Sequence[NewChunk]
    sized_for: str | None
    """The embedding model that reads each of them whole."""


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
            for part in chunking.chunks(text, self._size(profile), self._count)
            if has_words(said := text[part.start : part.end]) and part.tokens > self._special
        ]

    def prepare(self, note: NewNote) -> Prepared:
        """Cut a note. It may take a while for a long text."""
        return Prepared(note, self.parts(note.text, note.profile), self.model)

    def reads_whole(self, text: str) -> bool:
        """Whether the model reads all of a text at once."""
        return self.embedder is None or self._count(text) <= self.embedder.service.max_tokens

    def _size(self, profile: str) -> chunking.Profile:
        chosen = PROFILES[profile]
        if self.embedder is None:
            return chosen
        return chunking.effective_profile(chosen, self.embedder.service)

    @cached_property
    def _count(self) -> chunking.CountTokens:
        return chunking.token_counter(self.embedder)

    @cached_property
    def _special(self) -> int:
        """The tokens of no text at all: some tokenizers drop characters that cannot be seen."""
        return self._count("")


def write(tx: Tx, app_id: int, prepared: Prepared) -> tuple[int, bool]:
    """Store a note, or replace the one of the same type and external id; its id, and whether
    other words were there before. Where nothing changes its chunks stay as they are. A new one
    begins the workflows that wait for notes."""
    new = prepared.note
    begun = workflows.waiting_for(tx, app_id, new)
    external = new.external_id
    if begun and external is not None and rows.by_external_id(tx, app_id, new.type, external):
        begun = []  # it was there before
    note_id, reworded = rows.put(tx, app_id, new, tx.now, sized_for=prepared.sized_for)
    linked = new.pair_id is not None or new.parent_id is not None
    if reworded or linked or rows.chunk_parts(tx, note_id) != prepared.parts:
        rows.replace_chunks(tx, note_id, prepared.parts, new.pair_id, new.parent_id)
    workflows.note_came(tx, app_id, note_id, new, begun)
    return note_id, reworded


def _masked(said: str, start: int, found: Sequence[Secret]) -> str | None:
    """A part of a text without its secrets, which were found in the whole text: one that is cut in
    two is recognised in neither part. None where it has none."""
    out, at, end = [], 0, start + len(said)
    first = bisect_right(found, start, key=lambda secret: secret.end)
    after = bisect_left(found, end, key=lambda secret: secret.start)
    for secret in found[first:after]:
        out.append(f"{said[at : max(0, secret.start - start)]}[{secret.kind}]")
        at = min(secret.end, end) - start
    return "".join(out) + said[at:] if out else None


log = logging.getLogger(__name__)

BATCH = 20
"""Notes that are looked at in one transaction."""


def recut(tx: Tx, note_id: int, cutter: Cutter, *, damaged: bool = False) -> int | None:
    """Cut a note anew, in the caller's transaction; its scope row where it has other chunks now, or
    is ``damaged``. Chunks with the same text keep their vectors and their counts."""
    app_id = rows.app_id_of(tx, note_id)
    note = None if app_id is None else rows.get(tx, [app_id], note_id)
    if note is None:
        return None
    parts = cutter.parts(note.text, note.profile)
    changed = damaged or parts != rows.chunk_parts(tx, note_id)
    if changed:
        rows.replace_chunks(tx, note_id, parts)
    if changed or cutter.model is not None:
        rows.change(tx, [note_id], sized_for=cutter.model)
    if (in_use := embeddings.in_use(tx)) is not None:
        ids = rows.passage_ids(tx, note_id)
        passages.queue_lacking(tx, in_use, ids)
    return app_id if changed else None


def fit(tx: Tx, note_id: int, cutter: Cutter) -> bool:
    """Cut a note anew, in the caller's transaction, if the model cannot read a chunk whole; whether
    it has other chunks now."""
    if rows.sized_for(tx, note_id) == cutter.model:
        return False
    if all(map(cutter.reads_whole, rows.chunk_texts(tx, note_id))):
        return False
    return recut(tx, note_id, cutter) is not None


class NoteFitting:
    """Fits the notes of a store to an embedding service that it is about to use.

    The service in use goes on to answer: it makes its vectors of the new chunks at once.
    """

    def __init__(self, database: Database, coming: Embedder, in_use: Embedder | None) -> None:
        """``in_use`` is None where its service cannot be asked: until the change the new chunks are
        found by their words."""
        self._database = database
        self._cutter = Cutter(coming)
        self._in_use = in_use

    def run(self) -> None:
        """Fit all notes. It may be stopped at any time; the next run goes on from there."""
        model = self._cutter.model
        assert model is not None
        while True:
            with self._database.write() as tx:
                batch = rows.not_sized_for(tx, model, BATCH)
                anew = [note_id for note_id in batch if fit(tx, note_id, self._cutter)]
                rows.change(tx, batch, sized_for=model)
                said = [text for note_id in anew for text in rows.chunk_texts(tx, note_id)]
            if not batch:
                return
            self._embed({passages.text_hash(text): text for text in said})

    def done(self, tx: Tx) -> bool:
        """Whether the coming service reads every chunk of the store whole."""
        assert self._cutter.model is not None
        return not rows.not_sized_for(tx, self._cutter.model, 1)

    def _embed(self, texts: Mapping[str, str]) -> None:
        """Store what the service in use makes of these texts; nothing once it has failed."""
        if self._in_use is None or not texts:
            return
        try:
            made = embed_documents(self._in_use, texts)[0]
        except MemChatError as error:
            log.warning("notes are found by their words until the change: %s", error)
            self._in_use = None
            return
        with self._database.write() as tx:
            if (in_use := embeddings.in_use(tx)) is not None:
                passages.keep_vectors(tx, in_use, made)
