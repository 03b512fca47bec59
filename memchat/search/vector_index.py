"""The vector search of one embedding service, over its shards.

A shard has the vectors of one kind of one scope row. It is loaded when needed and dropped when
memory runs short. Every search happens inside a caller's read transaction: the shard first reads
the changes since its last use, so that it has all that was committed before the transaction's
snapshot and nothing later.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from memchat import disk
from memchat.db import Tx
from memchat.errors import StoreError
from memchat.search import embeddings, passages
from memchat.search.embeddings import OwnerVectors
from memchat.search.keywords import KINDS, Kind
from memchat.types import Service

if TYPE_CHECKING:
    from memchat.search.shard import Shard, Vectors

SHARE = 0.25
"""The weight of the turns right before and after; the turn itself has 1."""


def blend_neighbours(
    turns: Sequence[tuple[int, int, bool, bytes | None]], dimensions: int
) -> tuple[list[int], Vectors]:
    """Ids and blended unit vectors, shape (n, dimensions), of the user's turns that have a vector.

    ``turns`` are whole conversations in order, each turn as (id, session id, whether it is the
    user's, vector or None). Replies are blended in but are not in the result.
    """
    import numpy as np

    if not turns:
        return [], np.zeros((0, dimensions), np.float32)
    blank = bytes(4 * dimensions)
    own = np.frombuffer(b"".join(turn[3] or blank for turn in turns), "<f4")
    own = own.reshape(len(turns), dimensions)
    sessions = np.array([turn[1] for turn in turns])
    together = (sessions[1:] == sessions[:-1])[:, None] * np.float32(SHARE)
    mixed = own.copy()
    mixed[1:] += together * own[:-1]
    mixed[:-1] += together * own[1:]
    kept = [n for n, turn in enumerate(turns) if turn[2] and turn[3] is not None]
    chosen = mixed[kept]
    chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
    return [turns[n][0] for n in kept], chosen.astype(np.float32)


@dataclass(frozen=True, slots=True)
class Selection:
    """All rows, or those of ``only``, and never one of ``without``."""

    only: Collection[int] | None = None
    without: Collection[int] = ()

    @property
    def everything(self) -> bool:
        """Whether it leaves no row out."""
        return self.only is None and not self.without

    def ids(self) -> tuple[list[int], bool]:
        """Ids, and whether these are the ones that may be found; else all others may be."""
        if self.only is None:
            return sorted(self.without), False
        return sorted(set(self.only).difference(self.without)), True


EVERYTHING = Selection()


log = logging.getLogger(__name__)

FOLDER = "mem.index"
_SUFFIX = ".faiss"
SAVE_FROM = 5_000
"""Rows from which a shard is saved to disk; with fewer, reading the rows is as fast."""
QUICK_NUMBERS = 1_500_000
"""Numbers, in 4,000 vectors of MiniLM or 1,000 of 1,536 dimensions, from which a shard has a coarse
copy that is searched first."""
COARSE_FROM = 20_000
"""Rows from which a shard is coarse itself; its hits are scored again from the rows."""
_COARSE_KINDS: tuple[Kind, ...] = ("fact", "chunk")
"""Those that may be. The vectors of turns are blended, and no row holds them."""
ROOM_BYTES = 512 * 1024 * 1024


class VectorIndex:
    """Finds the nearest memories, messages or summaries, in the space of one service."""

    def __init__(self, home: Path, store_id: str, service_id: int, service: Service) -> None:
        self.service_id = service_id
        self._store_id = store_id
        self._dimensions = service.dimensions
        self._folder = home / FOLDER
        self._shards: OrderedDict[tuple[Kind, int], Shard] = OrderedDict()
        self._bytes: dict[tuple[Kind, int], int] = {}
        self._held = 0
        self._saved: dict[tuple[Kind, int], int] = {}
        self._lock = threading.Lock()

    def search(
        self,
        tx: Tx,
        app_ids: Sequence[int],
        query: Vectors,
        limit: int,
        selection: Selection = EVERYTHING,
        kind: Kind = "fact",
        newest: Mapping[int, int] | None = None,
    ) -> list[tuple[int, float]]:
        """The nearest (id, cosine) of a selection in these scope rows, best first.

        ``newest`` has the results of ``latest`` in this transaction, where they are known.
        """
        if limit < 1:
            return []
        with self._lock:
            found: list[tuple[int, float]] = []
            for app_id in app_ids:
                shard = self._current(tx, kind, app_id, newest)
                if shard.coarse:
                    near = shard.candidates(query, limit, selection)
                    found += self._exact(tx, kind, app_id, query, near).items()
                else:
                    found += shard.search(query, limit, selection)
        return sorted(found, key=lambda hit: (-round(hit[1], 6), hit[0]))[:limit]

    def scores(
        self,
        tx: Tx,
        app_ids: Sequence[int],
        query: Vectors,
        ids: Sequence[int],
        kind: Kind = "fact",
        newest: Mapping[int, int] | None = None,
    ) -> dict[int, float]:
        """The cosine of those of ``ids`` that have a vector in these scope rows."""
        if not ids:
            return {}
        with self._lock:
            found: dict[int, float] = {}
            for app_id in app_ids:
                shard = self._current(tx, kind, app_id, newest)
                found |= (
                    self._exact(tx, kind, app_id, query, ids)
                    if shard.coarse
                    else shard.scores(query, ids)
                )
        return found

    def _exact(
        self, tx: Tx, kind: Kind, app_id: int, query: Vectors, ids: Sequence[int]
    ) -> dict[int, float]:
        """The cosine of those of ``ids`` that have a vector, from the rows."""
        if not ids:
            return {}
        found, vectors, _ = self._read(tx, kind, app_id, ids)
        return dict(zip(found, (vectors @ query).tolist(), strict=True)) if found else {}

    def waiting(
        self,
        tx: Tx,
        app_ids: Sequence[int],
        kind: Kind = "fact",
        newest: Mapping[int, int] | None = None,
    ) -> set[int]:
        """The ids in these scope rows that have no vector of the service yet."""
        with self._lock:
            shards = [self._current(tx, kind, app_id, newest) for app_id in app_ids]
            return set[int]().union(*(shard.waiting for shard in shards))

    def ids(self, tx: Tx, app_id: int, kind: Kind = "fact") -> set[int]:
        """The ids in the scope row's shard, after reading the latest changes."""
        with self._lock:
            return self._current(tx, kind, app_id).ids

    @property
    def unsaved(self) -> bool:
        """Whether any large shard has changed since it was saved."""
        with self._lock:
            return any(
                len(shard) >= SAVE_FROM and self._saved.get(which) != shard.seq
                for which, shard in self._shards.items()
            )

    def save(self, tx: Tx) -> None:
        """Save the large shards that changed, so that the next start is quick.

        ``tx`` is a write transaction, so that nothing is purged while they are written. A shard
        that cannot be written is rebuilt from the rows at the next start.
        """
        with self._lock:
            for kind, app_id in list(self._shards):
                shard = self._current(tx, kind, app_id)
                if len(shard) < SAVE_FROM or self._saved.get((kind, app_id)) == shard.seq:
                    continue
                try:
                    disk.make_folder(self._folder)
                    shard.save(self._path(kind, app_id), passages.fingerprint(tx, shard.seq))
                    self._saved[kind, app_id] = shard.seq
                except OSError as error:
                    full = disk.has_no_room(error)
                    why = disk.full(str(self._folder), error) if full else error.strerror
                    log.warning("the index was not saved: %s", why)

    def differs(self, tx: Tx, app_id: int) -> bool:
        """Whether a saved shard of a scope row differs from the rows; compares all vectors."""
        with self._lock:
            for kind in KINDS:
                if self._path(kind, app_id).exists():
                    rows = self._read(tx, kind, app_id, None)
                    if not self._current(tx, kind, app_id).holds(rows.ids, rows.vectors):
                        return True
        return False

    def forget(self, app_ids: Collection[int]) -> None:
        """Delete the shards of scope rows from disk, and small ones from memory, as a vector
        reveals something of its text."""
        with self._lock:
            for which in product(KINDS, app_ids):
                if len(self._shards.get(which, ())) < SAVE_FROM:
                    self._drop(*which)
                # A larger one removes what was deleted at its next use.
                self._saved.pop(which, None)
            delete_files(self._folder.parent, self._store_id, [self.service_id], app_ids)

    def _current(
        self, tx: Tx, kind: Kind, app_id: int, asked: Mapping[int, int] | None = None
    ) -> Shard:
        kept = self._shards.get((kind, app_id))
        shard = self._load(tx, kind, app_id) if kept is None else kept
        newest = passages.latest_change(tx, app_id) if asked is None else asked[app_id]
        ahead = shard.seq > newest > 0
        same = shard is kept and shard.seq == newest
        if shard.seq > newest:
            # It is newer than this snapshot of the rows: use a shard of its own, once.
            shard = self._empty()
        if shard.seq < newest:
            whole, before = not shard.seq, shard.seq
            changed = [] if whole else passages.changed_since(tx, kind, app_id, shard.seq)
            rows = self._read(tx, kind, app_id, None if whole else changed)
            if whole and kind in _COARSE_KINDS and len(rows.ids) >= COARSE_FROM:
                largest = max(rows.vectors.max(), -rows.vectors.min())
                shard = self._empty(largest=float(largest))
            again = [] if whole else sorted({*changed, *rows.ids})
            shard.replace(again, rows.ids, rows.vectors)
            shard.waiting.difference_update(again)
            shard.waiting.update(rows.waiting)
            shard.seq = newest
            if not again and not whole and self._saved.get((kind, app_id)) == before:
                self._saved[kind, app_id] = newest  # what changed is of another kind
        if ahead:
            return shard
        large = len(shard) * self._dimensions >= QUICK_NUMBERS
        if large and not shard.coarse and not shard.quick:
            shard.quicken()
        if same:
            self._shards.move_to_end((kind, app_id))
        else:
            self._keep(kind, app_id, shard)
        return shard

    def _read(self, tx: Tx, kind: Kind, app_id: int, ids: Sequence[int] | None) -> OwnerVectors:
        """The vectors from the rows, all or those of ``ids``; of turns those of the conversations
        that these are in, as each is blended with its neighbours."""
        if kind != "turn":
            return embeddings.of_kind(tx, self.service_id, kind, app_id, ids)
        turns = embeddings.of_turns(tx, self.service_id, app_id, ids)
        waiting = [turn[0] for turn in turns if turn[2] and turn[3] is None]
        return OwnerVectors(*blend_neighbours(turns, self._dimensions), waiting)

    def _empty(self, largest: float | None = None) -> Shard:
        from memchat.search.shard import Shard  # imports FAISS, which deleting files does not need

        return Shard(self._dimensions, largest=largest)

    def _load(self, tx: Tx, kind: Kind, app_id: int) -> Shard:
        from memchat.search.shard import Shard

        path = self._path(kind, app_id)
        if not os.path.lexists(path):
            return self._empty()
        try:
            shard = Shard.load(path, self._dimensions)
        except StoreError as error:
            log.warning("%s", error)
            with contextlib.suppress(OSError):
                path.unlink()
            return self._empty()
        if shard.mark != passages.fingerprint(tx, shard.seq):
            # It was saved before the rows were restored from a backup.
            return self._empty()
        self._saved[kind, app_id] = shard.seq
        return shard

    def _keep(self, kind: Kind, app_id: int, shard: Shard) -> None:
        """Keep a new or changed shard in memory; the least recently used ones make room."""
        self._drop(kind, app_id)
        self._shards[kind, app_id] = shard
        self._bytes[kind, app_id] = shard.nbytes
        self._held += shard.nbytes
        while len(self._shards) > 1 and self._held > ROOM_BYTES:
            self._drop(*next(iter(self._shards)))

    def _drop(self, kind: Kind, app_id: int) -> None:
        self._shards.pop((kind, app_id), None)
        self._held -= self._bytes.pop((kind, app_id), 0)

    def _path(self, kind: Kind, app_id: int) -> Path:
        return _file(self._folder.parent, self._store_id, self.service_id, kind, app_id)


def delete_files(
    home: Path, store_id: str, service_ids: Collection[int], app_ids: Collection[int]
) -> None:
    """Delete the shards of scope rows from disk, without loading them."""
    try:
        names = os.listdir(home / FOLDER)
    except FileNotFoundError:
        return
    ours = {
        _file(home, store_id, service_id, kind, app_id).name
        for service_id in service_ids
        for app_id in app_ids
        for kind in KINDS
    }
    for name in names:
        # A process that was killed while saving leaves a partial file with a longer name.
        if f"{name.partition('.')[0]}{_SUFFIX}" in ours:
            (home / FOLDER / name).unlink(missing_ok=True)


def stray_files(
    home: Path, store_id: str, service_ids: Iterable[int], app_ids: Collection[int]
) -> list[Path]:
    """Files in the folder that are not shards of these services and scope rows."""
    ours = {
        _file(home, store_id, service_id, kind, app_id)
        for service_id in service_ids
        for app_id in app_ids
        for kind in KINDS
    }
    folder = home / FOLDER
    return sorted(set(folder.iterdir()) - ours) if folder.is_dir() else []


def _file(home: Path, store_id: str, service_id: int, kind: Kind, app_id: int) -> Path:
    # The name depends on the store's id, so that files copied from another store are not used.
    scope = f"{store_id}/{service_id}/{kind}/{app_id}"
    return home / FOLDER / f"{hashlib.sha256(scope.encode()).hexdigest()[:32]}{_SUFFIX}"
