"""The one function that builds the block of memories every chat injects: escaped, fenced, dated."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from memchat.prompts import Prompts
from memchat.tokens import estimate_tokens
from memchat.types import Memory, Message

_ESCAPES = str.maketrans({"<": "‹", ">": "›", "`": "ʼ", "\u2028": " ", "\u2029": " "})


def line(memory: Memory, zone: ZoneInfo, before: str | None = None) -> str:
    """A memory on one line: type, key, value, when it was said, until when it holds.

    ``before`` is the value that it replaced, and that held until it was said.
    """
    said = day(memory.said_at, zone)
    text = f"[{memory.memory_type}] {memory.key}: {memory.value} (said {said}"
    if memory.expires_at:
        text += f"; until {memory.expires_at.isoformat()}"
    if before is not None:
        text += f"; before: {before}, until {said}"
    return escaped(text + ")")


def moment(message: Message, zone: ZoneInfo, limit: int = 400) -> str:
    """An earlier turn on one line."""
    words = " ".join(message.content.split())
    words = words if len(words) <= limit else words[: limit - 1] + "…"
    return escaped(f"[conversation] {day(message.created_at, zone)} {message.role}: {words}")


def block(prompts: Prompts, lines: Sequence[str]) -> str:
    """The whole block, or nothing where there is nothing to say."""
    if not lines:
        return ""
    # A mark of its own for each call: no stored text can know it and close the fence.
    mark = secrets.token_hex(4)
    return prompts.render("memories", mark=mark, lines="\n".join(f"- {text}" for text in lines))


def frame_tokens(prompts: Prompts) -> int:
    """What the block takes before its first line."""
    return estimate_tokens(prompts.render("memories", mark="0" * 8, lines=""))


def day(moment_: datetime, zone: ZoneInfo) -> str:
    """The day the user lived in at that instant."""
    return moment_.astimezone(zone).date().isoformat()


def escaped(text: str) -> str:
    """On one line, with nothing that could pass for a fence or markup."""
    return " ".join(text.translate(_ESCAPES).split())
