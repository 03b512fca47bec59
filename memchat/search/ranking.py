"""Ranks what a question finds: one list of candidates, made from one by vector and one by words.

The score that the other list did not give is looked up, which is worth more than any tuning. Rows
too new to have a vector get one for the search, where the service runs on this machine and makes it
in time.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import TYPE_CHECKING

from memchat.db import Tx
from memchat.db.database import Database
from memchat.errors import MemChatError, StoreError
from memchat.facts import changes
from memchat.search import embeddings, keywords, passages
from memchat.search.embed import EmbeddingSpace, Question, embed_documents
from memchat.search.embeddings import Selection
from memchat.search.keywords import Kind, Matches
from memchat.search.passages import UnembeddedText
from memchat.search.question_dates import DateRange

if TYPE_CHECKING:
    from memchat.providers import Vectors

K = 60
"""Damps the first ranks, so that what stands in several lists comes before the first of one."""


log = logging.getLogger(__name__)

MOST = 16
"""Texts that one search embeds at most."""
DEFAULT_SECONDS = 0.5
"""How long a search waits for them where no reply waits for the search."""


@dataclass(frozen=True, slots=True)
class MadeVectors:
    """The vectors of rows that had none, and what these rows' texts were."""

    space: EmbeddingSpace | None = None
    gaps: Sequence[UnembeddedText] = ()
    vectors: Mapping[str, Vectors] = field(default_factory=dict)
    """By the hash of the text."""

    def of(self, kind: Kind) -> dict[int, Vectors]:
        """Those of a kind, by their row."""
        return {gap.id: self.vectors[gap.hash] for gap in self.gaps if gap.kind == kind}


class MissingVectors:
    """Makes vectors for rows that the searches of a store meet without. Safe in several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._busy = threading.Lock()

    def made(self, search: ScoredSearch, seconds: float, *, turns: bool) -> MadeVectors:
        """Vectors for a few facts of a search's scopes, and with ``turns`` for turns of its app
        where there is room: as many as the service makes within so many seconds."""
        space, own = search.space, search.tx.own
        if seconds <= 0 or space is None or not space.service.local:
            return MadeVectors()
        found = self._texts(search, "fact", MOST)
        if turns and own:
            here = replace(search, ids=[own])
            found += self._texts(here, "turn", MOST - len(found))
        if not found:
            return MadeVectors()
        texts = {gap.hash: gap.text for gap in found}
        vectors = embeddings.get(search.tx, space.service_id, list(texts))
        new = {key: text for key, text in texts.items() if key not in vectors}
        vectors |= self._embedded(space, new, seconds)
        return MadeVectors(space, [gap for gap in found if gap.hash in vectors], vectors)

    def keep(self, made: MadeVectors) -> None:
        """Store the vectors. Where another process writes just now, or nothing can be written, the
        queue makes them later."""
        if made.space is None or not made.gaps:
            return
        try:
            with self._database.write_if_free() as tx:
                if embeddings.in_use(tx) == made.space.service_id:
                    # What was forgotten or reworded meanwhile gets no vector of the old words.
                    passages.keep_vectors(tx, made.space.service_id, made.vectors)
        except StoreError:
            log.info("%d vectors that a search made were not kept", len(made.gaps))

    def _texts(self, search: ScoredSearch, kind: Kind, limit: int) -> list[UnembeddedText]:
        """The texts of so many at most: those with the question's words first, then the newest."""
        unembedded_ids = search.unembedded(kind)
        if not unembedded_ids or limit < 1:
            return []
        bm25 = search.matches(kind).of(unembedded_ids) if len(unembedded_ids) > limit else {}
        chosen = sorted(unembedded_ids, key=lambda i: (-bm25.get(i, 0.0), -i))[:limit]
        return passages.texts(search.tx, kind, chosen)

    def _embedded(
        self, space: EmbeddingSpace, texts: Mapping[str, str], seconds: float
    ) -> dict[str, Vectors]:
        """What the service makes of these in that time; nothing where it is still busy for an
        earlier search."""
        if not texts or not self._busy.acquire(blocking=False):
            return {}
        made: dict[str, Vectors] = {}
        over = threading.Event()

        def work() -> None:
            try:
                # One by one: a text at fault costs no other its vector.
                for key, text in texts.items():
                    if over.is_set():
                        break
                    try:
                        made.update(embed_documents(space.embedder, {key: text})[0])
                    except MemChatError as error:
                        log.warning("a search could not embed a text: %s", error)
            finally:
                self._busy.release()

        thread = threading.Thread(target=work, name="memchat-fresh", daemon=True)
        thread.start()
        thread.join(seconds)
        over.set()
        return dict(made)


