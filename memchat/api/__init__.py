"""The public interface of memchat: ``MemChat``, and what it is used through.

``MemChat`` opens a store; ``MemChat.user`` gives a ``User``: one person in one app. Everything that
concerns a person is a verb of their ``User``, or of one of its rooms (``memories``, ``sessions``,
``inbox``, ``apps``, ``mentions``). What concerns the whole store is in ``MemChat.jobs``,
``MemChat.services`` and ``MemChat.backups``. Opening a store loads no model: that happens at the
first call that needs one.
"""

from __future__ import annotations

from memchat.api.store import MemChat
from memchat.api.user import User

__all__ = ["MemChat", "User"]
