"""The expected cost of adding cues to the facts that have none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CuePlan:
    """What giving cues to the facts that have none is going to take, about."""

    facts: int
    asked: int
    """Those of them that the model is asked about; the others get the cues of their key."""
    tokens: int
    cost_usd: float | None
    """None where the model has no known price."""
    model: str
