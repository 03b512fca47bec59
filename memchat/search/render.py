"""Writes memories as text for a prompt, in the one block that every chat is given.

All text is escaped, and the block stands between marks that no stored text can know.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

from memchat.facts.changes import ReplacedValue
from memchat.language.secrets import mask
from memchat.language.text import visible_text
from memchat.prompts import Prompts
from memchat.tokens import estimate_tokens
from memchat.types import Hit, Memory, Message, Recalled

_TURN_LIMIT = 400
"""Characters of a past turn that a line shows."""
_BARE_CODE = re.compile(r"(?=\S*\d)\S{3,40}")
_TYPE = re.compile(r"^\[\w+\] ")
_DAYS = re.compile(r" \((?:(?:said|stored|from|until) \d{4}-\d\d-\d\d[;)]|before: )")
_ESCAPES = {"<": "‹", ">": "›", "`": "ʼ"}
_ASCII_ESCAPES = str.maketrans(_ESCAPES)


def line(memory: Memory, zone: ZoneInfo, before: Sequence[ReplacedValue] = ()) -> str:
    """A memory on one line: type, key, value, when it was said, from when and until when it
    holds.

    ``before`` are values that it replaced, the newest first.
    """
    text = f"[{memory.memory_type}] {memory.key}: {memory.value} ({said(memory, zone)}"
    if memory.starts_at:
        text += f"; from {memory.starts_at.isoformat()}"
    if memory.expires_at:
        text += f"; until {memory.expires_at.isoformat()}"
    if before:
        text += f"; before: {_replaced(before, zone)}"
    return escaped(text + ")")


def fact(memory: Memory, zone: ZoneInfo, today: date, before: Sequence[ReplacedValue] = ()) -> str:
    """A memory as a line of a prompt: key, value, and a day only where time matters.

    ``before`` are values that it replaced and that were found, the newest first.
    """
    days = []
    if memory.memory_type not in ("profile", "preference"):
        days.append(said(memory, zone))
    if memory.starts_at is not None and memory.starts_at > today:
        days.append(f"from {memory.starts_at.isoformat()}")
    if memory.expires_at is not None:
        days.append(f"until {memory.expires_at.isoformat()}")
    if before:
        days.append(f"before: {_replaced(before, zone)}")
    dated = f" ({'; '.join(days)})" if days else ""
    return escaped(f"{memory.key}: {memory.value}{dated}")


def said(memory: Memory, zone: ZoneInfo) -> str:
    """When the person said it, or when a program stored it that they did not say it to."""
    verb = "stored" if memory.created_by == "mcp" else "said"
    return f"{verb} {day(memory.said_at, zone)}"


def _replaced(before: Sequence[ReplacedValue], zone: ZoneInfo) -> str:
    return "; ".join(f"{past.value}, replaced {day(past.until, zone)}" for past in before)


def has_value(line: str, key: str, value: str) -> bool:
    """Whether a line of a memory holds this key and value, and beside them only days."""
    rest = _TYPE.sub("", line).removeprefix(escaped(f"{key}: {value}"))
    return not rest or _DAYS.match(rest) is not None


def past_turn(
    message: Message,
    zone: ZoneInfo,
    *,
    title: str | None = None,
    changed: Sequence[str] = (),
    unread: bool = False,
) -> str:
    """An earlier turn on one line: when it was said, by whom, in which conversation.

    ``changed`` are the keys of the facts in it that are out of date. What is ``unread`` may have
    changed facts that do not show it yet.
    """
    words = message_line(message)
    words = words if len(words) <= _TURN_LIMIT else words[: _TURN_LIMIT - 1] + "…"
    talk = f"conversation “{title}”" if title else "conversation"
    since = f" (since changed: {', '.join(changed)})" if changed else ""
    since += " (newer than the facts above)" if unread else ""
    when = day(message.created_at, zone)
    return escaped(f"[{talk}] {when} {message.role}: {words}{since}")


def message_line(message: Message) -> str:
    """A message on one line, without its secrets."""
    words = " ".join(mask(message.content).split())
    # A bare code is the answer to a question that nobody sees here.
    return "[code]" if _BARE_CODE.fullmatch(words) else words


def block(prompts: Prompts, mark: str, shown: Recalled) -> str:
    """The whole block, or an empty text where there are no memories to show.

    The list of all facts comes first, so that the prompts of one conversation begin alike.
    """
    lines = [listing(shown.listed)] if shown.listed else []
    listed = {hit.id: hit.text for hit in shown.listed}
    found = [hit.id for hit in shown.hits if hit.kind == "memory"] if shown.listed else []
    if found:
        lines.append(pointer(found))
    lines += [bullet(hit) for hit in shown.hits if not is_listed(hit, listed)]
    return prompts.render("memories", mark=mark, lines="\n".join(lines)) if lines else ""


def listing(listed: Sequence[Hit]) -> str:
    """The list of all facts, a line each."""
    return "\n".join(map(bullet, listed))


def bullet(hit: Hit) -> str:
    """The line of a hit in a prompt; a fact has its number."""
    return f"- #{hit.id} {hit.text}" if hit.kind == "memory" else f"- {hit.text}"


def pointer(ids: Sequence[int]) -> str:
    """Which facts search found for the message."""
    return f"For this message: {', '.join(f'#{i}' for i in ids)}"


def is_listed(hit: Hit, lines: Mapping[int, str]) -> bool:
    """Whether a hit stands among these lines of memories, by id, in the same words."""
    return hit.kind == "memory" and lines.get(hit.id) == hit.text


WIDEST_MARK = "0a" * 4
"""The mark that takes most tokens."""


def new_mark() -> str:
    """A mark for the fence, one for each conversation: no stored text can know it and close it."""
    return secrets.token_hex(4)


def frame_tokens(prompts: Prompts) -> int:
    """Tokens of the block without its lines, by the mark that takes most."""
    return estimate_tokens(prompts.render("memories", mark=WIDEST_MARK, lines=""))


def day(at: datetime | date, zone: ZoneInfo) -> str:
    """The user's day at an instant, in ISO form; a day as it is."""
    if isinstance(at, datetime):
        at = at.astimezone(zone).date()
    return at.isoformat()


def escaped(text: str) -> str:
    """On one line, with nothing that could pass for a fence or markup, in any of its forms."""
    seen = visible_text(text)
    if seen.isascii():
        return seen.translate(_ASCII_ESCAPES)
    return "".join(_ESCAPES.get(unicodedata.normalize("NFKC", char), char) for char in seen)
