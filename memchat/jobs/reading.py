"""A conversation that a worker is reading, as far as it has got."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from memchat.store.jobs import Claim
from memchat.types import Learned


@dataclass(frozen=True, slots=True)
class Reading:
    """A claimed reading, and the windows that are still to be read."""

    claim: Claim
    windows: Generator[None, None, Learned]

    def go_on(self) -> Learned | None:
        """Read on to the next pause; what the conversation taught, or None if there is more."""
        try:
            next(self.windows)
        except StopIteration as end:
            learned: Learned = end.value
            return learned
        return None
