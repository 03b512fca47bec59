"""Labelled pairs: a fact that is known, what is said next, and what the two are to each other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.lifecycle.stage import Stage, fact
from memchat.types import Memory

PAIRS = Path(__file__).parents[2] / "tests" / "data" / "pairs.jsonl"
Label = Literal["same", "update", "distinct"]


@dataclass(frozen=True, slots=True)
class Pair:
    """One line of pairs.jsonl. ``verdicts`` are the right ones; the first is the best."""

    id: str
    label: Label
    verdicts: tuple[str, ...]
    lang: str
    tags: tuple[str, ...]
    held: bool
    """Whether it is kept aside while rules are tuned."""
    old: dict[str, Any]
    message: str
    candidate: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the known fact."""

    pair: Pair
    one: bool
    """Both are one memory now: a repeat or a merge."""
    replaced: bool
    ended: bool
    single: bool
    """One memory is in use afterwards, and nothing waits."""
    asked: bool
    """Something about it waits in the inbox."""
    reached: bool
    """The new fact passed the gate, so that consolidation had to decide."""

    @property
    def wrong(self) -> bool:
        """A fact is gone, or hidden, that the pair's label says must stand."""
        right = self.pair.verdicts[0]
        if self.pair.label == "distinct":
            return self.one or self.replaced or self.ended
        if self.pair.label == "same":
            return self.ended
        return self.one or (self.ended and right != "ends") or (self.replaced and right == "ends")


def read(path: Path = PAIRS) -> list[Pair]:
    """All pairs, in the order of the file."""
    pairs = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            data = json.loads(line)
            data |= {"verdicts": tuple(data["verdicts"]), "tags": tuple(data["tags"])}
            pairs.append(Pair(**data))
    return pairs


def know(stage: Stage, pair: Pair, user: str) -> Memory:
    """Teach the old fact as it was said; what the gate asks about gets a yes."""
    old = pair.old
    taught = fact(old["said"], old["key"], old["value"], kind=old["type"], many=old["many"])
    stage.tell(user, old["said"], facts=[taught])
    for item in stage.mc.user(user).inbox.list():
        stage.mc.user(user).inbox.accept(item.id)
    kept = stage.mc.user(user).memories.list()
    if kept:
        return kept[0]
    return stage.mc.user(user).memories.add(old["type"], old["key"], old["value"])


def play(stage: Stage, pair: Pair, verdict: str, user: str) -> Outcome:
    """Teach the old fact, then the new one with a verdict about it; what came of it."""
    old = know(stage, pair, user)
    stage.clock.advance(days=1)
    new = pair.candidate
    said = {} if verdict == "new" else {"relation": verdict, "to": "k1"}
    value = "" if verdict == "ends" else new["value"]
    quote = new["quotes"][0]
    proposed = fact(quote, new["key"], value, kind=new["type"], many=new["many"], **said)
    chat = stage.tell(user, pair.message, facts=[proposed])
    return outcome(stage, pair, old, user, [c.kind for c in chat.learned.changes])  # type: ignore[union-attr]


def outcome(stage: Stage, pair: Pair, old: Memory, user: str, changes: list[str]) -> Outcome:
    """How the known fact stands after a conversation that changed the store so."""
    rows = {m.id: m for m in stage.mc.user(user).memories.list(status="all")}
    now = rows[old.id]
    waiting = bool(stage.mc.user(user).inbox.list())
    merged = any(row.inactive_reason == "merged" for row in rows.values())
    return Outcome(
        pair,
        one=merged or now.seen_count > old.seen_count,
        replaced=now.inactive_reason == "superseded",
        ended=now.inactive_reason == "ended",
        single=sum(row.active for row in rows.values()) == 1 and not waiting,
        asked=waiting,
        reached=any(change not in ("review", "refused") for change in changes),
    )
