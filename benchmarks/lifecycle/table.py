"""The table: every line, which model took part, and whether the goals are met."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.answers import Answers
from benchmarks.lifecycle import (
    attacks,
    duplicates,
    faults,
    forgotten,
    honest,
    judged,
    leaks,
    loop,
    memorybench,
    merges,
    phrases,
    secrets,
    stale,
)
from benchmarks.lifecycle.figure import Figure

BASELINE = "merge at cosine >= .85 / .92"


def every_part(
    answers: Answers | None, data: Path | None, secret_lines: Path | None = None
) -> dict[str, Callable[[], list[Figure]]]:
    """What the table is made of, in its order."""
    return {
        "merges": merges.measure,
        "judged": lambda: judged.measure(answers),
        "duplicates": duplicates.measure,
        "stale": stale.measure,
        "forgotten": forgotten.measure,
        "leaks": leaks.measure,
        "faults": faults.measure,
        "loop": loop.measure,
        "phrases": phrases.measure,
        "attacks": attacks.measure,
        "honest": honest.measure,
        "secrets": lambda: secrets.measure(secret_lines),
        "memorybench": lambda: memorybench.measure(data),
    }


def make(parts: dict[str, Callable[[], list[Figure]]]) -> list[Figure]:
    """Measure part after part; says on standard error how long each took."""
    figures = []
    for name, measure in parts.items():
        began = time.monotonic()
        figures += measure()
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return figures


def as_text(figures: Sequence[Figure]) -> str:
    """The table for people: one line a figure, and its note below it."""
    head = ("figure", "seen", "goal", "met", BASELINE, "by")
    rows = [(f.name, f.seen, f.goal, _met(f), f.baseline, f.by) for f in figures]
    wide = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip()
             for row in (head, tuple("-" * w for w in wide))]  # fmt: skip
    for figure, row in zip(figures, rows, strict=True):
        cells = zip(row, wide, strict=True)
        lines.append("  ".join(cell.ljust(w) for cell, w in cells).rstrip())
        lines += [f"    {figure.note}"] if figure.note else []
    missed = [figure.name for figure in figures if figure.met is False]
    lines.append(f"\ngoals missed: {', '.join(missed) if missed else 'none'}")
    return "\n".join(lines)


def as_json(figures: Sequence[Figure]) -> str:
    """The same for programs."""
    return json.dumps([asdict(figure) for figure in figures], ensure_ascii=False, indent=1)


def is_missed(figures: Sequence[Figure]) -> bool:
    """Whether any goal is missed; what was not measured misses none."""
    return any(figure.met is False for figure in figures)


def _met(figure: Figure) -> str:
    return {True: "yes", False: "NO", None: "-"}[figure.met]
