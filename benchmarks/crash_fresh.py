"""Whether the facts that were acknowledged last are found right after a kill, or else missed aloud.

A process that was killed may hold the job that was to make a fact's vector, and another may be slow
with it. A search is to find the fact all the same, or to say that it could not look at everything.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import crash_child
from benchmarks.crash_checks import Call, Diaries
from memchat import MemChat
from memchat.errors import NotFound

LATEST = 6
"""Acknowledged additions and edits that are searched for after each kill."""
LIMIT = 5
"""Hits of a search, among which the fact is to be."""
BY_MEANING, BY_WORDS = "found by meaning", "found by words, which was said"
SAID, MISSED = "not found, which was said", "missed in silence"
CHANGED = "changed by another process meanwhile"
WAYS = (BY_MEANING, BY_WORDS, SAID, MISSED, CHANGED)


def latest(diaries: Diaries) -> list[Call]:
    """The additions and edits of all processes that returned last."""
    diaries.read()
    written = [
        call
        for call in diaries.acknowledged
        if call.name in ("add", "edit") and "value" in call.what and not call.refused
    ]
    return sorted(written, key=lambda call: call.returned)[-LATEST:]


def search(home: Path, written: list[Call]) -> list[tuple[str, str]]:
    """How each of these facts was found, and a line on it."""
    with crash_child.open_store(home) as store:
        return [_searched(store, call) for call in written]


def _searched(store: MemChat, call: Call) -> tuple[str, str]:
    memory, value = call.what["id"], call.what["value"]
    scope = {"user": call.what["user"], "app": call.what["app"]}
    found = store.user(**scope).search(value, limit=LIMIT)
    # What only fills the list is not found: another process may have given it other words.
    sure = found.confident
    hits = [hit for hit in sure if hit.kind == "memory" and hit.id == memory]
    if hits and hits[0].cosine is not None:
        return BY_MEANING, ""
    if found.degraded is not None:
        return (BY_WORDS if hits else SAID), ""
    if hits:
        return MISSED, f"memory {memory} ({value}) is found by its words only, and nothing says so"
    if not _still_there(store, memory, value, scope):
        return CHANGED, ""
    return MISSED, f"memory {memory} ({value}) was just written, is not found, and nothing says so"


def _still_there(store: MemChat, memory: int, value: str, scope: dict[str, str]) -> bool:
    """Whether it is in use as it was written; what is there after a search was there before it."""
    try:
        held = store.user(**scope).memories.get(memory)
    except NotFound:
        return False
    # What holds in every app stands behind an app's own value of the same key.
    return held.active and held.value == value and bool(held.app)
