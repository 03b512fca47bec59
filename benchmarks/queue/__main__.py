"""``python -m benchmarks.queue``: both halves, or one."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.queue import kills


def main() -> int:
    """Run and print; 1 where a job was lost or a goal missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.queue", description=__doc__)
    parser.add_argument("--only", choices=("kills", "pace"))
    parser.add_argument("--jobs", type=int, default=1_500)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    good = True
    if args.only != "pace":
        with tempfile.TemporaryDirectory(prefix="memchat-queue-") as folder:
            outcome = kills.Kills(Path(folder), args.seed).run(args.jobs, args.kills)
        kills.report(outcome)
        good = not outcome.faults
    if args.only != "kills":
        from benchmarks.queue import pace

        good = pace.run(args.rows) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
