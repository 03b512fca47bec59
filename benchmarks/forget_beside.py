"""How long forgetting a fact takes beside many replies whose prompts held the list of all facts.

    python -m benchmarks.forget_beside [--replies 1000]

The facts are forgotten one after the other, each with its purge, in a store without a reply and in
one with so many; both in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from memchat import MemChat, Settings
from memchat.testing import HashEmbedder, ScriptedModel

KEYS = [f"{thing}_{n}" for n in range(5) for thing in ("city", "boat", "hobby", "pet")]
A_CONVERSATION = 50
"""Replies of each conversation."""
FORGOTTEN = 8


def main() -> int:
    """Measure both and print them with their ratio."""
    parser = argparse.ArgumentParser(prog="benchmarks.forget_beside", description=__doc__)
    parser.add_argument("--replies", type=int, default=1000)
    replies = parser.parse_args().replies
    alone, beside = _median_ms(0), _median_ms(replies)
    print(f"a fact forgotten and purged, no reply    {alone:8.1f} ms")
    print(f"beside {replies:6} replies                    {beside:8.1f} ms   {beside / alone:.1f}x")
    return 0


def _median_ms(replies: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel([f"Reply {n} about kettles." for n in range(replies)])
        with MemChat(
            settings=Settings(Path(folder)),
            chat_model=model,
            extract_model=ScriptedModel([]),
            embedder=HashEmbedder(),
        ) as mc:
            return _measured(mc, replies)


def _measured(mc: MemChat, replies: int) -> float:
    ana = mc.user("ana")
    facts = [
        ana.memories.add("fact" if n % 2 else "profile", key, f"value number {n} of {key}")
        for n, key in enumerate(KEYS)
    ]
    mc.jobs.run()
    for first in range(0, replies, A_CONVERSATION):
        chat = ana.chat()
        for n in range(first, min(first + A_CONVERSATION, replies)):
            _ = chat.send(f"What about kettle {n}?").read()
        chat.abandon()
    taken = []
    for fact in facts[4 : 4 + FORGOTTEN]:
        began = time.perf_counter()
        ana.memories.delete(fact.id)
        mc.jobs.run(kinds=("forget",))
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


if __name__ == "__main__":
    raise SystemExit(main())
