"""Everyday facts, held out: how many of an honest person's plain sentences the gate believes.

The lines were written before the gate was run on them and it is never tuned on them, so they say
what a person meets. There is no goal but the number.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.lifecycle.figure import Figure
from memchat.learn.candidate import Candidate, Quote, Turn
from memchat.learn.gate import judge

CORPUS = Path(__file__).parents[2] / "tests" / "data" / "honest_heldout.jsonl"
_AT = datetime(2026, 11, 20, 10, tzinfo=UTC)


def corpus() -> list[dict[str, Any]]:
    """The held-out lines: what was said, and the fact that a good extractor proposes."""
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def outcome(row: dict[str, Any]) -> str:
    """What the gate says to one line: accept, review or refuse."""
    turn = Turn("u1", "user", row["said"], _AT, 1)
    quotes = (Quote(msg="u1", text=row["quote"]),)
    candidate = Candidate(quotes=quotes, type=row["type"], key=row["key"], value=row["value"])
    return judge(candidate, [turn], (), prompt_text="", injected=()).outcome


def measure() -> list[Figure]:
    """One line: accepted, waiting for a person, and refused, counted apart."""
    seen = Counter(map(outcome, corpus()))
    total = sum(seen.values())
    rest = f"{seen['review']} wait for a person, {seen['refuse']} are refused"
    figure = Figure(
        name="honest everyday facts accepted (held out)",
        seen=f"{seen['accept']} of {total}",
        goal="the number",
        met=None,
        note=f"{rest}; written before the gate was run on them, never tuned on",
    )
    return [figure]
