"""What a filter costs a search: 10,000 facts of one person, of which it leaves one in a hundred.

    python -m benchmarks.filters

Prints the medians of the same questions with and without a filter by metadata, in turns.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps, details, schema
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory, search_text
from memchat.providers.embedders import HashEmbedder
from memchat.types import Scope

FACTS, GROUPS, ROUNDS = 10_000, 100, 300
COLOURS = ("red", "green", "blue", "grey", "white", "black", "brown")


def fill(mc: MemChat) -> None:
    """The facts, each with its group noted beside it."""
    with mc._assembly.database.write() as tx:
        own, cause = apps.ensure(tx, Scope("ana")).own, Cause("user", "added by hand")
        for n in range(FACTS):
            key, value = "boat", f"a {COLOURS[n % 7]} boat, the {n}th of the harbour {n % 311}"
            words = search_text(key, value, tx.now, tx.zone)
            new = NewMemory("fact", key, value, True, words, tx.now, "manual")
            memory_id = changes.add(tx, own, new, cause)
            details.put(tx, schema.memories, memory_id, {"group": str(n % GROUPS)})
    mc.jobs.run()


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        with MemChat(settings=settings, embedder=HashEmbedder()) as mc:
            fill(mc)
            ana, taken = mc.user("ana"), {True: list[float](), False: list[float]()}
            for n in range(ROUNDS):
                question = f"which {COLOURS[n % 7]} boat of the harbour {n % 311}?"
                for narrowed, times in taken.items():
                    began = time.perf_counter()
                    ana.search(question, metadata={"group": n % GROUPS} if narrowed else {})
                    times.append((time.perf_counter() - began) * 1000)
    with_it, without = median(taken[True]), median(taken[False])
    print(f"with a filter {with_it:.2f} ms, without {without:.2f} ms: {with_it / without:.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
