"""One process that adds memos to a store: measured, or killed in the middle.

    python -m benchmarks.indexing.child FOLDER MEMOS MODEL [--measure] [--die-after CALLS]

The hashes of the texts that were embedded go to the file ``embedded.PID`` in the folder, a line a
call, so that they survive a kill. The last line of output is what was measured, as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.indexing.memos import memo
from memchat import MemChat
from memchat.config import Settings
from memchat.notes.chunking import token_counter
from memchat.notes.index import Cutter
from memchat.providers import Embedder
from memchat.providers.embedders import HashEmbedder
from memchat.providers.local import MiniLMEmbedder
from memchat.search.passages import text_hash
from memchat.types import NewNote, Progress, Service, Usage

USER = "reader"
STORE = "store"
BATCH = 100
GRACE = 60.0
SAMPLE = 8
"""Batches by which the encoder alone is measured, before and after."""


class Watched:
    """An embedder that writes down what it was asked for, and ends its process when told to."""

    def __init__(self, other: Embedder, diary: Path, die_after: int | None, delay: float) -> None:
        self.service: Service = other.service
        self.calls = self.texts = 0
        self._other = other
        self._diary = diary.open("a", buffering=1)
        self._die_after = die_after
        self._delay = delay

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        """The vectors of the other. A kill falls after the last call: while its vectors are
        written, or during the next; ``delay`` is a share of the time that the call took."""
        if self.calls == self._die_after:
            time.sleep(GRACE)  # the kill is coming
        began = time.perf_counter()
        answer = self._other.embed_documents(texts)
        took = time.perf_counter() - began
        self.calls += 1
        self.texts += len(texts)
        print(*map(text_hash, texts), file=self._diary)
        if self.calls == self._die_after:
            threading.Timer(self._delay * took, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return answer

    def embed_query(self, text: str) -> tuple[Any, Usage]:
        """Of the other."""
        return self._other.embed_query(text)

    def count_tokens(self, text: str) -> int:
        """As the other counts them."""
        return token_counter(self._other)(text)


def main() -> int:
    """Add all memos; those that are there already are left as they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("memos", type=int)
    parser.add_argument("model", choices=("minilm", "hash"))
    parser.add_argument("--measure", action="store_true", help="the encoder alone as well")
    parser.add_argument("--die-after", type=int)
    parser.add_argument("--delay", type=float, default=0.0)
    args = parser.parse_args()
    other: Embedder = MiniLMEmbedder(args.folder) if args.model == "minilm" else HashEmbedder()
    diary = args.folder / f"embedded.{os.getpid()}"
    embedder = Watched(other, diary, args.die_after, args.delay)
    texts = [memo(number) for number in range(args.memos)]
    chunks = _chunks(embedder, texts) if args.measure else []
    alone = [_alone(other, chunks)] if chunks else []
    settings = Settings(home=args.folder / STORE, timezone="UTC")
    with MemChat(settings=settings, embedder=embedder) as mc:
        began, worked = time.perf_counter(), time.process_time()
        notes = [NewNote(text, external_id=number) for number, text in enumerate(texts)]
        mc.user(USER).notes.add_many(notes, on_progress=_told)
        seconds, work = time.perf_counter() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    alone += [_alone(other, chunks[::-1])] if chunks else []
    print(
        json.dumps(
            {"texts": embedder.texts, "seconds": seconds, "work": work, "peak": peak}
            | {"alone": [one[0] for one in alone], "alone_work": [one[1] for one in alone]}
        )
    )
    return 0


def _told(progress: Progress) -> None:
    print(f"\r{progress.done} of {progress.total} memos", end="", file=sys.stderr, flush=True)


def _chunks(embedder: Watched, texts: Sequence[str]) -> list[str]:
    """The chunks of so many memos as the encoder alone is measured with, and those of the last."""
    cutter, found = Cutter(embedder), []
    for text in (*texts[: SAMPLE * BATCH // 2], *texts[-SAMPLE * BATCH // 2 :]):
        found += [text[p.offset : p.offset + p.size] for p in cutter.parts(text, "memo")]
    return found


def _alone(embedder: Embedder, chunks: Sequence[str]) -> tuple[float, float]:
    """Chunks a second of the encoder alone, in batches as the queue sends them: by the clock, and
    by processor time."""
    embedder.embed_documents(chunks[:2])
    some = chunks[: SAMPLE * BATCH]
    began, worked = time.perf_counter(), time.process_time()
    for start in range(0, len(some), BATCH):
        embedder.embed_documents(some[start : start + BATCH])
    seconds, work = time.perf_counter() - began, time.process_time() - worked
    return len(some) / seconds, len(some) / work


if __name__ == "__main__":
    sys.exit(main())
