"""The expected cost of adding cues to the facts that have none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CuePlan:
    """About what it will take to add cues to the facts without any."""

    facts: int
    asked: int
    """How many of them the model is asked about. The others get the cues of their key."""
    tokens: int
    cost_usd: float | None
    """None if the price of the model is not known."""
    model: str
