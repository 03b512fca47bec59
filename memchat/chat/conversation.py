"""What the turns of one session share: its messages, and what earlier turns left open.

What every conversation of a store is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from memchat.chat.command_replies import ForgetChoice
from memchat.chat.commands import Commands, Place
from memchat.config import Settings
from memchat.db import Tx, apps, messages, usage
from memchat.db.database import Database
from memchat.forget import purge
from memchat.jobs.worker import Worker
from memchat.notes.search import NotesBlock
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.search import render
from memchat.search.embed import PendingQuery, QueryTimeout, shortened
from memchat.search.facts import ModelFilter
from memchat.search.prompt_block import PromptBlock
from memchat.search.search import Recall
from memchat.types import MemorySwitch, Message, Scope


class Conversation:
    """The state of a session between its turns. An incognito one exists in this object alone."""

    def __init__(
        self, database: Database, scope: Scope, session_id: int | None, incognito: bool
    ) -> None:
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
        self._database = database

    @property
    def memory(self) -> MemorySwitch:
        """Whether memory takes part, as it stands now."""
        if self.incognito:
            return MemorySwitch(False, "incognito")
        with self._database.read() as tx:
            return apps.memory_switch(tx, self.scope)

    @property
    def place(self) -> Place | None:
        """The last turn, for commands; None where nothing is stored."""
        if self.session_id is None or not self.turns:
            return None
        return Place(self.scope, self.session_id, self.turns[-1])

    def load(self, tx: Tx, session_id: int) -> None:
        """Read the turns of the session, and the facts drawn from them."""
        stored = messages.of_session(tx, session_id)
        self.turns = [turn for turn in stored if turn.id not in self.left_out]
        self.drawn_facts = purge.facts_in_turns(tx, self.turns)

    def reload(self) -> None:
        """Read the turns again: some of their words may have been forgotten meanwhile."""
        if self.session_id is not None:
            with self._database.read() as tx:
                self.load(tx, self.session_id)

    def store_query_vectors(self, tx: Tx, recall: Recall, own: int, now: datetime) -> None:
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
                    usage.add(tx, own, self.session_id, question.usage, now)
                if question.text in said:
                    recall.store_vector(tx, question, now)
            elif not query.future.done():
                pending.append(query)
        self.pending_queries = pending


@dataclass(frozen=True, slots=True)
class Parts:
    """The store, the models and the services that a conversation uses."""

    database: Database
    settings: Settings
    prompts: Prompts
    clock: Callable[[], datetime]
    model: Callable[[], ChatModel]
    recall: Recall
    block: PromptBlock
    notes: NotesBlock
    query_timeout: QueryTimeout
    worker: Worker
    commands: Commands
    drop_vectors: Callable[[Tx, Iterable[int]], None]
    """Drops the saved vectors of scope rows."""
    model_filter: ModelFilter | None
    """None where it is not switched on."""
