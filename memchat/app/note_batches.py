"""Many notes at once: a few in each transaction, and the vectors of many made together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from memchat.app.note_writing import NoteWriting
from memchat.assembly import Assembly
from memchat.errors import InputError
from memchat.types import NewNote, NotesAdded, OnProgress, Progress

if TYPE_CHECKING:
    from memchat.jobs.embedding_run import EmbeddingResult
    from memchat.notes.index import Prepared

BATCH = 20
"""Notes written in one transaction: other writers wait for no more than that."""
TOGETHER = 500
"""Notes that are stored before their vectors are made."""


class NoteBatches:
    """Runs over many notes of one scope."""

    def __init__(self, assembly: Assembly, writing: NoteWriting, tell: OnProgress | None) -> None:
        """``tell`` is told how many notes are done."""
        self._assembly = assembly
        self._writing = writing
        self._tell = tell
        self._began = monotonic()

    def add(self, given: Iterable[NewNote], *, embed: bool) -> NotesAdded:
        """Store notes; those that cannot be kept are named."""
        every = list(given)
        ids: list[int] = []
        failed: dict[int, str] = {}

        def store(first: int, last: int) -> None:
            prepared: list[Prepared] = []
            for place in range(first, last):
                try:
                    prepared.append(self._writing.prepare(every[place]))
                except InputError as error:
                    failed[place] = str(error)
            ids.extend(self._writing.write(prepared))

        self._run(len(every), store, embed=embed)
        self._writing.scrub()
        return NotesAdded(tuple(ids), failed)

    def recut(self, note_ids: Sequence[int]) -> int:
        """Cut notes anew for the service in use; how many have other chunks now."""
        from memchat.notes.fitting import recut
        from memchat.notes.index import Cutter

        cutter, changed = Cutter(self._writing.embedder()), 0

        def cut(first: int, last: int) -> None:
            nonlocal changed
            with self._assembly.database.write() as tx:
                now = self._assembly.clock()
                changed += sum(recut(tx, i, cutter, now) for i in note_ids[first:last])

        self._run(len(note_ids), cut, embed=True)
        return changed

    def _run(self, total: int, do: Callable[[int, int], None], *, embed: bool) -> None:
        """Do something with the notes of each run of places, and embed these together."""
        for first in range(0, total, TOGETHER):
            end = min(first + TOGETHER, total)
            for start in range(first, end, BATCH):
                last = min(start + BATCH, end)
                do(start, last)
                if not embed:
                    self._report(last, total)
            if embed:
                self._embed(first, end, total)

    def _embed(self, first: int, end: int, total: int) -> None:
        def so_far(result: EmbeddingResult) -> None:
            self._report(min(first + len(result.done) + len(result.failed), end), total)

        self._writing.embed(on_progress=so_far)
        self._report(end, total)

    def _report(self, done: int, total: int) -> None:
        if self._tell is not None:
            self._tell(Progress(done, total, monotonic() - self._began, unit="notes"))
