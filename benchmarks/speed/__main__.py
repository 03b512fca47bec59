"""How fast memchat searches, adds and deletes, beside other local stores in the same run.

    python -m benchmarks.speed [--sizes 10k/100,10k/1] [--note-sizes 3k/1] [--peers none]
    python -m benchmarks.speed --grow --svg FILE

Sizes are rows/users for memories and rows/types for notes: a search among notes of several types
asks for one of them. Peers are installed at first need into environments below the work folder,
from pinned lists; one that cannot be, or that does not load in time, is named with the reason and
its rate.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.speed import data, plot, table
from benchmarks.speed.data import Kind, Size
from benchmarks.speed.measure import Seen, measure
from benchmarks.speed.stores import MEMCHAT, MEMCHAT_NOTES, NOTE_PEERS, PEERS

SIZES = "10k/100,10k/1,150k/100,150k/1,1M/10k"
NOTE_SIZES = "300/1,3k/1,30k/1,150k/1,300/10,3k/10,30k/10,150k/10"
GROWING = "1k/10,10k/100,100k/1k,1M/10k,1k/1,10k/1,100k/1"
"""A table that grows while each person keeps a hundred rows; and one person who grows alone."""


def main(argv: list[str] | None = None) -> int:
    """Measure size after size and print each as it is done."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--sizes", help=f"of memories: rows/users, default {SIZES}")
    parser.add_argument("--note-sizes", help=f"of notes: rows/types, default {NOTE_SIZES}")
    parser.add_argument("--peers", default="all", help="some of them by name, or none")
    parser.add_argument("--work", type=Path, help="where data, stores and environments are kept")
    parser.add_argument("--load-limit", type=float, default=600.0, help="seconds for a peer's load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grow", action="store_true", help=f"memchat alone at {GROWING}")
    parser.add_argument("--svg", type=Path, help="draw the medians of memories to this file")
    parser.add_argument("--json", type=Path, help="append every figure, a line a size")
    args = parser.parse_args(argv)
    drawn: list[tuple[Size, Seen]] = []
    for kind, text in _sizes(args):
        size = Size.of(text)
        seen = _measured(kind, size, args)
        print(table.of_size(size, seen, kind), flush=True)
        print()
        if args.json:
            with args.json.open("a") as file:
                figures = [one.as_json() for one in seen]
                record = {"rows": kind.name, "size": text, "seen": figures}
                file.write(json.dumps(record) + "\n")
        if seen[0].search and kind is data.MEMORIES:
            drawn.append((size, seen[0]))
    if args.svg:
        args.svg.write_text(plot.svg(drawn))
    return 0


def _sizes(args: argparse.Namespace) -> list[tuple[Kind, str]]:
    """What is measured: the sizes that were asked for, else all."""
    if args.grow:
        return [(data.MEMORIES, text) for text in (args.sizes or GROWING).split(",")]
    every = not (args.sizes or args.note_sizes)
    memories, notes = (SIZES, NOTE_SIZES) if every else (args.sizes or "", args.note_sizes or "")
    given = [(data.MEMORIES, text) for text in memories.split(",")]
    given += [(data.NOTES, text) for text in notes.split(",")]
    return [(kind, text) for kind, text in given if text]


def _measured(kind: Kind, size: Size, args: argparse.Namespace) -> list[Seen]:
    work = args.work or Path(tempfile.gettempdir()) / "memchat-bench-speed"
    ours, peers = (MEMCHAT, PEERS) if kind is data.MEMORIES else (MEMCHAT_NOTES, NOTE_PEERS)
    chosen = "none" if args.grow else args.peers
    names = {entry.name for entry in PEERS} if chosen == "all" else set(chosen.split(","))
    entries = [ours, *(entry for entry in peers if entry.name in names)]
    place = data.make(work / "data", size, args.seed, kind)
    return measure(entries, size, place, work, rounds=args.rounds, limit=args.load_limit)


if __name__ == "__main__":
    sys.exit(main())
