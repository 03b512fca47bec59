"""What every room of a user's scope is made of."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection

from memchat.assembly import Assembly
from memchat.errors import NotFound, StoreError
from memchat.memory.context import Context
from memchat.store import apps, memories, messages, sessions
from memchat.store.apps import ScopeIds
from memchat.types import Memory, Message, Scope, Session


class Room:
    """Verbs on one kind of thing, within one scope; what belongs to another scope is not found."""

    def __init__(self, assembly: Assembly, scope: Scope) -> None:
        self._assembly = assembly
        self._scope = scope
        self._database = assembly.database
        self._settings = assembly.settings
        self._clock = assembly.clock

    def _ids(self, tx: Connection) -> ScopeIds:
        return apps.find(tx, self._scope)

    def _context(self, tx: Connection, *, ensure: bool = False) -> Context:
        """A transaction over this scope; with ``ensure`` its rows are made where they lack."""
        now = self._clock()
        ids = ScopeIds(*apps.ensure(tx, self._scope, now)) if ensure else self._ids(tx)
        return Context(tx, ids, now, self._settings.zone)

    def _today(self) -> date:
        return self._clock().astimezone(self._settings.zone).date()

    def _found_memory(self, tx: Connection, memory_id: int) -> Memory:
        memory = memories.get(tx, self._ids(tx).ids, memory_id)
        if memory is None:
            raise NotFound(f"there is no memory {memory_id} here; see memchat memories list")
        return memory

    def _found_session(self, tx: Connection, session_id: int) -> Session:
        own = self._ids(tx).own
        session = sessions.get(tx, [own], session_id) if own is not None else None
        if session is None:
            raise NotFound(f"there is no session {session_id} here; see memchat sessions list")
        return session

    def _found_message(self, tx: Connection, message_id: int) -> Message:
        message = messages.by_ids(tx, [message_id]).get(message_id)
        if message is None:
            raise NotFound(f"there is no message {message_id} here; see memchat sessions show")
        self._found_session(tx, message.session_id)
        return message

    def _purge(self, memory_id: int) -> None:
        """Purge a hidden memory at once. Raises StoreError where that did not succeed."""
        worker = self._assembly.parts().worker
        if worker.run(kinds=("forget",), target_id=memory_id).failed:
            raise StoreError(
                f"memory {memory_id} is out of sight, but its words could not be removed yet; "
                "that is tried again, and memchat doctor tells how it stands"
            )
