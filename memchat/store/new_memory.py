"""A fact about to be written, and the hashes it is known by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date, datetime

from memchat.types import CreatedBy, MemoryType


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A fact that is about to be stored."""

    memory_type: MemoryType
    key: str
    value: str
    many: bool
    search_text: str
    said_at: datetime
    created_by: CreatedBy
    expires_at: date | None = None
    starts_at: date | None = None
    cues: tuple[str, ...] = ()
    sensitive: bool = False

    @property
    def sha1(self) -> str:
        """The hash that identifies the fact within its scope."""
        return sha1_of(self.memory_type, self.key, self.value)


def sha1_of(memory_type: str, key: str, value: str) -> str:
    """sha1 of ``type|key|value`` in hex."""
    return hashlib.sha1(f"{memory_type}|{key}|{value}".encode()).hexdigest()


def text_hash(text: str) -> str:
    """sha256 of a text in hex, under which its vector is stored."""
    return hashlib.sha256(text.encode()).hexdigest()
