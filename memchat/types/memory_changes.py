"""What a person changes of a memory by hand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TypedDict


class MemoryChanges(TypedDict, total=False):
    """The new values of what is changed of a memory; what is left out, or None, stays as it is."""

    value: str | None
    key: str | None
    type: str | None
    expires_at: date | None
    """Its last day; None lets it hold for good."""
    all_apps: bool | None
    """Whether it is kept for every app of the person, or for this one."""
    sensitive: bool | None
    tags: Iterable[str] | None
    """All tags that it has from now on."""
    keep_secret: bool
    """Whether a value that looks like a secret is kept all the same."""
