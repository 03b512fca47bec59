"""How long a reply waits for its question's vector; after that only words are searched.

The service goes on meanwhile, and a late vector is stored for the next time. A service whose last
answer took a little longer than the limit, as one on the network may, is given that time; one that
hangs or has not answered yet is not, and while it hangs no new question is sent. A model that this
machine has to load first is waited for once, as long as loading takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass

from memchat.errors import MemChatError
from memchat.memory.embedding.space import Question, shortened
from memchat.types import clean_text

STRETCH = 4
"""A service whose last answer took up to so many times the limit is waited for so long; one that
takes longer is said to hang."""
LOADING = 10.0
"""Seconds that the first question waits for a model that is being loaded."""
LOST = 60.0
"""Seconds after which a question is given up, and a service that hung is tried again."""


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """A question whose vector is being made."""

    text: str
    future: Future[Question]

    def arrived(self) -> Question | None:
        """The question with its vector, where that is there by now; None also after a failure."""
        if not self.future.done() or self.future.exception() is not None:
            return None
        return self.future.result()


class QueryTimeout:
    """Makes the vector in a thread of its own, and waits so long. Safe in several threads."""

    def __init__(
        self, seconds: float, embed: Callable[[str], Question], *, loads: bool = False
    ) -> None:
        """``embed`` gives the question with its vector, however long that takes; ``loads`` says
        that its first answer waits for a model to be loaded."""
        self._seconds = seconds
        self._embed = embed
        self._loading = LOADING if loads else 0.0
        """Seconds to wait for the loading; 0 once it is done, or took too long."""
        self._last: float | None = None
        self._open: dict[Future[Question], float] = {}
        """When each question without an answer was sent."""
        self._lock = threading.Lock()

    def start(self, text: str) -> PendingQuery:
        """Begin to make the vector, unless the service hangs: then only words are searched."""
        query = PendingQuery(text, Future())
        with self._lock:
            hangs = self._hangs()
            if not hangs:
                self._open[query.future] = time.monotonic()
        if hangs:
            why = "the embedding service still owes an earlier answer"
            query.future.set_result(_without_vector(text, why))
            return query
        threading.Thread(
            target=self._run, args=(query,), name="memchat-question", daemon=True
        ).start()
        return query

    def wait(self, query: PendingQuery, seconds: float | None = None) -> Question:
        """The question with its vector, or without where that takes too long, or ``seconds``.

        Raises what making it raised, e.g. SchemaError for the vectors of another service.
        """
        limit = self._limit() if seconds is None else seconds
        try:
            return query.future.result(timeout=limit)
        except NotYet:
            if seconds is None:
                self._last = None  # the time it took before says nothing about the next
                self._loading = 0.0
            return _without_vector(
                query.text,
                f"the embedding service did not answer within {limit:g} s; "
                "MEMCHAT_EMBED_PATIENCE gives it longer",
            )

    def _hangs(self) -> bool:
        """Whether an earlier question has waited longer than the longest limit."""
        now = time.monotonic()
        self._open = {
            future: begun
            for future, begun in self._open.items()
            if not future.done() and now - begun < LOST
        }
        limit = max(STRETCH * self._seconds, self._loading)
        return any(now - begun > limit for begun in self._open.values())

    def _limit(self) -> float:
        late = self._last is not None and self._seconds < self._last <= STRETCH * self._seconds
        return max(self._seconds * (STRETCH if late else 1), self._loading)

    def _run(self, query: PendingQuery) -> None:
        started = time.monotonic()
        try:
            question = self._embed(query.text)
        except MemChatError as error:
            query.future.set_exception(error)
            return
        if question.usage is not None:
            # The time that loading took says nothing about the next answer.
            self._last = None if self._loading else time.monotonic() - started
            self._loading = 0.0
        query.future.set_result(question)


def _without_vector(text: str, why: str) -> Question:
    return Question(shortened(clean_text(text)), degraded=f"searched by words only: {why}")
