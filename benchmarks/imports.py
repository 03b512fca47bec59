"""Importing a ChatGPT export: messages a second, the peak of memory, and what a second import adds.

    python -m benchmarks.imports [--conversations 10000] [--messages 50] [--undo]

The export is made up, in shards in a zip file; messages have 10 to 120 words. No vectors are made.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from memchat import MemChat
from memchat.config import Settings

SHARD = 200
START = 1_640_000_000.0
WORDS = ("tea", "boat", "harbour", "grey", "rain", "plan", "train", "letter", "music", "Lisbon")


def conversation(chance: random.Random, number: int, length: int) -> dict[str, Any]:
    """One conversation, a chain of so many messages."""
    nodes: dict[str, Any] = {}
    parent, at = None, START + number * 3_600
    for n in range(length):
        name, words = f"{number}-{n}", chance.choices(WORDS, k=chance.randint(10, 120))
        said = {
            "author": {"role": ("user", "assistant")[n % 2]},
            "content": {"content_type": "text", "parts": [f"{number} {n} {' '.join(words)}"]},
            "create_time": at + n * 30,
            "recipient": "all",
        }
        nodes[name] = {"id": name, "parent": parent, "children": [], "message": said}
        parent = name
    made = {"conversation_id": f"c{number}", "title": f"Talk {number}", "create_time": at}
    return made | {"mapping": nodes, "current_node": parent}


def write(file: Path, conversations: int, length: int) -> None:
    """The export, the newest conversation first."""
    chance = random.Random(1)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for shard, first in enumerate(range(conversations, 0, -SHARD)):
            numbers = range(first, max(first - SHARD, 0), -1)
            with packed.open(f"conversations-{shard:03}.json", "w") as stream:
                for place, number in enumerate(numbers):
                    one = json.dumps(conversation(chance, number, length))
                    stream.write(f"{',' if place else '['}{one}".encode())
                stream.write(b"]")


def peak() -> float:
    """The most memory that the process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=50)
    parser.add_argument("--undo", action="store_true", help="measure taking it back, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder) / "export.zip"
        write(export, given.conversations, given.messages)
        settings = Settings(home=Path(folder) / "store", embed_model="none")
        with MemChat(settings=settings) as mc:
            ana = mc.user("ana")
            print(f"before: {peak():.0f} MB")
            done = None
            for what, more in (("preview", {"dry_run": True}), ("import", {}), ("again", {})):
                began = time.perf_counter()
                done = ana.import_history(export, learn="later", **more)  # type: ignore[arg-type]
                took = time.perf_counter() - began
                pace = done.messages / took
                print(
                    f"{what}: {done.messages:,} messages in {took:.1f} s, {pace:,.0f} a second; "
                    f"peak {peak():.0f} MB; added {dict(done.added) or 0}"
                )
            if given.undo:
                began = time.perf_counter()
                deleted = ana.undo_import("last")
                print(f"undo: {deleted.sessions:,} sessions in {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
