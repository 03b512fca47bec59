"""How much of what was said is found again, through the public search, beside plain searches.

    python -m benchmarks.recall --data DIR [--only PARTS]

``DIR`` holds ``locomo_dev.json`` and ``xquad_en.json``; neither is part of the project. The part
``everyday`` needs neither; its people are the project's own, or those of DIR where it has some.
Recall of a question is the share of its evidence turns that the first k hits cover: a message
covers itself, a fact the turns it was drawn from. Vectors are kept in the folder for temporary
files between runs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.recall import data, floors, found, notes, paragraphs
from benchmarks.recall.everyday import lives
from benchmarks.recall.everyday import table as everyday
from benchmarks.recall.feed import Cached
from memchat.providers import Embedder
from memchat.providers.local import MiniLMEmbedder, available

PARTS = ("everyday", "floors", "notes", "paragraphs", "together", *found.STORES)


def main() -> int:
    """Measure and print; 1 where there is nothing to measure with."""
    parser = argparse.ArgumentParser(prog="benchmarks.recall", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", help=f"some of: {'; '.join(PARTS)}; with semicolons between")
    args = parser.parse_args()
    only = [part.strip() for part in args.only.split(";")] if args.only else []
    if unknown := set(only) - set(PARTS):
        parser.error(f"there is no part called {', '.join(sorted(unknown))}")
    for name in () if only == ["everyday"] else ("locomo_dev.json", "xquad_en.json"):
        if not (args.data / name).is_file():
            print(
                f"{args.data / name} is not there; nothing is measured. "
                'Without it there is ARGS="--only everyday".',
                file=sys.stderr,
            )
            return 1
    if not available():
        print("MiniLM is missing; run memchat services fetch minilm", file=sys.stderr)
        return 1
    started = time.perf_counter()
    embedder = Cached(MiniLMEmbedder(None))
    try:
        if not only or "everyday" in only:
            everyday.table(embedder, lives.read(args.data), args.data)
        if only != ["everyday"]:
            quoted(embedder, args.data, only)
    finally:
        embedder.save()
    print(f"\n{embedder.new} texts embedded, {time.perf_counter() - started:.0f} s in all")
    return 0


def quoted(embedder: Embedder, folder: Path, only: Sequence[str]) -> None:
    """The parts whose questions speak of what was said: LoCoMo's and the paragraphs'."""
    people = data.people(folder)
    texts, asked = data.paragraphs(folder)
    if not only or {"together", *found.STORES} & set(only):
        found.table(embedder, people, only)
    if not only or "floors" in only:
        floors.table(embedder, people, [text for text, _ in asked[::5]])
    if not only or "paragraphs" in only:
        paragraphs.table(embedder, texts, asked)
    if not only or "notes" in only:
        notes.paragraphs(embedder, texts, asked)
        notes.sessions(embedder, data.people(folder, corrected=True))


if __name__ == "__main__":
    sys.exit(main())
