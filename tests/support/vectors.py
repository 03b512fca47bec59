"""Vectors for the index."""

from __future__ import annotations

import numpy as np

from memchat.db import apps, records
from memchat.db.database import Database
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory
from memchat.search import embeddings, passages
from memchat.search.vector_index import VectorIndex
from memchat.types import Scope, Service
from tests.support.store import NOON

DIMENSIONS = 16
SERVICE = Service("test", "exact", DIMENSIONS, 1000)
ANA, BO = Scope("ana"), Scope("bo")
BY_HAND = Cause("user")


def by_hand(ids, vectors, query, limit: int, exclude=()) -> list[tuple[int, float]]:
    """What an index must give: every product, in order, equal ones by id."""
    scores = [(i, float(np.float32(v @ query))) for i, v in zip(ids, vectors, strict=True)]
    scores = [hit for hit in scores if hit[0] not in exclude]
    return sorted(scores, key=lambda hit: (-hit[1], hit[0]))[:limit]


def opened(store: Database) -> VectorIndex:
    """The index as another process would open it."""
    with store.write() as tx:
        service_id = embeddings.register_service(tx, SERVICE)
        return VectorIndex(store.home, records.store_id(tx), service_id, SERVICE)


def keep(store: Database, scope: Scope, *values: str) -> list[int]:
    """Memories whose vectors are made of their words' letters."""
    with store.write() as tx:
        service_id = embeddings.register_service(tx, SERVICE)
        own = apps.ensure(tx, scope).own
        ids = []
        for value in values:
            new = NewMemory("fact", "thing", value, True, value, NOON, "manual")
            embeddings.put(tx, service_id, [(passages.text_hash(value), vector(value))])
            ids.append(changes.add(tx, own, new, BY_HAND))
        return ids


def vector(value: str) -> np.ndarray:
    found = np.random.default_rng([*value.encode()]).normal(size=DIMENSIONS).astype(np.float32)
    return found / np.linalg.norm(found)


def app_id(store: Database, scope: Scope) -> int:
    with store.read() as tx:
        return apps.find(tx, scope).ids[0]


def search(store: Database, index: VectorIndex, scope: Scope, value: str, limit=5) -> list[int]:
    with store.read() as tx:
        ids = apps.find(tx, scope).ids
        return [i for i, _ in index.search(tx, ids, vector(value), limit)]
