"""One list of candidates from two: by meaning and by words, both scores filled in over the union.

score = weight x cosine + (1 - weight) x BM25 / the query's best BM25, the weight the service's.
Each list gives its candidates, and the score that the other did not give is looked up: that is
worth more than any tuning. Reciprocal ranks of both lists are the option.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Literal

from sqlalchemy import Connection

from memchat.memory.embedding.space import EmbeddingSpace, Question
from memchat.memory.recall.missing_vectors import MadeVectors
from memchat.memory.recall.question_dates.search import QuestionDates
from memchat.store import keywords, replacements
from memchat.store.keywords import Matches
from memchat.vectors.index import latest

CANDIDATES = 20
Kind = Literal["memories", "messages"]
Ranked = list[tuple[int, float]]
"""Ids with their scores, best first."""
_RRF = 60
_WORDS_ONLY_SHARE = 0.5
"""Of a question's words those that are enough where only words are searched."""
_WORDS_ONLY_RARE = 0.2
"""And of what they tell, the rarer the more, the part that is."""
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
    confident: bool = True
    """Whether it passes the floor: near enough in meaning, or with enough of the words."""

    @property
    def order(self) -> tuple[bool, float]:
        """By what candidates are compared: a confident one comes before all that are not."""
        return self.confident, self.score

    @property
    def channel(self) -> str:
        """By what it was found."""
        if self.cosine is None:
            return "time" if self.bm25 is None else "words"
        return "meaning" if self.bm25 is None else "both"


