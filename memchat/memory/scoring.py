"""One list of candidates from two: by meaning and by words, both scores filled in over the union.

score = weight x cosine + (1 - weight) x BM25 / the query's best BM25, the weight the service's.
Each list gives its candidates, and the score that the other did not give is looked up: that is
worth more than any tuning. Reciprocal ranks of both lists are the option.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from memchat.memory.meaning import Meaning, Question
from memchat.memory.timely import Timely
from memchat.store import keywords, succession

CANDIDATES = 20
Kind = Literal["memories", "messages"]
Ranked = list[tuple[int, float]]
"""Ids with their scores, best first."""
_RRF = 60
_WORDS_ONLY_SHARE = 0.5
"""Of a question's words those that a hit must hold where only words are searched."""
_MOST = 0.6
"""Of a question's words those with which half the floor's cosine is enough: two weak witnesses."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A candidate's score and what it was made of; None where a list could not score it."""

    score: float
    cosine: float | None
    bm25: float | None
    dated: float | None = None
    """The share for lying on the days asked about."""

    @property
    def channel(self) -> str:
        """By what it was found."""
        if self.cosine is None:
            return "time" if self.bm25 is None else "words"
        return "meaning" if self.bm25 is None else "both"


@dataclass(frozen=True, slots=True)
class Search:
    """One question over the rows of some scopes."""

    tx: Connection
    ids: Sequence[int]
    question: Question
    words: Sequence[str]
    meaning: Meaning | None
    timely: Timely | None
    ranking: str = "weighted"

    @property
    def telling(self) -> list[str]:
        """The words that a hit may be asked to hold: those that only name a day are none."""
        days = self.timely.words if self.timely else frozenset()
        return [word for word in self.words if word not in days]

    def found(
        self, kind: Kind, limit: int = CANDIDATES, without: Collection[int] = ()
    ) -> dict[int, Parts]:
        """The candidates of a kind that pass its floor, by id; never one of ``without``."""
        dated = self.timely.rows(self.tx, kind, self.ids, without) if self.timely else []
        near, worded, bm25 = self._lists(kind, limit, without, dated)
        cosine = dict(near)
        vector = self.question.vector
        if self.meaning is not None and vector is not None:
            unscored = [i for i in (*bm25, *dated) if i not in cosine]
            cosine |= self.meaning.index.scores(self.tx, self.ids, vector, unscored, kind)
        ranks = [[i for i, _ in ranked] for ranked in (near, worded)]
        scores = self._ranked(ranks) if self.ranking == "rrf" else self._weighed(cosine, bm25)
        passing = self._passing(kind, cosine, bm25)
        shares = self.timely.shares(dated) if self.timely else {}
        # On the day asked about one of the words will do: those of the day itself match nothing.
        passing |= {i for i in dated if i in bm25}
        if dated and self.timely is not None and self.timely.only:
            # No other word means anything here: "what did I tell you yesterday?"
            passing, cosine, bm25, scores = set(dated), {}, {}, {}
        totals = {i: scores.get(i, 0.0) + shares.get(i, 0.0) for i in passing}
        return {
            i: Parts(total, cosine.get(i), bm25.get(i), shares.get(i))
            for i, total in totals.items()
            if total > 0  # near only by a cosine that counts for nothing with this service
        }

    def _lists(
        self, kind: Kind, limit: int, without: Collection[int], dated: Sequence[int]
    ) -> tuple[Ranked, Ranked, dict[int, float]]:
        """The candidates by meaning and by words, best first, and the BM25 of all of them.

        Values that were replaced share one place: what is there now. Where they take places of
        others, both lists are filled up without those chains, and what that adds stands behind.
        """
        near = self._nearest(kind, limit, without)
        matches = keywords.matches(self.tx, kind, self.ids, self.words)
        worded = matches.best(limit, without)
        seen = set(without)
        while kind == "memories":
            fresh = [i for i in (*_ids(near), *_ids(worded)) if i not in seen]
            chains = succession.chains(self.tx, self.ids, fresh)
            if chains <= seen:
                break
            seen |= chains
            near = _joined(near, self._nearest(kind, limit, seen))
            worded = _joined(worded, matches.best(limit, seen))
        return near, worded, matches.of((*_ids(worded), *_ids(near), *dated))

    def _nearest(self, kind: Kind, limit: int, without: Collection[int]) -> Ranked:
        if self.meaning is None or self.question.vector is None:
            return []
        vector, index = self.question.vector, self.meaning.index
        return index.search(self.tx, self.ids, vector, limit, sorted(without), kind)

    def weighed(self, cosine: float | None, bm25: float | None, best: float) -> float:
        """The weighted sum, with BM25 as a share of the best."""
        words = bm25 / best if bm25 is not None and best > 0 else 0.0
        if self.meaning is None or self.question.vector is None:
            return words
        weight = self.meaning.embedder.service.cosine_weight
        return weight * max(cosine or 0.0, 0.0) + (1 - weight) * words

    def _weighed(self, cosine: dict[int, float], bm25: dict[int, float]) -> dict[int, float]:
        best = max(bm25.values(), default=0.0)
        return {
            i: self.weighed(cosine.get(i), bm25.get(i), best) for i in cosine.keys() | bm25.keys()
        }

    def _ranked(self, lists: Sequence[Sequence[int]]) -> dict[int, float]:
        """The sum of reciprocal ranks, 1 for what stands first in every list."""
        scores: dict[int, float] = {}
        for ranked in lists:
            for rank, i in enumerate(ranked, 1):
                scores[i] = scores.get(i, 0.0) + (_RRF + 1) / (_RRF + rank) / len(lists)
        return scores

    def _passing(self, kind: Kind, cosine: dict[int, float], bm25: dict[int, float]) -> set[int]:
        """What says something: near enough in meaning, or all of the words, or a number."""
        if self.meaning is None or self.question.vector is None:
            return self.by_words(kind, bm25)
        service = self.meaning.embedder.service
        floor = service.floor if kind == "memories" else service.message_floor
        passing = {i for i, score in cosine.items() if score >= floor}
        # A row whose vector is still to come has its words to speak for it.
        waiting = {i: score for i, score in bm25.items() if i not in cosine}
        passing |= self.by_words(kind, waiting) if kind == "messages" else set(waiting)
        held = self._held(kind, bm25.keys() - passing)
        most = _MOST * len(self.telling)
        halfway = {i for i in held if cosine.get(i, 0.0) >= floor / 2}
        return passing | {
            i
            for i, words in held.items()
            if len(words) >= (most if i in halfway else len(self.telling)) or _numbers(words)
        }

    def by_words(self, kind: Kind, bm25: Collection[int]) -> set[int]:
        """Where no vector speaks, a hit holds half of the question's words, or a number of it:
        one common word in a long question says nothing."""
        needed = _WORDS_ONLY_SHARE * len(self.telling)
        held = self._held(kind, bm25)
        return {i for i, words in held.items() if len(words) >= needed or _numbers(words)}

    def _held(self, kind: Kind, ids: Collection[int]) -> dict[int, set[str]]:
        """Which of the words each of these holds; none where there is none to hold."""
        return keywords.held(self.tx, kind, self.telling, sorted(ids))


def _ids(found: Ranked) -> list[int]:
    return [i for i, _ in found]


def _numbers(words: Collection[str]) -> bool:
    """Whether a number or a code is held; a single digit, as many texts have one, not alone."""
    numbers = [word for word in words if any(c.isdigit() for c in word)]
    return any(len(word) > 1 for word in numbers) or (bool(numbers) and len(words) > 1)


def _joined(found: Ranked, more: Ranked) -> Ranked:
    known = {i for i, _ in found}
    both = [*found, *(hit for hit in more if hit[0] not in known)]
    return sorted(both, key=lambda hit: (-round(hit[1], 6), hit[0]))
