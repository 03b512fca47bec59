"""What every conversation of a store is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.jobs.worker import Worker
from memchat.memory.commands.execute import Commands
from memchat.memory.embedding.timeout import QueryTimeout
from memchat.memory.recall.model_filter import ModelFilter
from memchat.memory.recall.prompt_block import PromptBlock
from memchat.memory.recall.search import Recall
from memchat.notes.notes_block import NotesBlock
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.store.database import Database


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
    drop_vectors: Callable[[Connection, Iterable[int]], None]
    """Drops the saved vectors of scope rows."""
    model_filter: ModelFilter | None
    """None where it is not switched on."""
