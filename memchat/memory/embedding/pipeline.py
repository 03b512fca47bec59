"""Batches of texts through a service, while what came back is written and the next is taken.

Writing and taking are one turn, in a thread of its own and one transaction, so that the service
waits for the store as little as can be; where it has to, more is taken ahead and written together.
A service on the network is asked for several batches at once, as soon as it has answered once.
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
"""Calls that are under way at once on the network; a model on this machine is asked by one."""
AHEAD = 8
"""Batches that are taken ahead at most, for a service that is quicker than the disk."""


class Batch(Protocol):
    """Texts that are sent together."""

    @property
    def texts(self) -> Mapping[str, str]:
        """By hash."""
        ...

    @property
    def more(self) -> bool:
        """Whether others may wait behind what was taken with it."""
        ...

    @property
    def alone(self) -> bool:
        """Whether nothing is asked or taken beside it: it may take its worker down."""
        ...


B = TypeVar("B", bound=Batch)
Finished = list[tuple[B, EmbeddingAnswer]]


class _Call(Generic[B]):
    """A batch that the service was asked for."""

    def __init__(
        self, batch: B, texts: Mapping[str, str], ask: Callable[..., Future[EmbeddingAnswer]]
    ):
        self.batch = batch
        self.texts = texts
        self.answer = EmbeddingAnswer()
        self._ask = ask
        self.future = ask(texts)

    def home(self) -> EmbeddingAnswer:
        """All that the service made of it, once that is there."""
        self.answer.add(self.future.result())
        return self.answer

    def again(self) -> None:
        """Ask for what the service did not come to, if that is so."""
        later = self.future.result()
        if later.down is not None:
            self.answer.add(later)
            rest = {key: self.texts[key] for key in self.texts if key not in self.answer.vectors}
            self.future = self._ask(rest)


class Pipeline(Generic[B]):
    """One run, from the first batch to where ``turn`` gives none any more."""

    def __init__(
        self,
        service: Service,
        asking: BatchSplitter,
        turn: Callable[[Finished[B], int], list[B]],
        patience: Callable[[MemChatError, int], bool],
    ) -> None:
        """``turn`` writes what is finished and takes so many batches at most. ``patience`` waits
        where a service that failed may answer later, and says whether to ask it again; it is told
        how often that was done in a row.
        """
        self._most = 1 if service.local else CALLS
        self._asking = asking
        self._turn = turn
        self._patience = patience
        self._stock: deque[B] = deque()
        self._calls: deque[_Call[B]] = deque()
        self._finished: Finished[B] = []
        self._writing: Future[list[B]] | None = None
        self._on_their_way: set[str] = set()
        """The hashes of texts that were sent and are not written: they are sent once."""
        self._ahead = 1
        self._answered = False
        self._more = True
        self._wanted = 0
        self._written: set[str] = set()
        self._waits = 0
        self._down: MemChatError | None = None

    def run(self) -> MemChatError | None:
        """Embed; gives why the service was asked no more, where it was not done."""
        with (
            DaemonThreads("memchat-store") as self._store,
            DaemonThreads("memchat-embed", self._most, always_wait=False) as self._service,
        ):
            self._end(self._begin(1))
            while self._stock:
                while self._stock or self._calls or self._writing is not None:
                    self._send()
                    self._write_beside()
                    self._await()
                self._end(self._begin(1 if self._down is None else 0))
        return self._down

    def _send(self) -> None:
        while self._stock and len(self._calls) < self._room():
            batch = self._stock.popleft()
            new = {k: text for k, text in batch.texts.items() if k not in self._on_their_way}
            self._on_their_way |= new.keys()
            self._calls.append(_Call(batch, new, self._ask))

    def _ask(self, texts: Mapping[str, str]) -> Future[EmbeddingAnswer]:
        return self._service.begin(partial(self._asking.ask, texts))

    def _room(self) -> int:
        """How many calls there may be now."""
        careful = self._careful() or (bool(self._stock) and self._stock[0].alone)
        return self._most if self._answered and not careful else 1

    def _careful(self) -> bool:
        return any(call.batch.alone for call in self._calls)

    def _write_beside(self) -> None:
        waiting = not self._stock and len(self._calls) < self._room()
        if self._writing is not None:
            if waiting:
                self._ahead = min(2 * self._ahead, AHEAD)  # the service waits for the store
            return
        wanted = self._ahead - len(self._stock)
        if not self._more or self._down is not None or self._careful():
            wanted = 0
        if self._finished or wanted > 0:
            self._writing = self._begin(max(0, wanted))

    def _begin(self, wanted: int) -> Future[list[B]]:
        finished, self._finished = self._finished, []
        self._wanted = wanted
        self._written = {key for _, answer in finished for key in answer.keys}
        return self._store.begin(partial(self._turn, finished, wanted))

    def _end(self, writing: Future[list[B]]) -> None:
        batches = writing.result()
        self._on_their_way -= self._written
        if self._wanted:
            self._more = bool(batches) and batches[-1].more
        if self._down is None:
            self._stock += batches

    def _await(self) -> None:
        """Until the oldest call is home, or what is being written is."""
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
            self._take_home()

    def _take_home(self) -> None:
        call = self._calls[0]
        later = call.future.result()
        if later.down is not None and self._patience(later.down, self._waits):
            self._waits += 1
            for one in self._calls:  # those sent beside it fell into the same pause
                one.again()
            return
        self._calls.popleft()
        answer = call.home()
        self._finished.append((call.batch, answer))
        if answer.down is None:
            self._waits = 0
            self._answered = True
        else:
            self._down = self._down or answer.down
            self._stock.clear()
