"""Memories: adding, reading, changing, searching."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import cast

from sqlalchemy import Connection

from memchat.app.opened import Opened, found_memory
from memchat.errors import InputError
from memchat.store import (
    apps,
    embedding_states,
    events,
    evidence,
    insights,
    memories,
    memory_changes,
    memory_lists,
    replacements,
    use_counts,
)
from memchat.store.events import Cause
from memchat.store.values_in_force import ValuesInForce
from memchat.types import (
    KEEP,
    Browsed,
    EmbeddingState,
    Event,
    Evidence,
    Insights,
    Keep,
    Memory,
    MemoryType,
    Recalled,
    Scope,
    Wanted,
)

STATUSES = ("active", "inactive", "expired", "expiring", "all", *embedding_states.STATUSES)
EXPIRING_DAYS = 30


class Memories(Opened):
    """The verbs on memories."""

    def add(
        self,
        memory_type: str,
        key: str,
        value: str,
        *,
        user: str,
        app: str = "default",
        all_apps: bool = False,
        expires_at: date | None = None,
        starts_at: date | None = None,
        keep_secret: bool = False,
    ) -> Memory:
        """Keep a fact by hand. It is on disk when this returns; its vector follows.

        Before ``starts_at`` it is told as coming. Secrets need ``keep_secret``, else SecretError.
        """
        scope = Scope(user, app)
        with self._database.write() as tx:
            return self._by_hand(tx, scope).add(
                memory_type, key, value, expires_at, all_apps, starts_at, keep_secret
            )

    def memories(
        self,
        *,
        user: str,
        app: str = "default",
        status: str = "active",
        memory_type: str | None = None,
        within: int = EXPIRING_DAYS,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Memory]:
        """The app's own memories and the user's for every app, newest said first.

        With the status ``expiring`` those whose last day comes ``within`` so many days, the
        soonest first; with ``pending``, ``completed`` or ``failed`` those whose vector stands so.
        """
        with self._database.read() as tx:
            ids = apps.find(tx, Scope(user, app)).ids
            return memory_lists.listed(
                tx,
                ids,
                _wanted(status, memory_type),
                self._standing(tx, ids),
                by=self._in_days(within),
                limit=limit,
                offset=offset,
            )

    def count_memories(
        self,
        *,
        user: str,
        app: str = "default",
        status: str = "active",
        memory_type: str | None = None,
        within: int = EXPIRING_DAYS,
    ) -> int:
        """How many ``memories`` would give without a limit."""
        with self._database.read() as tx:
            ids = apps.find(tx, Scope(user, app)).ids
            return memory_lists.counted(
                tx,
                ids,
                _wanted(status, memory_type),
                self._standing(tx, ids),
                by=self._in_days(within),
            )

    def embedding_states(
        self, memory_ids: Sequence[int], *, user: str, app: str = "default"
    ) -> list[EmbeddingState]:
        """How it stands with the vectors of these memories, in their order; foreign ones are left
        out."""
        with self._database.read() as tx:
            there = memories.by_ids(tx, apps.find(tx, Scope(user, app)).ids, memory_ids)
            found = embedding_states.of_memories(tx, list(there))
        return [found[i] for i in memory_ids if i in found]

    def browse(
        self, wanted: Wanted, *, user: str, app: str = "default", limit: int = 20, offset: int = 0
    ) -> Browsed:
        """One page of the memories a person wants to look through."""
        by = self._in_days(EXPIRING_DAYS)
        with self._database.read() as tx:
            ids = apps.find(tx, Scope(user, app)).ids
            now = self._standing(tx, ids)
            wanted = memory_lists.or_over(wanted)
            found = memory_lists.listed(tx, ids, wanted, now, by=by, limit=limit, offset=offset)
            total = memory_lists.counted(tx, ids, wanted, now, by=by)
            waiting = embedding_states.unfinished_jobs(tx, [m.id for m in found], self._clock())
            return Browsed(tuple(found), total, waiting)

    def browse_ids(self, wanted: Wanted, *, user: str, app: str = "default") -> list[int]:
        """The numbers of all that ``browse`` would show, page by page."""
        with self._database.read() as tx:
            ids = apps.find(tx, Scope(user, app)).ids
            now = self._standing(tx, ids)
            return memory_lists.ids(
                tx, ids, memory_lists.or_over(wanted), now, self._in_days(EXPIRING_DAYS)
            )

    def memory_counts(self, memory_id: int, *, user: str, app: str = "default") -> tuple[int, int]:
        """How often a memory was found for a message, and how often it was given to a model."""
        with self._database.read() as tx:
            return use_counts.get(tx, found_memory(tx, Scope(user, app), memory_id).id)

    def insights(self, *, user: str, app: str = "default", top: int = 10) -> Insights:
        """Figures about the app's memories, and the user's for every app."""
        zone = self.settings.zone
        with self._database.read() as tx:
            found = apps.find(tx, Scope(user, app))
            ids = found.ids
            return Insights(
                kept=insights.memories_by_day(tx, ids, zone),
                said=insights.messages_by_day(tx, found.own, zone) if found.own is not None else {},
                types=insights.by_type(tx, ids),
                keys=insights.by_key(tx, ids, top),
                states=insights.by_state(tx, ids),
                most_used=tuple(insights.most_used(tx, ids, top)),
                never_used=insights.never_used(tx, ids),
                queue=insights.jobs_by_status(tx, ids),
            )

    def memory(self, memory_id: int, *, user: str, app: str = "default") -> Memory:
        """One memory, active or not. Raises NotFound outside the scope."""
        with self._database.read() as tx:
            found = found_memory(tx, Scope(user, app), memory_id)
            return self._standing(tx, apps.find(tx, Scope(user, app)).ids).as_of_today(found)

    def evidence(self, memory_id: int, *, user: str, app: str = "default") -> list[Evidence]:
        """The words that prove a memory, oldest first; none for one entered by hand."""
        with self._database.read() as tx:
            found_memory(tx, Scope(user, app), memory_id)
            return evidence.of_memory(tx, memory_id)

    def history(self, memory_id: int, *, user: str, app: str = "default") -> list[Event]:
        """What happened to a memory, oldest first."""
        with self._database.read() as tx:
            found_memory(tx, Scope(user, app), memory_id)
            return events.of_memory(tx, memory_id)

    def replaced(self, memory_id: int, *, user: str, app: str = "default") -> list[Memory]:
        """The values whose place this memory took, the last one first."""
        with self._database.read() as tx:
            found_memory(tx, Scope(user, app), memory_id)
            there = replacements.replaced_memories(tx, memory_id)
        gone = [memory for memory in there if memory.inactive_reason == "superseded"]
        return sorted(gone, key=lambda memory: (memory.said_at, memory.id), reverse=True)

    def edit(
        self,
        memory_id: int,
        *,
        user: str,
        app: str = "default",
        value: str | None = None,
        key: str | None = None,
        memory_type: str | None = None,
        expires_at: date | Keep | None = KEEP,
        all_apps: bool | None = None,
        sensitive: bool | None = None,
        keep_secret: bool = False,
    ) -> Memory:
        """Change a memory by hand; what is not given stays. Secrets: as for ``add``."""
        scope = Scope(user, app)
        with self._database.write() as tx:
            memory = found_memory(tx, scope, memory_id)
            return self._by_hand(tx, scope).edit(
                memory,
                memory_type=memory_type,
                key=key,
                value=value,
                expires_at=expires_at,
                all_apps=all_apps,
                sensitive=sensitive,
                keep_secret=keep_secret,
            )

    def pin(self, memory_id: int, *, user: str, app: str = "default", on: bool = True) -> Memory:
        """Have a memory at hand in every chat, as far as the room for it goes; or no longer.

        What takes its place later is pinned as well. Raises InputError for one not in use.
        """
        scope = Scope(user, app)
        with self._database.write() as tx:
            memory = found_memory(tx, scope, memory_id)
            if on and not memory.active:
                raise InputError(f"memory {memory_id} is not in use; restore it first")
            cause = Cause(self._clock(), "user")
            memory_changes.pin(tx, memory_id, memories.app_id_of(tx, memory_id), cause, on=on)
            return found_memory(tx, scope, memory_id)

    def recall(
        self,
        query: str,
        *,
        user: str,
        app: str = "default",
        limit: int = 10,
        patience: float | None = None,
    ) -> Recalled:
        """Search the memories and past conversations by meaning and words, best first.

        ``degraded`` says why only words were searched, where that is so: with ``patience`` also
        that the embedding service did not answer within so many seconds, as while it loads; else
        it is waited for. It says too how many facts and turns were searched by their words only,
        as their vectors are still to come: a service of this machine gives a few theirs first.
        """
        if not query.strip():
            raise InputError("the question is empty; say what to look for")
        scope, recall = Scope(user, app), self._assembly.recall()
        if patience is None:
            return recall.find(scope, recall.question(query), limit)
        patient = self._assembly.query_timeout()
        question = patient.wait(patient.start(query), patience)
        return recall.find(scope, question, limit, patience)

    def _standing(self, tx: Connection, app_ids: Sequence[int]) -> ValuesInForce:
        from memchat.memory.facts.in_force import as_of

        return as_of(tx, app_ids, self._today())


def _wanted(status: str, memory_type: str | None) -> Wanted:
    if status not in STATUSES:
        raise InputError(f"{status!r} is no status; use {', '.join(STATUSES)}")
    types = (cast(MemoryType, memory_type),) if memory_type else ()
    sort = "ending first" if status == "expiring" else "newest"
    return Wanted(memory_types=types, status=status, sort=sort)
