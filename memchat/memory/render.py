"""The one function that builds the block of memories every chat injects: escaped, fenced, dated."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

from memchat.language.secrets import mask
from memchat.language.text import visible
from memchat.prompts import Prompts
from memchat.store.succession import Past
from memchat.tokens import estimate_tokens
from memchat.types import Memory, Message

_BARE_CODE = re.compile(r"(?=\S*\d)\S{3,40}")
_SAID = re.compile(r" \(said \d{4}-\d\d-\d\d[;)]")
_ESCAPES = {"<": "‹", ">": "›", "`": "ʼ"}
_ASCII_ESCAPES = str.maketrans(_ESCAPES)


def line(memory: Memory, zone: ZoneInfo, before: Sequence[Past] = ()) -> str:
    """A memory on one line: type, key, value, when it was said, from when and until when it
    holds.

    ``before`` are values that it replaced, the newest first.
    """
    said = day(memory.said_at, zone)
    text = f"[{memory.memory_type}] {memory.key}: {memory.value} (said {said}"
    if memory.starts_at:
        text += f"; from {memory.starts_at.isoformat()}"
    if memory.expires_at:
        text += f"; until {memory.expires_at.isoformat()}"
    if before:
        told = (f"{past.value}, until {day(past.until, zone)}" for past in before)
        text += f"; before: {'; '.join(told)}"
    return escaped(text + ")")


def tells(line: str, key: str, value: str) -> bool:
    """Whether a line of a memory says this and no more."""
    said = line.partition("] ")[2].removeprefix(escaped(f"{key}: {value}"))
    return _SAID.match(said) is not None


def moment(
    message: Message,
    zone: ZoneInfo,
    limit: int = 400,
    *,
    title: str | None = None,
    changed: Sequence[str] = (),
) -> str:
    """An earlier turn on one line: when it was said, by whom, in which conversation.

    ``changed`` are the keys of what it said that holds no more.
    """
    words = said(message)
    words = words if len(words) <= limit else words[: limit - 1] + "…"
    talk = f"conversation “{title}”" if title else "conversation"
    since = f" (since changed: {', '.join(changed)})" if changed else ""
    when = day(message.created_at, zone)
    return escaped(f"[{talk}] {when} {message.role}: {words}{since}")


def said(message: Message) -> str:
    """What was said, on one line and without its secrets."""
    words = " ".join(mask(message.content).split())
    # A bare code is the answer to a question that nobody sees here.
    return "[code]" if _BARE_CODE.fullmatch(words) else words


def block(prompts: Prompts, lines: Sequence[str]) -> str:
    """The whole block, or nothing where there is nothing to say."""
    if not lines:
        return ""
    # A mark of its own for each call: no stored text can know it and close the fence.
    mark = secrets.token_hex(4)
    return prompts.render("memories", mark=mark, lines="\n".join(f"- {text}" for text in lines))


def frame_tokens(prompts: Prompts) -> int:
    """What the block takes before its first line, by the mark that takes most."""
    return estimate_tokens(prompts.render("memories", mark="0a" * 4, lines=""))


def day(moment_: datetime | date, zone: ZoneInfo) -> str:
    """The day the user lived in at that instant; a day as it is."""
    if isinstance(moment_, datetime):
        moment_ = moment_.astimezone(zone).date()
    return moment_.isoformat()


def escaped(text: str) -> str:
    """On one line, with nothing that could pass for a fence or markup, in any of its forms."""
    seen = visible(text)
    if seen.isascii():
        return seen.translate(_ASCII_ESCAPES)
    return "".join(_ESCAPES.get(unicodedata.normalize("NFKC", char), char) for char in seen)
