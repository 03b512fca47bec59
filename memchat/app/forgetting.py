"""Forgetting: deleting memories and what else speaks of them, and taking that back in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from memchat.app.opened import Opened, found_memory
from memchat.errors import InputError, NotFound, StoreError
from memchat.store import apps, events, hidden_memories, jobs, memories, memory_lists
from memchat.types import Elsewhere, Memory, Scope

CLEAR_BATCH = 100
"""Memories forgotten in one transaction: other writers wait for no more than that."""


class Forgetting(Opened):
    """The verbs that forget."""

    def delete(
        self,
        memory_id: int,
        *,
        user: str,
        app: str = "default",
        keep_transcript: bool = False,
        hold: float = 0.0,
        blank: Elsewhere | None = None,
    ) -> None:
        """Forget a memory for good: everywhere, with the words that proved it.

        It is out of sight at once. With ``hold`` its purge waits so many seconds, and ``restore``
        undoes the deletion meanwhile; else it is done when this returns. ``keep_transcript`` leaves
        the words where they were written, but nothing is found in them or learnt from them again.
        What else speaks of it stays, but for the places in ``blank``, which ``elsewhere`` found.
        Raises StoreError where the purge did not succeed: it stays out of sight and is tried again.
        """
        from memchat.memory.forgetting import purge
        from memchat.memory.forgetting.other_mentions import MentionsToBlank

        now = self._clock()
        if keep_transcript and blank is not None:
            raise InputError("what is written cannot both be kept and blanked")
        how = purge.KEEP_TRANSCRIPT if keep_transcript else None
        how = MentionsToBlank.of(blank).dump() if blank is not None and blank.places else how
        with self._database.write() as tx:
            memory = found_memory(tx, Scope(user, app), memory_id)
            purge_at = now + timedelta(seconds=hold)
            self._drop_vectors(tx, purge.hide(tx, memory, now, purge_at=purge_at, how=how))
        if hold:
            return
        if self._parts().worker.run(kinds=("forget",), target_id=memory_id).failed:
            raise StoreError(
                f"memory {memory_id} is out of sight, but its words could not be removed yet; that "
                "is tried again, and memchat doctor tells how it stands"
            )

    def elsewhere(
        self, memory_ids: Sequence[int], *, user: str, app: str = "default"
    ) -> Elsewhere | None:
        """What will still speak of these memories when they are forgotten; None where nothing will.

        To be asked before they are: their words are known no more afterwards.
        """
        from memchat.memory.forgetting import other_mentions

        with self._database.read() as tx:
            there = memories.by_ids(tx, apps.find(tx, Scope(user, app)).ids, memory_ids)
            found = other_mentions.find(tx, [*there.values()]) if there else None
        return found if found is not None and found.places else None

    def blank(
        self, found: Elsewhere, *, user: str, app: str = "default", hold: float = 0.0
    ) -> None:
        """Blank what ``elsewhere`` found, or those of its places that are left in it.

        Messages, titles and summaries lose the words; other memories are forgotten. It is done with
        the purge of the memory, where that is still held, and undone with it; with ``hold`` it
        waits so many seconds.
        """
        from memchat.memory.forgetting import other_mentions

        now = self._clock()
        with self._database.write() as tx:
            scope = apps.find(tx, Scope(user, app))
            home = [i for i in scope.ids if i in events.app_ids_of(tx, [found.memory_id])]
            if not home:
                raise NotFound(f"memory {found.memory_id} was never here")
            blank_at = now + timedelta(seconds=hold)
            other_mentions.queue(tx, found, home[-1], now, blank_at=blank_at)
        if hold:
            return
        if self._parts().worker.run(kinds=("forget",), target_id=found.memory_id).failed:
            raise StoreError(
                "these places could not be blanked yet; that is tried again, and memchat doctor "
                "tells how it stands"
            )

    def delete_many(
        self,
        memory_ids: Iterable[int],
        *,
        user: str,
        app: str = "default",
        hold: float = 0.0,
        seen: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Forget many memories, as ``delete`` forgets one; how many. Unknown ones are left out.

        ``seen`` is told how many were looked at so far, after each transaction.
        """
        from memchat.memory.forgetting import purge

        now, ids = self._clock(), sorted(set(memory_ids))
        count, purge_at = 0, now + timedelta(seconds=hold)
        for first in range(0, len(ids), CLEAR_BATCH):
            batch = ids[first : first + CLEAR_BATCH]
            with self._database.write() as tx:
                found = memories.by_ids(tx, apps.find(tx, Scope(user, app)).ids, batch)
                stale: set[int] = set()
                for memory in found.values():
                    stale |= purge.hide(tx, memory, now, purge_at=purge_at)
                self._drop_vectors(tx, stale)
                count += len(found)
            seen(first + len(batch))
        if not hold:
            self._parts().worker.run(user=Scope(user, app).user, kinds=("forget",))
        return count

    def restore_many(
        self,
        memory_ids: Iterable[int],
        *,
        user: str,
        app: str = "default",
        seen: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Undo the deletion of many memories while it is held; how many came back.

        ``seen`` is told how many were looked at so far, after each transaction.
        """
        scope, count, ids = Scope(user, app), 0, sorted(set(memory_ids))
        for first in range(0, len(ids), CLEAR_BATCH):
            batch = set(ids[first : first + CLEAR_BATCH])
            with self._database.write() as tx:
                waiting = hidden_memories.listed(tx, apps.find(tx, scope).ids)
                back = [memory for memory in waiting if memory.id in batch]
                for memory in back:
                    self._by_hand(tx, scope).undelete(memory)
                for app_id in apps.find(tx, scope).ids:
                    # What is purged stays gone, but other places that wait to be blanked stay.
                    jobs.cancel(
                        tx, "forget", sorted(batch & jobs.unfinished_targets(tx, "forget", app_id))
                    )
                count += len(back)
            seen(first + len(batch))
        return count

    def restore(self, memory_id: int, *, user: str, app: str = "default") -> Memory:
        """Bring back a superseded, merged, ended or expired memory, or one whose deletion is held.

        What is purged never comes back.
        """
        scope = Scope(user, app)
        with self._database.write() as tx:
            waiting = hidden_memories.listed(tx, apps.find(tx, scope).ids)
            memory = next((m for m in waiting if m.id == memory_id), None)
            if memory is not None:
                return self._by_hand(tx, scope).undelete(memory)
            return self._by_hand(tx, scope).restore(found_memory(tx, scope, memory_id))

    def clear(self, *, user: str, app: str = "default") -> int:
        """Forget every memory of the app for good; those for every app stay. How many."""
        from memchat.memory.forgetting import purge

        with self._database.read() as tx:
            own = apps.find(tx, Scope(user, app)).own or 0
            ids = sorted(memory_lists.text_hashes(tx, own))
        for first in range(0, len(ids), CLEAR_BATCH):
            with self._database.write() as tx:
                batch = ids[first : first + CLEAR_BATCH]
                found = [*memories.by_ids(tx, [own], batch).values()]
                found += [m for m in hidden_memories.listed(tx, [own]) if m.id in batch]
                self._drop_vectors(tx, purge.forget(tx, found, self.settings.zone, self._clock()))
        purge.scrub(self._database)
        return len(ids)
