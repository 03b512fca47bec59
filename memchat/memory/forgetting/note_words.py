"""Blanking words in a note. Its chunks keep their places, and those that held a word are made
anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memchat.memory.context import Context
from memchat.memory.forgetting import redaction
from memchat.memory.forgetting.identifying_words import IdentifyingWords
from memchat.store import chunks, jobs, notes
from memchat.store.chunks import NewChunk
from memchat.types import NewNote


def blank(
    ctx: Context, app_ids: Sequence[int], note_id: int, identifying: IdentifyingWords
) -> set[int]:
    """Blank the words in the title and the text of a note of these scope rows, in the caller's
    transaction.

    Gives the scope rows whose saved vector index must be dropped.
    """
    tx = ctx.tx
    note, app_id = notes.get(tx, app_ids, note_id), notes.app_id_of(tx, note_id)
    if note is None or app_id is None:
        return set()
    title = None if note.title is None else _blanked(note.title, identifying)
    text = _blanked(note.text, identifying)
    if (title, text) == (note.title, note.text):
        return set()
    parts = [_without(part, identifying) for part in chunks.parts(tx, note_id)]
    new = NewNote(text, title, note.type, note.external_id, profile=note.profile)
    # A filler may have more tokens than the words in its place: the job looks at the sizes anew.
    notes.put(tx, app_id, new, ctx.now, sized_for=None)
    chunks.replace(tx, notes.of(replace(note, title=title, text=text), app_id), parts, ctx.now)
    notes.remove_from_chats(tx, note_id)
    jobs.enqueue(tx, "note", app_id, note_id, ctx.now)
    return {app_id}


def _without(part: NewChunk, identifying: IdentifyingWords) -> NewChunk:
    return part if part.masked is None else replace(part, masked=_blanked(part.masked, identifying))


def _blanked(content: str, identifying: IdentifyingWords) -> str:
    return redaction.blank(content, identifying.spans({0: content}).get(0, ()))
