"""What outlives one run of a page: the store, conversations, replies, long tasks, the worker.

A page is run anew at every click, and is cut off when its tab closes. So a reply is read by a
thread of its own, which pages look in on, and a conversation belongs to the desk and not to a tab:
a reload finds it again, and it is ended once, whoever leaves it last.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import methodcaller
from typing import Any

from memchat.api import MemChat
from memchat.chat import Chat, Reply
from memchat.errors import MemChatError
from memchat.types import Attachment, Message, Progress
from ui.reply_html import ComingReply

log = logging.getLogger(__name__)

GRACE_SECONDS = 120.0
"""How long a conversation without a tab stays open: a reload or a broken line comes back."""
TICK_SECONDS = 1.0
"""How often the worker looks whether there is something to do."""
REST_SECONDS = 15.0
"""How long it leaves work alone that could not be done just now."""
CLOSE: Callable[[MemChat], object] = methodcaller("close")
"""What becomes of a store when its one desk works with it no longer."""


class Turn:
    """One reply as it comes in, in a thread of its own."""

    def __init__(self, reply: Reply, *, instead: str | None = None) -> None:
        """``instead`` are the words that take the place of the last message, if a reply comes."""
        self.reply = reply
        self.drawing = ComingReply()
        self.lock = threading.Lock()
        """Held while ``drawing`` is asked, as several tabs may show the reply."""
        self.instead = instead
        self.error: str | None = None
        self.stopped = False
        self._thread = threading.Thread(target=self._read, name="memchat-turn", daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        """What came so far."""
        return self.reply.received

    @property
    def running(self) -> bool:
        """Whether more is to come."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Cut the reply; what came of it is kept."""
        self.stopped = True
        self.reply.stop()
        self.wait(10)

    def wait(self, seconds: float) -> bool:
        """Wait for the reply to be kept; whether it is."""
        self._thread.join(seconds)
        return not self.running

    def _read(self) -> None:
        try:
            for _ in self.reply:
                pass
        except MemChatError as error:
            if not self.stopped:
                self.error = str(error)
        except Exception as error:  # noqa: BLE001
            # A thread has nobody to raise to: the page shows that it failed.
            log.error("a reply failed: %s", type(error).__name__)
            self.error = f"unexpected {type(error).__name__}; try again, or see memchat doctor"


