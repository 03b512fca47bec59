"""How fast memchat searches, adds and deletes, beside other local stores in the same run.

    python -m benchmarks.speed [--sizes 10k/100,10k/1] [--peers none] [--work FOLDER]
    python -m benchmarks.speed --grow --svg FILE

Peers are installed at first need into environments below the work folder, from pinned lists; one
that cannot be, or that does not load in time, is named with the reason and its rate.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.speed import data, plot, table
from benchmarks.speed.data import Size
from benchmarks.speed.measure import Seen, measure
from benchmarks.speed.stores import MEMCHAT, PEERS

SIZES = "10k/100,10k/1,150k/100,150k/1,1M/10k"
GROWING = "1k/10,10k/100,100k/1k,1M/10k,1k/1,10k/1,100k/1"
"""A table that grows while each person keeps a hundred rows; and one person who grows alone."""


def main(argv: list[str] | None = None) -> int:
    """Measure size after size and print each as it is done."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--sizes", help=f"rows/users, default {SIZES}")
    parser.add_argument("--peers", default="all", help="some of them by name, or none")
    parser.add_argument("--work", type=Path, help="where data, stores and environments are kept")
    parser.add_argument("--load-limit", type=float, default=600.0, help="seconds for a peer's load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grow", action="store_true", help=f"memchat alone at {GROWING}")
    parser.add_argument("--svg", type=Path, help="draw the medians to this file")
    parser.add_argument("--json", type=Path, help="append every figure, a line a size")
    args = parser.parse_args(argv)
    work = args.work or Path(tempfile.gettempdir()) / "memchat-bench-speed"
    chosen = "none" if args.grow else args.peers
    names = {entry.name for entry in PEERS} if chosen == "all" else set(chosen.split(","))
    entries = [MEMCHAT, *(entry for entry in PEERS if entry.name in names)]
    drawn: list[tuple[Size, Seen]] = []
    for text in (args.sizes or (GROWING if args.grow else SIZES)).split(","):
        size = Size.of(text)
        place = data.make(work / "data", size, args.seed)
        seen = measure(entries, size, place, work, rounds=args.rounds, limit=args.load_limit)
        print(table.of_size(size, seen), flush=True)
        print()
        if args.json:
            with args.json.open("a") as file:
                record = {"size": text, "seen": [one.as_json() for one in seen]}
                file.write(json.dumps(record) + "\n")
        if seen[0].search:
            drawn.append((size, seen[0]))
    if args.svg:
        args.svg.write_text(plot.svg(drawn))
    return 0


if __name__ == "__main__":
    sys.exit(main())
