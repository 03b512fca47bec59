"""What it takes to answer a question from notes."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.types.effort import effort


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """The calls of a model that an answer takes, with their tokens and cost; all are rough."""

    calls: int
    """0 where no model is asked."""
    tokens: int
    cost_usd: float | None
    """US dollars; 0 for a model of this machine, None if the price is not known."""
    model: str

    @property
    def effort(self) -> str:
        """What it takes, in words: "12 calls, about $0.08"."""
        return effort(self.calls, self.tokens, self.cost_usd)
