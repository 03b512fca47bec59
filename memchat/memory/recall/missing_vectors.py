"""What was written just now and has no vector yet: a search gives a few of these theirs itself.

Only where a service of this machine makes them: a search waits for no network and no writer. What
was made takes part in that search whether or not it could be kept.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.errors import MemChatError, StoreError
from memchat.store import embeddings, job_holders, memory_changes, messages, services, unembedded
from memchat.store.database import Database
from memchat.store.events import Cause
from memchat.store.unembedded import UnembeddedText

if TYPE_CHECKING:
    from memchat.memory.embedding.space import EmbeddingSpace
    from memchat.memory.recall.ranking import Kind, ScoredSearch
    from memchat.providers import Vectors

log = logging.getLogger(__name__)

MOST = 16
"""Texts that one search embeds at most."""
UNHURRIED = 0.5
"""Seconds that a search waits for them which no reply waits for."""


_SOURCES: Mapping[Kind, unembedded.Kind] = {"memories": "memory", "messages": "message"}


@dataclass(frozen=True, slots=True)
class MadeVectors:
    """The vectors of rows that had none, and what these rows' texts were."""

    meaning: EmbeddingSpace | None = None
    gaps: Sequence[UnembeddedText] = ()
    vectors: Mapping[str, Vectors] = field(default_factory=dict)
    """By the hash of the text."""

    def of(self, kind: Kind) -> dict[int, Vectors]:
        """Those of a kind, by their row."""
        return {gap.id: self.vectors[gap.hash] for gap in self.gaps if gap.kind == _SOURCES[kind]}


class MissingVectors:
    """Makes vectors for rows that the searches of a store meet without. Safe in several threads."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._busy = threading.Lock()

    def made(self, search: ScoredSearch, own: int | None, seconds: float) -> MadeVectors:
        """Vectors for a few facts of a search's scopes, and for turns of ``own`` where there is
        room: as many as the service makes within so many seconds."""
        meaning = search.meaning
        if meaning is None or search.question.vector is None:
            return MadeVectors()
        if not meaning.embedder.service.local:
            return MadeVectors()
        found = self._texts(search, "memories", MOST)
        if own is not None:
            here = replace(search, ids=[own])
            found += self._texts(here, "messages", MOST - len(found))
        if not found:
            return MadeVectors()
        texts = {gap.hash: gap.text for gap in found if gap.text is not None}
        vectors = embeddings.get(search.tx, meaning.service_id, list(texts))
        new = {key: text for key, text in texts.items() if key not in vectors}
        vectors |= self._embedded(meaning, new, seconds)
        return MadeVectors(meaning, [gap for gap in found if gap.hash in vectors], vectors)

    def keep(self, made: MadeVectors) -> None:
        """Keep the vectors among the rows. Where another writes just now, or nothing can be
        written, the queue makes them later."""
        if made.meaning is None or not made.gaps:
            return
        try:
            with self._database.write_if_free() as tx:
                self._write(tx, made.meaning, made)
        except StoreError:
            log.info("%d vectors that a search made were not kept", len(made.gaps))

    def _texts(self, search: ScoredSearch, kind: Kind, limit: int) -> list[UnembeddedText]:
        """What waits, so many at most: what holds the question's words first, then the newest."""
        waiting = search.waiting(kind)
        if not waiting or limit < 1:
            return []
        told = search.matches(kind).of(waiting) if len(waiting) > limit else {}
        chosen = sorted(waiting, key=lambda i: (-told.get(i, 0.0), -i))[:limit]
        return unembedded.texts(search.tx, _SOURCES[kind], chosen)

    def _embedded(
        self, meaning: EmbeddingSpace, texts: Mapping[str, str], seconds: float
    ) -> dict[str, Vectors]:
        """What of these the service makes in that time. Nothing where it still owes an earlier
        search its vectors."""
        if not texts or not self._busy.acquire(blocking=False):
            return {}
        made: dict[str, Vectors] = {}
        over = threading.Event()

        def work() -> None:
            try:
                # One by one: a text at fault costs no other its vector.
                for key, text in texts.items():
                    if over.is_set():
                        break
                    try:
                        made.update(meaning.embed({key: text})[0])
                    except MemChatError as error:
                        log.warning("a search could not embed a text: %s", error)
            finally:
                self._busy.release()

        thread = threading.Thread(target=work, name="memchat-fresh", daemon=True)
        thread.start()
        thread.join(seconds)
        over.set()
        return dict(made)

    def _write(self, tx: Connection, meaning: EmbeddingSpace, made: MadeVectors) -> None:
        now, service_id = self._clock(), meaning.service_id
        if services.in_use(tx) != service_id:
            return
        # What was forgotten or reworded meanwhile keeps no vector of the old words.
        still = [gap for source in _SOURCES.values() for gap in _still(tx, source, made.gaps)]
        embeddings.put(tx, service_id, [(gap.hash, made.vectors[gap.hash]) for gap in still], now)
        facts = [gap.id for gap in still if gap.kind == "memory"]
        if facts:
            memory_changes.mark_embedded(tx, facts, Cause(now, "system"))
            job_holders.finish_unheld(tx, "embed", facts, now)
        turns = messages.by_ids(tx, [gap.id for gap in still if gap.kind == "message"])
        for session_id in {turn.session_id for turn in turns.values()}:
            theirs = [i for i, turn in turns.items() if turn.session_id == session_id]
            messages.record_change(tx, session_id, theirs)


def lacking(facts: int, turns: int) -> str | None:
    """What is to be said of so many rows that a search could rank by their words only."""
    if not facts + turns:
        return None
    counted = [(facts, "fact", "facts")]
    counted.append((turns, "turn of past conversations", "turns of past conversations"))
    parts = [f"{n} {one if n == 1 else many}" for n, one, many in counted if n]
    is_ = "is searched by its words only: its vector is still to come"
    are = "are searched by their words only: their vectors are still to come"
    return f"{' and '.join(parts)} {is_ if facts + turns == 1 else are}"


def _still(
    tx: Connection, source: unembedded.Kind, found: Collection[UnembeddedText]
) -> list[UnembeddedText]:
    """Those of a kind that are in the rows as they were when they were embedded."""
    ids = [gap.id for gap in found if gap.kind == source]
    held = {gap.id: gap for gap in unembedded.texts(tx, source, ids)} if ids else {}
    return [gap for gap in found if gap.kind == source and held.get(gap.id) == gap]
