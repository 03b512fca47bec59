"""How long the chunks of a kind of text are, and how much two neighbours share."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.errors import InputError
from memchat.types import Service

SMALLEST = 16
"""Tokens: no chunk size is below this, so that every character fits into a chunk whatever the
tokenizer makes of it."""
_OVERLAP_SHARE = 4


@dataclass(frozen=True, slots=True)
class Profile:
    """``max_tokens`` is the most that a chunk may have, its overlap included, ``overlap_tokens``
    the most of it that may be repeated from the end of the chunk before.

    Raises InputError for sizes that cannot be.
    """

    max_tokens: int
    overlap_tokens: int

    def __post_init__(self) -> None:
        if self.max_tokens < SMALLEST:
            raise InputError(
                f"chunks of {self.max_tokens} tokens are too short; give at least {SMALLEST}"
            )
        if self.overlap_tokens < 0:
            raise InputError(
                f"an overlap of {self.overlap_tokens} tokens cannot be; give 0 for none"
            )
        if self.overlap_tokens >= self.max_tokens:
            raise InputError(
                f"an overlap of {self.overlap_tokens} tokens leaves nothing new in chunks of "
                f"{self.max_tokens}; give a smaller overlap or longer chunks"
            )


MEMO = Profile(500, 50)
"""For voice memos and other spoken text: a thought that crosses a cut is found from both sides."""
DOCUMENT = Profile(2_000, 0)
"""For written text, which its headings and paragraphs divide."""


def effective_profile(default: Profile, service: Service) -> Profile:
    """The profile for texts that ``service`` embeds: ``default``, made smaller where the service's
    chunks are; its overlap is then at most a quarter of the chunk.

    The size that someone asks for is the service's ``chunking_max_tokens``, which is an error above
    what the model reads.
    """
    size = min(default.max_tokens, service.chunking_max_tokens)
    return Profile(size, min(default.overlap_tokens, size // _OVERLAP_SHARE))
