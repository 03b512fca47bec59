"""What every room of the façade stands on: the open store, its models, and what a scope owns."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection

from memchat import config
from memchat.assembly import Assembly
from memchat.errors import NotFound
from memchat.store import apps, inbox, jobs, memories, messages, refusals, sessions
from memchat.types import InboxItem, Memory, Message, Refusal, Scope, Session

if TYPE_CHECKING:
    from memchat.chat import Chat
    from memchat.memory.facts.manual import ManualChanges
    from memchat.providers import ChatModel, Embedder

BACKGROUND_SECONDS = 5.0
"""How long closing waits for background work; what is not done then is done at the next start."""
MOST_DAYS = 36_500


class Opened:
    """One open store with the models around it."""

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        settings: config.Settings | None = None,
        chat_model: ChatModel | None = None,
        extract_model: ChatModel | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Open the store in ``home``, or where the settings say.

        Models given here win over those the settings name. ``clock`` returns the aware time now.
        Raises StoreError when the folder or file cannot be used, SchemaError for a newer one's.
        """
        settings = settings or config.load()
        self.settings = settings.with_(home=Path(home)) if home is not None else settings
        self._clock = clock or _now
        self._assembly = Assembly(self.settings, self._clock, chat_model, extract_model, embedder)
        self._database = self._assembly.database
        self._meaning = self._assembly.meaning
        self._parts = self._assembly.parts
        self._drop_vectors = self._assembly.drop_vectors
        self._chats: weakref.WeakSet[Chat] = weakref.WeakSet()
        self._behind: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Save the index of large scopes and let go of the files.

        Open sessions stay open on disk: the next process ends and reads them.
        """
        for chat in list(self._chats):
            chat.abandon()
        for thread in self._behind:
            thread.join(timeout=BACKGROUND_SECONDS)
        if any(thread.is_alive() for thread in self._behind):
            self.stop_work()  # it ends with what it has in hand
        self._assembly.close()

    @property
    def now(self) -> datetime:
        """The time by this store's clock."""
        return self._clock()

    def warm(self) -> None:
        """Load the models of this machine before they are asked; it takes some seconds."""
        if not self._assembly.chat_model_known:
            from memchat.providers import litellm_calls

            litellm_calls.warm()
        self._assembly.warm()

    def stop_work(self) -> None:
        """Begin no more work, in ``work``, ``backfill`` or behind; what is in hand is ended."""
        self._parts().worker.stopping.set()

    def _resume(self, user: str) -> None:
        worker = self._parts().worker
        worker.end_abandoned(user)
        worker.expire(user)
        with self._database.read() as tx:
            due = jobs.due_kinds(tx, user, self._clock())
        if due:
            self._run_behind(partial(worker.run_behind, user))

    def _run_behind(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="memchat-worker", daemon=True)
        self._behind.append(thread)
        thread.start()

    def _by_hand(self, tx: Connection, scope: Scope) -> ManualChanges:
        from memchat.memory.facts.manual import ManualChanges

        return ManualChanges(tx, scope, self.settings, self._clock(), self._assembly.embeds())

    def _in_days(self, days: int) -> date:
        return self._today() + timedelta(days=min(max(days, 0), MOST_DAYS))

    def _today(self) -> date:
        return self._clock().astimezone(self.settings.zone).date()


def _now() -> datetime:
    return datetime.now(UTC)


def found_memory(tx: Connection, scope: Scope, memory_id: int) -> Memory:
    memory = memories.get(tx, apps.find(tx, scope).ids, memory_id)
    if memory is None:
        raise NotFound(f"there is no memory {memory_id} here; see memchat memories list")
    return memory


def found_item(tx: Connection, scope: Scope, item_id: int) -> InboxItem:
    item = inbox.get(tx, apps.find(tx, scope).ids, item_id)
    if item is None or item.status != "pending":
        raise NotFound(f"nothing waits under {item_id}; see memchat inbox list")
    return item


def found_refusal(tx: Connection, scope: Scope, refusal_id: int) -> Refusal:
    own = apps.find(tx, scope).own
    refused = refusals.get(tx, [own], refusal_id) if own is not None else None
    if refused is None:
        raise NotFound(f"there is no refusal {refusal_id} here; see memchat sessions show")
    return refused


def found_turn(tx: Connection, scope: Scope, message_id: int) -> Message:
    turn = messages.by_ids(tx, [message_id]).get(message_id)
    if turn is None:
        raise NotFound(f"there is no message {message_id} here; see memchat sessions show")
    found_session(tx, scope, turn.session_id)
    return turn


def found_session(tx: Connection, scope: Scope, session_id: int) -> Session:
    own = apps.find(tx, scope).own
    session = sessions.get(tx, [own], session_id) if own is not None else None
    if session is None:
        raise NotFound(f"there is no session {session_id} here; see memchat sessions list")
    return session