def reason(facts: int = 0, turns: int = 0, passages: int = 0) -> str | None:
    """The remark that so many rows could be ranked by their words only; None for none."""
    total = facts + turns + passages
    if not total:
        return None
    counted = [(facts, "fact", "facts")]
    counted.append((turns, "turn of past conversations", "turns of past conversations"))
    counted.append((passages, "passage of notes", "passages of notes"))
    parts = [f"{n} {one if n == 1 else many}" for n, one, many in counted if n]
    is_ = "is searched by its words only: its vector is still to come"
    are = "are searched by their words only: their vectors are still to come"
    return f"{' and '.join(parts)} {is_ if total == 1 else are}"


CANDIDATES = 20
Ranked = list[tuple[int, float]]
"""Ids with their scores, best first."""
_WORDS_ONLY_SHARE = 0.5
"""The share of a question's words that is enough where only words are searched."""
_WORDS_ONLY_RARE = 0.2
"""The share of the words' whole weight, in which rare ones count more, that is enough too."""
_MOST = 0.6
"""The share of a question's words with which half the floor's cosine is enough."""


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """A candidate's score and what it was made of; None where a list could not score it."""

    score: float
    cosine: float | None
    bm25: float | None
    dated: float | None = None
    """The share for the days that the question names."""
    confident: bool = True
    """Whether it passes the floor: with a near vector, or with enough of the words."""

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

    tx: Tx
    ids: Sequence[int]
    """The scope rows that are searched."""
    question: Question
    words: Sequence[str]
    required: Collection[str]
    """The words that a hit may have to hold: those that only name a day are not among them."""
    dates: DateRange | None
    ranking: str = "weighted"
    made: MadeVectors = field(default_factory=MadeVectors)
    """Vectors of rows that the index does not have yet."""
    only: frozenset[int] | None = None
    """The rows that may be found, where not all may."""

    @property
    def space(self) -> EmbeddingSpace | None:
        """The embedding space of the question's vector; None where only words are searched."""
        return self.question.space if self.question.vector is not None else None

    def found(
        self, kind: Kind, limit: int = CANDIDATES, without: Collection[int] = ()
    ) -> dict[int, ScoreParts]:
        """The candidates of a kind, by id, those that pass its floor and those that do not; never
        one of ``without``."""
        days = self.dates
        dated = days.rows(self.tx, kind, self.ids, without, self.only) if days else []
        matches = self.matches(kind)
        near, worded = self._lists(kind, matches, limit, without)
        by_words = matches.of(self.unembedded(kind).difference(without))
        unembedded = nlargest(limit, by_words, key=by_words.__getitem__)
        bm25 = matches.of((*_ids(worded), *_ids(near), *dated, *unembedded))
        cosine = dict(near)
        vector = self.question.vector
        if self.space is not None and vector is not None:
            unscored = [i for i in (*bm25, *dated) if i not in cosine]
            cosine |= self.space.index.scores(self.tx, self.ids, vector, unscored, kind)
            cosine |= {i: score for i, score in self._made_scores(kind) if i in unscored}
        if self.ranking == "rrf":
            scores = _reciprocal_ranks(near, worded, [(i, by_words[i]) for i in unembedded])
        else:
            scores = self.blended(cosine, bm25)
        passing = self._passing(kind, matches, cosine, bm25)
        shares = days.shares(dated) if days else {}
        # On the day asked about one of the words is enough: those of the day itself match nothing.
        passing |= {i for i in dated if i in bm25}
        if dated and days and days.only:
            # The other words are of no use: "what did I tell you yesterday?"
            passing, cosine, bm25, scores = set(dated), {}, {}, {}
        totals = {i: scores.get(i, 0.0) + shares.get(i, 0.0) for i in passing | scores.keys()}
        return {
            i: ScoreParts(total, cosine.get(i), bm25.get(i), shares.get(i), i in passing)
            for i, total in totals.items()
            if total > 0  # near only by a cosine that counts for nothing with this service
        }

    def unembedded(self, kind: Kind) -> set[int]:
        """The rows without a vector where vectors are searched: only words can rank them."""
        if self.space is None:
            return set()
        waiting = self.space.index.waiting(self.tx, self.ids, kind)
        return waiting.difference(self.made.of(kind))

    def matches(self, kind: Kind, *, replies: bool = False) -> Matches:
        """The rows with any of the question's words."""
        every = keywords.matches(self.tx, kind, self.ids, self.words, replies=replies)
        return every if self.only is None else every.among(self.only)

    def _lists(
        self, kind: Kind, matches: Matches, limit: int, without: Collection[int]
    ) -> tuple[Ranked, Ranked]:
        """The candidates by vector and by words, best first.

        Values that were replaced share one place: what is there now. Where they take places of
        others, both lists are filled up without those chains, and what that adds comes last.
        """
        near = self._nearest(kind, limit, without)
        worded = matches.best(limit, without)
        seen = set(without)
        while kind == "fact":
            unseen = [i for i in (*_ids(near), *_ids(worded)) if i not in seen]
            chains = changes.whole_chains(self.tx, self.ids, unseen)
            if chains <= seen:
                break
            seen |= chains
            near = _joined(near, self._nearest(kind, limit, seen))
            worded = _joined(worded, matches.best(limit, seen))
        return near, worded

    def _nearest(self, kind: Kind, limit: int, without: Collection[int]) -> Ranked:
        vector = self.question.vector
        if self.space is None or vector is None:
            return []
        selection = Selection(self.only, without)
        near = self.space.index.search(self.tx, self.ids, vector, limit, selection, kind)
        made = [hit for hit in self._made_scores(kind) if hit[0] not in without]
        return _joined(near, made)[:limit] if made else near

    def _made_scores(self, kind: Kind) -> Ranked:
        """The cosine of the rows that had no vector before this search."""
        vector = self.question.vector
        if vector is None or not self.made.gaps:
            return []
        return [(i, float(made @ vector)) for i, made in self.made.of(kind).items()]

    def blended(self, cosine: Mapping[int, float], bm25: Mapping[int, float]) -> dict[int, float]:
        """The hybrid score of each row that has either."""
        weight = self.space.service.cosine_weight if self.space is not None else 0.0
        best = max(bm25.values(), default=0.0)
        return {
            i: hybrid_score(cosine.get(i), bm25.get(i, 0.0), best, weight)
            for i in cosine.keys() | bm25.keys()
        }

    def _passing(
        self, kind: Kind, matches: Matches, cosine: dict[int, float], bm25: dict[int, float]
    ) -> set[int]:
        """What passes: near enough, or with all of the words, or with a number."""
        if self.space is None:
            return self.passing_by_words(matches, bm25)
        service = self.space.service
        floor = service.floor if kind == "fact" else service.message_floor
        passing = {i for i, score in cosine.items() if score >= floor}
        # A row without a vector can only pass by its words.
        unembedded = bm25.keys() - cosine.keys()
        facts = kind == "fact"  # short: one of their words tells more than one of a passage
        passing |= unembedded if facts else self.passing_by_words(matches, unembedded)
        enough = self._enough(matches)
        for i in bm25.keys() - passing:
            if enough(i, _MOST if cosine.get(i, 0.0) >= floor / 2 else 1.0):
                passing.add(i)
        return passing

    def passing_by_words(self, matches: Matches, ids: Iterable[int]) -> set[int]:
        """The rows without a vector that hold half of the question's words, rare ones among few, or
        a number of it: one common word in a long question means nothing."""
        enough, rare = self._enough(matches), _WORDS_ONLY_RARE / (matches.known or 1.0)
        bm25 = matches.of(ids)
        return {i for i in bm25 if enough(i, 0.0 if bm25[i] >= rare else _WORDS_ONLY_SHARE)}

    def _enough(self, matches: Matches) -> Callable[[int, float], bool]:
        """A test whether a row holds such a share of the required words, or a number or a code; a
        single digit is not enough, as many texts have one."""
        required = matches.bits(self.required)
        numbers = matches.bits([w for w in self.required if any(c.isdigit() for c in w)])
        codes = matches.bits([w for w in self.required if len(w) > 1]) & numbers

        def enough(i: int, share: float) -> bool:
            held = matches.bits_of(i) & required
            count = held.bit_count()
            number = held & codes or (held & numbers and count > 1)
            return bool(count and (number or count >= share * len(self.required)))

        return enough


