"""memchat: a chat assistant that remembers, on your own disk.

``MemChat`` opens a store; docs/api.md lists every verb. Names are imported when they are first
used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memchat.api import Answer as Answer
    from memchat.api import Answered as Answered
    from memchat.api import Changed as Changed
    from memchat.api import Deleted as Deleted
    from memchat.api import Exported as Exported
    from memchat.api import FetchedModel as FetchedModel
    from memchat.api import FileChange as FileChange
    from memchat.api import FileFailure as FileFailure
    from memchat.api import FilesAdded as FilesAdded
    from memchat.api import MemChat as MemChat
    from memchat.api import Page as Page
    from memchat.api import PromptContext as PromptContext
    from memchat.api import UseCounts as UseCounts
    from memchat.api import User as User
    from memchat.api.clients import ClientAccess as ClientAccess
    from memchat.api.clients import Clients as Clients
    from memchat.api.inbox import Inbox as Inbox
    from memchat.api.memories import Memories as Memories
    from memchat.api.memories import Mentions as Mentions
    from memchat.api.notes import Notes as Notes
    from memchat.api.sessions import Messages as Messages
    from memchat.api.sessions import Sessions as Sessions
    from memchat.api.store import Apps as Apps
    from memchat.api.store import Backups as Backups
    from memchat.api.store import Jobs as Jobs
    from memchat.api.store import Services as Services
    from memchat.chat import Chat as Chat
    from memchat.chat import Reply as Reply
    from memchat.config import Settings as Settings
    from memchat.db.jobs import DeadHolder as DeadHolder
    from memchat.doctor import Check as Check
    from memchat.errors import ConfigError as ConfigError
    from memchat.errors import ExtractionError as ExtractionError
    from memchat.errors import InputError as InputError
    from memchat.errors import MemChatError as MemChatError
    from memchat.errors import NotFound as NotFound
    from memchat.errors import ProviderError as ProviderError
    from memchat.errors import SchemaError as SchemaError
    from memchat.errors import ScopeError as ScopeError
    from memchat.errors import SecretError as SecretError
    from memchat.errors import ServiceError as ServiceError
    from memchat.errors import StoreError as StoreError
    from memchat.errors import StoreFull as StoreFull
    from memchat.jobs.embedding import BackfillResult as BackfillResult
    from memchat.jobs.worker import JobsDone as JobsDone
    from memchat.notes.ask import NotesAnswer as NotesAnswer
    from memchat.providers import ChatModel as ChatModel
    from memchat.providers import ChatStream as ChatStream
    from memchat.providers import Completion as Completion
    from memchat.providers import Embedder as Embedder
    from memchat.providers import ToolCall as ToolCall
    from memchat.search.switch import MigrationResult as MigrationResult
    from memchat.types import AppInfo as AppInfo
    from memchat.types import Audit as Audit
    from memchat.types import Backup as Backup
    from memchat.types import Browsed as Browsed
    from memchat.types import Change as Change
    from memchat.types import ChatMessage as ChatMessage
    from memchat.types import Client as Client
    from memchat.types import ClientWrite as ClientWrite
    from memchat.types import Elsewhere as Elsewhere
    from memchat.types import EmbeddingState as EmbeddingState
    from memchat.types import Event as Event
    from memchat.types import Evidence as Evidence
    from memchat.types import ExternalId as ExternalId
    from memchat.types import Finding as Finding
    from memchat.types import Given as Given
    from memchat.types import Hit as Hit
    from memchat.types import Imported as Imported
    from memchat.types import InboxItem as InboxItem
    from memchat.types import Insights as Insights
    from memchat.types import Job as Job
    from memchat.types import Learned as Learned
    from memchat.types import LongMessage as LongMessage
    from memchat.types import Memory as Memory
    from memchat.types import MemoryChanges as MemoryChanges
    from memchat.types import MemoryOrigin as MemoryOrigin
    from memchat.types import MemorySwitch as MemorySwitch
    from memchat.types import Message as Message
    from memchat.types import NewNote as NewNote
    from memchat.types import Note as Note
    from memchat.types import NoteCounts as NoteCounts
    from memchat.types import NoteHit as NoteHit
    from memchat.types import NotePassage as NotePassage
    from memchat.types import NotesAdded as NotesAdded
    from memchat.types import NotesFound as NotesFound
    from memchat.types import NoteSource as NoteSource
    from memchat.types import NotesReport as NotesReport
    from memchat.types import NoteUse as NoteUse
    from memchat.types import Place as Place
    from memchat.types import PluginInfo as PluginInfo
    from memchat.types import Progress as Progress
    from memchat.types import Question as Question
    from memchat.types import ReadingPlan as ReadingPlan
    from memchat.types import Recalled as Recalled
    from memchat.types import Refusal as Refusal
    from memchat.types import RefusedRecord as RefusedRecord
    from memchat.types import ReplyParts as ReplyParts
    from memchat.types import RestorePlan as RestorePlan
    from memchat.types import Scope as Scope
    from memchat.types import Service as Service
    from memchat.types import ServiceInfo as ServiceInfo
    from memchat.types import Session as Session
    from memchat.types import SessionQuote as SessionQuote
    from memchat.types import Undone as Undone
    from memchat.types import Usage as Usage
    from memchat.types import UsageTotal as UsageTotal
    from memchat.types import Wanted as Wanted
    from memchat.types import Why as Why
    from memchat.types import Written as Written

_HOMES = {
    "memchat.api": (
        "Answer Answered Changed Deleted Exported FetchedModel FileChange FileFailure "
        "FilesAdded MemChat Page PromptContext UseCounts User"
    ),
    "memchat.api.store": "Apps Backups Jobs Services",
    "memchat.api.clients": "ClientAccess Clients",
    "memchat.api.inbox": "Inbox",
    "memchat.api.sessions": "Messages Sessions",
    "memchat.api.memories": "Memories Mentions",
    "memchat.api.notes": "Notes",
    "memchat.chat": "Chat Reply",
    "memchat.config": "Settings",
    "memchat.doctor": "Check",
    "memchat.errors": (
        "ConfigError ExtractionError InputError MemChatError NotFound ProviderError "
        "SchemaError ScopeError SecretError ServiceError StoreError StoreFull"
    ),
    "memchat.jobs.worker": "JobsDone",
    "memchat.jobs.embedding": "BackfillResult",
    "memchat.search.switch": "MigrationResult",
    "memchat.notes.ask": "NotesAnswer",
    "memchat.providers": "ChatModel ChatStream Completion Embedder ToolCall",
    "memchat.db.jobs": "DeadHolder",
    "memchat.types": (
        "AppInfo Audit Backup Browsed Change ChatMessage Client ClientWrite Elsewhere "
        "EmbeddingState Event Evidence ExternalId Finding Given Hit Imported InboxItem "
        "Insights Job Learned LongMessage Memory MemoryChanges MemoryOrigin MemorySwitch "
        "Message NewNote Note NoteCounts NoteHit NotePassage NoteSource NoteUse NotesAdded "
        "NotesFound NotesReport Place PluginInfo Progress Question ReadingPlan Recalled "
        "Refusal RefusedRecord ReplyParts RestorePlan Scope Service ServiceInfo Session "
        "SessionQuote Undone Usage UsageTotal Wanted Why Written"
    ),
}
"""The public names, by the module that defines them."""
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME)


if not TYPE_CHECKING:  # a type checker that saw it would take any name for one of the package

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'memchat' has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)
