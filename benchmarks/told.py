"""The facts of a file of answers with their sentences, one a line, for a reader to judge.

    python -m benchmarks.told FILE [--most 200]

FILE is as ``extract_quality --record`` writes it. The facts are spread evenly over it. A sentence
that code drops, so that name and value are read in its place, stands behind "dropped:".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from memchat.errors import ExtractionError
from memchat.learn import candidate
from memchat.learn.values import true_sentence


def lines(path: Path) -> Iterator[tuple[str, bool]]:
    """Each fact with a sentence as a line, and whether code keeps the sentence."""
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if line.get("purpose", "extract") != "extract":
            continue
        try:
            facts = candidate.parse(line["answer"]).facts
        except ExtractionError:
            continue
        for item in facts:
            said = " … ".join(quote.text for quote in item.quotes)
            kept = true_sentence(item.sentence, item.key, item.value, said)
            if item.sentence:
                told = kept or f"dropped: {item.sentence}"
                shown = (line["case"], f"“{said}”", f"{item.key}: {item.value}", told)
                yield " | ".join(shown), kept is not None


def main() -> None:
    """Print the facts, and how many sentences code keeps."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.told", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--most", type=int, default=200)
    given = parser.parse_args()
    found = list(lines(given.file))
    step = max(1, len(found) // max(1, given.most))
    for line, _ in found[::step][: given.most]:
        print(line)
    print(f"{sum(kept for _, kept in found)} of {len(found)} sentences are kept")


if __name__ == "__main__":
    main()
