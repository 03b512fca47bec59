"""Chunks of notes in the index: a large shard is coarse, and what it gives is exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from memchat import MemChat
from memchat.config import Settings
from memchat.search import vector_index as index_module
from memchat.testing import HashEmbedder
from tests.support import private

ANIMALS = ("goat", "hare", "crane", "otter")
DOINGS = ("sleeps", "drinks", "hides", "calls", "waits")


@pytest.mark.parametrize("wanted", [None, "even"])
def test_many_notes_are_found_as_few_are_with_a_filter_and_without(
    tmp_path: Path, monkeypatch, wanted: str | None
) -> None:
    seen = []
    for coarse_from in (10_000, 15):
        monkeypatch.setattr(index_module, "COARSE_FROM", coarse_from)
        settings = Settings(home=tmp_path / str(coarse_from), timezone="UTC")
        with MemChat(settings=settings, embedder=HashEmbedder()) as mc:
            notes = mc.user("ana").notes
            for n, (animal, doing) in enumerate((a, d) for a in ANIMALS for d in DOINGS):
                kind = ("even", "odd")[n % 2]
                notes.add(f"The {animal} {doing} by the river.", type=kind, external_id=n)
        with MemChat(settings=settings, embedder=HashEmbedder()) as mc:
            found = [
                [(hit.source_id, hit.source_type, hit.score) for hit in result.hits]
                for animal in ANIMALS
                for result in [mc.user("ana").notes.search(f"{animal} drinks", type=wanted)]
            ]
            space, _ = private.assembly(mc).embedding_space()
            assert space is not None
            ((_, shard),) = private.shards(space.index).items()
        assert shard.coarse == (coarse_from == 15)
        seen.append(found)
    few, many = seen
    assert few == many and all(few)
    assert {kind for hits in few for _, kind, _ in hits} == (
        {wanted} if wanted else {"even", "odd"}
    )
