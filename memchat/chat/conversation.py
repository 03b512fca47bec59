"""What the turns of one session share: its messages and what earlier turns left open, a reply as
it arrives, its reading for facts, and its lease. While that is renewed, no other process may go on
with the session; within a process it goes on in the chat that resumed it last."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import RLock

from memchat import processes, waiting
from memchat.chat.command_replies import CodeReply, ForgetChoice
from memchat.config import Settings
from memchat.db import Tx, apps, jobs, messages, sessions, usage
from memchat.db.database import Database
from memchat.errors import MemChatError, StoreError
from memchat.forget import purge
from memchat.jobs.worker import Worker, close_session, set_memory
from memchat.notes.search import NotesBlock
from memchat.prompts import Prompts
from memchat.providers import ChatModel, ChatStream
from memchat.search import render
from memchat.search.embed import PendingQuery, QueryTimeout, shortened
from memchat.search.facts import ModelFilter
from memchat.search.prompt_block import PromptBlock
from memchat.search.search import Recall
from memchat.types import Change, Learned, MemorySwitch, Message, Recalled, Scope, checked_timeout


@dataclass(frozen=True, slots=True)
class Parts:
    """The store, the models and the services that a conversation uses."""

    database: Database
    settings: Settings
    prompts: Prompts
    clock: Callable[[], datetime]
    model: Callable[[str | None], ChatModel]
    """The model that answers, or the one of a name."""
    recall: Recall
    block: PromptBlock
    notes: NotesBlock
    query_timeout: QueryTimeout
    worker: Worker
    model_filter: ModelFilter | None
    """None where it is not switched on."""


class Conversation:
    """The state of a session between its turns. An incognito one exists in this object alone."""

    def __init__(self, parts: Parts, scope: Scope, session_id: int | None, incognito: bool) -> None:
        self.parts = parts
        self.scope = scope
        self.session_id = session_id
        """None until the first message is stored, and always when incognito."""
        self.incognito = incognito
        self.fence_mark = render.new_mark()
        """The mark of the fence around memories: one for the session, so that the beginning of its
        prompts stays the same."""
        self.turns: list[Message] = []
        self.left_out: frozenset[int] = frozenset()
        """Ids of stored turns that a new reply is about to replace."""
        self.drawn_facts: set[purge.Fact] = set()
        """The facts that were drawn from the turns."""
        self.choice: ForgetChoice | None = None
        """The question that the last reply ended with."""
        self.pending_queries: list[PendingQuery] = []
        """The searches whose vector is not stored yet."""
        self.own_switch = True
        """Whether memory is on for it by its own switch; its row has that once it is stored."""
        self.model_name: str | None = None
        """The model that answers in it; None for the one of the settings."""

    @property
    def memory(self) -> MemorySwitch:
        """Whether memory takes part, as it stands now."""
        if self.incognito:
            return MemorySwitch(False, "incognito")
        with self.parts.database.read() as tx:
            found = None if self.session_id is None else sessions.by_id(tx, self.session_id)
            if found is not None:
                self.own_switch = found[0].memory
                return apps.memory_of(tx, found[0])
            switch = apps.memory_switch(tx, self.scope)
        return switch if self.own_switch or not switch.on else apps.OFF_HERE

    def set_memory(self, *, on: bool) -> None:
        """Set its own switch, also before anything is stored of it."""
        self.own_switch = on
        if self.session_id is not None:
            with self.parts.database.write() as tx:
                found = sessions.by_id(tx, self.session_id)
                if found is not None:
                    set_memory(tx, found[0], on=on)

    def load(self, tx: Tx, session_id: int) -> None:
        """Read the turns of the session, and the facts drawn from them."""
        stored = messages.of_session(tx, session_id)
        self.turns = [turn for turn in stored if turn.id not in self.left_out]
        self.drawn_facts = purge.facts_in_turns(tx, self.turns)

    def reload(self) -> None:
        """Read the turns again: some of their words may have been forgotten meanwhile."""
        if self.session_id is not None:
            with self.parts.database.read() as tx:
                self.load(tx, self.session_id)

    def store_query_vectors(self, tx: Tx) -> None:
        """Store the vectors of messages that have arrived by now; the others stay pending.

        The vector of two messages together is not stored: it would outlive either of them.
        """
        if self.session_id is not None:
            self.load(tx, self.session_id)  # a message may have been deleted meanwhile
        said = {shortened(turn.content) for turn in self.turns}
        pending = []
        for query in self.pending_queries:
            question = query.arrived()
            if question is not None:
                if question.usage is not None:
                    usage.add(tx, tx.own, self.session_id, question.usage)
                if question.text in said:
                    self.parts.recall.store_vector(tx, question)
            elif not query.future.done():
                pending.append(query)
        self.pending_queries = pending


_STOP_SECONDS = 5.0
"""How long ``stop`` waits for another thread that reads the reply."""


class Reply:
    """A reply as it arrives: iterate for its pieces, or ``read`` all of it.

    ``shown`` are the memories that were injected, ``message_id`` its row once it is stored,
    ``done`` what the turn itself saved, held back or forgot, whatever the model says about it.
    """

    def __init__(self, pieces: Generator[str, None, None], timeout: float | None = None) -> None:
        """``pieces`` first gives an empty one, which is taken here: so it has begun, and closing it
        always runs its end. ``timeout`` is how many seconds it may take from when it is waited
        for, None for as long as it takes."""
        self.shown = Recalled()
        self.by_code = CodeReply()
        """What code says in it, and did."""
        self.message_id: int | None = None
        self.dropped_turns = 0
        """Turns of the conversation that did not fit the model's window."""
        self.stream: ChatStream | None = None
        """The model's answer; None where no model was asked."""
        self.cut: str | None = None
        """Why the model's words ended early, in one line; None where they did not."""
        self.stopped = False
        self._received: list[str] = []
        self._pieces = pieces
        self._timeout = timeout
        self._seconds: float | None = None
        self._ends_at: float | None = None
        """The time that whoever waits for the next piece gave it, and when that is over."""
        self._reading = RLock()
        next(pieces)

    def __iter__(self) -> Iterator[str]:
        return self._pieces_within(self._timeout)

    @property
    def received(self) -> str:
        """What came so far; nothing where a reply failed that was to replace another."""
        return "".join(self._received)

    @property
    def done(self) -> tuple[Change, ...]:
        """What was done to the memory: as in ``Learned``, and ``forgotten`` without its words."""
        return self.by_code.changes

    def read(self, timeout: float | None = None) -> str:
        """Wait for what is still to come, and return the whole reply.

        With ``timeout`` it is stopped after so many seconds, as by ``stop``: what came by then is
        returned and kept, and ``cut`` says so. Raises ProviderError where the provider fails,
        InputError for a ``timeout`` that is no number of seconds.
        """
        seconds = self._timeout if timeout is None else checked_timeout(timeout)
        for _ in self._pieces_within(seconds):
            pass
        return self.received

    def add(self, piece: str) -> None:
        """Take the next piece."""
        self._received.append(piece)

    def discard(self) -> None:
        """Drop what came."""
        self._received.clear()

    def stop(self) -> None:
        """Cut the reply; what came of it is stored as a partial one when this returns, unless the
        thread that reads it is busy for long. Any thread may call it."""
        self.stopped = True
        if self.stream is not None:
            self.stream.close()  # another thread may be waiting for its next piece
        if self._reading.acquire(timeout=_STOP_SECONDS):
            try:
                with contextlib.suppress(ValueError):  # called from within the reply itself
                    self._pieces.close()
            finally:
                self._reading.release()

    def seconds_left(self) -> float | None:
        """How long its next piece may be waited for; None for as long as it takes."""
        return _seconds_until(self._ends_at)

    def end_late(self) -> None:
        """Note that its time was over before its end."""
        self.stopped = True
        self.cut = f"The reply was ended after {self._seconds:g} s, the time it was given."

    def _pieces_within(self, seconds: float | None) -> Iterator[str]:
        """The pieces that come in so many seconds; then the reply is stopped."""
        ends_at = None if seconds is None else time.monotonic() + seconds
        while (piece := self._next(seconds, ends_at)) is not None:
            yield piece

    def _next(self, seconds: float | None, ends_at: float | None) -> str | None:
        """The next piece; None at the end. One thread at a time takes one."""
        left = _seconds_until(ends_at)
        if not self._reading.acquire(timeout=-1 if left is None else left):
            self._seconds = seconds
            self.end_late()
            self.stop()
            return None
        try:
            self._seconds, self._ends_at = seconds, ends_at
            return next(self._pieces, None)
        finally:
            self._reading.release()


