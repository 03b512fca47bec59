"""Prompts for a blind reader, and the count of what a blind judge saw in the replies.

    python -m benchmarks.recall.everyday [--data DIR] (--ask FOLDER | --answers FOLDER)

``--ask`` writes the prompts, and for whom they are, to FOLDER. When the replies stand beside them,
``--answers`` writes what a judge reads to FOLDER/judge; when the verdicts stand there, it counts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.recall.everyday import blind, lives
from benchmarks.recall.feed import Cached
from memchat.providers.local import MiniLMEmbedder, available


def main() -> int:
    """Write, or count and print; 1 where MiniLM is not there, 2 where a verdict cannot be read."""
    parser = argparse.ArgumentParser(prog="benchmarks.recall.everyday", description=__doc__)
    parser.add_argument("--data", type=Path, default=lives.OURS, help="has the people's two files")
    does = parser.add_mutually_exclusive_group(required=True)
    does.add_argument("--ask", type=Path, metavar="FOLDER", help="write the prompts there")
    does.add_argument("--answers", type=Path, metavar="FOLDER", help="read the replies there")
    args = parser.parse_args()
    people = lives.read(args.data)
    if args.answers:
        try:
            for line in blind.answers(people, args.answers):
                print(line)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        return 0
    if not available():
        print("MiniLM is missing; run memchat services fetch minilm", file=sys.stderr)
        return 1
    embedder = Cached(MiniLMEmbedder(None))
    count = blind.ask(embedder, people, args.ask)
    embedder.save()
    print(f"{count} prompts are in {args.ask}; README.txt there says what to do with them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
