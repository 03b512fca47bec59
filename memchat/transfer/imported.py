"""Completing imported rows: links, search texts, what replaces what, and queued work.

Search texts and vectors are not part of an export. The texts of memories are written here; those of
conversations, in which secrets have to be found first, and all vectors are made afterwards.

Writing the programs of an export, and what each of them wrote.

How far a program is trusted is not part of that: the person says so when it is started, or in its
token. The mode of a program that is imported is the one that it had.

Writing the notes of an export: a note is known by its type and external id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from memchat.db import apps, jobs, messages, sessions
from memchat.db.apps import Context, ScopeIds
from memchat.errors import InputError
from memchat.facts import changes, clients, inbox, memories
from memchat.facts.history import Cause
from memchat.facts.in_force import said_order, values_of_key
from memchat.facts.memories import text_hash
from memchat.forget import purge, redaction
from memchat.notes import chunks, rows
from memchat.notes.chunks import NewChunk, NoteOf
from memchat.search import keywords
from memchat.transfer.record_check import RecordIds, Values
from memchat.types import EVERY_APP, Memory, Message, NewNote, Note, Scope, WriteKind

IMPORTED = "imported"


@dataclass(slots=True)
class ImportedRows:
    """The rows that an import wrote."""

    ctx: Context
    """Its scope is that of no one app."""
    user: str
    unread: int = 0
    """How many conversations were queued to be read."""
    unembedded: int = 0
    """How many memories and conversations were queued to be embedded."""
    _read: list[int] = field(default_factory=list)
    """New conversations of which something was read, or that have a summary."""
    _sessions: dict[int, int] = field(default_factory=dict)
    _memories: dict[int, int] = field(default_factory=dict)
    """New rows, each with its scope row."""
    _forgotten: dict[int, int] = field(default_factory=dict)
    _replaced: dict[int, int] = field(default_factory=dict)
    """New memories with the id in the file of what replaced them."""

    def add_session(
        self, session_id: int, app_id: int, *, read_to: int, summary: str | None
    ) -> None:
        """Note a conversation that is new or goes on, whose messages are all written, and up to
        where it was read."""
        self._sessions[session_id] = app_id
        sessions.set_read_to(self.ctx.tx, session_id, read_to)
        if read_to or summary:
            self._read.append(session_id)
        if summary:
            keywords.write(self.ctx.tx, "sessions", session_id, app_id, summary)
        found = messages.ids_of(self.ctx.tx, session_id, learnable=True)
        messages.write_keywords(self.ctx.tx, session_id, found)

    def add_memory(
        self, memory_id: int, app_id: int, *, replaced_by: int | None, forgotten: bool
    ) -> None:
        """Note a new memory. One that was forgotten here is written until its words are blanked in
        the new conversations, and is then purged."""
        (self._forgotten if forgotten else self._memories)[memory_id] = app_id
        if replaced_by is not None:
            self._replaced[memory_id] = replaced_by

    def complete(self, ids: RecordIds, *, embeds: bool) -> set[int]:
        """Do what needs all rows; the scope rows whose saved vector index must be dropped."""
        for memory_id, in_file in self._replaced.items():
            here = ids.here("memory", in_file)
            changes.set_columns(self.ctx.tx, memory_id, replaced_by=here)
        if self._sessions or self._memories:
            apps.ensure_shared(self.ctx.tx, self.user, self.ctx.now)
        stale = self._forget()
        self._write_search_texts(embeds)
        self._retire_rivals()
        self._index_sessions(embeds)
        self._queue_unread()
        return stale

    def _forget(self) -> set[int]:
        gone = [
            memory
            for memory_id, app_id in self._forgotten.items()
            if (memory := memories.get(self.ctx.tx, [app_id], memory_id)) is not None
        ]
        return purge.forget(self.ctx, gone)

    def _write_search_texts(self, embeds: bool) -> None:
        for memory_id, memory in self._present():
            app_id = self._memories[memory_id]
            words = redaction.present_search_text(self.ctx, memory, app_id)
            hashed = text_hash(words)
            changes.set_columns(self.ctx.tx, memory_id, search_text=words, text_hash=hashed)
            if not memory.active and memory.inactive_reason != "superseded":
                continue
            keywords.write(self.ctx.tx, "memories", memory_id, app_id, words)
            if embeds:
                jobs.enqueue(self.ctx.tx, "embed", app_id, memory_id, self.ctx.now)
                self.unembedded += 1

    def _retire_rivals(self) -> None:
        """Of a key that holds one value, the one that was said last holds, also where the store had
        another before."""
        slots = {(self._memories[i], memory.key) for i, memory in self._present() if memory.active}
        for app_id, key in sorted(slots):
            ctx = replace(self.ctx, scope=ScopeIds(app_id, None))
            holding = sorted(values_of_key(ctx, app_id, key), key=said_order)
            if all(memory.id in self._memories for memory in holding):
                continue  # so it was where they come from
            cause = Cause(self.ctx.now, "user", IMPORTED)
            for memory in holding[:-1]:
                changes.deactivate(
                    self.ctx.tx, memory, "superseded", cause, replaced_by=holding[-1].id
                )

    def _index_sessions(self, embeds: bool) -> None:
        """Queue what makes the search texts and vectors of the new conversations."""
        for session_id in self._read if embeds else ():
            jobs.enqueue(self.ctx.tx, "index", self._sessions[session_id], session_id, self.ctx.now)
            self.unembedded += 1

    def _queue_unread(self) -> None:
        waiting = set(inbox.sessions_awaiting_second_look(self.ctx.tx, self.user))
        for session_id, app_id in self._sessions.items():
            found = sessions.by_id(self.ctx.tx, session_id)
            if found is None or found[0].ended_at is None:
                continue
            if not apps.memory_switch(self.ctx.tx, Scope(self.user, found[0].app)).on:
                continue
            if sessions.has_unread_messages(self.ctx.tx, session_id):
                jobs.enqueue(self.ctx.tx, "extract", app_id, session_id, self.ctx.now)
                self.unread += 1
            if session_id in waiting:
                jobs.enqueue(self.ctx.tx, "verify", app_id, session_id, self.ctx.now)

    def _present(self) -> Sequence[tuple[int, Memory]]:
        """The new memories as their rows are now."""
        found: list[tuple[int, Memory]] = []
        for app_id in sorted(set(self._memories.values())):
            here = [i for i, home in self._memories.items() if home == app_id]
            found += memories.by_ids(self.ctx.tx, [app_id], here).items()
        return found


_TARGETS: Mapping[WriteKind, tuple[str, str]] = {
    "memory": ("memory_id", "memory"),
    "note": ("note_id", "note"),
    "inbox": ("inbox_item_id", "inbox_item"),
    "forget": ("inbox_item_id", "inbox_item"),
}
"""For each kind of writes the field that has its target, and the kind of that."""


@dataclass(slots=True)
class ImportedClients:
    """The programs of one import."""

    ctx: Context

    def find(self, app_id: int, values: Values) -> int | None:
        """The id of the program of this name, as it is here. Raises InputError for one of every
        app."""
        if values["app"] == EVERY_APP:
            raise InputError("a program calls in one app, and it names none")
        return clients.find(self.ctx.tx, app_id, values["name"])

    def check_session(self, client_id: int, app_id: int) -> None:
        """Raise InputError for a conversation in another app than the program whose words it
        holds."""
        if clients.app_id_of(self.ctx.tx, client_id) != app_id:
            raise InputError("it is in another app than its program")

    def said_here(
        self, client_id: int, turns: Sequence[Values]
    ) -> tuple[int | None, dict[int, int]]:
        """The conversation that holds what a program said here, and for the ids of these messages
        in the file those of the same messages in it."""
        session_id = clients.session_of(self.ctx.tx, client_id)
        if session_id is None:
            return None, {}
        left: defaultdict[tuple[object, ...], list[Message]] = defaultdict(list)
        for message in messages.of_session(self.ctx.tx, session_id):
            left[message.created_at, message.content].append(message)
        same = {}
        for turn in turns:
            if found := left[turn["created_at"], turn["content"]]:
                same[turn["id"]] = found.pop(0).id
        return session_id, same

    def add_write(
        self, client_id: int, values: Values, target_id: int, new_notes: Collection[int]
    ) -> bool:
        """Note what a program wrote; False where it is known. ``new_notes`` are those that are new
        here or have the text of the file; whose text another is, here, is known here."""
        tx, kind, at = self.ctx.tx, values["kind"], values["at"]
        if kind == "note":
            known_at = clients.note_written_at(tx, client_id, target_id)
            if known_at is not None and (target_id not in new_notes or known_at >= at):
                return False
            clients.record_note(tx, client_id, target_id, at)
        elif clients.has_write(tx, client_id, kind, target_id, at):
            return False
        else:
            clients.record_write(tx, client_id, kind, target_id, at)
        return True


def written(values: Values) -> tuple[str, int | None]:
    """The kind of what a program wrote, and its id in the file; None where that is gone. Raises
    InputError for a record that names none."""
    name, kind = _TARGETS[values["kind"]]
    if values[name] is None and values["kind"] != "forget":
        raise InputError("it does not say what the program wrote")
    return kind, values[name]


def check_message(values: Values) -> None:
    """Raise InputError for a message that no program can have said. Their conversations are not
    shown among the chats, so nothing is learned from them."""
    if values["role"] != "assistant" or values["memory"] or values["copied_from"] is not None:
        raise InputError("it is not what a program said, and stands in a program's conversation")


class CutText(NamedTuple):
    """The chunks of a text, and the embedding model that reads each of them whole."""

    parts: Sequence[NewChunk]
    sized_for: str | None


Cut = Callable[[str, str], CutText]
"""Cuts a text for a profile."""


@dataclass(slots=True)
class ImportedNotes:
    """The notes of one import. Their chunks are made anew."""

    ctx: Context
    cut: Cut
    reworded: set[int] = field(default_factory=set)
    """The scope rows of the notes that have another text now."""
    _written: dict[int, int] = field(default_factory=dict)
    """New and changed notes, each with its scope row."""

    def find(self, app_id: int, values: Values) -> Note | None:
        """The note that this is, as it is here."""
        return rows.by_external_id(self.ctx.tx, app_id, values["type"], values["external_id"])

    def is_deleted(self, app_id: int, values: Values) -> bool:
        """Whether the note was deleted here, and was not changed elsewhere since."""
        gone = rows.deleted_at(self.ctx.tx, app_id, values["type"], values["external_id"])
        return gone is not None and not _later(values["updated_at"], gone)

    def cut_text(self, values: Values) -> CutText:
        """The chunks of a note. Raises InputError for one without words."""
        found = self.cut(values["content"], values["profile"])
        if not found.parts:
            raise InputError("its content has no words")
        return found

    def add_chunks(self, note_id: int, app_id: int, values: Values, cut: CutText) -> None:
        """Write the chunks of a new note, whose row is there, with their counts."""
        self._write_chunks(note_id, app_id, values, cut)
        chunks.set_counts(self.ctx.tx, note_id, values["counts"] or {})

    def update(self, note: Note, app_id: int, values: Values) -> bool:
        """Give a known note the text and title of the file if they were changed there later than
        here; whether they were."""
        changed_at, title, words = values["updated_at"], values["title"], values["content"]
        if not _later(changed_at, note.updated_at) or (title, words) == (note.title, note.text):
            return False
        tx, cut = self.ctx.tx, self.cut_text(values)
        new = NewNote(words, title, note.type, note.external_id, profile=values["profile"])
        rows.put(tx, app_id, new, changed_at, sized_for=cut.sized_for)
        rows.mark_missing(tx, [note.id], values["missing"])
        self._write_chunks(note.id, app_id, values, cut)
        self.reworded.add(app_id)
        purge.request_scrub(tx)
        return True

    def queue(self) -> int:
        """Queue what makes the vectors; for how many notes."""
        for note_id, app_id in self._written.items():
            jobs.enqueue(self.ctx.tx, "note", app_id, note_id, self.ctx.now)
        return len(self._written)

    def _write_chunks(self, note_id: int, app_id: int, values: Values, cut: CutText) -> None:
        own = (values["title"], values["content"], values["pair_id"], values["parent_id"])
        note = NoteOf(note_id, app_id, values["type"], *own)
        chunks.replace(self.ctx.tx, note, cut.parts, self.ctx.now)
        self._written[note_id] = app_id


def _later(changed: datetime | None, than: datetime | None) -> bool:
    return changed is not None and (than is None or changed > than)
