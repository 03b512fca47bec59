"""Charts drawn as plain markup: sharp at any width, in the page's own colours and type, read out as
text, and there at once, without a library that takes seconds to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from html import escape

import streamlit as st

LINES = 3
"""Labelled lines across a chart, the ground line among them."""
Days = Sequence[tuple[date, int]]


def area(days: Days, what: str) -> None:
    """A total over time."""
    top = _top(days)
    width = max(len(days) - 1, 1)
    line = [
        (f"{100 * n / width:.2f}%", f"{100 - 100 * count / top:.2f}%")
        for n, (_, count) in enumerate(days)
    ]
    above = ",".join(f"{x} {y}" for x, y in line)
    below = ",".join(f"{x} calc({y} + 2px)" for x, y in reversed(line))
    _chart(
        f'<div class="area" style="clip-path:polygon({above},100% 100%,0 100%)"></div>'
        f'<div class="line" style="clip-path:polygon({above},{below})"></div>',
        days,
        top,
        f"{days[-1][1]:,} {what} on {_day(days[-1][0])}, {days[0][1]:,} on {_day(days[0][0])}",
    )


def columns(days: Days, what: str) -> None:
    """A count for each day."""
    top = _top(days)
    bars = "".join(
        f'<i title="{_day(at)}: {count:,}" style="height:{100 * count / top:.1f}%"></i>'
        for at, count in days
    )
    total = sum(count for _, count in days)
    said = f"{total:,} {what} from {_day(days[0][0])} to {_day(days[-1][0])}"
    _chart(f'<div class="columns">{bars}</div>', days, top, said)


def bars(counts: Mapping[str, int]) -> None:
    """A count for each name; nothing where there are none."""
    if not counts:
        return
    top = max(counts.values())
    rows = "".join(
        f'<li><span>{escape(name)}</span><b><i style="width:{100 * count / top:.1f}%"></i></b>'
        f"<span>{count:,}</span></li>"
        for name, count in counts.items()
    )
    st.html(f'<ul class="memchat-bars">{rows}</ul>')


def _chart(marks: str, days: Days, top: int, said: str) -> None:
    steps = [top * n // (LINES - 1) for n in reversed(range(LINES))]
    scale = "".join(f"<span>{step:,}</span>" for step in steps)
    ends = [days[0][0], days[len(days) // 2][0], days[-1][0]]
    dates = "".join(f"<span>{_day(at)}</span>" for at in ends)
    st.html(
        f'<div class="memchat-chart" role="img" aria-label="{escape(said)}">'
        f'<div class="scale" aria-hidden="true">{scale}</div><div class="plot">{marks}</div>'
        f'<div class="dates" aria-hidden="true">{dates}</div></div>'
    )


def _top(days: Days) -> int:
    """The height of a chart: an even, round number no count is above."""
    most = max(max(count for _, count in days), 2)
    step = max(int(10 ** (len(str(most)) - 1)) // 5, 2)
    return -(-most // step) * step


def _day(at: date) -> str:
    return f"{at.day} {at:%b}"
