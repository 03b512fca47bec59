"""What was read from a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memchat.types import clean_text

TITLE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a file, as a note keeps it.

    ``title`` and ``written_at`` are the document's own, None where it has none; a time without a
    zone is in that of the person. ``profile`` is how it is cut into chunks: memo or document.
    """

    text: str
    title: str | None = None
    written_at: datetime | None = None
    profile: str = "document"


def short_title(text: str | None) -> str | None:
    """A title on one line, cut off where it is too long; None for one without words."""
    title = " ".join(clean_text(text or "").split())
    if len(title) > TITLE_LIMIT:
        title = f"{title[: TITLE_LIMIT - 1]}…"
    return title or None
