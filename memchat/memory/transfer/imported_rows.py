"""Completing imported rows: links, search texts, what replaces what, and queued work.

Search texts and vectors are not part of an export. The texts of memories are written here; those of
conversations, in which secrets have to be found first, and all vectors are made afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memchat.memory.context import Context
from memchat.memory.facts.in_force import said_order, values_of_key
from memchat.memory.forgetting import purge, redaction
from memchat.memory.transfer.record_ids import RecordIds
from memchat.store import (
    apps,
    inbox,
    jobs,
    keywords,
    memories,
    memory_changes,
    messages,
    sessions,
)
from memchat.store.apps import ScopeIds
from memchat.store.events import Cause
from memchat.store.new_memory import text_hash
from memchat.types import Memory, Scope

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
            memory_changes.set_columns(self.ctx.tx, memory_id, replaced_by=here)
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
            memory_changes.set_columns(self.ctx.tx, memory_id, search_text=words, text_hash=hashed)
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
                memory_changes.deactivate(
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
