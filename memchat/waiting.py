"""Waiting that holds no thread: for models, for work beside, for time.

A program that uses ``await`` runs each verb on a ``Lane``: a thread with an event loop, where the
verb is a greenlet. What waits through this module then gives its thread to the other verbs of the
lane; in any other thread the same functions just block. No lock and no transaction may be held over
a wait.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from contextvars import Context
from typing import Any, Generic, TypeVar

from memchat.errors import StoreError

T = TypeVar("T")
AT_ONCE = 100
"""Verbs of a lane that are under way; further ones wait, as each may hold a socket."""
LONG_SECONDS = 0.01
"""How long a verb may work on a lane before the calls that follow take another."""


class _Here(threading.local):
    """The lane of this thread."""

    lane: Lane | None = None


_here = _Here()


class Call(Future[T]):
    """What a verb on a lane will give. ``stop`` ends it at its next wait, or before it begins."""

    def __init__(self, lane: Lane) -> None:
        super().__init__()
        self._lane = lane

    def stop(self) -> None:
        """May be called from any thread, more than once; nothing happens once it is done."""
        self._lane._soon(lambda: self in self._lane._tasks and self._lane._tasks[self].cancel())


class Lane:
    """A thread on which many verbs wait at once, and one of them works."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._closed = False
        self._worked_from: float | None = None
        self.under_way = 0
        self._tasks: dict[Call[Any], asyncio.Task[Any]] = {}
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def begin(self, work: Callable[[], T], *, part: bool = False) -> Call[T]:
        """Do ``work`` on this lane, beginning soon; as ``part`` of a verb it takes no place of its
        own. Raises StoreError once the lane is closed."""
        call: Call[T] = Call(self)

        def start() -> None:
            task = self._loop.create_task(self._done(work, part), context=Context())
            self._tasks[call] = task
            task.add_done_callback(ended)

        def ended(task: asyncio.Task[T]) -> None:
            del self._tasks[call]
            with self._lock:
                self.under_way -= not part
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is None:
                call.set_result(task.result())
            else:
                call.set_exception(error)

        with self._lock:  # so that nothing comes behind what ends the loop
            if self._closed:
                raise StoreError("the store is closed; open it again with AsyncMemChat(…)")
            self.under_way += not part
            self._loop.call_soon_threadsafe(start)
        return call

    @property
    def stuck(self) -> bool:
        """Whether it takes up no call soon: all places are taken, or a verb has worked for long, as
        behind another process's write."""
        since = self._worked_from
        working = since is not None and time.monotonic() - since > LONG_SECONDS
        return working or self.under_way >= AT_ONCE

    def close(self) -> None:
        """Stop what is under way, wait until it has come to its end, and end the thread. Not to be
        called on a lane."""

        async def stop() -> None:
            while self._tasks:
                for task in self._tasks.values():
                    task.cancel()
                await asyncio.wait(self._tasks.values())

        with self._lock:
            if not self._closed:
                self._closed = True
                stopping = asyncio.run_coroutine_threadsafe(stop(), self._loop)
                stopping.add_done_callback(lambda _: self._soon(self._loop.stop))
        self._thread.join()

    def _soon(self, do: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the lane is closed, and nothing waits there
            self._loop.call_soon_threadsafe(do)

    def _run(self) -> None:
        _here.lane = self
        self._places = asyncio.Semaphore(AT_ONCE)
        self._loop.run_forever()
        self._loop.close()

    async def _done(self, work: Callable[[], T], part: bool) -> T:
        from sqlalchemy.util import greenlet_spawn

        def working() -> T:
            self._worked_from = time.monotonic()
            try:
                return work()
            finally:
                self._worked_from = None

        async with nullcontext() if part else self._places:
            return await greenlet_spawn(working)


def in_lane() -> bool:
    """Whether this is a verb on a lane."""
    return _here.lane is not None


def beside(name: str, work: Callable[[], T]) -> Future[T]:
    """Begin work that goes on by itself: on the same lane, else in a daemon thread of this name."""
    if _here.lane is not None:
        return _here.lane.begin(work, part=True)
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def result(future: Future[T], seconds: float | None = None) -> T:
    """What the future gives. Raises what it raised, or TimeoutError after so many seconds."""
    if _here.lane is None:
        return future.result(seconds)
    loop = _here.lane._loop
    done = loop.create_future()
    soon = _here.lane._soon
    future.add_done_callback(lambda _: soon(functools.partial(_set, done)))
    if not future.done():
        _await(asyncio.wait((done,), timeout=seconds))
    return future.result(0)


def _set(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def sleep(seconds: float) -> None:
    """Wait so many seconds."""
    if _here.lane is None:
        time.sleep(seconds)
    else:
        _await(asyncio.sleep(seconds))


def patiently(acquire: Callable[..., bool], seconds: float) -> bool:
    """Whether a lock could be had in so many seconds. On a lane the other verbs go on meanwhile."""
    if _here.lane is None:
        return acquire(timeout=seconds)
    until = time.monotonic() + seconds
    while not acquire(blocking=False):
        if time.monotonic() > until:
            return False
        sleep(0.002)
    return True


def in_executor(work: Callable[[], T]) -> T:
    """What ``work`` gives, which computes or cannot wait on a lane: from one of a few threads
    there, so that the others of the lane go on; anywhere else it is just done."""
    return work() if _here.lane is None else result(_executor().submit(work))


@functools.cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2 * (os.cpu_count() or 1) + 2, "memchat-executor")


def for_socket(descriptor: int, seconds: float | None, *, writing: bool = False) -> bool:
    """On a lane, wait until a socket can be read, or written; False once the time is over."""
    assert _here.lane is not None
    loop = _here.lane._loop
    ready = loop.create_future()
    add, remove = (
        (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    )
    add(descriptor, _set, ready)
    try:
        _await(asyncio.wait((ready,), timeout=seconds))
    finally:
        remove(descriptor)
    return ready.done()


def _await(what: Coroutine[Any, Any, object]) -> None:
    from sqlalchemy.util import await_only

    lane = _here.lane
    assert lane is not None
    lane._worked_from = None
    try:
        await_only(what)
    finally:
        lane._worked_from = time.monotonic()


class Event:
    """Something that happens once, and that any number wait for."""

    def __init__(self) -> None:
        self._happened = False
        self._waiting: set[Future[None]] = set()

    def set(self) -> None:
        """Say that it has happened; from any thread, more than once."""
        self._happened = True
        for future in list(self._waiting):
            with suppress(InvalidStateError):
                future.set_result(None)

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._happened

    def wait(self, seconds: float) -> bool:
        """Whether it happens within so many seconds."""
        future: Future[None] = Future()
        self._waiting.add(future)
        try:
            with suppress(TimeoutError):
                if not self._happened:
                    result(future, seconds)
        finally:
            self._waiting.discard(future)
        return self._happened


class Mailbox(Generic[T]):
    """A queue that any thread puts into and one reader takes from."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._came: Future[None] = Future()
        self._lock = threading.Lock()

    def put(self, item: T) -> None:
        """Add an item."""
        with self._lock:
            self._items.append(item)
            if not self._came.done():
                self._came.set_result(None)

    def get(self, seconds: float | None = None) -> T:
        """The next item. Raises TimeoutError after so many seconds."""
        while True:
            with self._lock:
                if self._items:
                    return self._items.popleft()
                came = self._came = Future()
            result(came, seconds)
