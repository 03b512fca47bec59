"""Text fields as they may be stored and shown."""

from __future__ import annotations

import re

from memchat.errors import InputError

REPLY_LIMIT = 200_000
"""The most characters of a model's answer. A longer one is cut off."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Text as it may be stored: NUL and lone surrogates become U+FFFD, and nothing else changes.

    Two surrogates that form a pair become one character.
    """
    text = text.replace("\0", "\ufffd")
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def counted(number: int, noun: str) -> str:
    """``1 text``, ``1,200 texts``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str, what: str, limit: int) -> str:
    """A short field on one line with single spaces. Raises InputError if it is empty or too
    long."""
    folded = " ".join(clean_text(text).split())
    if not folded:
        raise InputError(f"the {what} is empty")
    if len(folded) > limit:
        raise InputError(f"the {what} is {len(folded)} characters long; at most {limit} are kept")
    return folded
