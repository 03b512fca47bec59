"""One FAISS index over the active memories of one scope row, and how far it has read.

Flat inner product over unit vectors: exact cosine, no filter needed since a shard holds one
person's app. A large one may be coarse: a byte a number is three times as fast and a quarter of the
size, and who searches it takes some more than they want and scores those anew. A shard knows the
last event it contains, so it can read on from there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from memchat.errors import StoreError

# More threads gain nothing on a quiet machine and cost whole time slices on a busy one.
faiss.omp_set_num_threads(1)

Vectors = NDArray[np.float32]
_FORMAT = 3
_FEW = 1_000
_TIE = 1e-6
"""Scores this close may change places with the order of adding up."""
_STEPS = 127
"""Of a byte, each way from zero."""


class Shard:
    """Ids and vectors; ``seq`` is the last event that they reflect.

    ``mark`` tells that event from one of the same number in another past; set in a loaded shard.
    """

    def __init__(self, dimensions: int, *, largest: float | None = None) -> None:
        """``largest`` makes it coarse: the largest number of the vectors that a byte shall hold."""
        self.dimensions = dimensions
        self.largest = largest
        self.seq = 0
        self.mark = ""
        # FAISS compares bytes with bytes here, which is what makes it quick.
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
        """What it holds in memory, about."""
        return len(self) * (self.dimensions * (1 if self.coarse else 4) + 40) + 4096

    @property
    def coarse(self) -> bool:
        """Whether its scores only tell which vectors to look at."""
        return self.largest is not None

    @property
    def ids(self) -> set[int]:
        """The memories in it."""
        return {int(i) for i in faiss.vector_to_array(self._index.id_map)}

    def holds(self, ids: Sequence[int], vectors: Vectors) -> bool:
        """Whether it has these vectors under these ids, and nothing else."""
        held = faiss.vector_to_array(self._index.id_map)
        if len(held) != len(ids) or set(held.tolist()) != set(ids):
            return False
        if not len(held):
            return True
        place = {int(i): n for n, i in enumerate(held)}
        mine = faiss.downcast_index(self._index.index).reconstruct_n(0, len(held))
        theirs = self._as_held(vectors)
        return bool(np.allclose(mine[[place[i] for i in ids]], theirs, atol=_TIE))

    def replace(self, ids: Sequence[int], found: Sequence[int], vectors: Vectors) -> None:
        """Take ``ids`` out and put ``found`` in with their vectors; FAISS itself has no upsert."""
        # A removal moves everything behind it: not for what is new.
        known = ids if len(ids) > _FEW else [i for i in ids if self._vector(i) is not None]
        if len(self) and known:
            self._index.remove_ids(np.asarray(known, np.int64))
        if len(found):
            self._index.add_with_ids(self._as_held(vectors), np.asarray(found, np.int64))

    def search(
        self, query: Vectors, limit: int, exclude: Sequence[int] = ()
    ) -> list[tuple[int, float]]:
        """The nearest (id, cosine), best first, of equal ones the oldest, none of ``exclude``."""
        if limit < 1:
            return []
        wide = limit + 1
        while True:
            found = self._nearest(query, min(wide, len(self)), exclude)
            # FAISS cuts a tie anywhere; look on until the tie at the limit is whole.
            if len(found) < wide or found[limit - 1][1] - found[-1][1] > _TIE:
                break
            wide *= 2
        found.sort(key=lambda hit: (-round(hit[1], 6), hit[0]))
        return found[:limit]

    def _nearest(
        self, query: Vectors, limit: int, exclude: Sequence[int]
    ) -> list[tuple[int, float]]:
        if not limit:
            return []
        parameters = None
        if exclude:
            chosen = faiss.IDSelectorBatch(np.asarray(exclude, np.int64))
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorNot(chosen))  # type: ignore[call-arg]
        asked = query.reshape(1, -1)
        if self.largest is not None:  # a question's own length changes no order
            asked = _bytes(asked, float(abs(query).max()))
        scores, ids = self._index.search(asked, limit, params=parameters)
        return [(int(i), float(s)) for i, s in zip(ids[0], scores[0], strict=True) if i >= 0]

    def _as_held(self, vectors: Vectors) -> Vectors:
        """In the numbers that the index holds."""
        if self.largest is not None:
            return _bytes(vectors, self.largest)
        return np.ascontiguousarray(vectors, np.float32)

    def scores(self, query: Vectors, ids: Sequence[int]) -> dict[int, float]:
        """The cosine of those of ``ids`` that are in it."""
        vectors = ((i, self._vector(i)) for i in ids) if len(self) else ()
        return {i: float(vector @ query) for i, vector in vectors if vector is not None}

    def _vector(self, i: int) -> Vectors | None:
        try:
            vector: Vectors = self._index.reconstruct(i)
        except RuntimeError:  # FAISS's word for an id it does not hold
            return None
        return vector

    def save(self, path: Path, mark: str) -> None:
        """Write it whole to one file, atomically; a half-written one never has the name."""
        body = faiss.serialize_index(self._index).data
        head = {
            "format": _FORMAT,
            "dimensions": self.dimensions,
            "largest": self.largest,
            "seq": self.seq,
            "mark": mark,
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        # A vector tells about its words: nobody else on this machine reads it.
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
        try:
            with open(os.open(temporary, flags, 0o600), "wb") as file:
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
                body = np.fromfile(file, np.uint8)
            if known["format"] != _FORMAT or known["dimensions"] != dimensions:
                raise ValueError("another format")
            if hashlib.sha256(body.data).hexdigest() != known["sha256"]:
                raise ValueError("not what was written")  # FAISS itself trusts what it reads
            shard = cls(dimensions, largest=known["largest"])
            shard._index = faiss.deserialize_index(body)
            shard.seq, shard.mark = int(known["seq"]), str(known["mark"])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise StoreError(f"{path} cannot be read; it is rebuilt from the rows") from error
        return shard


def _bytes(vectors: Vectors, largest: float) -> Vectors:
    """In whole steps, of which ``largest`` is the last."""
    steps: Vectors = np.rint(vectors * (_STEPS / (largest or 1.0)))
    return steps.clip(-_STEPS, _STEPS)
