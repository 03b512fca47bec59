"""What was seen, as a table: memchat's figures with their goals, and everybody's ratio to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.speed.data import MEMORIES, Kind, Size
from benchmarks.speed.measure import Seen

SEARCH_GOALS = {"10k/100": 0.8, "150k/100": 1.0, "10k/1": 2.0, "150k/1": 12.0}
WRITE_GOAL = 1.0
EXACT_GOAL = 0.999
OPEN_GOAL = 500.0
REBUILD_GOAL = 2_000.0
RSS_GOALS = {10_000: 120.0, 150_000: 350.0}
NOTE_SEARCH_GOALS = {300: 2.0, 3_000: 5.0, 30_000: 50.0, 150_000: 250.0}
RECALL_GOAL = 0.99
OPENED_GOAL = 50.0
BYTES_GOAL = 3 * 1024
_COLUMNS = (
    "store", "finds", "search p50", "p95", "ratio", "exact", "recall", "of 10",
    "add", "p95", "ratio", "delete", "p95", "ratio", "open+1st", "RSS MB", "rows/s",
)  # fmt: skip


def of_size(size: Size, seen: Sequence[Seen], kind: Kind = MEMORIES) -> str:
    """Everybody at one size, side by side; ms, and how many times memchat's median it is."""
    ours = seen[0]
    lines = [_COLUMNS, *(_line(one, ours) for one in seen if one.search)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(_COLUMNS))]
    text = [f"{size}: {size.rows} {kind.name} of {size.users} {kind.groups}"]
    text += ["  ".join(_padded(line, widths)).rstrip() for line in lines]
    text += [f"{one.store}: {one.why_not}" for one in seen if one.why_not]
    beside = goals if kind is MEMORIES else note_goals
    return "\n".join([*text, "", *(beside(size, ours) if ours.search else ())])


def note_goals(size: Size, ours: Seen) -> list[str]:
    """The figures of memchat's notes beside what was aimed at."""
    figures: list[tuple[str, float | None, str, float | None, bool]] = [
        ("search p50", _p(ours.search, 50), "ms", NOTE_SEARCH_GOALS.get(size.rows), True),
        ("… p95", _p(ours.search, 95), "ms", None, True),
        ("… p05", _p(ours.search, 5), "ms", None, True),
        ("the first search", _p(ours.cold, 50), "ms", None, True),
        ("recall of the ten nearest", ours.recall, "", RECALL_GOAL, False),
        ("durable add p50", _p(ours.add, 50), "ms", None, True),
        ("delete and purge p50", _p(ours.delete, 50), "ms", None, True),
        ("open and first search", ours.open_ms, "ms", None, True),
        ("memory that opening adds", ours.opened_mb, "MB", OPENED_GOAL, True),
        ("index rebuilt from rows", ours.rebuild_ms, "ms", None, True),
        ("resident memory", ours.rss, "MB", None, True),
        ("… at most, meanwhile", ours.peak, "MB", None, True),
    ]
    return [_goal(*figure) for figure in figures if figure[1] is not None]


def goals(size: Size, ours: Seen) -> list[str]:
    """memchat's figures beside what was aimed at."""
    small = size.rows >= 10_000  # below, what every store has anyway outweighs its rows
    p50 = float(np.percentile(ours.search, 50))
    figures: list[tuple[str, float | None, str, float | None, bool]] = [
        ("search p50", p50, "ms", SEARCH_GOALS.get(str(size)), True),
        ("… p05", _p(ours.search, 5), "ms", None, True),
        ("a person's first search p50", _p(ours.cold, 50), "ms", None, True),
        ("the ten nearest are exact", ours.exact, "", EXACT_GOAL, False),
        ("durable add p50", _p(ours.add, 50), "ms", WRITE_GOAL, True),
        ("… p05", _p(ours.add, 5), "ms", None, True),
        ("delete (hidden) p50", _p(ours.delete, 50), "ms", WRITE_GOAL, True),
        ("… p05", _p(ours.delete, 5), "ms", None, True),
        ("vector of an added row", ours.embed, "ms", None, True),
        ("purge behind a deletion", ours.purge, "ms", None, True),
        ("open and first search", ours.open_ms, "ms", OPEN_GOAL, True),
        ("… from the process's start", ours.start_ms, "ms", None, True),
        ("index rebuilt from rows", ours.rebuild_ms, "ms", REBUILD_GOAL, True),
        ("resident memory", ours.rss, "MB", RSS_GOALS.get(size.rows), True),
        ("… at most, meanwhile", ours.peak, "MB", None, True),
        (
            "database a memory",
            ours.database / size.rows if ours.database and small else None,
            "bytes",
            BYTES_GOAL,
            True,
        ),
    ]
    return [_goal(*figure) for figure in figures if figure[1] is not None]


def _goal(name: str, value: float | None, unit: str, goal: float | None, most: bool) -> str:
    assert value is not None
    text = f"  {name:30}{_number(value):>9} {unit}"
    if goal is None:
        return text
    met = value <= goal if most else value >= goal
    return f"{text:47} goal {'≤' if most else '≥'} {goal:g}{'' if met else '  MISSED'}"


def _line(one: Seen, ours: Seen) -> tuple[str, ...]:
    def three(pick: Callable[[Seen], list[float]]) -> tuple[str, str, str]:
        mine, theirs = _p(pick(ours), 50), _p(pick(one), 50)
        if mine is None or theirs is None:
            return "", "", ""
        return _number(theirs), _number(_p(pick(one), 95)), f"{theirs / mine:.1f}x"

    search, add, delete = (
        three(lambda seen: seen.search),
        three(lambda seen: seen.add),
        three(lambda seen: seen.delete),
    )
    return (
        one.store, one.finds, *search, _share(one.exact), _share(one.recall),
        _number(one.returned), *add, *delete, _number(one.open_ms), _number(one.rss),
        f"{one.rows / max(one.load_seconds, 1e-9):.0f}",
    )  # fmt: skip


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if n < 2 else cell.rjust(width)
        for n, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def _p(values: Sequence[float], share: int) -> float | None:
    return float(np.percentile(values, share)) if values else None


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"
