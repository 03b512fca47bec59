"""What several calls of a model take, in words."""

from __future__ import annotations


def effort(calls: int, tokens: int, cost_usd: float | None) -> str:
    """Calls and their price: "62 calls, about $0.12". Where the price is not known (None) their
    tokens stand in its place."""
    price = f"about ${cost_usd:.2f}" if cost_usd else "free"
    if cost_usd is None:
        price = f"about {tokens:,} tokens"
    elif 0 < cost_usd < 0.01:
        price = "less than $0.01"
    return f"{calls:,} {'call' if calls == 1 else 'calls'}, {price}"