def hybrid_score(cosine: float | None, bm25: float, best: float, weight: float) -> float:
    """weight x cosine + (1 - weight) x BM25 / best, from 0 to 1; ``best`` is the best BM25 of the
    query, ``weight`` the embedding service's. A row without a vector is scored by its words alone.
    """
    words = bm25 / best if best > 0 else 0.0
    return words if cosine is None else weight * max(cosine, 0.0) + (1 - weight) * words


def _reciprocal_ranks(near: Ranked, worded: Ranked, unembedded: Ranked) -> dict[int, float]:
    """The mean of reciprocal ranks, 1 for what stands first in both lists. What has no vector yet
    has the rank of its words in both."""
    waiting = dict(unembedded)
    scores: defaultdict[int, float] = defaultdict(float)
    for ranked in (dict(near), dict(worded) | waiting):
        for rank, i in enumerate(ranked, 1):
            scores[i] += (K + 1) / (K + rank) / (1 if i in waiting else 2)
    return scores


def _ids(found: Ranked) -> list[int]:
    return [i for i, _ in found]


def _joined(found: Ranked, more: Ranked) -> Ranked:
    known = {i for i, _ in found}
    both = [*found, *(hit for hit in more if hit[0] not in known)]
    return sorted(both, key=lambda hit: (-round(hit[1], 6), hit[0]))
