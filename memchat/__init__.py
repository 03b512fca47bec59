"""memchat: a chat assistant that remembers, on your own disk.

Public names load at first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memchat.app import Answer, MemChat
    from memchat.chat import Chat, Reply
    from memchat.config import Settings
    from memchat.errors import (
        ConfigError,
        ExtractionError,
        InputError,
        MemChatError,
        NotFound,
        ProviderError,
        SchemaError,
        ScopeError,
        SecretError,
        StoreError,
    )
    from memchat.types import (
        KEEP,
        AppInfo,
        Change,
        Event,
        Evidence,
        Hit,
        Job,
        Learned,
        Memory,
        MemorySwitch,
        Message,
        Recalled,
        Refusal,
        Scope,
        Session,
        UsageTotal,
    )

_HOMES = {
    "memchat.app": ("Answer", "MemChat"),
    "memchat.chat": ("Chat", "Reply"),
    "memchat.config": ("Settings",),
    "memchat.errors": (
        "ConfigError",
        "ExtractionError",
        "InputError",
        "MemChatError",
        "NotFound",
        "ProviderError",
        "SchemaError",
        "ScopeError",
        "SecretError",
        "StoreError",
    ),
    "memchat.types": (
        "KEEP",
        "AppInfo",
        "Change",
        "Event",
        "Evidence",
        "Hit",
        "Job",
        "Learned",
        "Memory",
        "MemorySwitch",
        "Message",
        "Recalled",
        "Refusal",
        "Scope",
        "Session",
        "UsageTotal",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "KEEP",
    "Answer",
    "AppInfo",
    "Change",
    "Chat",
    "ConfigError",
    "Event",
    "Evidence",
    "ExtractionError",
    "Hit",
    "InputError",
    "Job",
    "Learned",
    "MemChat",
    "MemChatError",
    "Memory",
    "MemorySwitch",
    "Message",
    "NotFound",
    "ProviderError",
    "Recalled",
    "Refusal",
    "Reply",
    "SchemaError",
    "Scope",
    "ScopeError",
    "SecretError",
    "Session",
    "Settings",
    "StoreError",
    "UsageTotal",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'memchat' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
