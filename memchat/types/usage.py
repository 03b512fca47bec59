"""Tokens, cost and time of the calls to providers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens, cost and time of one call to a provider. ``cost_usd`` is None if the price is not
    known."""

    purpose: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The sum over calls with the same purpose and model."""

    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """None if no call's price is known."""
    seconds: float