def _seconds_until(moment: float | None) -> float | None:
    return None if moment is None else max(moment - time.monotonic(), 0.0)


class Reader:
    """Runs the queued reading of one session."""

    def __init__(self, conversation: Conversation) -> None:
        self.learned: Learned | None = None
        """What the last reading taught."""
        self.failure: str | None = None
        """Why the last reading did not succeed; it is queued and tried again."""
        self.must_embed = False
        """Whether a command saved facts that have no vector yet."""
        self._parts = conversation.parts
        self._conversation = conversation
        self._reading: Future[Learned | None] | None = None

    @property
    def running(self) -> bool:
        """Whether the conversation is being read beside."""
        return self._reading is not None and not self._reading.done()

    def start(self) -> None:
        """Read it beside, where that is not done yet."""
        if not self.running:
            self._reading = waiting.beside("memchat-reader", self.read)

    def join(self) -> None:
        """Wait for that reading, where there is one."""
        if self._reading is not None:
            with contextlib.suppress(MemChatError):  # its job is tried again, and then says so
                waiting.result(self._reading)

    def read(self) -> Learned | None:
        """Read now; gives what the session taught."""
        session_id = self._conversation.session_id
        if self.must_embed:
            # First, so that the reading finds the facts that were saved in this conversation.
            self.must_embed = False
            self._parts.worker.run(user=self._conversation.scope.user, kinds=("embed",))
        done = self._parts.worker.run(kinds=("extract", "verify"), target_id=session_id)
        read = [one for one in done.learned if one.skipped is None]
        if read:
            changes = tuple(change for one in read for change in one.changes)
            self.learned = replace(read[0], changes=changes)
        self.failure = done.errors[-1] if done.errors else None
        if not done.learned and not done.failed and session_id is not None:
            with self._parts.database.read() as tx:
                if jobs.due_at(tx, "extract", session_id):
                    self.failure = "it is being read by another process"
        return self.learned


