"""Sixty faults of a provider: what the person saw, and whether all of theirs was kept.

    python -m benchmarks.provider_faults [--only WORDS]

Ends with 1 where anything was lost.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from benchmarks.provider_faults import campaign
from benchmarks.provider_faults.campaign import Outcome
from benchmarks.provider_faults.faults import every

SAW_WIDTH = 96


def main() -> int:
    """Play all of them, print a line for each; 1 where anything was lost."""
    parser = argparse.ArgumentParser(description="what a provider's faults cost a person")
    parser.add_argument("--only", default="", help="those that have these words in their name")
    args = parser.parse_args()
    os.environ |= campaign.KEY
    began = time.monotonic()
    outcomes = campaign.run([fault for fault in every() if args.only in fault.name])
    for line in table(outcomes):
        print(line)
    print(f"{time.monotonic() - began:.0f} s")
    return int(any(not outcome.kept for outcome in outcomes))


def table(outcomes: list[Outcome]) -> list[str]:
    """A line for each fault, and how many lost something."""
    lines = [f"{'at':8}{'fault':31}{'kept':6}what the person saw"]
    for outcome in outcomes:
        saw = outcome.saw or "nothing out of order"
        kept = "yes" if outcome.kept else "NO"
        lines.append(f"{outcome.fault.at:8}{outcome.fault.name:31}{kept:6}{saw[:SAW_WIDTH]}")
        lines += [f"{'':14}lost: {what}" for what in outcome.lost]
    lost = sum(not outcome.kept for outcome in outcomes)
    return [*lines, f"\n{len(outcomes)} faults, {lost} lost"]


if __name__ == "__main__":
    sys.exit(main())
