"""Long messages: those offered to be kept as notes, and those that are too long to be read whole
for memories unless a person asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from memchat.types.effort import effort

PASTE_LENGTH = 2_000
"""Characters from which a message is offered to be kept as a note."""


@dataclass(frozen=True, slots=True)
class LongMessage:
    """A very long message, and what it takes to read all of it. Calls, tokens and cost are those of
    the extraction model, and rough."""

    message_id: int
    characters: int
    read_all: bool
    """Whether all of it is read, as was asked for; else its beginning and its end."""
    calls: int
    """Calls that read its beginning and its end."""
    calls_for_all: int
    tokens_for_all: int
    cost_for_all: float | None
    """US dollars; 0 for a model of this machine, None if the price is not known."""
    model: str

    @property
    def effort(self) -> str:
        """What reading all of it takes, in words: "62 calls, about $0.12"."""
        return effort(self.calls_for_all, self.tokens_for_all, self.cost_for_all)