log = logging.getLogger(__name__)

LEASE_SECONDS = 60.0


def _until(tx: Tx) -> datetime:
    """When a lease that is taken now runs out."""
    return tx.now + timedelta(seconds=LEASE_SECONDS)


def is_held(tx: Tx, session_id: int) -> bool:
    """Whether a chat of a process that is still alive holds the session."""
    owner, until = sessions.lease(tx, session_id)
    if processes.has_ended(owner):
        return False
    return processes.is_renewed(owner) or (until is not None and until >= tx.now)


def refuse_held(tx: Tx, session_id: int) -> None:
    """Raise StoreError where a chat of a process that is still alive holds the session."""
    if is_held(tx, session_id):
        owner, _ = sessions.lease(tx, session_id)
        where = (
            "a chat of this program" if processes.is_of_this_process(owner) else "another process"
        )
        raise StoreError(f"session {session_id} is open in {where}; end it there first")


def refuse_held_elsewhere(tx: Tx, session_id: int) -> None:
    """Raise StoreError where a chat of another process that is alive holds the session."""
    if not processes.is_of_this_process(sessions.lease(tx, session_id)[0]):
        refuse_held(tx, session_id)


class Lease:
    """Takes the lease with each message, and renews it in a thread until it is stopped."""

    def __init__(self, conversation: Conversation, reader: Reader) -> None:
        self.owner = processes.new_owner()
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None
        self._parts = conversation.parts
        self._conversation = conversation
        self._reader = reader
        self._held = False
        """Whether this chat had the lease before."""
        self.chat: object = None
        """Whose lease it is. The thread that renews it keeps the chat alive, so that closing the
        store finds it and stops the thread."""

    def begin(self, tx: Tx) -> int:
        """Begin a session with its lease taken; gives its id."""
        self._held = True
        on = self._conversation.own_switch
        return sessions.start(tx, tx.own, self.owner, _until(tx), tx.now, memory=on)

    def take(self, tx: Tx, session_id: int) -> None:
        """Take the lease of a session, also from an older chat of this process.

        Raises StoreError where another process holds it, or where a newer chat has taken it over.
        """
        owner, _ = sessions.lease(tx, session_id)
        refuse_held_elsewhere(tx, session_id)
        if self._held and owner != self.owner and processes.is_of_this_process(owner):
            raise StoreError(
                f"session {session_id} was taken over by another chat of this program, which "
                "resumed it; go on there, or resume it here"
            )
        sessions.reopen(tx, session_id, self.owner, _until(tx), tx.now)
        self._held = True

    def take_over(self, tx: Tx, session_id: int) -> bool:
        """Take the lease where an older chat of this process holds it; whether that was so.

        Raises StoreError where another process holds it.
        """
        owner, _ = sessions.lease(tx, session_id)
        if not processes.is_of_this_process(owner):
            refuse_held(tx, session_id)
            return False
        self._held = sessions.hand_over(tx, session_id, self.owner, _until(tx))
        return True

    def is_held_elsewhere(self, tx: Tx, session_id: int) -> bool:
        """Whether another chat, of this process or of another that is alive, holds the session."""
        owner, _ = sessions.lease(tx, session_id)
        return owner != self.owner and is_held(tx, session_id)

    def start(self) -> None:
        """Renew the lease from now on, where no thread does so yet."""
        if self.thread is None or not self.thread.is_alive():
            self.stopped = threading.Event()
            processes.add_renewal(self.owner, self.stopped)
            self.thread = threading.Thread(
                target=self._run, args=(self.stopped,), name="memchat-lease", daemon=True
            )
            self.thread.start()

    def stop(self) -> None:
        """Renew it no more."""
        self.stopped.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread that renews it, so long at most."""
        if self.thread is not None:
            self.thread.join(timeout=seconds)

    def renew(self) -> bool:
        """Renew once; False where the session is no longer this one's, or was idle and is ended."""
        session_id = self._conversation.session_id
        assert session_id is not None
        with self._parts.database.write() as tx:
            if not sessions.renew(tx, session_id, self.owner, _until(tx)):
                return False
            found = sessions.by_id(tx, session_id)
            idle = timedelta(minutes=self._parts.settings.idle_minutes)
            if found is None or tx.now - found[0].last_activity_at <= idle:
                return found is not None
            close_session(tx, found[0])
        self.thread = None  # the next message starts another
        self._reader.read()
        return False

    def _run(self, stopped: threading.Event) -> None:
        """Renew while the process lives; a session that has gone silent is ended and read."""
        held = True
        try:
            while held and not stopped.wait(LEASE_SECONDS / 3):
                try:
                    held = self.renew()
                except StoreError as error:
                    session_id = self._conversation.session_id
                    log.warning("the lease of session %s was not renewed: %s", session_id, error)
        finally:
            processes.remove_renewal(self.owner, stopped)
