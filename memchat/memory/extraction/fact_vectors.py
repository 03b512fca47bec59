"""The vectors of a reading's facts and of its conversation: made in one batch, stored with them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import ConfigError, ProviderError
from memchat.memory.context import Context
from memchat.memory.embedding.space import EmbeddingSpace
from memchat.memory.extraction.session_reading import NEAREST_FACTS, SessionReading
from memchat.memory.facts.fact import Fact
from memchat.memory.facts.ingest import queue_embedding
from memchat.memory.recall import turn_texts
from memchat.store import apps, embeddings, memories, new_memory, services, sessions
from memchat.store.database import Database

if TYPE_CHECKING:
    from memchat.providers import Vectors

log = logging.getLogger(__name__)


@dataclass(slots=True)
class FactVectors:
    """The vectors of one reading. Without a ``space`` there are none."""

    database: Database
    settings: Settings
    reading: SessionReading
    space: EmbeddingSpace | None
    vectors: dict[str, Vectors] = field(default_factory=dict)
    """By text hash."""

    def embed(self, facts: Sequence[Fact]) -> list[Fact]:
        """Embed the facts and the conversation; the facts with their nearest stored neighbours.

        Where the service fails there are no vectors: the facts are stored all the same.
        """
        if self.space is None:
            return list(facts)
        reading, zone = self.reading, self.settings.zone
        with self.database.read() as tx:
            summary = reading.summary or sessions.description(tx, reading.session.id)[1]
            said = turn_texts.texts(
                tx, reading.session, reading.turns, zone, summary=summary, new_facts=facts
            )
        try:
            wanted = [*(fact.search_text for fact in facts), *said.every]
            self.vectors, spent = self.space.documents(wanted)
        except (ProviderError, ConfigError) as error:
            log.warning("session %s: vectors follow later: %s", reading.session.id, error)
            return list(facts)
        if spent is not None:
            reading.usage.append(replace(spent, purpose="embed"))
        with self.database.read() as tx:
            own = apps.find(tx, reading.scope).own
            return [replace(fact, near=self._nearest(tx, own, fact)) for fact in facts]

    def store(self, ctx: Context, written: Sequence[int]) -> None:
        """Store the vectors of ``written`` memories and of the conversation, in the transaction
        that wrote them; those that are missing are made by jobs."""
        service_id = self.space.service_id if self.space is not None else None
        session_id = self.reading.session.id
        turn_texts.write(ctx, session_id, service_id, self.vectors)
        if service_id is None:
            return
        embeddings.put(ctx.tx, service_id, self.vectors.items(), ctx.now)
        # Vectors of facts that were known already, or refused, belong to no row.
        embeddings.remove_unused(ctx.tx, list(self.vectors))
        # The service may have been changed meanwhile.
        in_use = services.in_use(ctx.tx) or service_id
        queue_embedding(ctx, [row[0] for row in embeddings.missing(ctx.tx, in_use, written)])

    def _nearest(
        self, tx: Connection, own: int | None, fact: Fact
    ) -> tuple[tuple[int, float], ...]:
        """The nearest memories in use; replaced values are in the index too."""
        vector = self.vectors.get(new_memory.text_hash(fact.search_text))
        if self.space is None or own is None or vector is None:
            return ()
        found = self.space.index.search(tx, [own], vector, 4 * NEAREST_FACTS)
        rows = memories.by_ids(tx, [own], [i for i, _ in found])
        return tuple((i, cosine) for i, cosine in found if rows[i].active)[:NEAREST_FACTS]
