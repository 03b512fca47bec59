"""Rows without a vector, because they are new: a search makes a few of these vectors itself.

It does so only with a service of this machine: a search waits for no network and no writer. The
vectors take part in that search whether or not they could be stored.
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
DEFAULT_SECONDS = 0.5
"""How long a search waits for them where no reply waits for the search."""


_SOURCES: Mapping[Kind, unembedded.Kind] = {
    "memories": "memory",
    "messages": "message",
    "chunks": "chunk",
}


@dataclass(frozen=True, slots=True)
class MadeVectors:
    """The vectors of rows that had none, and what these rows' texts were."""

    space: EmbeddingSpace | None = None
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

    def made(self, search: ScoredSearch, seconds: float, *, turns: bool) -> MadeVectors:
        """Vectors for a few facts of a search's scopes, and with ``turns`` for turns of its app
        where there is room: as many as the service makes within so many seconds."""
        space, own = search.space, search.context.scope.own
        if seconds <= 0 or space is None or not space.embedder.service.local:
            return MadeVectors()
        found = self._texts(search, "memories", MOST)
        if turns and own is not None:
            here = replace(search, ids=[own])
            found += self._texts(here, "messages", MOST - len(found))
        if not found:
            return MadeVectors()
        texts = {gap.hash: gap.text for gap in found if gap.text is not None}
        vectors = embeddings.get(search.tx, space.service_id, list(texts))
        new = {key: text for key, text in texts.items() if key not in vectors}
        vectors |= self._embedded(space, new, seconds)
        return MadeVectors(space, [gap for gap in found if gap.hash in vectors], vectors)

    def keep(self, made: MadeVectors) -> None:
        """Store the vectors. Where another process writes just now, or nothing can be written, the
        queue makes them later."""
        if made.space is None or not made.gaps:
            return
        try:
            with self._database.write_if_free() as tx:
                self._write(tx, made.space, made)
        except StoreError:
            log.info("%d vectors that a search made were not kept", len(made.gaps))

    def _texts(self, search: ScoredSearch, kind: Kind, limit: int) -> list[UnembeddedText]:
        """The texts of so many at most: those with the question's words first, then the newest."""
        unembedded_ids = search.unembedded(kind)
        if not unembedded_ids or limit < 1:
            return []
        bm25 = search.matches(kind).of(unembedded_ids) if len(unembedded_ids) > limit else {}
        chosen = sorted(unembedded_ids, key=lambda i: (-bm25.get(i, 0.0), -i))[:limit]
        return unembedded.texts(search.tx, _SOURCES[kind], chosen)

    def _embedded(
        self, space: EmbeddingSpace, texts: Mapping[str, str], seconds: float
    ) -> dict[str, Vectors]:
        """What the service makes of these in that time; nothing where it is still busy for an
        earlier search."""
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
                        made.update(space.embed({key: text})[0])
                    except MemChatError as error:
                        log.warning("a search could not embed a text: %s", error)
            finally:
                self._busy.release()

        thread = threading.Thread(target=work, name="memchat-fresh", daemon=True)
        thread.start()
        thread.join(seconds)
        over.set()
        return dict(made)

    def _write(self, tx: Connection, space: EmbeddingSpace, made: MadeVectors) -> None:
        now, service_id = self._clock(), space.service_id
        if services.in_use(tx) != service_id:
            return
        # What was forgotten or reworded meanwhile gets no vector of the old words.
        same = [gap for source in _SOURCES.values() for gap in _unchanged(tx, source, made.gaps)]
        embeddings.put(tx, service_id, [(gap.hash, made.vectors[gap.hash]) for gap in same], now)
        facts = [gap.id for gap in same if gap.kind == "memory"]
        if facts:
            memory_changes.mark_embedded(tx, facts, Cause(now, "system"))
            job_holders.finish_unheld(tx, "embed", facts, now)
        turns = messages.by_ids(tx, [gap.id for gap in same if gap.kind == "message"])
        for session_id in {turn.session_id for turn in turns.values()}:
            theirs = [i for i, turn in turns.items() if turn.session_id == session_id]
            messages.record_change(tx, session_id, theirs)


def reason(facts: int = 0, turns: int = 0, passages: int = 0) -> str | None:
    """The remark that so many rows could be ranked by their words only; None for none."""
    total = facts + turns + passages
    if not total:
        return None
    counted = [(facts, "fact", "facts")]
    counted.append((turns, "turn of past conversations", "turns of past conversations"))
    counted.append((passages, "passage of notes", "passages of notes"))
    parts = [f"{n} {one if n == 1 else many}" for n, one, many in counted if n]
    is_ = "is searched by its words only: its vector is still to come"
    are = "are searched by their words only: their vectors are still to come"
    return f"{' and '.join(parts)} {is_ if total == 1 else are}"


def _unchanged(
    tx: Connection, source: unembedded.Kind, found: Collection[UnembeddedText]
) -> list[UnembeddedText]:
    """Those of a kind that are in the rows as they were when they were embedded."""
    ids = [gap.id for gap in found if gap.kind == source]
    held = {gap.id: gap for gap in unembedded.texts(tx, source, ids)} if ids else {}
    return [gap for gap in found if gap.kind == source and held.get(gap.id) == gap]
