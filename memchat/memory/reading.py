"""A session while it is being read: its turns, what was shown with them, what was proposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory import buried, windows
from memchat.memory.extract import Line, Window
from memchat.memory.gate.evidence import KnownFact, Turn, Verdict
from memchat.memory.meaning import Meaning, shortened
from memchat.memory.proposals import known_fact
from memchat.store import apps, embeddings, keywords, memories, succession
from memchat.types import Message, Scope, Session, Usage

if TYPE_CHECKING:
    from memchat.providers import Vectors

NEAREST = 5
_BY_MEANING = 0.7
_LOOKED_AT = 20
"""Replaced values are found too: they point at the one in use, and take no place from it."""
PROFILE_MOST = 15
MESSAGES_ASKED = 60
"""User messages of a window whose neighbours are looked up: its first and last."""


@dataclass(slots=True)
class Reading:
    """A session as far as it has been read."""

    session: Session
    app_id: int
    turns: list[Message]
    first_unread: int
    known: dict[str, KnownFact] = field(default_factory=dict)
    """Every fact that was shown, by the short id it keeps through all windows."""
    injected: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    vectors: dict[str, Vectors] = field(default_factory=dict)
    """Of the user's messages in the window that is read now, by query hash."""
    title: str | None = None
    summary: str = ""

    @property
    def scope(self) -> Scope:
        return Scope(self.session.user, self.session.app)

    @property
    def last_id(self) -> int:
        return self.turns[-1].id

    def as_judged(self) -> list[Turn]:
        """The turns as the gate wants them, unmarked."""
        return [
            Turn(windows.turn_id(i, m), m.role, m.content, m.created_at, m.id)
            for i, m in enumerate(self.turns)
        ]

    def only_unread(self, verdict: Verdict) -> Verdict:
        """Refuse proof from turns that an earlier extraction has read; they are context now."""
        read_to = self.session.extracted_to
        new = any(p.role == "user" and p.message_id > read_to for p in verdict.spans)
        if new or not verdict.spans:
            return verdict
        reason = "its words were read by an earlier extraction"
        return replace(verdict, outcome="refuse", reasons=(*verdict.reasons, reason))

    def unless_forgotten(self, tx: Connection, app_ids: Sequence[int], verdict: Verdict) -> Verdict:
        """Refuse what would only wait for a person who had it forgotten after it was said."""
        if verdict.outcome != "review":
            return verdict
        item = verdict.candidate
        said = {turn.id: turn.created_at for turn in self.turns}
        proofs = [(p.message_id, p.quote) for p in verdict.spans]
        said_at = max((said[i] for i, _ in proofs), default=self.turns[-1].created_at)
        if buried.stand(tx, app_ids, item.key, item.value, proofs, said_at) != "refuse":
            return verdict
        reason = "it was forgotten on request"
        return replace(verdict, outcome="refuse", reasons=(*verdict.reasons, reason))

    def show(
        self, tx: Connection, meaning: Meaning | None, window: Window, today: date, zone: ZoneInfo
    ) -> list[tuple[KnownFact, str]]:
        """The facts a window may speak of, each with the day it was learnt.

        What earlier windows proposed, then the stored ones: nearest to each user message, profile.
        """
        ids = apps.find(tx, self.scope).ids
        near = self._near(tx, meaning, ids, window)
        # What is near to a replaced value may speak of the one that is there now.
        now = succession.present(tx, ids, list(near))
        for found, memory in now.items():
            near[memory.id] = max(near.get(memory.id, 0.0), near[found])
        rows = {memory.id: memory for memory in now.values()}
        ordered = sorted(rows.values(), key=lambda m: (-near[m.id], m.id))
        profile = memories.listed(
            tx, ids, status="active", today=today, memory_types=("profile",), limit=PROFILE_MOST
        )
        ordered += [m for m in profile if m.id not in near]
        short = {fact.memory_id: fact.id for fact in self.known.values()}
        for memory in ordered:
            short.setdefault(memory.id, f"k{len(short) + 1}")
        stored = [
            (known_fact(short[m.id], m), m.said_at.astimezone(zone).date().isoformat())
            for m in ordered
            if m.active
        ]
        shown = [*self._proposed(), *stored]
        self.known |= {fact.id: fact for fact, _ in shown}
        return shown

    def ask(self, meaning: Meaning | None, window: Window) -> None:
        """Have the vectors of the user's messages, before ``show`` and outside of any transaction.

        The chat waits only so long for them: those that it did without are made here, so that what
        is shown does not depend on how busy the machine was.
        """
        self.vectors = {}
        if meaning is not None:
            self.vectors, spent = meaning.questions(self._asked(window))
            self.usage += [replace(one, purpose="embed") for one in spent]

    def _near(
        self, tx: Connection, meaning: Meaning | None, ids: Sequence[int], window: Window
    ) -> dict[int, float]:
        """Memory id → how near it is to any of the user's messages."""
        near: dict[int, float] = {}
        for words in self._asked(window):
            vector = self.vectors.get(embeddings.query_hash(words))
            found = self._found(tx, meaning, ids, words, vector)
            in_use = succession.present(tx, ids, [i for i, _ in found])
            nearest: dict[int, float] = {}
            for found_id, score in found:
                if found_id in in_use and len(nearest) < NEAREST:
                    nearest.setdefault(in_use[found_id].id, score)
            for memory_id, score in nearest.items():
                near[memory_id] = max(near.get(memory_id, 0.0), score)
        return near

    def _found(
        self,
        tx: Connection,
        meaning: Meaning | None,
        ids: Sequence[int],
        words: str,
        vector: Vectors | None,
    ) -> list[tuple[int, float]]:
        """Memory ids with their scores, best first. By meaning and by words: a long message that
        says one short thing among others is near to none, and still names what it changes."""
        terms = keywords.query_terms(words)
        bm25 = dict(keywords.matches(tx, "memories", ids, terms).best(_LOOKED_AT))
        best = max(bm25.values(), default=1.0) or 1.0
        cosine: dict[int, float] = {}
        if meaning is not None and vector is not None:
            cosine = dict(meaning.index.search(tx, ids, vector, _LOOKED_AT))
            unscored = [i for i in bm25 if i not in cosine]
            cosine |= meaning.index.scores(tx, ids, vector, unscored)
        scores = {
            i: _BY_MEANING * cosine.get(i, 0.0) + (1 - _BY_MEANING) * bm25.get(i, 0.0) / best
            for i in bm25.keys() | cosine.keys()
        }
        return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))

    def _asked(self, window: Window) -> list[str]:
        by_id = {windows.turn_id(i, m): m for i, m in enumerate(self.turns)}
        asked: list[Line] = [line for line in window.transcript if line.role == "user"]
        if len(asked) > MESSAGES_ASKED:
            asked = asked[: MESSAGES_ASKED // 2] + asked[-MESSAGES_ASKED // 2 :]
        return [shortened(by_id[line.id].content) for line in asked]

    def _proposed(self) -> list[tuple[KnownFact, str]]:
        """What earlier windows proposed: not in the store yet, but known to the next window."""
        proposed = []
        for n, verdict in enumerate(self.verdicts, 1):
            if verdict.outcome == "accept":
                item = verdict.candidate
                fact = KnownFact(f"p{n}", -n, item.type, item.key, item.value, item.many)
                proposed.append((fact, "in this conversation"))
        return proposed
