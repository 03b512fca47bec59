"""Cost against the table and against a person's own rows, drawn as SVG by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import numpy as np

from benchmarks.speed.data import Size
from benchmarks.speed.measure import Seen

_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 400, 60, 40
_X = (3.0, 6.0)
_Y = (-1.0, 2.0)
_COLOURS = ("#1b6ca8", "#c0392b")


def svg(seen: Sequence[tuple[Size, Seen]]) -> str:
    """Median search time over the rows of the table, both axes logarithmic: one line where each
    person has a hundred of them, one where they are all one person's."""
    names = ("100 rows a person", "all rows one person's")
    groups = ([s for s in seen if s[0].users > 1], [s for s in seen if s[0].users == 1])
    parts = [*_axes()]
    for number, (name, group) in enumerate(zip(names, groups, strict=True)):
        colour = _COLOURS[number]
        points = sorted((size.rows, float(np.median(one.search))) for size, one in group)
        places = [_place(rows, ms) for rows, ms in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), (_, ms) in zip(places, points, strict=True):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
            parts.append(_text(x, y - 8, f"{ms:.2f}", colour))
        parts.append(_text(_LEFT + 110, _TOP + 16 + 16 * number, name, colour))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="11">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
    )


def _axes() -> list[str]:
    parts = [_text(_WIDTH / 2, 20, "memchat: median of a hybrid search, ms", "black")]
    for power in range(int(_X[0]), int(_X[1]) + 1):
        x, _ = _place(10**power, 1)
        parts.append(_line(x, _TOP, x, _HEIGHT - 40))
        parts.append(_text(x, _HEIGHT - 24, f"{10**power:,}", "black"))
    for power in range(int(_Y[0]), int(_Y[1]) + 1):
        _, y = _place(1000, 10.0**power)
        parts.append(_line(_LEFT, y, _WIDTH - 30, y))
        parts.append(_text(_LEFT - 22, y + 4, f"{10.0**power:g}", "black"))
    return [*parts, _text(_WIDTH / 2, _HEIGHT - 6, "memories in the store", "black")]


def _place(rows: float, ms: float) -> tuple[float, float]:
    across = (log10(rows) - _X[0]) / (_X[1] - _X[0])
    up = (log10(ms) - _Y[0]) / (_Y[1] - _Y[0])
    return _LEFT + across * (_WIDTH - 30 - _LEFT), _HEIGHT - 40 - up * (_HEIGHT - 40 - _TOP)


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, words: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{colour}">{words}</text>'
