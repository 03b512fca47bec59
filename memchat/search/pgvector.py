"""The vector search of one embedding service in PostgreSQL: what ``VectorIndex`` is for SQLite.

pgvector reads the rows themselves, so nothing is loaded, saved or kept true. A scope is found by
its btree and scanned exactly. Where it is very large, the index of its service (HNSW of half
precision) gives more hits than are needed, which are then scored from the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memchat.db import Tx
from memchat.db.records import vector_text
from memchat.search.embeddings import EVERYTHING, SHARE, Selection, best_first
from memchat.search.keywords import Kind
from memchat.types import Service

Vectors = NDArray[np.float32]
INDEXED_FROM = 50_000
"""Passages of a kind in a scope from which the index of the service is asked."""
MOST_DIMENSIONS = 4_000
"""Of a vector of half precision that HNSW takes."""
_SPARE = 10
_PASSAGES = """
FROM passages AS p JOIN embeddings AS e ON e.hash = p.hash AND e.service_id = %(service)s
WHERE p.app_id = ANY (%(apps)s) AND p.kind = %(kind)s AND p.searched = 1
"""
_ROWS = f"SELECT p.owner_id AS id, -(e.embedding <#> %(query)s::vector) AS score {_PASSAGES}"
_TURNS = f"""
SELECT id, (at + {SHARE} * (coalesce(at_before, 0) + coalesce(at_after, 0))) / sqrt(
    own + {SHARE**2} * (coalesce(size_before, 0) + coalesce(size_after, 0))
    - {2 * SHARE} * (coalesce(vector <#> before, 0) + coalesce(vector <#> after, 0))
    - {2 * SHARE**2} * coalesce(before <#> after, 0)
) AS score FROM (
    SELECT *, lag(vector) OVER it AS before, lead(vector) OVER it AS after,
        lag(at) OVER it AS at_before, lead(at) OVER it AS at_after,
        lag(own) OVER it AS size_before, lead(own) OVER it AS size_after
    FROM (
        SELECT m.id, m.session_id, m.role, e.embedding AS vector,
            -(e.embedding <#> %(query)s::vector) AS at, -(e.embedding <#> e.embedding) AS own
        FROM passages AS p JOIN messages AS m ON m.id = p.owner_id
        LEFT JOIN embeddings AS e ON e.hash = p.hash AND e.service_id = %(service)s
        WHERE p.app_id = ANY (%(apps)s) AND p.kind = %(kind)s AND p.hash IS NOT NULL {{these}}
    ) AS said WINDOW it AS (PARTITION BY session_id ORDER BY id)
) AS beside WHERE role = 'user' AND vector IS NOT NULL
"""
"""The cosine of each turn blended with those beside it, as ``blend_neighbours`` makes it: of sums
of vectors only the products are needed."""
_CHATS = """
AND m.session_id IN (SELECT session_id FROM messages WHERE id = ANY (%(only)s))
"""
_BY_INDEX = """
SELECT p.owner_id, -(e.embedding <#> %(query)s::vector) FROM (
    SELECT hash, embedding FROM embeddings WHERE service_id = {service}
    ORDER BY embedding::halfvec({dimensions}) <#> %(query)s::halfvec({dimensions})
) AS e JOIN passages AS p ON p.hash = e.hash
WHERE p.app_id = ANY (%(apps)s) AND p.kind = %(kind)s AND p.searched = 1
LIMIT %(limit)s
"""
_COUNT = f"SELECT count(*) FROM (SELECT 1 {_PASSAGES} LIMIT {INDEXED_FROM}) AS found"


def make_index(tx: Tx, service_id: int, dimensions: int) -> None:
    """Make the index of a service, where there is none yet."""
    if dimensions <= MOST_DIMENSIONS:
        tx.driver.execute(
            f"CREATE INDEX IF NOT EXISTS ix_embeddings_of_{service_id} ON embeddings USING hnsw"
            f" ((embedding::halfvec({dimensions})) halfvec_ip_ops) WHERE service_id = {service_id}"
        )


def drop_index(tx: Tx, service_id: int) -> None:
    """Drop the index of a service that is removed."""
    tx.driver.execute(f"DROP INDEX IF EXISTS ix_embeddings_of_{service_id}")


class PgVectorIndex:
    """Finds the nearest memories, messages, summaries or chunks, in the space of one service."""

    unsaved = False

    def __init__(self, service_id: int, service: Service) -> None:
        self.service_id = service_id
        self._dimensions = service.dimensions

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
        if limit < 1 or not app_ids:
            return []
        values = self._values(app_ids, kind, query, selection)
        if kind != "turn" and selection == EVERYTHING and self._is_large(tx, values):
            found = self._by_index(tx, values, limit)
        else:
            scored = self._scored(kind, selection)
            best = "ORDER BY round(score::numeric, 6) DESC, id LIMIT %(limit)s"
            rows = f"SELECT id, score FROM ({scored}) AS scored {best}"
            found = self._run(tx, rows, values | {"limit": limit})
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
        if not ids or not app_ids:
            return {}
        these = Selection(ids)
        return dict(
            self._run(tx, self._scored(kind, these), self._values(app_ids, kind, query, these))
        )

    def waiting(self, tx: Tx, app_ids: Sequence[int], kind: Kind = "fact") -> set[int]:
        """The ids in these scope rows that have no vector of the service yet."""
        lacking = """SELECT p.owner_id FROM passages AS p LEFT JOIN messages AS m
            ON p.kind = 'turn' AND m.id = p.owner_id WHERE p.app_id = ANY (%(apps)s)
            AND p.kind = %(kind)s AND p.searched = 1 AND p.hash IS NOT NULL
            AND m.role IS DISTINCT FROM 'assistant' AND NOT EXISTS (SELECT 1 FROM embeddings AS e
            WHERE e.hash = p.hash AND e.service_id = %(service)s)"""
        values = self._values(app_ids, kind)
        # A search asks several times.
        found = tx.once((lacking, kind, *app_ids), lambda: self._run(tx, lacking, values))
        return {row[0] for row in found}

    def ids(self, tx: Tx, app_id: int, kind: Kind = "fact") -> set[int]:
        """The ids in the scope row that can be found."""
        every = f"SELECT p.owner_id {_PASSAGES}"
        return {row[0] for row in self._run(tx, every, self._values([app_id], kind))}

    def save(self, tx: Tx) -> None:
        """Nothing is kept beside the rows."""

    def differs(self, tx: Tx, app_id: int) -> bool:
        """Whether anything kept beside the rows differs from them."""
        return False

    def forget(self, app_ids: Collection[int]) -> None:
        """Nothing is kept beside the rows."""

    def _values(
        self,
        app_ids: Sequence[int],
        kind: Kind,
        query: Vectors | None = None,
        selection: Selection = EVERYTHING,
    ) -> dict[str, Any]:
        return {
            "service": self.service_id,
            "apps": [*app_ids],
            "kind": kind,
            "query": None if query is None else vector_text(query.tobytes()),
            "only": None if selection.only is None else [*selection.only],
            "without": [*selection.without],
        }

    def _scored(self, kind: Kind, selection: Selection) -> str:
        """The statement that gives the ids and cosines of a selection."""
        only = selection.only is not None
        rows = _TURNS.format(these=_CHATS if only else "") if kind == "turn" else _ROWS
        owner = "id" if kind == "turn" else "p.owner_id"
        if only:
            rows += f" AND {owner} = ANY (%(only)s)"
        if selection.without:
            rows += f" AND {owner} != ALL (%(without)s)"
        return rows

    def _is_large(self, tx: Tx, values: dict[str, Any]) -> bool:
        if self._dimensions > MOST_DIMENSIONS:
            return False
        return bool(self._run(tx, _COUNT, values)[0][0] >= INDEXED_FROM)

    def _by_index(self, tx: Tx, values: dict[str, Any], limit: int) -> list[tuple[int, float]]:
        tx.driver.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        rows = _BY_INDEX.format(service=self.service_id, dimensions=self._dimensions)
        return self._run(tx, rows, values | {"limit": 2 * limit + _SPARE})

    def _run(self, tx: Tx, sql: str, values: dict[str, Any]) -> list[Any]:
        rows: list[Any] = tx.driver.execute(sql, values).fetchall()
        return rows
