"""A session: the TURN route whole, and ``end``, which queues the END route.

text → message row → recall → prompt (system + memories + window of turns) → model stream → what
code did and says → reply row with the exact memories shown. What a person wrote is on disk before
any model is asked.

An incognito session lives in this object alone: no row, no job, no receipt, no usage, no vector.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from memchat import processes
from memchat.chat import receipt
from memchat.chat.message_window import alternating
from memchat.chat.reply import Reply, once
from memchat.config import Settings
from memchat.errors import InputError, NotFound, StoreError
from memchat.jobs import Worker, close_session
from memchat.memory.commands import parse
from memchat.memory.commands.execute import Commands, Place
from memchat.memory.commands.replies import ForgetChoice
from memchat.memory.embedding.space import shortened
from memchat.memory.embedding.timeout import PendingQuery, QueryTimeout
from memchat.memory.forgetting import replies_in_flight
from memchat.memory.recall import render
from memchat.memory.recall.model_filter import ModelFilter
from memchat.memory.recall.prompt_block import Block
from memchat.memory.recall.search import Recall
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.store import apps, jobs, messages, sessions, usage
from memchat.store.database import Database
from memchat.tokens import estimate_tokens
from memchat.types import (
    ChatMessage,
    Learned,
    MemorySwitch,
    Message,
    Scope,
    clean_text,
)

__all__ = ["Chat", "Parts", "Reply", "once"]

log = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
_REPLY_SHARE = 4
"""The part of the model's window that is left for its reply: one in so many."""
INCOGNITO = "Incognito: nothing is remembered, and nothing of this conversation is kept on disk."
STAND_IN = (
    "No model is configured: the offline stand-in answers, with patterns instead of understanding. "
    "Set GEMINI_API_KEY, or MEMCHAT_CHAT_MODEL for another; see memchat doctor."
)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a session is made of; the façade puts it together."""

    database: Database
    settings: Settings
    prompts: Prompts
    clock: Callable[[], datetime]
    model: Callable[[], ChatModel]
    recall: Recall
    block: Block
    patience: QueryTimeout
    worker: Worker
    commands: Commands
    drop_vectors: Callable[[Connection, Iterable[int]], None]
    relevance: ModelFilter | None
    """None where it is not switched on."""

    def switch(self, scope: Scope) -> MemorySwitch:
        """The scope's memory switch as it stands now."""
        with self.database.read() as tx:
            return apps.memory_switch(tx, scope)


