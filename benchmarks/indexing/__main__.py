"""How fast many memos are indexed beside the bare encoder, and what a kill -9 costs.

    python -m benchmarks.indexing [--only pace|kills] [--memos 10000] [--model minilm]

Pace: chunks a second as a share of what the encoder alone does before and after, by the clock and
by processor time; the second holds on a busy machine too. Kills: processes are killed in the middle
and started anew until all memos are in; then nothing may be missing, and no text may have been
embedded whose vector was on disk already.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.indexing import runs
from memchat.providers.local import available


def main(argv: list[str] | None = None) -> int:
    """Run and print; 1 where a goal was missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.indexing", description=__doc__)
    parser.add_argument("--only", choices=("pace", "kills"))
    parser.add_argument("--memos", type=int, default=10_000)
    parser.add_argument("--model", choices=("minilm", "hash"), default="minilm")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    if args.model == "minilm" and not available():
        print("MiniLM is missing; run memchat services fetch minilm", file=sys.stderr)
        return 1
    good = True
    if args.only != "kills":
        with tempfile.TemporaryDirectory(prefix="memchat-indexing-") as folder:
            good = runs.pace(Path(folder), args.memos, args.model)
    if args.only != "pace":
        with tempfile.TemporaryDirectory(prefix="memchat-indexing-") as folder:
            done = runs.kills(Path(folder), args.memos, args.model, args.kills, args.seed)
            good = done and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
