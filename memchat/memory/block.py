"""What a prompt is given of the memories: pinned facts, found facts and earlier turns, under a
token budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.memory import render
from memchat.memory.facts import Found, distinct
from memchat.memory.meaning import Question
from memchat.memory.recall import Recall, standing
from memchat.memory.scoring import CANDIDATES, Search
from memchat.prompts import Prompts
from memchat.store import apps, evidence, messages, muted, succession
from memchat.store.apps import ScopeIds
from memchat.store.database import Database
from memchat.store.evidence import Drawn
from memchat.store.memories import FORGOTTEN
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Recalled, Scope

RETURNING = 5
"""Turns of this very conversation that come back into its prompt, at most."""
_WEAK = 0.5
"""Of the best moment's score that below which others are left out, though there were room."""


@dataclass(frozen=True, slots=True)
class Block:
    """The memories that a prompt is given. Reads only."""

    database: Database
    settings: Settings
    prompts: Prompts
    recall: Recall

    def for_prompt(
        self,
        scope: Scope,
        question: Question,
        *,
        dropped: Sequence[int] = (),
        session_id: int | None = None,
        first: Sequence[int] = (),
    ) -> Recalled:
        """What to inject for a message: pinned facts, found facts, then earlier turns that fit.

        ``dropped`` are the ids of turns of this very conversation, ``session_id``, that no longer
        fit the window; they come back here when the message speaks of them. What a person called
        not relevant in it is left out. ``first`` are pinned facts to take before the others. Never
        above the token budget.
        """
        with self.database.read() as tx:
            scope_ids = apps.find(tx, scope)
            question = standing(tx, question)
            room = self.settings.budget_tokens - render.frame_tokens(self.prompts)
            mute = muted.of_session(tx, session_id) if session_id is not None else set()
            facts = self.recall.facts(tx, scope_ids, mute)
            place = {memory_id: n for n, memory_id in enumerate(first)}
            profile = distinct(_unmuted(facts.pinned(), mute))
            profile.sort(
                key=lambda fact: (not fact.memory.pinned, place.get(fact.memory.id, len(place)))
            )
            pinned = facts.told(profile)
            kept = _fitting(pinned, min(room, self.settings.pinned_tokens))
            given = {hit.id for hit in kept}
            # A pinned fact without room there may still earn its place by fitting the question.
            limit = max(CANDIDATES, self.settings.top_k) + len(kept) + len(mute)
            search = self.recall.searching(tx, scope_ids, question)
            hits = _unmuted(facts.find(search, limit), mute)
            others = distinct(hits, besides=[f for f in profile if f.memory.id in given])
            found = facts.told(others[: self.settings.top_k])
            given |= {hit.id for hit in found}
            known = {hit.id: hit.memory for hit in (*kept, *found) if hit.memory is not None}
            said = self.recall.past(scope_ids, search, CANDIDATES, session_id)
            moments = self._moments(scope_ids, search, dropped, mute)
            moments += [
                one.told(self.settings.zone)
                for one in said
                if one.score >= _WEAK * said[0].score
                and not (one.only_proves(known) or one.tells(mute))
                and not any(fact.memory_id in mute for fact in one.facts)
            ]
        shown = _fitting([*kept, *found, *moments], room)
        wanted = {(hit.kind, hit.id) for hit in (*pinned, *found, *moments)}
        used = sum(hit.tokens for hit in shown)
        matched = tuple(fact.memory.id for fact in hits if fact.memory.id in given)
        return Recalled(tuple(shown), question.degraded, len(wanted) - len(shown), used, matched)

    def pinned(self, scope: Scope, session_id: int | None = None) -> list[Hit]:
        """The profile and preferences that may be pinned, the most confirmed first."""
        with self.database.read() as tx:
            mute = muted.of_session(tx, session_id) if session_id is not None else set()
            facts = self.recall.facts(tx, apps.find(tx, scope), mute)
            return facts.told(distinct(_unmuted(facts.pinned(), mute)))

    def _moments(
        self, scope_ids: ScopeIds, search: Search, dropped: Sequence[int], mute: Collection[int]
    ) -> list[Hit]:
        """Turns of this very conversation that no longer fit its window, by their words."""
        if not dropped or scope_ids.own is None:
            return []
        tx, search = search.tx, replace(search, ids=[scope_ids.own])
        matches = search.matches("messages", replies=True)
        scores = matches.of(search.by_words(matches, dropped))
        drawn = evidence.drawn(tx, list(scores))
        barred = _barred(tx, scope_ids, drawn, mute)
        scores = {i: score for i, score in scores.items() if i not in barred}
        best = sorted(scores, key=lambda i: (-scores[i], -i))[:RETURNING]
        turns = messages.by_ids(tx, best)
        zone = self.settings.zone
        hits = []
        for i in best:
            text = render.moment(turns[i], zone)
            hits.append(
                Hit(
                    kind="message",
                    id=i,
                    text=text,
                    score=scores[i] / scores[best[0]],
                    cosine=None,
                    bm25=scores[i],
                    channel="conversation",
                    tokens=estimate_tokens(f"- {text}\n"),
                    said_at=turns[i].created_at,
                    tells=tuple((f.memory_id, f.key, f.value) for f in drawn if f.message_id == i),
                )
            )
        return hits


def _barred(
    tx: Connection, scope_ids: ScopeIds, drawn: Sequence[Drawn], mute: Collection[int]
) -> set[int]:
    """The turns that taught what is being forgotten, or what a person called not relevant here."""
    now = succession.present(tx, scope_ids.ids, sorted({fact.memory_id for fact in drawn}))
    out = {i for i, memory in now.items() if memory.id in mute}.union(mute)
    return {f.message_id for f in drawn if f.inactive_reason == FORGOTTEN or f.memory_id in out}


def _fitting(hits: Sequence[Hit], room: int) -> list[Hit]:
    """Those that fit one after another; a shorter one may take the place a longer one left."""
    kept = []
    for hit in hits:
        if hit.tokens <= room:
            kept.append(hit)
            room -= hit.tokens
    return kept


def _unmuted(facts: Sequence[Found], mute: set[int]) -> list[Found]:
    """Without those that a person called not relevant here."""
    return [fact for fact in facts if fact.memory.id not in mute]
