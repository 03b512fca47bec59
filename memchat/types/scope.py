"""Scopes: a user and one of their apps, and whether memory is on there."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime

from memchat.errors import ScopeError

NAME_LIMIT = 200
EVERY_APP = ""
"""The app name of the memories that a user has in every app."""


def clean_name(name: str, what: str) -> str:
    """A user or app name in NFC, without white space around it. Raises ScopeError for one that
    cannot be used."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ScopeError(f"the {what} name holds half a character; type it again") from None
    name = unicodedata.normalize("NFC", name).strip()
    if not name:
        raise ScopeError(f"the {what} name is empty; give one with --{what}")
    if len(name) > NAME_LIMIT:
        raise ScopeError(f"the {what} name is longer than {NAME_LIMIT} characters")
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise ScopeError(f"the {what} name holds a control character; use plain text")
    return name


@dataclass(frozen=True, slots=True)
class Scope:
    """A user and one of their apps. The names are checked and normalised."""

    user: str
    app: str = "default"

    def __post_init__(self) -> None:
        object.__setattr__(self, "user", clean_name(self.user, "user"))
        object.__setattr__(self, "app", clean_name(self.app, "app"))


@dataclass(frozen=True, slots=True)
class AppInfo:
    """One app of a user, whether its memory is on, and how much it holds."""

    name: str
    memory: bool
    memories: int
    sessions: int
    notes: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class MemorySwitch:
    """Whether memory is on for a conversation, and the reason if not."""

    on: bool
    reason: str
