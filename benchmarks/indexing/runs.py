"""Runs of the indexing process, and what they leave behind."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.indexing.child import BATCH, STORE

GOAL = 0.9
PEAK_GOAL = 1024.0
_WITHOUT_VECTOR = (
    "SELECT count(*) FROM chunks c WHERE NOT EXISTS"
    " (SELECT 1 FROM embeddings e WHERE e.hash = c.hash)"
)


def pace(folder: Path, memos: int, model: str) -> bool:
    """Index all in one process and print how that compares; whether the goals were reached."""
    told = _child(folder, memos, model, "--measure")
    rate, work_rate = told["texts"] / told["seconds"], told["texts"] / told["work"]
    alone, work_alone = statistics.mean(told["alone"]), statistics.mean(told["alone_work"])
    share, work_share = rate / alone, work_rate / work_alone
    print(f"{memos} memos, {told['texts']} chunks, {model}: {told['seconds']:.0f} s")
    print(f"  chunks a second              {rate:8.0f}   the encoder alone {alone:.0f}")
    print(f"  share by the clock           {share:8.0%}   goal {GOAL:.0%}")
    print(f"  share by processor time      {work_share:8.0%}")
    print(f"  peak memory                  {told['peak']:6.0f} MB   goal < {PEAK_GOAL:.0f}")
    return share >= GOAL and told["peak"] < PEAK_GOAL


def kills(folder: Path, memos: int, model: str, count: int, seed: int) -> bool:
    """Kill ``count`` processes, let the last one finish, and print what was lost or repeated."""
    chance = random.Random(seed)
    known: list[set[str]] = []
    killed = 0
    for _ in range(count):
        known.append(_embedded(folder))
        after = chance.randint(1, max(1, memos // (count + 1) // BATCH))
        fate = ["--die-after", str(after), "--delay", f"{chance.random():.3f}"]
        killed += _run(folder, memos, model, *fate).returncode == -signal.SIGKILL
    known.append(_embedded(folder))
    _child(folder, memos, model)
    diaries = sorted(folder.glob("embedded.*"), key=lambda path: path.stat().st_mtime_ns)
    asked = [diary.read_text().split() for diary in diaries]
    again = sum(len(before & set(now)) for before, now in zip(known, asked, strict=True))
    times = Counter(hashed for one in asked for hashed in one)
    in_flight = sum(n - 1 for n in times.values())
    missing = faults(folder, memos)
    print(f"{memos} memos, {killed} processes killed, {len(times)} texts embedded")
    print(f"  embedded again although their vector was on disk {again:6}   goal 0")
    print(f"  embedded again as they were under way at a kill  {in_flight - again:6}")
    print(f"  missing or damaged: {'; '.join(missing) or 'nothing'}")
    return not again and not missing


def _child(folder: Path, memos: int, model: str, *more: str) -> dict[str, Any]:
    done = _run(folder, memos, model, *more)
    if done.returncode:
        raise RuntimeError(f"the indexing process ended with {done.returncode}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _run(folder: Path, memos: int, model: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.indexing.child", str(folder), str(memos), model]
    done = subprocess.run([*command, *more], stdout=subprocess.PIPE, text=True)
    print(file=sys.stderr)
    return done


def _embedded(folder: Path) -> set[str]:
    """The hashes that have a vector on disk."""
    path = folder / STORE / "memchat.db"
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path)) as db:
        return {row[0] for row in db.execute("SELECT hash FROM embeddings")}


def faults(folder: Path, memos: int) -> list[str]:
    """What is not as it has to be after all memos were added."""
    with closing(sqlite3.connect(folder / STORE / "memchat.db")) as db:

        def count(sql: str) -> int:
            return int(db.execute(sql).fetchone()[0])

        held = count("SELECT count(DISTINCT external_id) FROM sources")
        bare = count("SELECT count(*) FROM sources s WHERE NOT EXISTS"
                     " (SELECT 1 FROM chunks c WHERE c.source_id = s.id)")  # fmt: skip
        found = {
            "memos missing": memos - held,
            "memos kept twice": count("SELECT count(*) FROM sources") - held,
            "memos without chunks": bare,
            "chunks without a vector": count(_WITHOUT_VECTOR),
            "chunks without a keyword row": count("SELECT count(*) FROM chunks")
            - count("SELECT count(*) FROM passages_fts WHERE rowid & 3 = 3"),
            "jobs that are not done": count("SELECT count(*) FROM passages WHERE status != 0"),
        }
        damage = db.execute("PRAGMA integrity_check").fetchone()[0]
    wrong = [f"{number} {what}" for what, number in found.items() if number]
    return wrong if damage == "ok" else [*wrong, f"integrity check: {damage}"]