@dataclass(frozen=True, slots=True)
class ScoredSearch:
    """One question over the rows of some scopes."""

    tx: Connection
    ids: Sequence[int]
    question: Question
    words: Sequence[str]
    telling: Collection[str]
    """The words that a hit may be asked to hold: those that only name a day are none."""
    meaning: EmbeddingSpace | None
    timely: QuestionDates | None
    ranking: str = "weighted"
    fresh: MadeVectors = field(default_factory=MadeVectors)
    """Vectors of rows that the index does not have yet."""
    lacking: dict[tuple[Kind | int, ...], set[int]] = field(default_factory=dict)
    """What had no vector in this snapshot, by kind and scope rows, as far as that was asked."""
    asked: dict[tuple[Kind, int], int] = field(default_factory=dict)
    """How far this snapshot of a kind and scope row reaches, as far as that was asked."""

    def found(
        self, kind: Kind, limit: int = CANDIDATES, without: Collection[int] = ()
    ) -> dict[int, Parts]:
        """The candidates of a kind, by id, those that pass its floor and those that do not; never
        one of ``without``."""
        dated = self.timely.rows(self.tx, kind, self.ids, without) if self.timely else []
        matches = self.matches(kind)
        near, worded = self._lists(kind, matches, limit, without)
        waiting = matches.of(self.waiting(kind).difference(without))
        spoken = nlargest(limit, waiting, key=waiting.__getitem__)
        bm25 = matches.of((*_ids(worded), *_ids(near), *dated, *spoken))
        cosine = dict(near)
        vector = self.question.vector
        if self.meaning is not None and vector is not None:
            unscored = [i for i in (*bm25, *dated) if i not in cosine]
            newest, index = self._newest(kind), self.meaning.index
            cosine |= index.scores(self.tx, [*newest], vector, unscored, kind, newest)
            cosine |= {i: score for i, score in self._fresh(kind) if i in unscored}
        if self.ranking == "rrf":
            scores = self._ranked(_ids(near), _ids(worded), spoken)
        else:
            scores = self._weighed(cosine, bm25)
        passing = self._passing(kind, matches, cosine, bm25)
        shares = self.timely.shares(dated) if self.timely else {}
        # On the day asked about one of the words will do: those of the day itself match nothing.
        passing |= {i for i in dated if i in bm25}
        if dated and self.timely is not None and self.timely.only:
            # No other word means anything here: "what did I tell you yesterday?"
            passing, cosine, bm25, scores = set(dated), {}, {}, {}
        totals = {i: scores.get(i, 0.0) + shares.get(i, 0.0) for i in passing | scores.keys()}
        return {
            i: Parts(total, cosine.get(i), bm25.get(i), shares.get(i), i in passing)
            for i, total in totals.items()
            if total > 0  # near only by a cosine that counts for nothing with this service
        }

    def waiting(self, kind: Kind) -> set[int]:
        """The rows that have no vector where meaning takes part: only words can rank them."""
        if self.meaning is None or self.question.vector is None:
            return set()
        where = (kind, *self.ids)
        if where not in self.lacking:
            newest = self._newest(kind)
            found = self.meaning.index.waiting(self.tx, [*newest], kind, newest)
            self.lacking[where] = found
        return self.lacking[where].difference(self.fresh.of(kind))

    def matches(self, kind: Kind, *, replies: bool = False) -> Matches:
        """What holds any of the question's words."""
        return keywords.matches(self.tx, kind, [*self._newest(kind)], self.words, replies=replies)

    def _newest(self, kind: Kind) -> dict[int, int]:
        """The scope rows to search, each with its newest change."""
        for i in self.ids:
            if (kind, i) not in self.asked:
                self.asked[kind, i] = latest(self.tx, kind, i)
        newest = {i: self.asked[kind, i] for i in self.ids}
        # No memory is without an event; the turns of an open conversation come before theirs.
        return {i: change for i, change in newest.items() if change or kind != "memories"}

    def _lists(
        self, kind: Kind, matches: Matches, limit: int, without: Collection[int]
    ) -> tuple[Ranked, Ranked]:
        """The candidates by meaning and by words, best first.

        Values that were replaced share one place: what is there now. Where they take places of
        others, both lists are filled up without those chains, and what that adds stands behind.
        """
        near = self._nearest(kind, limit, without)
        worded = matches.best(limit, without)
        seen = set(without)
        while kind == "memories":
            fresh = [i for i in (*_ids(near), *_ids(worded)) if i not in seen]
            chains = replacements.whole_chains(self.tx, self.ids, fresh)
            if chains <= seen:
                break
            seen |= chains
            near = _joined(near, self._nearest(kind, limit, seen))
            worded = _joined(worded, matches.best(limit, seen))
        return near, worded

    def _nearest(self, kind: Kind, limit: int, without: Collection[int]) -> Ranked:
        if self.meaning is None or self.question.vector is None:
            return []
        vector, index, newest = self.question.vector, self.meaning.index, self._newest(kind)
        near = index.search(self.tx, [*newest], vector, limit, sorted(without), kind, newest)
        fresh = [hit for hit in self._fresh(kind) if hit[0] not in without]
        return _joined(near, fresh)[:limit] if fresh else near

    def _fresh(self, kind: Kind) -> Ranked:
        """The cosine of the rows that had no vector before this search."""
        vector = self.question.vector
        if vector is None or not self.fresh.gaps:
            return []
        return [(i, float(made @ vector)) for i, made in self.fresh.of(kind).items()]

    def weighed(self, cosine: float | None, bm25: float | None, best: float) -> float:
        """The weighted sum, with BM25 as a share of the best."""
        words = bm25 / best if bm25 is not None and best > 0 else 0.0
        if self.meaning is None or self.question.vector is None:
            return words
        if cosine is None:
            return words  # a row whose vector is still to come is not to stand behind for that
        weight = self.meaning.embedder.service.cosine_weight
        return weight * max(cosine, 0.0) + (1 - weight) * words

    def _weighed(self, cosine: dict[int, float], bm25: dict[int, float]) -> dict[int, float]:
        best = max(bm25.values(), default=0.0)
        return {
            i: self.weighed(cosine.get(i), bm25.get(i), best) for i in cosine.keys() | bm25.keys()
        }

    def _ranked(
        self, near: Sequence[int], worded: Sequence[int], waiting: Sequence[int]
    ) -> dict[int, float]:
        """The mean of reciprocal ranks, 1 for what stands first in both lists. What waits for its
        vector has the rank of its words in both."""
        scores: dict[int, float] = {}
        both = list(dict.fromkeys((*worded, *waiting)))
        for ranked in (near, both):
            for rank, i in enumerate(ranked, 1):
                share = 1.0 if i in waiting else 0.5
                scores[i] = scores.get(i, 0.0) + share * (_RRF + 1) / (_RRF + rank)
        return scores

    def _passing(
        self, kind: Kind, matches: Matches, cosine: dict[int, float], bm25: dict[int, float]
    ) -> set[int]:
        """What says something: near enough in meaning, or all of the words, or a number."""
        if self.meaning is None or self.question.vector is None:
            return self.by_words(matches, bm25)
        service = self.meaning.embedder.service
        floor = service.floor if kind == "memories" else service.message_floor
        passing = {i for i, score in cosine.items() if score >= floor}
        # A row whose vector is still to come has its words to speak for it.
        waiting = bm25.keys() - cosine.keys()
        passing |= self.by_words(matches, waiting) if kind == "messages" else waiting
        enough = self._enough(matches)
        for i in bm25.keys() - passing:
            if enough(i, _MOST if cosine.get(i, 0.0) >= floor / 2 else 1.0):
                passing.add(i)
        return passing

    def by_words(self, matches: Matches, ids: Iterable[int]) -> set[int]:
        """Where no vector speaks, a hit holds half of the question's words, rare ones among few, or
        a number of it: one common word in a long question says nothing."""
        enough, rare = self._enough(matches), _WORDS_ONLY_RARE / (matches.known or 1.0)
        told = matches.of(ids)
        return {i for i in told if enough(i, 0.0 if told[i] >= rare else _WORDS_ONLY_SHARE)}

    def _enough(self, matches: Matches) -> Callable[[int, float], bool]:
        """Whether a row holds such a share of the words that a hit may be asked for, or a number or
        a code; a single digit, as many texts have one, not alone."""
        telling = matches.bits(self.telling)
        numbers = matches.bits([w for w in self.telling if any(c.isdigit() for c in w)])
        codes = matches.bits([w for w in self.telling if len(w) > 1]) & numbers

        def enough(i: int, share: float) -> bool:
            held = matches.bits_of(i) & telling
            count = held.bit_count()
            number = held & codes or (held & numbers and count > 1)
            return bool(count and (number or count >= share * len(self.telling)))

        return enough


def _ids(found: Ranked) -> list[int]:
    return [i for i, _ in found]


def _joined(found: Ranked, more: Ranked) -> Ranked:
    known = {i for i, _ in found}
    both = [*found, *(hit for hit in more if hit[0] not in known)]
    return sorted(both, key=lambda hit: (-round(hit[1], 6), hit[0]))
