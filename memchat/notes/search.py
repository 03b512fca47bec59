"""Search in notes: the same hybrid scores as for facts, over chunks.

What a filter leaves out takes no place of what it lets through.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memchat.memory.embedding.space import Question
from memchat.memory.recall import missing_vectors
from memchat.memory.recall.ranking import CANDIDATES, ScoredSearch
from memchat.memory.recall.search import Recall
from memchat.store import notes
from memchat.store.notes import Filter
from memchat.types import NoteHit, NotesFound, Scope


def find(
    recall: Recall,
    scope: Scope,
    question: Question,
    limit: int,
    *,
    wanted: Filter,
    ranking: str | None = None,
    min_score: float | None = None,
    with_text: bool = False,
) -> NotesFound:
    """The chunks that answer a question, best first, confident ones before the others. ``ranking``
    is weighted or rrf; None for what the settings say."""
    with recall.open_search(scope, question, 0.0) as search:
        own = search.context.scope.own
        if own is None or limit < 1:
            return NotesFound((), search.question.degraded)
        search = replace(search, ids=[own], ranking=ranking or search.ranking)
        if not wanted.everything:
            only = frozenset(notes.chunk_ids(search.tx, [own], wanted))
            search = replace(search, only=only)
        hits = _ranked(search, limit, min_score, with_text)
        lacking = len(search.unembedded("chunks"))
        degraded = search.question.degraded or missing_vectors.reason(passages=lacking)
        return NotesFound(tuple(hits), degraded)


def _ranked(
    search: ScoredSearch, limit: int, min_score: float | None, with_text: bool
) -> list[NoteHit]:
    found = search.found("chunks", max(limit, CANDIDATES))
    scores: dict[int, dict[str, Any]] = {
        i: {
            "score": round(parts.score, 6),
            "cosine": parts.cosine,
            "bm25": parts.bm25,
            "confident": parts.confident,
        }
        for i, parts in sorted(
            found.items(), key=lambda one: (not one[1].confident, -one[1].score, one[0])
        )
        if min_score is None or parts.score >= min_score
    }
    first = dict(list(scores.items())[:limit])
    return notes.hits(search.tx, first, with_text=with_text)
