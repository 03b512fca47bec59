"""The nouns every package shares: plain frozen records, whose behaviour needs no database or model.

Times are aware UTC ``datetime``; ``expires_at`` is a calendar ``date`` in the user's own time zone,
and the memory holds through that day.
"""

from memchat.types.audit import Audit, Finding, FindingKind
from memchat.types.backup import Backup, RestorePlan
from memchat.types.client import (
    CLIENT_MODES,
    CLIENT_NAME_LIMIT,
    Client,
    ClientMode,
    ClientWrite,
    SessionQuote,
    WriteKind,
    Written,
    note_prefix,
)
from memchat.types.cue_plan import CuePlan
from memchat.types.event import Event
from memchat.types.evidence import Evidence
from memchat.types.hit import Hit, Recalled
from memchat.types.imported import Imported, RefusedRecord
from memchat.types.inbox import InboxItem
from memchat.types.insights import Insights
from memchat.types.job import EmbeddingState, EmbeddingStatus, Job
from memchat.types.learned import Change, Learned
from memchat.types.long_message import LongMessage
from memchat.types.memory import LEARNED, MEMORY_TYPES, CreatedBy, Memory, MemoryType
from memchat.types.memory_changes import MemoryChanges
from memchat.types.memory_origin import MemoryOrigin
from memchat.types.memory_page import Browsed, Wanted
from memchat.types.mention import Elsewhere, Place, PlaceKind
from memchat.types.message import ChatMessage, Message, Role
from memchat.types.note import (
    ExternalId,
    NewNote,
    Note,
    NoteCounts,
    NoteHit,
    NotesAdded,
    NotesFound,
    NotesReport,
    NoteUse,
)
from memchat.types.note_source import NotePassage, NoteSource
from memchat.types.progress import OnProgress, Progress
from memchat.types.question import Question
from memchat.types.reading_plan import ReadingPlan
from memchat.types.record import to_json
from memchat.types.record_counts import REFUSED_MOST, counted_records
from memchat.types.refusal import ONLY_REPEATS, Refusal
from memchat.types.reply_parts import ReplyParts
from memchat.types.scope import EVERY_APP, NAME_LIMIT, AppInfo, MemorySwitch, Scope, clean_name
from memchat.types.service import CHUNK_TOKENS, PluginInfo, Service, ServiceInfo
from memchat.types.session import Session
from memchat.types.tag import TAGS_MOST, clean_tags
from memchat.types.text import REPLY_LIMIT, clean_text, counted, one_line
from memchat.types.timeout import checked_timeout
from memchat.types.undone import Undone
from memchat.types.usage import Usage, UsageTotal
from memchat.types.why import Given, Why
