"""The receipt of a reply: what its model was given and sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memchat.types.hit import Hit
from memchat.types.message import ChatMessage, Message
from memchat.types.usage import Usage


@dataclass(frozen=True, slots=True)
class Given:
    """One line of a reply's prompt, and what became of it since."""

    hit: Hit
    """As it was sent; without its words while it is being forgotten."""
    said_at: datetime | None = None
    session_id: int | None = None
    """The conversation in which it was said; None if it was entered by hand, or for a note."""
    since: str | None = None
    """What happened to it after the reply, in words; None if nothing did."""
    muted: bool = False
    """Whether it is left out of the rest of the conversation."""
    client: str | None = None
    """The program that stored it over MCP."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a reply is as it is: what its model was sent, and the cost of the calls."""

    reply: Message
    question: str | None
    """The message it answers."""
    lines: tuple[Given, ...]
    """What was found for the message, or chosen because not all facts fit."""
    forgotten: int
    """How many lines were deleted since, with their words."""
    dropped: int
    """How many memories the token budget left out."""
    degraded: str | None
    by_model: bool
    """False if the reply was made by code alone."""
    tools: tuple[str, ...]
    """The tools that the model was offered."""
    prompt: tuple[ChatMessage, ...] | None
    """What the model was sent, without what was blanked or deleted since. None if it held something
    that was forgotten, or if the reply was made by code alone."""
    deleted: int
    """How many of the messages sent were deleted since."""
    calls: tuple[Usage, ...]
    """The calls made for the reply, each with its tokens and cost."""
    also: tuple[Given, ...] = ()
    """The other facts that were sent because all of them fit, in the order of their ids."""
