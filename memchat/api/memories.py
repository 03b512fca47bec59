"""A person's memories: adding, reading, changing and forgetting them by hand, many of them in
batches, and what else speaks of one that is being forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Unpack, cast, get_args

from memchat.api.results import Changed, Deleted, UseCounts
from memchat.api.room import (
    Page,
    Room,
    check_choice,
    check_count,
    no_memory,
    page_of,
    place_of,
)
from memchat.db import Tx, jobs
from memchat.errors import InputError, NotFound
from memchat.facts import audit, changes, memories
from memchat.facts import memories as tags_of
from memchat.facts.changes import Cause
from memchat.facts.memories import Slice, ValuesInForce
from memchat.search import passages
from memchat.types import (
    MEMORY_TYPES,
    Browsed,
    Elsewhere,
    EmbeddingState,
    Event,
    Evidence,
    Insights,
    Memory,
    MemoryChanges,
    MemoryOrigin,
    MemoryStatus,
    MemoryType,
    OnProgress,
    Progress,
    Wanted,
    clean_tags,
)

if TYPE_CHECKING:
    from memchat.facts.manual import ManualChanges


class Mentions(Room):
    """Messages, titles, summaries, notes and other memories that speak of what is forgotten."""

    def find(self, memory_ids: Sequence[int]) -> Elsewhere | None:
        """What will still speak of these memories once they are forgotten; None where nothing will.

        Ask before they are forgotten: afterwards their words are not known any more.
        """
        from memchat.forget import mentions

        with self._database.read(self._scope) as tx:
            there = memories.by_ids(tx, tx.ids, memory_ids)
            found = mentions.find(tx, [*there.values()]) if there else None
        return found if found is not None and found.places else None

    def blank(self, found: Elsewhere, *, hold: float = 0.0) -> Changed:
        """Blank what ``find`` found, or those of its places that are left in it; how many places.

        Messages, titles, summaries and notes lose the words, and other memories are forgotten; pass
        ``found.without_notes`` to leave the notes. The file of a note keeps the words. It is done
        with the purge of the memory, where that is still held, and undone with it; with ``hold`` it
        waits so many seconds. Raises StoreError where it could not be done now; it is tried again.
        """
        from memchat.forget import mentions

        now = self._clock()
        with self._database.write(self._scope) as tx:
            ids = tx.ids
            home = [i for i in ids if i in changes.app_ids_of(tx, [found.memory_id])]
            if not home:
                raise NotFound(f"memory {found.memory_id} was never here")
            blank_at = now + timedelta(seconds=hold)
            mentions.queue(tx, found, home[-1], now, blank_at=blank_at)
        if not hold:
            self._run_purge(found.memory_id)
        return Changed(len(found.places))


BATCH = 100
"""Memories changed in one transaction: other writers wait for no more than that."""


def batches(
    memory_ids: Iterable[int], progress: OnProgress | None = None
) -> Iterable[Sequence[int]]:
    """The ids, each once, in batches; ``progress`` is called when a batch is done."""
    ids, began = sorted(set(memory_ids)), monotonic()
    for first in range(0, len(ids), BATCH):
        batch = ids[first : first + BATCH]
        yield batch
        if progress is not None:
            progress(Progress(first + len(batch), len(ids), monotonic() - began))


EXPIRING_DAYS = 30
MOST_DAYS = 36_500


class Memories(Room):
    """The memories of one person in one app, and those the person has in every app."""

    def add(
        self,
        type: str,
        key: str,
        value: str,
        *,
        expires_at: date | None = None,
        starts_at: date | None = None,
        all_apps: bool = False,
        keep_secret: bool = False,
        tags: Iterable[str] = (),
    ) -> Memory:
        """Remember a fact. It is on disk when this returns; its vector follows.

        ``type`` is preference, profile, fact or other. The fact holds from ``starts_at`` through
        ``expires_at``. ``tags`` are at most 20 words of at most 40 characters, kept in lower case
        with hyphens for spaces; one that was known keeps its own beside them. What looks like a
        secret raises SecretError unless ``keep_secret`` is given; other text that cannot be kept,
        and a secret in a tag, raises InputError.
        """
        with self._database.write(self._scope, ensure=True) as tx:
            by_hand = self._by_hand(tx)
            added = by_hand.add(type, key, value, expires_at, all_apps, starts_at, keep_secret)
            return by_hand.add_tags(added, tags) if tags else added

    def get(self, memory_id: int) -> Memory:
        """One memory, active or not. Raises NotFound outside the scope."""
        with self._database.read(self._scope) as tx:
            found = self._found_memory(tx, memory_id)
            return self._standing(tx).as_of_today(found)

    def list(
        self,
        query: str = "",
        *,
        type: str | None = None,
        status: str = "active",
        within: int = 30,
        tags: Iterable[str] = (),
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Memory]:
        """The memories, those said last first; with ``query`` those that hold each of its words.

        ``status`` is active, inactive, expired, all, or expiring: those whose last day comes within
        so many days, the soonest first; or pending, completed or failed, by the state of their
        vector. With ``tags`` it is those that have each of them. ``cursor`` is that of the page
        before.
        """
        check_count(limit)
        after = None if cursor is None else memories.Position(*place_of(cursor, parts=3))
        if after is not None and after.expires_at is None and status == "expiring":
            raise InputError("this cursor is of a list of another status")
        with self._database.read(self._scope) as tx:
            found = memories.listed(
                tx,
                tx.ids,
                _wanted(query, type, status, tags),
                self._standing(tx),
                by=self._in_days(within),
                part=Slice(limit + 1, after=after),
            )
        return page_of(found, limit, lambda one: (one.said_at, one.id, one.expires_at))

    def count(
        self,
        query: str = "",
        *,
        type: str | None = None,
        status: str = "active",
        within: int = 30,
        tags: Iterable[str] = (),
    ) -> int:
        """How many memories ``list`` gives on all its pages."""
        with self._database.read(self._scope) as tx:
            return memories.counted(
                tx,
                tx.ids,
                _wanted(query, type, status, tags),
                self._standing(tx),
                by=self._in_days(within),
            )

    def tags(self) -> Mapping[str, int]:
        """The tags of the memories in use, each with how many have it, the most used first."""
        with self._database.read(self._scope) as tx:
            return tags_of.tag_counts(tx, tx.ids, self._standing(tx))

    def update(self, memory_id: int, **changes: Unpack[MemoryChanges]) -> Memory:
        """Change a memory; what is not given stays.

        What can be given: ``value``, ``key`` and ``type``; ``expires_at``, where None lets it hold
        for good; ``all_apps``, whether it is kept for every app; ``sensitive``; ``tags``, all that
        it has from now on; and ``keep_secret``, as in ``add``.
        Raises InputError where another memory says the same, SecretError as ``add`` does, TypeError
        for any other name.
        """
        if unknown := changes.keys() - MemoryChanges.__annotations__.keys():
            raise TypeError(f"a memory has no {', '.join(sorted(unknown))} that can be changed")
        with self._database.write(self._scope, ensure=True) as tx:
            return self._by_hand(tx).edit(self._found_memory(tx, memory_id), changes)

    def pin(self, memory_id: int, *, on: bool = True) -> Memory:
        """Give a memory to every chat, as far as there is room for it; or no longer.

        What replaces it later is pinned as well. Raises InputError for one not in use.
        """
        with self._database.write(self._scope) as tx:
            memory = self._found_memory(tx, memory_id)
            if on and not memory.active:
                raise InputError(f"memory {memory_id} is not in use; restore it first")
            cause = Cause(self._clock(), "user")
            changes.pin(tx, memory_id, cause, on=on)
            return self._found_memory(tx, memory_id)

    def delete(
        self,
        memory_id: int,
        *,
        keep_transcript: bool = False,
        hold: float = 0.0,
        blank: Elsewhere | None = None,
    ) -> Deleted:
        """Forget a memory for good: everywhere, with the words that proved it.

        It is out of sight at once. With ``hold`` its purge waits so many seconds, and ``restore``
        undoes the deletion meanwhile; else it is done when this returns. ``keep_transcript`` leaves
        the words where they were written, but nothing is found in them or learnt from them again.
        What else speaks of it stays, but for the places in ``blank``, which ``Mentions.find`` gave.
        Raises StoreError where the store cannot be written: then nothing was changed.
        """
        from memchat.forget import purge

        with self._database.write(self._scope) as tx:
            memory = memories.get(tx, tx.ids, memory_id)
            if memory is None:
                raise no_memory(memory_id)
            self._forget(tx, [memory], keep_transcript, hold, blank)
        if not hold:
            purge.scrub(self._database, ask=False)
        return Deleted(1)

    def delete_many(
        self,
        memory_ids: Iterable[int],
        *,
        keep_transcript: bool = False,
        hold: float = 0.0,
        blank: Elsewhere | None = None,
        progress: OnProgress | None = None,
    ) -> Deleted:
        """Forget many memories, as ``delete`` forgets one. Unknown ones are left out.

        ``progress`` is called after each transaction.
        """
        from memchat.forget import purge

        count = 0
        for batch in batches(memory_ids, progress):
            with self._database.write(self._scope) as tx:
                found = memories.by_ids(tx, tx.ids, batch)
                self._forget(tx, [*found.values()], keep_transcript, hold, blank)
                count += len(found)
        if not hold:
            purge.scrub(self._database)  # no id may have been known
        return Deleted(count)

    def _forget(
        self,
        tx: Tx,
        chosen: Sequence[Memory],
        keep_transcript: bool,
        hold: float,
        blank: Elsewhere | None,
    ) -> None:
        """Forget memories in one transaction, with what is blanked for one of them."""
        from memchat.forget import mentions, purge

        how, stale = mentions.instructions(keep_transcript, blank), set[int]()
        # What all of them are spoken of in is blanked with one of them.
        about = [one for one in chosen if blank is not None and one.id == blank.memory_id]
        if hold:
            for memory in chosen:
                with_it = blank is None or memory in about
                stale |= purge.hide(tx, memory, hold=hold, how=how if with_it else None)
        else:
            homes = memories.homes_of(tx, [one.id for one in about]) if about else {}
            stale |= purge.forget(tx, chosen, keep_transcript=keep_transcript)
            if blank is not None and blank.places:
                places = mentions.MentionsToBlank.of(blank)
                for app_id in homes.values():
                    stale |= mentions.blank(tx, app_id, places)
        self._assembly.drop_vectors(tx, stale)

    def restore(self, memory_id: int) -> Memory:
        """Bring back a superseded, merged, ended or expired memory, or one whose deletion is held.

        What is purged never comes back.
        """
        with self._database.write(self._scope) as tx:
            waiting = memories.hidden(tx, tx.ids)
            memory = next((m for m in waiting if m.id == memory_id), None)
            if memory is not None:
                return self._by_hand(tx).undelete(memory)
            return self._by_hand(tx).restore(self._found_memory(tx, memory_id))

    def restore_many(
        self, memory_ids: Iterable[int], *, progress: OnProgress | None = None
    ) -> Changed:
        """Undo the deletion of many memories while it is held; how many came back.

        ``progress`` is called after each transaction.
        """
        count = 0
        for batch in batches(memory_ids, progress):
            with self._database.write(self._scope) as tx:
                ids, chosen = tx.ids, set(batch)
                back = [memory for memory in memories.hidden(tx, ids) if memory.id in chosen]
                for memory in back:
                    self._by_hand(tx).undelete(memory)
                for app_id in ids:
                    # What is purged stays gone, but other places that wait to be blanked stay.
                    jobs.cancel(
                        tx, "forget", sorted(chosen & jobs.unfinished_targets(tx, "forget", app_id))
                    )
                count += len(back)
        return Changed(count)

    def clear(self) -> Deleted:
        """Forget every memory of the app for good; those for every app stay."""
        from memchat.forget import purge

        with self._database.read(self._scope) as tx:
            own = tx.own
            ids = memories.ids_in_app(tx, own)
        for batch in batches(ids):
            with self._database.write(self._scope) as tx:
                found = [*memories.by_ids(tx, [own], batch).values()]
                found += [m for m in memories.hidden(tx, [own]) if m.id in batch]
                stale = purge.forget(tx, found)
                self._assembly.drop_vectors(tx, stale)
        purge.scrub(self._database)
        return Deleted(len(ids))

    def history(self, memory_id: int) -> Sequence[Event]:
        """What happened to a memory, oldest first."""
        with self._database.read(self._scope) as tx:
            self._found_memory(tx, memory_id)
            return changes.events_of_memory(tx, memory_id)

    def evidence(self, memory_id: int) -> Sequence[Evidence]:
        """The words that prove a memory, oldest first; none for one entered by hand."""
        with self._database.read(self._scope) as tx:
            self._found_memory(tx, memory_id)
            return changes.evidence_of_memory(tx, memory_id)

    def origins(self, memory_ids: Iterable[int]) -> Mapping[int, MemoryOrigin]:
        """From which conversation of this app, and from which app, these memories come, by memory
        id. Those outside the scope are left out."""
        with self._database.read(self._scope) as tx:
            there = memories.by_ids(tx, tx.ids, [*memory_ids])
            return memories.origins_of(tx, tx.own, [*there])

    def replaced(self, memory_id: int) -> Sequence[Memory]:
        """The values that this memory replaced, the last one first."""
        with self._database.read(self._scope) as tx:
            self._found_memory(tx, memory_id)
            there = changes.replaced_memories(tx, memory_id)
        gone = [memory for memory in there if memory.inactive_reason == "superseded"]
        return sorted(gone, key=lambda memory: (memory.said_at, memory.id), reverse=True)

    def use_counts(self, memory_id: int) -> UseCounts:
        """How often a memory was found for a message, and how often it was given to a model."""
        with self._database.read(self._scope) as tx:
            return UseCounts(*memories.uses_of(tx, self._found_memory(tx, memory_id).id))

    def embedding_states(self, memory_ids: Sequence[int]) -> Sequence[EmbeddingState]:
        """The state of the vectors of these memories, in their order; unknown ones are left out."""
        with self._database.read(self._scope) as tx:
            there = memories.by_ids(tx, tx.ids, memory_ids)
            found = passages.of_memories(tx, [*there])
        return [found[i] for i in memory_ids if i in found]

    def browse(self, wanted: Wanted, *, limit: int = 20, offset: int = 0) -> Browsed:
        """One numbered page of memories, filtered and sorted for a person to look through. In any
        order pinned ones come first."""
        check_count(limit)
        check_count(offset, "offset")
        by, wanted = self._in_days(EXPIRING_DAYS), _checked(wanted)
        with self._database.read(self._scope) as tx:
            standing = self._standing(tx)
            ids = memories.ids(tx, tx.ids, wanted, standing, by)
            shown = ids[offset : offset + limit]
            found = memories.of_ids(tx, shown, standing)
            waiting = jobs.of_memories(tx, shown, self._clock())
        return Browsed(tuple(found), len(ids), waiting)

    def browse_ids(self, wanted: Wanted) -> Sequence[int]:
        """The ids of all memories that ``browse`` shows on all its pages, in their order."""
        by, wanted = self._in_days(EXPIRING_DAYS), _checked(wanted)
        with self._database.read(self._scope) as tx:
            return memories.ids(tx, tx.ids, wanted, self._standing(tx), by)

    def insights(self, *, top: int = 10) -> Insights:
        """Figures about the memories; of keys and of the most used memories the ``top`` ones."""
        check_count(top, "top")
        zone = self._settings.zone
        with self._database.read(self._scope) as tx:
            ids = tx.ids
            return Insights(
                kept=audit.memories_by_day(tx, ids, zone),
                said=audit.messages_by_day(tx, tx.own, zone),
                types=audit.by_type(tx, ids),
                keys=audit.by_key(tx, ids, top),
                states=audit.by_state(tx, ids),
                most_used=tuple(audit.most_used(tx, ids, top)),
                never_used=audit.never_used(tx, ids),
                queue=jobs.in_apps(tx, ids),
            )

    def _standing(self, tx: Tx) -> ValuesInForce:
        from memchat.facts.in_force import as_of

        return as_of(tx, tx.ids, self._today())

    def _by_hand(self, tx: Tx) -> ManualChanges:
        from memchat.facts.manual import ManualChanges

        return ManualChanges(tx, self._settings)

    def _in_days(self, days: int) -> date:
        return self._today() + timedelta(days=min(max(days, 0), MOST_DAYS))


def _wanted(query: str, type: str | None, status: str, tags: Iterable[str]) -> Wanted:
    check_choice(status, get_args(MemoryStatus), "status")
    check_choice(type or "fact", MEMORY_TYPES, "type")
    types = (cast(MemoryType, type),) if type else ()
    sort = "ending first" if status == "expiring" else "newest"
    return Wanted(query, types, tags=clean_tags(tags), status=status, sort=sort)


def _checked(wanted: Wanted) -> Wanted:
    check_choice(wanted.status, memories.STATUSES, "status")
    check_choice(wanted.sort, memories.SORTS, "sort")
    return memories.or_over(replace(wanted, tags=clean_tags(wanted.tags)))
