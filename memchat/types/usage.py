"""Tokens, cost and time of the calls to providers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call to a provider took. ``cost_usd`` is None where no price is known."""

    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """Usage summed over calls with one purpose and model."""

    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """None where no call's price is known."""
    seconds: float
