"""Providers that fail and processes that are killed: is anything lost?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import crash
from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.stage import Stage, answer, fact
from memchat.errors import ProviderError
from memchat.providers import Embedder
from memchat.testing import Broken, Reply

LATER = 20 * 60.0
"""Seconds after which every retry is due."""
FAULTS: dict[str, tuple[Reply, ...]] = {
    "500": (ProviderError("the server failed", status=500, retryable=True),),
    "503 three times": (ProviderError("down", status=503, retryable=True),) * 3,
    "time-out": (ProviderError("no answer in 60 s", retryable=True),),
    "429": (ProviderError("slow down", status=429, retryable=True, retry_after=90),),
    "prose twice": ("Of course! Here you go.", "I noted everything."),
    "cut off": ('{"facts": [{"quotes": [{"msg": "u1", "te', '{"facts": ['),
    "breaks off": (Broken('{"facts"', ProviderError("connection lost", retryable=True)),),
    "empty": ("", ""),
    "given up, then retried by hand": (ProviderError("down", status=500, retryable=True),) * 6,
}


def measure(embedder: Embedder | None = None, rounds: int = 6) -> list[Figure]:
    """Each fault in the middle of an extraction, then a provider that works; a few kill -9."""
    lost, twice, asked = [], [], 0
    with Stage(embedder) as stage:
        for number, (name, replies) in enumerate(FAULTS.items()):
            user = f"fault {number}"
            line = "I live in Ulm and I keep nine quails."
            taught = [
                fact("I live in Ulm", "city", "Ulm", kind="profile"),
                fact("I keep nine quails", "pet", "nine quails", many=True),
            ]
            stage.extract.replies.extend(replies)
            stage.tell(user, line, facts=None)
            while stage.extract.replies:
                stage.clock.advance(seconds=LATER)
                stage.mc.jobs.run(user=user)
            stage.extract.replies.append(answer(*taught))
            stage.clock.advance(seconds=LATER)
            if stage.mc.jobs.list(user=user, status="failed"):
                stage.mc.jobs.retry(user=user)
            stage.mc.jobs.run(user=user)
            stage.mc.jobs.run(user=user)
            stage.extract.replies.clear()
            kept = [m.value for m in stage.mc.user(user).memories.list()]
            asked += len(taught)
            lost += [name for item in taught if item["value"] not in kept]
            twice += [name for value in kept if kept.count(value) > 1]
    killed = _killed(rounds)
    seen = f"{len(lost)} of {asked} facts, {len(killed.faults)} faults after {killed.kills} kills"
    note = f"{len(FAULTS)} provider faults, {len(twice)} stored twice; kill -9 as in crash.py"
    note += f": {', '.join((*lost, *twice, *killed.faults[:3]))}" if lost or killed.faults else ""
    good = not (lost or twice or killed.faults or killed.died)
    return [Figure("lost on faults", seen, "0", good, note=note)]


def _killed(rounds: int) -> crash.Crash:
    with tempfile.TemporaryDirectory(prefix="memchat-crash-", ignore_cleanup_errors=True) as home:
        return crash.run(Path(home), rounds, seed=1)