class Task:
    """Something that may take a while, in a thread of its own: a page that goes away stops it in
    the middle of nothing."""

    def __init__(self, words: str, total: int, work: Callable[..., object]) -> None:
        """``work`` is called with ``progress``, which it tells how many of ``total`` are done, or
        of how many where that was not known."""
        self.words = words
        self.total = total
        self.done = 0
        self.error: str | None = None
        self.result: Any = None
        """What the work gave, once it is done."""
        self._work = work
        self._thread = threading.Thread(target=self._run, name="memchat-task", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether there is more to do."""
        return self._thread.is_alive()

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return min(self.done / max(self.total, 1), 1.0)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        self._thread.join(seconds)
        return not self.running

    def _run(self) -> None:
        try:
            self.result = self._work(progress=self._note)
        except MemChatError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001
            # A thread has nobody to raise to: the page shows that it failed.
            log.error("a task failed: %s", type(error).__name__)
            self.error = f"unexpected {type(error).__name__}; try again, or see memchat doctor"

    def _note(self, progress: Progress) -> None:
        self.done, self.total = progress.done, progress.total or self.total


@dataclass(eq=False)
class Talk:
    """One conversation that is open in this app."""

    chat: Chat
    app: str
    mc: MemChat
    """The store and models that the chat was opened with."""
    turn: Turn | None = None
    said: int = 0
    """How often something was said here, or answered anew."""
    tabs: set[str] = field(default_factory=set)
    ends_at: datetime | None = None
    """When it is ended, where no tab shows it any more."""

    @property
    def session_id(self) -> int | None:
        """Its number in the store; None before the first word, and always incognito."""
        return self.chat.session_id

    @property
    def answering(self) -> bool:
        """Whether a reply is coming in."""
        return self.turn is not None and self.turn.running


class Desk:
    """One person's app over one store, which others may share; every tab of theirs shares it."""

    def __init__(self, mc: MemChat, user: str, close: Callable[[MemChat], object] = CLOSE) -> None:
        """``close`` lets go of a store that this desk works with no longer."""
        self.mc = mc
        self._let_go = close
        self.user = user
        self.tasks: dict[str, Task] = {}
        """What was begun on the settings page, by what it is; the last of each."""
        self._talks: list[Talk] = []
        self._replaced: list[tuple[MemChat, datetime]] = []
        """What ``mc`` was before, and since when it is replaced."""
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._closed = self._warm = False
        self._worker = threading.Thread(target=self._work, name="memchat-desk", daemon=True)
        self._worker.start()

    def close(self) -> None:
        """Stop the worker and let go of the store. What is open is read at the next start."""
        self._closed = True
        self._wake.set()
        self._worker.join(timeout=30)
        for mc in (*(before for before, _ in self._replaced), self.mc):
            self._let_go(mc)

    def holds(self, mc: MemChat) -> bool:
        """Whether it works with this store, or may still do so."""
        return any(mc is one for one in (self.mc, *(before for before, _ in self._replaced)))

    def change(self, mc: MemChat) -> None:
        """Work with other models from now on.

        Replies that are coming in are finished by the old ones. A stored conversation goes on with
        the new ones at its next message; an incognito one keeps its own to its end, as there is
        nothing to open it from anew.
        """
        with self._lock:
            self._replaced.append((self.mc, mc.now))
            self.mc, self._warm = mc, False
        self._wake.set()

    # Conversations

    def open(self, app: str, *, incognito: bool = False, session_id: int | None = None) -> Talk:
        """The open conversation of this number, or a new one."""
        with self._lock:
            talk = self.find(app, session_id) if session_id is not None else None
            if talk is None:
                person = self.mc.user(self.user, app=app)
                chat = person.chat(incognito=incognito, resume=session_id)
                talk = Talk(chat, app, self.mc)
                self._talks.append(talk)
            return talk

    def find(self, app: str, session_id: int) -> Talk | None:
        """The conversation of this number, where it is open here."""
        with self._lock:
            mine = (t for t in self._talks if t.app == app and t.session_id == session_id)
            return next(mine, None)

    def say(self, talk: Talk, text: str, attachments: Sequence[Attachment] = ()) -> Turn:
        """Send a message. One whose reply is still coming in is stopped by it."""
        return self._begin(talk, lambda: Turn(talk.chat.send(text, attachments=attachments)))

    def redo(
        self,
        talk: Talk,
        text: str | None = None,
        message: Message | None = None,
        model: str | None = None,
    ) -> Turn:
        """Have a message, or the last one, answered anew, or said in other words; ``model``: by
        another one, this once."""
        return self._begin(
            talk, lambda: Turn(talk.chat.redo(text, message=message, model=model), instead=text)
        )

    def go_on(self, talk: Talk) -> Turn:
        """Have the last reply, which was stopped or cut, go on where it ended."""
        return self._begin(talk, lambda: Turn(talk.chat.go_on()))

    def _begin(self, talk: Talk, turn: Callable[[], Turn]) -> Turn:
        with self._lock:
            self._settle(talk)
            self._renew(talk)
            talk.turn = turn()
            talk.said += 1
            return talk.turn

    def end(self, talk: Talk) -> None:
        """End a conversation, once, and have it read."""
        with self._lock:
            if talk not in self._talks:
                return
            self._settle(talk)
            talk.chat.end(wait=False)
            self._talks.remove(talk)
        self._wake.set()

    def drop(self, app: str, session_id: int) -> None:
        """Let go of a conversation that is about to be deleted."""
        with self._lock:
            talk = self.find(app, session_id)
            if talk is not None:
                self._settle(talk)
                talk.chat.abandon()
                self._talks.remove(talk)

    def drop_all(self, app: str | None = None) -> None:
        """Let go of every conversation, or of those of an app, which are about to be deleted."""
        with self._lock:
            for talk in [talk for talk in self._talks if app in (None, talk.app)]:
                self._settle(talk)
                talk.chat.abandon()
                self._talks.remove(talk)

    def end_all(self, app: str) -> None:
        """End every conversation of an app."""
        with self._lock:
            for talk in [talk for talk in self._talks if talk.app == app]:
                self.end(talk)

    def wake(self) -> None:
        """Have the worker look at the queue now."""
        self._wake.set()

    # Tabs

    def seen(self, tab: str, talk: Talk | None) -> None:
        """A tab shows this conversation, and no other."""
        with self._lock:
            for other in list(self._talks):
                if other is not talk and tab in other.tabs:
                    self.leave(other, tab)
            if talk is not None:
                talk.tabs.add(tab)
                talk.ends_at = None

    def gone(self, tab: str) -> None:
        """A tab was closed or reloaded; nobody knows which, so its conversation waits a while."""
        with self._lock:
            for talk in self._talks:
                if tab in talk.tabs:
                    self.leave(talk, tab, GRACE_SECONDS)

    def leave(self, talk: Talk, tab: str, grace: float = 0.0) -> None:
        """A tab goes away from a conversation. The last one out ends it, at once or in a while,
        when its reply has come in."""
        with self._lock:
            talk.tabs.discard(tab)
            if not talk.tabs:
                talk.ends_at = self.mc.now + timedelta(seconds=grace)
        self._wake.set()

    def _settle(self, talk: Talk) -> None:
        if talk.turn is not None and talk.turn.running:
            talk.turn.stop()

    def _renew(self, talk: Talk) -> None:
        """Open a stored conversation anew where it was opened with models that were replaced."""
        if talk.mc is self.mc or talk.session_id is None:
            return
        before, user = talk.chat, self.mc.user(self.user, app=talk.app)
        talk.chat, talk.mc = user.chat(resume=talk.session_id), self.mc
        before.abandon()

    # Behind the pages

    def sweep(self) -> None:
        """End the conversations that every tab left."""
        for talk in self._left():
            try:
                self.end(talk)
            except MemChatError as error:
                log.warning("a conversation that was left did not end: %s", error)

    def close_replaced(self) -> None:
        """Close what ``mc`` was before, once no conversation, task or page can be using it."""
        now, grace = self.mc.now, timedelta(seconds=GRACE_SECONDS)
        with self._lock:
            used = {id(talk.mc) for talk in self._talks}
            busy = any(task.running for task in self.tasks.values())
            idle = [
                (mc, since)
                for mc, since in self._replaced
                if not busy and id(mc) not in used and now - since > grace
            ]
            self._replaced = [each for each in self._replaced if each not in idle]
        for mc, _ in idle:
            self._let_go(mc)

    def _left(self) -> list[Talk]:
        now = self.mc.now
        with self._lock:
            left = [t for t in self._talks if t.ends_at is not None and t.ends_at <= now]
            # One that is being read is waited for here, and not under the lock every page needs.
            return [talk for talk in left if not (talk.answering or talk.chat.reading)]

    def _work(self) -> None:
        rest, fresh = 0.0, True
        while not self._closed:
            if not self._warm:
                self._warm = True
                self.mc.warm()
            woken = self._wake.wait(TICK_SECONDS)
            self._wake.clear()
            if self._closed:
                return
            rest = 0.0 if woken else max(rest - TICK_SECONDS, 0.0)
            try:
                self.sweep()
                self.close_replaced()
                due = rest == 0.0 and self.mc.jobs.due(user=self.user)
                if due or fresh:
                    fresh = False  # at the first turn, also what another process left behind
                    done = self.mc.jobs.run(user=self.user)
                    # What became due while it ran is no reason to rest.
                    stuck = due and not done.done and self.mc.jobs.due(user=self.user)
                    rest = REST_SECONDS if stuck else 0.0
            except MemChatError as error:
                log.warning("background work stopped: %s", error)
                rest = REST_SECONDS
