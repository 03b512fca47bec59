"""A FAISS index of one scope row, with the number of the last change it contains.

The index is a flat inner product over unit vectors: exact cosine. It needs no filter, as a shard
has the vectors of one user and app. A coarse index, with one byte for each number, is three times
as fast and a quarter of the size; more hits than needed are taken from it and scored again. A shard
may have a coarse copy or, if it is very large, be coarse itself; then the caller scores its hits.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from memchat import disk
from memchat.errors import StoreError
from memchat.search.vector_index import EVERYTHING, Selection

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

    def spared(self, limit: int) -> int:
        """How many hits of a coarse shard contain the exact nearest ``limit``: about twice as many,
        more where one dimension is much larger and leaves fewer steps for the others."""
        steps = (self.largest or 0.0) * math.sqrt(self.dimensions)
        return limit + max(_SPARE, round(limit * steps / _EVEN))

    @property
    def ids(self) -> set[int]:
        """The ids in it."""
        return {int(i) for i in faiss.vector_to_array(self._index.id_map)}

    def holds(self, ids: Sequence[int], vectors: Vectors) -> bool:
        """Whether it has exactly these ids and vectors."""
        held = faiss.vector_to_array(self._index.id_map)
        if len(held) != len(ids) or set(held.tolist()) != set(ids):
            return False
        if not len(held):
            return True
        place = {int(i): n for n, i in enumerate(held)}
        mine, theirs = self._vectors(0, len(self)), self._as_held(vectors)
        return bool(np.allclose(mine[[place[i] for i in ids]], theirs, atol=_TIE))

    def quicken(self) -> None:
        """Make a coarse copy, which is then searched first."""
        held = faiss.vector_to_array(self._index.id_map)
        places = range(0, len(self), _BATCH)
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
        """The nearest (id, cosine) of a selection, best first, of equal ones the oldest."""
        if limit < 1:
            return []
        if self._quick is not None:
            near = self._quick.candidates(query, limit, selection)
            found = list(self.scores(query, near).items())
        else:
            found = self._widening(query, limit, selection)
        found.sort(key=lambda hit: (-round(hit[1], 6), hit[0]))
        return found[:limit]

    def candidates(
        self, query: Vectors, limit: int, selection: Selection = EVERYTHING
    ) -> list[int]:
        """The nearest of a coarse shard, with more than ``limit``, so that the exact ones are among
        them."""
        found = self._widening(query, self.spared(limit), selection)
        return [i for i, _ in found]

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
    if selection.everything:
        return None
    ids, chosen = selection.ids()
    batch = faiss.IDSelectorBatch(np.asarray(ids, np.int64))
    return batch if chosen else faiss.IDSelectorNot(batch)


def _bytes(vectors: Vectors, largest: float) -> Vectors:
    """The vectors in whole steps; ``largest`` is the last step."""
    steps: Vectors = np.rint(vectors * (_STEPS / (largest or 1.0)))
    return steps.clip(-_STEPS, _STEPS)
