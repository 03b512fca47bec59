"""Sends batches of texts to a service, while earlier answers are written and new batches taken.

Writing and taking are one transaction, in a thread of its own, so that the service waits for the
store as little as possible; where it does wait, more batches are taken ahead and written together.
A service on the network is sent several batches at once, as soon as it has answered once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from memchat.errors import MemChatError
from memchat.memory.embedding.batch_split import BatchSplitter, EmbeddingAnswer
from memchat.memory.embedding.threads import DaemonThreads

if TYPE_CHECKING:
    from memchat.types import Service

CALLS = 4
"""Concurrent calls to a service on the network; a model on this machine gets one at a time."""
AHEAD = 8
"""The most batches taken ahead, for a service that is quicker than the disk."""


class TextBatch(Protocol):
    """Texts that are sent together."""

    @property
    def texts(self) -> Mapping[str, str]:
        """By hash."""
        ...

    @property
    def more(self) -> bool:
        """Whether there may be more batches after those taken with it."""
        ...

    @property
    def alone(self) -> bool:
        """Whether nothing else is sent or taken meanwhile: it may crash its worker."""
        ...


B = TypeVar("B", bound=TextBatch)
Finished = list[tuple[B, EmbeddingAnswer]]


class _Call(Generic[B]):
    """A batch that was sent to the service."""

    def __init__(
        self, batch: B, texts: Mapping[str, str], send: Callable[..., Future[EmbeddingAnswer]]
    ):
        self.batch = batch
        self.texts = texts
        self.answer = EmbeddingAnswer()
        self._send = send
        self.future = send(texts)

    def result(self) -> EmbeddingAnswer:
        """All that the service answered; waits for it."""
        self.answer.add(self.future.result())
        return self.answer

    def resend(self) -> None:
        """Send again what the service failed to answer, if anything."""
        later = self.future.result()
        if later.down is not None:
            self.answer.add(later)
            rest = {key: self.texts[key] for key in self.texts if key not in self.answer.vectors}
            self.future = self._send(rest)


class Pipeline(Generic[B]):
    """One run, from the first batch until ``write_and_take`` gives no more."""

    def __init__(
        self,
        service: Service,
        splitter: BatchSplitter,
        write_and_take: Callable[[Finished[B], int], list[B]],
        wait_to_retry: Callable[[MemChatError, int], bool],
    ) -> None:
        """``write_and_take`` writes what is finished and takes so many batches at most.
        ``wait_to_retry`` waits where a service that failed may answer later, and gives whether to
        send again; its second argument is the number of retries before in a row.
        """
        self._most = 1 if service.local else CALLS
        self._splitter = splitter
        self._write_and_take = write_and_take
        self._wait_to_retry = wait_to_retry
        self._stock: deque[B] = deque()
        self._calls: deque[_Call[B]] = deque()
        self._finished: Finished[B] = []
        self._writing: Future[list[B]] | None = None
        self._sent: set[str] = set()
        """The hashes of texts that were sent and are not written yet: none is sent twice."""
        self._ahead = 1
        self._answered = False
        self._more = True
        self._wanted = 0
        self._written: set[str] = set()
        self._retries = 0
        self._down: MemChatError | None = None

    def run(self) -> MemChatError | None:
        """Embed everything; gives the error that ended the run early, if one did."""
        with (
            DaemonThreads("memchat-store") as self._store,
            DaemonThreads("memchat-embed", self._most, always_wait=False) as self._service,
        ):
            self._end(self._begin(1))
            while self._stock:
                while self._stock or self._calls or self._writing is not None:
                    self._send()
                    self._start_writing()
                    self._wait()
                self._end(self._begin(1 if self._down is None else 0))
        return self._down

    def _send(self) -> None:
        while self._stock and len(self._calls) < self._concurrency():
            batch = self._stock.popleft()
            new = {k: text for k, text in batch.texts.items() if k not in self._sent}
            self._sent |= new.keys()
            self._calls.append(_Call(batch, new, self._call))

    def _call(self, texts: Mapping[str, str]) -> Future[EmbeddingAnswer]:
        return self._service.begin(partial(self._splitter.ask, texts))

    def _concurrency(self) -> int:
        """How many calls there may be at once now."""
        alone = self._one_alone() or (bool(self._stock) and self._stock[0].alone)
        return self._most if self._answered and not alone else 1

    def _one_alone(self) -> bool:
        return any(call.batch.alone for call in self._calls)

    def _start_writing(self) -> None:
        waiting = not self._stock and len(self._calls) < self._concurrency()
        if self._writing is not None:
            if waiting:
                self._ahead = min(2 * self._ahead, AHEAD)  # the service waits for the store
            return
        wanted = self._ahead - len(self._stock)
        if not self._more or self._down is not None or self._one_alone():
            wanted = 0
        if self._finished or wanted > 0:
            self._writing = self._begin(max(0, wanted))

    def _begin(self, wanted: int) -> Future[list[B]]:
        finished, self._finished = self._finished, []
        self._wanted = wanted
        self._written = {key for _, answer in finished for key in answer.keys}
        return self._store.begin(partial(self._write_and_take, finished, wanted))

    def _end(self, writing: Future[list[B]]) -> None:
        batches = writing.result()
        self._sent -= self._written
        if self._wanted:
            self._more = bool(batches) and batches[-1].more
        if self._down is None:
            self._stock += batches

    def _wait(self) -> None:
        """Wait for the oldest call, or for what is being written."""
        futures: list[Future[Any]] = []
        if self._calls:
            futures.append(self._calls[0].future)
        if self._writing is not None:
            futures.append(self._writing)
        wait_for(futures, return_when=FIRST_COMPLETED)
        if self._writing is not None and self._writing.done():
            self._end(self._writing)
            self._writing = None
        while self._calls and self._calls[0].future.done():
            self._finish_call()

    def _finish_call(self) -> None:
        call = self._calls[0]
        later = call.future.result()
        if later.down is not None and self._wait_to_retry(later.down, self._retries):
            self._retries += 1
            for one in self._calls:  # those sent meanwhile failed in the same pause
                one.resend()
            return
        self._calls.popleft()
        answer = call.result()
        self._finished.append((call.batch, answer))
        if answer.down is None:
            self._retries = 0
            self._answered = True
        else:
            self._down = self._down or answer.down
            self._stock.clear()
