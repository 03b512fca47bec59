"""MemChat, the façade: opens the store, the models and the queue's worker, and closes them.

Every verb names a user and an app; what belongs to another is not found. Opening costs no model:
providers, vectors and FAISS load at the first call that needs them. Each room of the package holds
the verbs on one noun.
"""

from __future__ import annotations

from memchat.app.forgetting import Forgetting
from memchat.app.memories import Memories
from memchat.app.people import People
from memchat.app.review import Review
from memchat.app.talks import Answer, Talks
from memchat.app.upkeep import Upkeep
from memchat.app.work import Work

__all__ = ["Answer", "MemChat"]


class MemChat(Talks, Memories, Forgetting, Review, People, Work, Upkeep):
    """One store and the models around it. Use it in a ``with`` block, or ``close`` it."""
