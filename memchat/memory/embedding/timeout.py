"""How long a reply waits for its question's vector: then words alone are searched.

The service goes on meanwhile, and what comes late is kept for the next time. A service known to
take a little longer than the limit, as one on the network may, is given that little more; one that
hangs or has not answered yet is not; and while it hangs it is asked nothing new. A model that this
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
"""A service whose last answer took up to so many times the limit is waited for as long; one that
takes longer hangs."""
LOADING = 10.0
"""Seconds that the first question waits for a model that is being loaded."""
LOST = 60.0
"""Seconds after which a question is taken for lost, and a service that hung is tried again."""


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """A question on its way to its vector."""

    text: str
    future: Future[Question]

    def arrived(self) -> Question | None:
        """The question with its vector, where that has come by now; a failure gives None."""
        if not self.future.done() or self.future.exception() is not None:
            return None
        return self.future.result()


class QueryTimeout:
    """Asks in a thread of its own, and waits for so long. Safe in several threads."""

    def __init__(
        self, seconds: float, find: Callable[[str], Question], *, loads: bool = False
    ) -> None:
        """``find`` gives the question with its vector, however long that takes; ``loads`` says that
        its first answer waits for a model to be loaded."""
        self._seconds = seconds
        self._find = find
        self._loading = LOADING if loads else 0.0
        """How long that is waited for; 0 once it is loaded, or did not come in time."""
        self._last: float | None = None
        self._open: dict[Future[Question], float] = {}
        """When each question began that has no answer yet."""
        self._lock = threading.Lock()

    def start(self, text: str) -> PendingQuery:
        """Begin to look for the vector, unless the service hangs: then words are the answer."""
        asked = PendingQuery(text, Future())
        with self._lock:
            hangs = self._hangs()
            if not hangs:
                self._open[asked.future] = time.monotonic()
        if hangs:
            why = "the embedding service still owes an earlier answer"
            asked.future.set_result(_by_words(text, why))
            return asked
        threading.Thread(
            target=self._look, args=(asked,), name="memchat-question", daemon=True
        ).start()
        return asked

    def wait(self, asked: PendingQuery, seconds: float | None = None) -> Question:
        """The question with its vector, or without where that takes too long, or ``seconds``.

        Raises what finding it raised, e.g. SchemaError for the vectors of another service.
        """
        limit = self._limit() if seconds is None else seconds
        try:
            return asked.future.result(timeout=limit)
        except NotYet:
            if seconds is None:
                self._last = None  # what it took before tells nothing now
                self._loading = 0.0
            return _by_words(
                asked.text,
                f"the embedding service did not answer within {limit:g} s; "
                "MEMCHAT_EMBED_PATIENCE gives it longer",
            )

    def _hangs(self) -> bool:
        """Whether an earlier question has waited for longer than any is waited for."""
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

    def _look(self, asked: PendingQuery) -> None:
        started = time.monotonic()
        try:
            question = self._find(asked.text)
        except MemChatError as error:
            asked.future.set_exception(error)
            return
        if question.usage is not None:
            # What loading took says nothing of the next answer.
            self._last = None if self._loading else time.monotonic() - started
            self._loading = 0.0
        asked.future.set_result(question)


def _by_words(text: str, why: str) -> Question:
    return Question(shortened(clean_text(text)), degraded=f"searched by words only: {why}")
