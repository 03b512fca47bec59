"""Repairing what is derived from the rows: keyword rows, vectors, the saved index.

No message and no memory is changed, and no provider is called: missing vectors are queued.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from datetime import datetime

from sqlalchemy import Connection

from memchat.memory.embedding.space import shortened
from memchat.store import apps, embeddings, keywords, meta, repair, services, unembedded
from memchat.store.database import Database
from memchat.types import counted
from memchat.vectors import vector_index
from memchat.vectors.vector_index import VectorIndex

KINDS: tuple[keywords.Kind, ...] = ("memories", "messages", "sessions", "chunks")


class Repair:
    """One round over a whole store."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        drop_vectors: Callable[[Connection, Iterable[int]], None],
    ) -> None:
        """``drop_vectors`` takes the saved vectors of scope rows from memory and disk."""
        self._database = database
        self._clock = clock
        self._drop_vectors = drop_vectors

    def run(self) -> list[str]:
        """Repair what differs from the rows; gives a line for each thing done."""
        steps = (self._words, self._broken, self._idle, self._missing, self._strays, self._index)
        return [line for step in steps if (line := step())]

    def _words(self) -> str | None:
        with self._database.read() as tx:
            astray = [kind for kind in KINDS if repair.wrong_keyword_rows(tx, kind)]
        mended = 0
        for kind in astray:
            with self._database.write() as tx:
                mended += repair.repair_keywords(tx, kind)
        return f"wrote {counted(mended, 'keyword row')} anew" if mended else None

    def _broken(self) -> str | None:
        with self._database.write() as tx:
            broken = repair.remove_malformed_vectors(tx)
            if broken:
                self._drop_vectors(tx, apps.all_ids(tx))
        return f"deleted {counted(broken, 'vector')} of a wrong length" if broken else None

    def _idle(self) -> str | None:
        """Vectors of texts that are gone."""
        with self._database.write() as tx:
            queries = {embeddings.query_hash(shortened(words)) for words in repair.user_texts(tx)}
            idle = [key for key in embeddings.unused_hashes(tx) if key not in queries]
            embeddings.remove_unused(tx, idle)
        return f"deleted {counted(len(idle), 'vector')} of words that are gone" if idle else None

    def _missing(self) -> str | None:
        with self._database.write() as tx:
            in_use = services.in_use(tx)
            queued = unembedded.count(tx, in_use) if in_use is not None else 0
            if in_use is None or not queued:
                return None
            unembedded.enqueue_all(tx, in_use, self._clock())
        return f"queued {counted(queued, 'text')} without a vector; memchat jobs run makes them"

    def _strays(self) -> str | None:
        """Files in the folder of the index that belong to no scope or service."""
        with self._database.read() as tx:
            store_id = meta.get(tx, "store_id") or ""
            known, ids = services.all_services(tx), apps.all_ids(tx)
            strays = vector_index.stray_files(self._database.home, store_id, known, set(ids))
        for path in strays:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return f"removed {counted(len(strays), 'stray file')} of the index" if strays else None

    def _index(self) -> str | None:
        """Saved shards that hold other vectors than the rows."""
        with self._database.read() as tx:
            store_id, in_use = meta.get(tx, "store_id"), services.in_use(tx)
            service = services.get(tx, in_use)
            if store_id is None or in_use is None or service is None:
                return None
            fresh = VectorIndex(self._database.home, store_id, in_use, service)
            wrong = [app_id for app_id in apps.all_ids(tx) if fresh.differs(tx, app_id)]
        if not wrong:
            return None
        with self._database.write() as tx:
            self._drop_vectors(tx, wrong)
        return f"dropped the index of {counted(len(wrong), 'scope')}; the rows make it anew"
