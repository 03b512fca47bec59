"""Many ids, a batch of them for each transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic

from memchat.types import OnProgress, Progress

BATCH = 100
"""Memories changed in one transaction: other writers wait for no more than that."""


def batches(
    memory_ids: Iterable[int], progress: OnProgress | None = None
) -> Iterable[Sequence[int]]:
    """The ids, each once, in batches; ``progress`` is called when a batch is done."""
    ids, began = sorted(set(memory_ids)), monotonic()
    for first in range(0, len(ids), BATCH):
        batch = ids[first : first + BATCH]
        yield batch
        if progress is not None:
            progress(Progress(first + len(batch), len(ids), monotonic() - began))
