"""A store that changes its embedding service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from memchat import MemChat
from memchat.providers.embedders import HashEmbedder
from memchat.search import switch
from memchat.search.switch import EmbeddingServices
from memchat.types import Hit, Usage
from tests.support import private

OLD, NEW, THIRD = "hash/words", "hash/other-96", "hash/third-128"


def cosine_in(model: str, question: str, text: str) -> float:
    """What a question has in common with a text in one service's space."""
    embedder = HashEmbedder(model.removeprefix("hash/"))
    vectors, _ = embedder.embed_documents([question, text])
    return float(vectors[0] @ vectors[1])


def spaces(mc: MemChat, question: str, hits: Sequence[Hit]) -> set[str]:
    """The services in whose space every one of these facts has the cosine it was found with."""
    with private.database(mc).read() as tx:
        rows = tx.connection.exec_driver_sql(
            "SELECT owner_id, text FROM passages WHERE kind = 'fact'"
        ).all()
    texts = {row[0]: row[1] for row in rows}
    return {
        model
        for model in (OLD, NEW, THIRD)
        if all(
            hit.cosine == pytest.approx(cosine_in(model, question, texts[hit.id]), abs=1e-5)
            for hit in hits
            if hit.kind == "memory" and hit.cosine is not None
        )
    }


class Between(HashEmbedder):
    """Does something each time before it answers, as others would meanwhile."""

    def __init__(self, model: str, does: Callable[[int], None]) -> None:
        super().__init__(model.removeprefix("hash/"))
        self.does = does
        self.batches: list[list[str]] = []

    def embed_documents(self, texts: Sequence[str]) -> tuple[np.ndarray, Usage]:
        self.batches.append(list(texts))
        self.does(len(self.batches))
        return super().embed_documents(texts)


def migrate(mc: MemChat, embedder: HashEmbedder, **how: Any) -> switch.MigrationResult:
    """As ``mc.migrate``, with an embedder of the test's own."""
    how.setdefault("tell", lambda progress: None)
    switch = EmbeddingServices(private.database(mc), mc.settings, embedder)
    return switch.migrate(None, dimensions=None, max_tokens=None, **how)


RIVERS = ("Tejo", "Douro", "Mondego", "Minho", "Sado", "Lima", "Vouga")


def found(mc: MemChat, river: str) -> Sequence[Hit]:
    hits = mc.user("ana").search(f"{river} flood").hits
    assert hits and river in hits[0].text
    return hits
