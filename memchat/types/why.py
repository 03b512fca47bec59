"""The receipt of a reply: what its model was given and sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memchat.types.hit import Hit
from memchat.types.message import ChatMessage, Message
from memchat.types.usage import Usage


@dataclass(frozen=True, slots=True)
class Given:
    """One line that a reply's model was given, and what became of it since."""

    hit: Hit
    """As it was injected; without its words where it is being forgotten."""
    said_at: datetime | None = None
    session_id: int | None = None
    """The conversation it was said in; None for what was entered by hand."""
    since: str | None = None
    """What happened to it after the reply, in words; None where it stands as it did."""
    muted: bool = False
    """Whether it is kept out of the rest of the conversation."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a reply is as it is: what its model was given and sent, and what that took."""

    reply: Message
    question: str | None
    """The message it answers."""
    lines: tuple[Given, ...]
    """What was found for the message, or chosen where not all facts fit."""
    forgotten: int
    """Lines that are gone since, with their words."""
    dropped: int
    """Memories that the token budget left out."""
    degraded: str | None
    by_model: bool
    """False where code answered alone."""
    tools: tuple[str, ...]
    """Those that the model was offered."""
    prompt: tuple[ChatMessage, ...] | None
    """What the model was sent, as far as it is neither blanked nor deleted; None where it held
    what was forgotten, and where code answered alone."""
    deleted: int
    """Turns that were sent and are gone since."""
    calls: tuple[Usage, ...]
    """The calls made for it, each with its tokens and cost."""
    also: tuple[Given, ...] = ()
    """The other facts that were sent, as all of them fit: in the order of their ids."""