class Chat:
    """One conversation. Leaving the ``with`` block ends it, and waits for what it taught."""

    def __init__(
        self,
        parts: Parts,
        scope: Scope,
        *,
        incognito: bool = False,
        resume: int | None = None,
    ) -> None:
        self.scope = scope
        self.incognito = incognito
        self.session_id = resume
        self.learned: Learned | None = None
        self.failure: str | None = None
        """Why the extraction at the end did not succeed; it is kept and tried again."""
        self._parts = parts
        self._turns: list[Message] = []
        self._taught: set[replies_in_flight.Fact] = set()
        self._before: list[Message] = []
        self._aside: frozenset[int] = frozenset()
        self._owner = processes.new_owner()
        self.mark = render.new_mark()
        """The mark of the fence around its memories: one a session, so that its prompts begin
        alike."""
        self._stop = threading.Event()
        self._beat: threading.Thread | None = None
        self._reader: threading.Thread | None = None
        self._reply: Reply | None = None
        self._choice: ForgetChoice | None = None
        self._to_embed = False
        self._late: list[PendingQuery] = []
        """Questions whose vector had not come when their reply was kept."""
        if resume is not None and incognito:
            raise InputError("a stored session cannot go on incognito; begin a new one")
        if resume is not None:
            self._check_free(resume)

    def __enter__(self) -> Chat:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def memory(self) -> MemorySwitch:
        """Whether memory takes part, as it stands now."""
        if self.incognito:
            return MemorySwitch(False, "incognito")
        return self._parts.switch(self.scope)

    @property
    def notice(self) -> str | None:
        """What a person must know before the first word."""
        lines = [INCOGNITO] if self.incognito else []
        if self._parts.model().stand_in:
            lines.append(STAND_IN)
        return "\n".join(lines) or None

    def send(self, text: str) -> Reply:
        """Say something; iterate the reply for its pieces, or read its ``text``.

        Raises InputError for a blank text, StoreError when it cannot be written. What a provider
        does wrong is raised from the reply; the words sent are kept all the same.
        """
        content = clean_text(text)
        if not content.strip():
            raise InputError("the message is empty; write something first")
        self._settle_reply()
        switch = self.memory
        choice, self._choice = self._choice, None
        answer = choice.answered_by(content) if choice is not None else None
        rest = content if answer is None else answer.rest
        command = parse.command(rest)
        # There is nothing to learn from a message that only tells memory what to do.
        bare = command is not None and command.whole and command.kind != "remember"
        bare = bare or not rest
        now = self._parts.clock()
        if self.incognito:
            self._turns.append(Message(0, 0, "user", content, now))
        else:
            self._keep_turn(content, now, switch.on and not bare)
        self._reply = Reply(self, self._parts, switch, content, command, choice)
        return self._reply

    @property
    def turns(self) -> tuple[Message, ...]:
        """What was said so far; of a stored conversation, as it was at the last message."""
        return tuple(self._turns)

    @property
    def parts(self) -> Parts:
        """What it is made of."""
        return self._parts

    @property
    def aside(self) -> frozenset[int]:
        """The stored turns that a reply is about to take the place of."""
        return self._aside

    def step_back(self, *, whole: bool) -> list[int]:
        """Set the last message's reply aside, and with ``whole`` the message, until ``step_on``.

        Gives the stored turns, the latest first. Raises InputError where nothing was said yet.
        """
        self._settle_reply()
        self.look_again()
        asked_at = max((n for n, t in enumerate(self._turns) if t.role == "user"), default=None)
        if asked_at is None:
            raise InputError("nothing was said yet; write a message first")
        stays = asked_at + (not whole)
        self._before, self._turns = self._turns, self._turns[:stays]
        self._aside = frozenset(turn.id for turn in self._before[stays:] if turn.id)
        return sorted(self._aside, reverse=True)

    def step_on(self, *, back: bool = False) -> None:
        """The turns set aside are gone, or with ``back`` they are as before."""
        if back:
            self._turns = self._before
        self._before, self._aside = [], frozenset()

    def redo(self, text: str | None = None) -> Reply:
        """Answer the last message anew, or first say it in other words.

        When the new reply is there, the old turns are deleted, with what only they taught. Where
        none comes, all is as it was before. Raises InputError where nothing was said yet.
        """
        from memchat.chat.redo import Redo

        return Redo(self, self._delete).start(text)

    def _delete(self, message_id: int) -> None:
        """Delete a turn of this conversation, and what only it taught."""
        from memchat.memory.forgetting import purge
        from memchat.memory.forgetting.undo import ConversationUndo

        parts, now = self._parts, self._parts.clock()
        zone = parts.settings.zone
        with parts.database.write() as tx:
            turn = messages.by_ids(tx, [message_id]).get(message_id)
            if turn is None:
                return
            ids = apps.find(tx, self.scope).ids
            done = ConversationUndo(tx, ids, {turn.id}, now, zone).run()
            stale = purge.forget(tx, done.gone, zone, now, bury=False)
            parts.drop_vectors(tx, stale | purge.forget_message(tx, turn, zone, now))
        purge.scrub(parts.database)

    def again(self) -> Reply:
        """Answer the last message once more; ``step_back`` set its reply aside."""
        last = self._turns[-1]
        now = self._parts.clock()
        if self.session_id is not None:
            with self._parts.database.write() as tx:
                self._refuse_held(tx, self.session_id)
                sessions.take(tx, self.session_id, self._owner, self._lease_end(now), now)
            self._keep_lease()
        command = parse.command(last.content)
        self._reply = Reply(self, self._parts, self.memory, last.content, command, None)
        return self._reply

    @property
    def reading(self) -> bool:
        """Whether it is being read after a reply; ``end`` waits for that."""
        return self._reader is not None and self._reader.is_alive()

    @property
    def place(self) -> Place | None:
        """Where the person spoke last, for commands; None where nothing is kept."""
        if self.incognito or self.session_id is None or not self._turns:
            return None
        return Place(self.scope, self.session_id, self._turns[-1])

    def end(self, *, wait: bool = True) -> Learned | None:
        """End the session; with ``wait`` also read it, and give what it taught.

        May be called again, and after it the conversation may go on with ``send``.
        """
        self._settle_reply()
        self._choice = None
        self._stop.set()
        if self._reader is not None:
            self._reader.join()
        if self.incognito or self.session_id is None:
            self._turns = []
            return None
        with self._parts.database.write() as tx:
            found = sessions.get(tx, apps.find(tx, self.scope).ids, self.session_id)
            # One whose lease ran out may be another process's by now, and is that one's to end.
            still_open = found is not None and found.ended_at is None
            if found is not None:
                self._keep_vectors(tx, apps.find(tx, self.scope).own or 0, self._parts.clock())
            if found and still_open and not self._is_held_elsewhere(tx, found.id):
                close_session(tx, found, self._parts.clock())
        self._beat = None
        return self._read() if wait else None

    def _settle_reply(self) -> None:
        """Keep a reply that nobody read to its end; left to itself it would be kept at any time."""
        if self._reply is not None:
            self._reply.stop()
            self._reply = None

    def abandon(self) -> None:
        """Stop keeping the lease; the store is about to close. Nothing is ended or lost."""
        self._settle_reply()
        self._stop.set()
        if self._beat is not None:
            self._beat.join(timeout=5)

    def _read(self) -> Learned | None:
        if self._to_embed:
            # Before the conversation is read, so that its reader is shown what was saved in it.
            self._to_embed = False
            self._parts.worker.run(user=self.scope.user, kinds=("embed",))
        done = self._parts.worker.run(kinds=("extract", "verify"), target_id=self.session_id)
        read = [one for one in done.learned if one.skipped is None]
        if read:
            changes = tuple(change for one in read for change in one.changes)
            self.learned = replace(read[0], changes=changes)
        self.failure = done.errors[-1] if done.errors else None
        if not done.learned and not done.failed and self.session_id is not None:
            with self._parts.database.read() as tx:
                if jobs.under_way(tx, "extract", self.session_id):
                    self.failure = "it is being read by another process"
        return self.learned

    def _check_free(self, session_id: int) -> None:
        with self._parts.database.read() as tx:
            found = sessions.get(tx, apps.find(tx, self.scope).ids, session_id)
            if found is None:
                raise NotFound(f"there is no session {session_id} here; see memchat sessions list")
            self._refuse_held(tx, session_id)

    def _refuse_held(self, tx: Connection, session_id: int) -> None:
        if self._is_held_elsewhere(tx, session_id):
            raise StoreError(f"session {session_id} is open in another process; end it there first")

    def _is_held_elsewhere(self, tx: Connection, session_id: int) -> bool:
        owner, until = sessions.lease(tx, session_id)
        if owner == self._owner or processes.is_gone(owner):
            return False
        return processes.is_kept(owner) or (until is not None and until >= self._parts.clock())

    def _keep_turn(self, content: str, now: datetime, memory_on: bool) -> None:
        with self._parts.database.write() as tx:
            own, _ = apps.ensure(tx, self.scope, now)
            session_id = self.session_id
            if session_id is None or sessions.by_id(tx, session_id) is None:
                session_id = sessions.start(tx, own, self._owner, self._lease_end(now), now)
            else:
                self._refuse_held(tx, session_id)
                sessions.take(tx, session_id, self._owner, self._lease_end(now), now)
            messages.add(tx, session_id, own, "user", content, now, memory=memory_on)
            self._look_back(tx, session_id)
        # Only now is it there: on a full disk it is the end of the transaction that fails.
        self.session_id = session_id
        self._keep_lease()

    def _look_back(self, tx: Connection, session_id: int) -> None:
        """See what was said so far, and what was learnt from it."""
        turns = messages.of_session(tx, session_id)
        self._turns = [turn for turn in turns if turn.id not in self._aside]
        self._taught = replies_in_flight.taught(tx, self._turns)

    def look_again(self) -> None:
        """See the turns as they are on disk by now: words of them may have been forgotten."""
        if self.session_id is not None:
            with self._parts.database.read() as tx:
                self._look_back(tx, self.session_id)

    def _lease_end(self, now: datetime) -> datetime:
        return now + timedelta(seconds=LEASE_SECONDS)

    def _keep_lease(self) -> None:
        if self._beat is None or not self._beat.is_alive():
            self._stop = threading.Event()
            processes.keep(self._owner, self._stop)
            self._beat = threading.Thread(
                target=self._beat_on, args=(self._stop,), name="memchat-lease", daemon=True
            )
            self._beat.start()

    def _beat_on(self, stop: threading.Event) -> None:
        """Renew the lease while the process lives; a conversation gone silent is ended and read."""
        try:
            while not stop.wait(LEASE_SECONDS / 3) and self._renews():
                pass
        finally:
            processes.let_go(self._owner, stop)

    def _renews(self) -> bool:
        """Renew once, where the store lets it; whether to go on."""
        try:
            return self._renew()
        except StoreError as error:
            log.warning("the lease of session %s was not renewed: %s", self.session_id, error)
            return True

    def _renew(self) -> bool:
        """Renew once; False when the session is no longer this chat's, or was idle and is ended."""
        assert self.session_id is not None
        now = self._parts.clock()
        with self._parts.database.write() as tx:
            if not sessions.renew(tx, self.session_id, self._owner, self._lease_end(now)):
                return False
            found = sessions.by_id(tx, self.session_id)
            idle = timedelta(minutes=self._parts.settings.idle_minutes)
            if found is None or now - found[0].last_activity_at <= idle:
                return found is not None
            close_session(tx, found[0], now)
        self._beat = None  # what is said from now on gets a keeper of its own
        self._read()
        return False

    def after_reply(self, reply: Reply, status: str) -> None:
        """Keep a reply, whole or partial, with its receipt; called by the reply itself."""
        now = self._parts.clock()
        asked_whole = status == "complete" or reply.cut is not None
        self._choice = reply.told.choice if asked_whole else None
        self._to_embed |= any(change.memory is not None for change in reply.done)
        turn = Message(0, 0, "assistant", reply.received, now, status)
        if self.incognito or self.session_id is None:
            if reply.received:
                self._turns.append(turn)
            return
        with self._parts.database.write() as tx:
            own = apps.find(tx, self.scope).own
            if own is None or sessions.by_id(tx, self.session_id) is None:
                return  # forgotten while the reply came in
            if reply.received:
                hits = (*reply.shown.hits, *reply.told.hits)
                zone = self._parts.settings.zone
                shown, content = replies_in_flight.leave_out(
                    tx, hits, self._taught, reply.received, zone
                )
                listed, content = replies_in_flight.leave_out(
                    tx, reply.shown.listed, (), content, zone
                )
                reply.message_id = messages.add(
                    tx,
                    self.session_id,
                    own,
                    "assistant",
                    content,
                    now,
                    status,
                    memory=reply.switch.on and reply.stream is not None,
                )
                receipt.keep(tx, self.session_id, reply, shown, listed, now)
                sessions.touch(tx, self.session_id, now)
            if reply.stream is not None:
                spent = reply.stream.usage
                usage.add(tx, own, self.session_id, spent, now, message_id=reply.message_id)
            if reply.filtering is not None:
                spent = reply.filtering
                usage.add(tx, own, self.session_id, spent, now, message_id=reply.message_id)
            if reply.asked is not None:
                self._late.append(reply.asked)
            self._keep_vectors(tx, own, now)
            if reply.switch.on and self._parts.settings.extraction == "per_message":
                jobs.enqueue(tx, "extract", own, "session", self.session_id, now)
        if reply.switch.on and self._parts.settings.extraction == "per_message":
            self._read_behind()

    def _keep_vectors(self, tx: Connection, own: int, now: datetime) -> None:
        """Keep the vectors of messages that have come by now; the others are looked at again. One
        of two messages together is not kept: nothing would tell that it is to go with them."""
        said = {shortened(turn.content) for turn in self._turns}
        waiting = []
        for late in self._late:
            question = late.arrived()
            if question is not None:
                if question.usage is not None:
                    usage.add(tx, own, self.session_id, question.usage, now)
                if question.text in said:
                    self._parts.recall.keep(tx, question, now)
            elif not late.future.done():
                waiting.append(late)
        self._late = waiting

    def _read_behind(self) -> None:
        if self._reader is None or not self._reader.is_alive():
            self._reader = threading.Thread(target=self._read, name="memchat-reader", daemon=True)
            self._reader.start()

    def window(self, system: str) -> tuple[list[ChatMessage], list[int], int, int]:
        """The system prompt and the newest turns that fit the model, the ids of those that do not,
        the id of the first that does, and how many do."""
        parts = self._parts
        room = parts.model().window * (_REPLY_SHARE - 1) // _REPLY_SHARE - estimate_tokens(system)
        kept = 0
        for turn in reversed(self._turns):
            room -= estimate_tokens(turn.content) + 8
            if room < 0:
                break
            kept += 1
        if kept == 0:
            raise InputError(
                f"the message is longer than {parts.model().name} can read at once "
                f"({parts.model().window} tokens); send it in parts"
            )
        split = len(self._turns) - kept
        while self._turns[split].role != "user":
            split += 1  # a reply whose question does not fit is not sent
        dropped = [turn.id for turn in self._turns[:split] if turn.id]
        sent = [ChatMessage("system", system), *alternating(self._turns[split:])]
        return sent, dropped, self._turns[split].id, len(self._turns) - split
