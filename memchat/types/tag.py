"""Tags: words by which a person or a program groups memories."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from memchat.errors import InputError
from memchat.types.text import one_line

TAG_LIMIT = 40
"""The most characters of a tag."""
TAGS_MOST = 20
"""The most tags of a memory."""
_COMMAS = re.compile("[,،、，]")


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored and compared: lower case, NFC, each once and sorted, with hyphens for
    white space. A comma parts two tags. Raises InputError for one that is empty or too long, and
    for too many of them."""
    if isinstance(tags, str):
        raise InputError(f"give tags as a list, as [{tags!r}]")
    found = tuple(sorted({_clean(word) for tag in tags for word in _parted(tag)}))
    if len(found) > TAGS_MOST:
        raise InputError(f"these are {len(found)} tags; a memory has at most {TAGS_MOST}")
    return found


def _parted(tag: str) -> list[str]:
    return [part for part in _COMMAS.split(tag) if part.strip()] or [""]


def _clean(tag: str) -> str:
    line = one_line(tag, "tag", TAG_LIMIT)
    if not line.isprintable():
        raise InputError("a tag holds a character that cannot be seen; use plain text")
    word = unicodedata.normalize("NFC", line.lower()).replace(" ", "-")
    return one_line(word, "tag", TAG_LIMIT)  # lower case may be longer
