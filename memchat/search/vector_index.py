"""The vector search of one embedding service, over its shards.

A shard is a FAISS index with the vectors of one kind of one scope row, so it needs no filter. It is
loaded when needed and dropped when memory runs short. Every search happens inside a caller's read
transaction: the shard first reads the changes since its last use, so that it has all that was
committed before the transaction's snapshot and nothing later.

The index is a flat inner product over unit vectors: exact cosine. A coarse index, with one byte for
each number, is three times as fast and a quarter of the size; more hits than needed are taken from
it and scored again. A shard may have a coarse copy or, if it is very large, be coarse itself; then
its hits are scored from the rows.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from memchat import disk
from memchat.db import Tx
from memchat.errors import StoreError
from memchat.search import embeddings, passages
from memchat.search.embeddings import EVERYTHING, SHARE, OwnerVectors, Selection, best_first
from memchat.search.keywords import KINDS, Kind
from memchat.types import Service

Vectors = NDArray[np.float32]
_FORMAT = 4
_FEW = 1_000
_BATCH = 4_096
_PIECE = 1 << 20
_TIE = 1e-6
"""Scores this close may change places with the order of adding up."""
_SPARE = 10
"""The least number of hits that are taken from a coarse shard beyond the limit."""
_EVEN = 5.0
"""The largest number of a typical unit vector, times the square root of its dimensions."""
_STEPS = 127
"""Steps of a signed byte on each side of zero."""
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

log = logging.getLogger(__name__)


def blend_neighbours(
    turns: Sequence[tuple[int, int, bool, bytes | None]], dimensions: int
) -> tuple[list[int], Vectors]:
    """Ids and blended unit vectors, shape (n, dimensions), of the user's turns that have a vector.

    ``turns`` are whole conversations in order, each turn as (id, session id, whether it is the
    user's, vector or None). Replies are blended in but are not in the result.
    """
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


class Shard:
    """Ids and vectors; ``seq`` is the number of the last change in them.

    ``mark`` tells that change from one of the same number before a backup was restored; it is set
    in a loaded shard.
    """

    def __init__(self, dimensions: int, *, largest: float | None = None) -> None:
        """``largest`` makes it coarse: it is the largest number in the vectors."""
        self.dimensions = dimensions
        self.largest = largest
        self.seq = 0
        self.mark = ""
        self.waiting: set[int] = set()
        """Ids that it has read and that have no vector yet."""
        self._quick: Shard | None = None
        # With this type FAISS compares bytes with bytes, which is fast.
        signed = faiss.ScalarQuantizer.QT_8bit_direct_signed
        self._index: Any = faiss.IndexIDMap2(
            faiss.IndexFlatIP(dimensions)
            if largest is None
            else faiss.IndexScalarQuantizer(dimensions, signed, faiss.METRIC_INNER_PRODUCT)
        )

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def nbytes(self) -> int:
        """Its size in memory in bytes, estimated."""
        own = len(self) * (self.dimensions * (1 if self.coarse else 4) + 40) + 4096
        return own + (self._quick.nbytes if self._quick is not None else 0)

    @property
    def coarse(self) -> bool:
        """Whether its scores are approximate, so that its hits have to be scored again."""
        return self.largest is not None

    @property
    def _held(self) -> NDArray[np.int64]:
        """The ids in it, in the order in which they were added."""
        held: NDArray[np.int64] = faiss.vector_to_array(self._index.id_map)
        return held

    @property
    def ids(self) -> set[int]:
        """The ids in it."""
        return set(self._held.tolist())

    def holds(self, ids: Sequence[int], vectors: Vectors) -> bool:
        """Whether it has exactly these ids and vectors."""
        if len(self) != len(ids) or self.ids != set(ids):
            return False
        place = {i: n for n, i in enumerate(ids)}
        theirs = self._as_held(vectors)[[place[i] for i in self._held.tolist()]]
        return bool(np.allclose(self._vectors(0, len(self)), theirs, atol=_TIE))

    def quicken(self) -> None:
        """Make a coarse copy, which is then searched first."""
        held, places = self._held, range(0, len(self), _BATCH)
        largest = max(float(abs(self._vectors(start, _BATCH)).max()) for start in places)
        self._quick = Shard(self.dimensions, largest=largest)
        for start in places:
            ids = held[start : start + _BATCH].tolist()
            self._quick.replace([], ids, self._vectors(start, _BATCH))

    @property
    def quick(self) -> bool:
        """Whether a coarse copy is searched first."""
        return self._quick is not None

    def _vectors(self, start: int, count: int) -> Vectors:
        """``count`` vectors from ``start`` on, in the order in which they were added."""
        count = min(count, len(self) - start)
        held: Vectors = faiss.downcast_index(self._index.index).reconstruct_n(start, count)
        return held

    def replace(self, ids: Sequence[int], found: Sequence[int], vectors: Vectors) -> None:
        """Remove ``ids`` and add ``found`` with their vectors, as FAISS has no upsert."""
        # A removal moves all that follows, so it is skipped for new ids.
        known = ids if len(ids) > _FEW else [i for i in ids if self._vector(i) is not None]
        if len(self) and known:
            self._index.remove_ids(np.asarray(known, np.int64))
        _use_one_thread()
        for start in range(0, len(found), _BATCH):  # without a second copy of all
            some = slice(start, start + _BATCH)
            self._index.add_with_ids(
                self._as_held(vectors[some]), np.asarray(found[some], np.int64)
            )
        if self._quick is not None:
            self._quick.replace(ids, found, vectors)

    def search(
        self, query: Vectors, limit: int, selection: Selection = EVERYTHING
    ) -> list[tuple[int, float]]:
        """The nearest (id, cosine) of a selection, best first, of equal ones the oldest. A coarse
        shard gives more, so that the exact ones are among them, with scores that tell nothing."""
        if limit < 1:
            return []
        if self.largest is not None:
            # About twice as many, more where one dimension is much larger and leaves fewer steps
            # for the others.
            steps = self.largest * math.sqrt(self.dimensions)
            spare = max(_SPARE, round(limit * steps / _EVEN))
            return self._widening(query, limit + spare, selection)
        if self._quick is not None:
            near = self._quick.search(query, limit, selection)
            found = list(self.scores(query, [i for i, _ in near]).items())
        else:
            found = self._widening(query, limit, selection)
        return best_first(found)[:limit]

    def _widening(
        self, query: Vectors, limit: int, selection: Selection
    ) -> list[tuple[int, float]]:
        """The nearest, with all that tie with the last, as FAISS may cut a tie anywhere."""
        wide = limit + 1
        selector = _selector(selection)
        while True:
            found = self._nearest(query, min(wide, len(self)), selector)
            if len(found) < wide or found[limit - 1][1] - found[-1][1] > _TIE:
                return found
            wide *= 2

    def _nearest(self, query: Vectors, limit: int, selector: Any) -> list[tuple[int, float]]:
        if not limit:
            return []
        parameters = None
        if selector is not None:
            parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
        asked = query.reshape(1, -1)
        if self.largest is not None:  # the length of the query does not change the order
            asked = _bytes(asked, float(abs(query).max()))
        _use_one_thread()
        scores, ids = self._index.search(asked, limit, params=parameters)
        pairs = zip(ids[0].tolist(), scores[0].tolist(), strict=True)
        return [(i, score) for i, score in pairs if i >= 0]

    def _as_held(self, vectors: Vectors) -> Vectors:
        """The vectors as numbers of the index's type."""
        if self.largest is not None:
            return _bytes(vectors, self.largest)
        return np.ascontiguousarray(vectors, np.float32)

    def scores(self, query: Vectors, ids: Sequence[int]) -> dict[int, float]:
        """The cosine of those of ``ids`` that are in the shard."""
        if not len(self) or not len(ids):
            return {}
        _use_one_thread()
        try:
            vectors = self._index.reconstruct_batch(np.asarray(ids, np.int64))
        except RuntimeError:  # one of them has no vector
            held = {i: vector for i in ids if (vector := self._vector(i)) is not None}
            ids, vectors = list(held), np.array([*held.values()]).reshape(-1, self.dimensions)
        return dict(zip(ids, (vectors @ query).tolist(), strict=True))

    def _vector(self, i: int) -> Vectors | None:
        try:
            vector: Vectors = self._index.reconstruct(i)
        except RuntimeError:  # raised by FAISS for an unknown id
            return None
        return vector

    def save(self, path: Path, mark: str) -> None:
        """Write it to a file atomically: a partial file never has this name."""
        body = faiss.serialize_index(self._index).data
        head = {
            "format": _FORMAT,
            "dimensions": self.dimensions,
            "largest": self.largest,
            "seq": self.seq,
            "mark": mark,
            "waiting": sorted(self.waiting),
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        # A vector reveals something of its text, so other accounts must not read it.
        try:
            with open(disk.new_file(temporary), "wb") as file:
                file.write(json.dumps(head).encode() + b"\n")
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: Path, dimensions: int) -> Shard:
        """Read a saved shard. Raises StoreError for one that is damaged or of another size."""
        try:
            with path.open("rb") as file:
                known = json.loads(file.readline())
                start = file.tell()
                if known["format"] != _FORMAT or known["dimensions"] != dimensions:
                    raise ValueError("another format")
                if hashlib.file_digest(file, "sha256").hexdigest() != known["sha256"]:
                    raise ValueError("not what was written")  # FAISS does not check it
                shard = cls(dimensions, largest=known["largest"])
                file.seek(start)  # in pieces, without a second copy of all
                reader = faiss.PyCallbackIOReader(file.read, _PIECE)  # type: ignore[attr-defined]
                shard._index = faiss.read_index(reader)
            shard.seq, shard.mark = int(known["seq"]), str(known["mark"])
            shard.waiting = {int(i) for i in known["waiting"]}
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise StoreError(f"{path} cannot be read; it is rebuilt from the rows") from error
        return shard


def _use_one_thread() -> None:
    """Let FAISS use no further threads: they gain nothing on a quiet machine and cost whole time
    slices on a busy one. OpenMP keeps this for each thread that calls, so it is said each time."""
    faiss.omp_set_num_threads(1)


def _selector(selection: Selection) -> Any:
    """The selection as FAISS reads it; None for everything."""
    if selection.only is None:
        if not selection.without:
            return None
        without = np.asarray(sorted(selection.without), np.int64)
        return faiss.IDSelectorNot(faiss.IDSelectorBatch(without))
    only = sorted(set(selection.only).difference(selection.without))
    return faiss.IDSelectorBatch(np.asarray(only, np.int64))


def _bytes(vectors: Vectors, largest: float) -> Vectors:
    """The vectors in whole steps; ``largest`` is the last step."""
    steps: Vectors = np.rint(vectors * (_STEPS / (largest or 1.0)))
    return steps.clip(-_STEPS, _STEPS)


class VectorIndex:
    """Finds the nearest memories, messages or summaries, in the space of one service."""

    def __init__(self, home: Path, store_id: str, service_id: int, service: Service) -> None:
        self.service_id = service_id
        self._home = home
        self._store_id = store_id
        self._dimensions = service.dimensions
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
    ) -> list[tuple[int, float]]:
        """The nearest (id, cosine) of a selection in these scope rows, best first."""
        found: list[tuple[int, float]] = []
        with self._lock:
            for app_id in app_ids if limit > 0 else ():
                shard = self._current(tx, kind, app_id)
                near = shard.search(query, limit, selection)
                if shard.coarse:
                    near = list(self._exact(tx, kind, app_id, query, [i for i, _ in near]).items())
                found += near
        return best_first(found)[:limit]

    def scores(
        self,
        tx: Tx,
        app_ids: Sequence[int],
        query: Vectors,
        ids: Sequence[int],
        kind: Kind = "fact",
    ) -> dict[int, float]:
        """The cosine of those of ``ids`` that have a vector in these scope rows."""
        found: dict[int, float] = {}
        with self._lock:
            for app_id in app_ids if ids else ():
                shard = self._current(tx, kind, app_id)
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
        found, vectors, _ = self._read(tx, kind, app_id, ids)
        return dict(zip(found, (vectors @ query).tolist(), strict=True)) if found else {}

    def waiting(self, tx: Tx, app_ids: Sequence[int], kind: Kind = "fact") -> set[int]:
        """The ids in these scope rows that have no vector of the service yet."""
        with self._lock:
            shards = [self._current(tx, kind, app_id) for app_id in app_ids]
            return set[int]().union(*(shard.waiting for shard in shards))

    def ids(self, tx: Tx, app_id: int, kind: Kind = "fact") -> set[int]:
        """The ids in the scope row's shard, after reading the latest changes."""
        with self._lock:
            return self._current(tx, kind, app_id).ids

    @property
    def unsaved(self) -> bool:
        """Whether any large shard has changed since it was saved."""
        with self._lock:
            return any(self._is_unsaved(*which) for which in self._shards)

    def _is_unsaved(self, kind: Kind, app_id: int) -> bool:
        shard = self._shards[kind, app_id]
        return len(shard) >= SAVE_FROM and self._saved.get((kind, app_id)) != shard.seq

    def save(self, tx: Tx) -> None:
        """Save the large shards that changed, so that the next start is quick.

        ``tx`` is a write transaction, so that nothing is purged while they are written. A shard
        that cannot be written is rebuilt from the rows at the next start.
        """
        with self._lock:
            for which in list(self._shards):
                shard = self._current(tx, *which)
                if not self._is_unsaved(*which):
                    continue
                path = self._path(*which)
                try:
                    disk.make_folder(path.parent)
                    shard.save(path, passages.fingerprint(tx, shard.seq))
                    self._saved[which] = shard.seq
                except OSError as error:
                    full = disk.has_no_room(error)
                    why = disk.full(str(path.parent), error) if full else error.strerror
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
            embeddings.delete_files(self._home, self._store_id, [self.service_id], app_ids)

    def _current(self, tx: Tx, kind: Kind, app_id: int) -> Shard:
        """The shard with all that this snapshot has."""
        kept = self._shards.get((kind, app_id))
        shard = self._load(tx, kind, app_id) if kept is None else kept
        newest = passages.latest_change(tx, app_id)
        ahead = shard.seq > newest > 0
        same = shard is kept and shard.seq == newest
        if shard.seq > newest:
            # It is newer than this snapshot of the rows: use a shard of its own, once.
            shard = Shard(self._dimensions)
        if shard.seq < newest:
            whole, before = not shard.seq, shard.seq
            changed = [] if whole else passages.changed_since(tx, kind, app_id, shard.seq)
            rows = self._read(tx, kind, app_id, None if whole else changed)
            if whole and kind in _COARSE_KINDS and len(rows.ids) >= COARSE_FROM:
                largest = max(rows.vectors.max(), -rows.vectors.min())
                shard = Shard(self._dimensions, largest=float(largest))
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

    def _load(self, tx: Tx, kind: Kind, app_id: int) -> Shard:
        """The saved shard; an empty one where there is none that can be trusted."""
        path = self._path(kind, app_id)
        if os.path.lexists(path):
            try:
                shard = Shard.load(path, self._dimensions)
            except StoreError as error:
                log.warning("%s", error)
                with contextlib.suppress(OSError):
                    path.unlink()
            else:
                # Else it was saved before the rows were restored from a backup.
                if shard.mark == passages.fingerprint(tx, shard.seq):
                    self._saved[kind, app_id] = shard.seq
                    return shard
        return Shard(self._dimensions)

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
        return embeddings.index_file(self._home, self._store_id, self.service_id, kind, app_id)
