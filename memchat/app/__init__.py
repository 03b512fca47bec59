"""MemChat, the façade: opens the store, the models and the queue's worker, and closes them.

Every verb names a user and an app; what belongs to another is not found. Opening costs no model:
providers, vectors and FAISS load at the first call that needs them. Each room of the package holds
the verbs on one noun.
"""

from __future__ import annotations

from memchat.app.forgetting import Forgetting
from memchat.app.inbox import Inbox
from memchat.app.memories import Memories
from memchat.app.people import People
from memchat.app.queue import Queue
from memchat.app.services import Services
from memchat.app.sessions import Answer, Sessions

__all__ = ["Answer", "MemChat"]


class MemChat(Sessions, Memories, Forgetting, Inbox, People, Queue, Services):
    """One store and the models around it. Use it in a ``with`` block, or ``close`` it."""
