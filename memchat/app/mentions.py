"""What else speaks of a memory that is being forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from memchat.app.results import Changed
from memchat.app.room import Room
from memchat.errors import NotFound, StoreError
from memchat.store import events, memories
from memchat.types import Elsewhere


class Mentions(Room):
    """Messages, titles, summaries, notes and other memories that speak of what is forgotten."""

    def find(self, memory_ids: Sequence[int]) -> Elsewhere | None:
        """What will still speak of these memories once they are forgotten; None where nothing will.

        Ask before they are forgotten: afterwards their words are not known any more.
        """
        from memchat.memory.forgetting import other_mentions

        with self._database.read() as tx:
            there = memories.by_ids(tx, self._ids(tx).ids, memory_ids)
            found = other_mentions.find(tx, [*there.values()]) if there else None
        return found if found is not None and found.places else None

    def blank(self, found: Elsewhere, *, hold: float = 0.0) -> Changed:
        """Blank what ``find`` found, or those of its places that are left in it; how many places.

        Messages, titles, summaries and notes lose the words, and other memories are forgotten; pass
        ``found.without_notes`` to leave the notes. The file of a note keeps the words. It is done
        with the purge of the memory, where that is still held, and undone with it; with ``hold`` it
        waits so many seconds. Raises StoreError where it could not be done now; it is tried again.
        """
        from memchat.memory.forgetting import other_mentions

        now = self._clock()
        with self._database.write() as tx:
            ids = self._ids(tx).ids
            home = [i for i in ids if i in events.app_ids_of(tx, [found.memory_id])]
            if not home:
                raise NotFound(f"memory {found.memory_id} was never here")
            blank_at = now + timedelta(seconds=hold)
            other_mentions.queue(tx, found, home[-1], now, blank_at=blank_at)
        if not hold:
            worker = self._assembly.parts().worker
            if worker.run(kinds=("forget",), target_id=found.memory_id).failed:
                raise StoreError(
                    "these places could not be blanked yet; that is tried again, and memchat "
                    "doctor tells how it stands"
                )
        return Changed(len(found.places))
