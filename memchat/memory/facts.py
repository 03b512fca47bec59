"""Finding facts: those in use that a question means, and the profile that every chat is given.

A replaced value is found behind the one that is there now, which takes its scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory import render
from memchat.memory.gate.text import normal_value
from memchat.memory.scoring import CANDIDATES, Parts, Search
from memchat.store import memories, succession
from memchat.store.apps import ScopeIds
from memchat.store.succession import Past
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory

PINNED_MOST = 100
PAST_MOST = 3
"""Replaced values that a line tells of."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of some scopes as they stand on a day."""

    tx: Connection
    scope: ScopeIds
    today: date
    zone: ZoneInfo

    def find(self, search: Search, limit: int) -> list[Hit]:
        """The facts that answer a question, best first, of equal ones the newest."""
        ids = self.scope.ids
        if not ids or limit < 1:
            return []
        over = memories.expired_ids(self.tx, ids, self.today)
        found = search.found("memories", max(CANDIDATES, limit), frozenset(over))
        passing = set(found)
        rows = self._unshadowed(self._credited(found))
        before = succession.replaced(self.tx, ids, [memory.id for memory in rows])
        hits = []
        for memory in rows:
            told, parts = _worth_telling(before.get(memory.id, []), passing), found[memory.id]
            hits.append(self._hit(memory, told, parts, parts.channel))
        hits.sort(key=lambda hit: hit.id)
        hits.sort(key=lambda hit: (hit.score, hit.said_at), reverse=True)
        return hits[:limit]

    def pinned(self) -> list[Hit]:
        """The profile and preferences that may be pinned, the most confirmed first."""
        rows = memories.pinned(self.tx, self.scope.ids, self.today, PINNED_MOST)
        before = succession.replaced(self.tx, self.scope.ids, [m.id for m in rows])
        return [
            self._hit(m, before.get(m.id, [])[:1], Parts(1.0, None, None), "pinned")
            for m in self._unshadowed(rows)
        ]

    def _credited(self, found: dict[int, Parts]) -> list[Memory]:
        """The memories in use that were found, or stand in the place of a replaced value that was:
        that value's scores are theirs where they are higher."""
        now = succession.present(self.tx, self.scope.ids, sorted(found))
        for found_id, memory in now.items():
            parts = found[found_id]
            if memory.id not in found or parts.score > found[memory.id].score:
                found[memory.id] = parts
        distinct = {memory.id: memory for memory in now.values()}
        return [m for m in distinct.values() if m.expires_at is None or m.expires_at >= self.today]

    def _unshadowed(self, rows: Sequence[Memory]) -> list[Memory]:
        """Without what the app itself knows better: its own value of a key that holds one."""
        shared = {memory.key for memory in rows if not memory.app and not memory.many}
        if not shared or self.scope.own is None:
            return list(rows)
        own = memories.single_keys(self.tx, self.scope.own, sorted(shared), self.today)
        return [m for m in rows if m.app or m.many or m.key not in own]

    def _hit(self, memory: Memory, before: Sequence[Past], parts: Parts, channel: str) -> Hit:
        text = render.line(memory, self.zone, before)
        return Hit(
            kind="memory",
            id=memory.id,
            text=text,
            score=round(parts.score, 6),
            cosine=parts.cosine,
            bm25=parts.bm25,
            channel=channel,
            tokens=estimate_tokens(f"- {text}\n"),
            memory=memory,
            said_at=memory.said_at,
            dated=parts.dated,
        )


def distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Without those that say what an earlier one says: the same key and, but for case, value."""
    first: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        if hit.memory is not None:
            first.setdefault((hit.memory.key, normal_value(hit.memory.value)), hit)
    return list(first.values())


def _worth_telling(past: Sequence[Past], passing: set[int]) -> list[Past]:
    """Of the values a memory replaced the latest, and those that were asked for."""
    return [p for n, p in enumerate(past) if n == 0 or p.id in passing][:PAST_MOST]
