"""Cutting a long conversation into windows that a cheap model reads well.

A window ends at a turn, follows the one before, and is shown that one's last turns for
understanding. A single message larger than a window is read in overlapping pieces. Of one that
would take more than ``MOST_WINDOWS`` the beginning and the end are read, unless the person asked
for all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from memchat.memory.extraction.extractor import TranscriptLine, Window
from memchat.tokens import estimate_tokens
from memchat.types import Message

CONTEXT_TURNS = 4
PIECE_OVERLAP = 200
LARGEST = 12_000
"""Tokens of a window, whatever the model could hold: cheap models lose the middle of long ones."""
MOST_WINDOWS = 8
"""Windows that one message takes if nobody asked to read all of it. Of a longer message half of
them are read at its beginning and half at its end."""
NEVER_LONG = 1_000
"""Characters that fit ``MOST_WINDOWS`` of any model, in any script."""
LEFT_OUT = "[{count:,} characters in the middle of this message are left out]"
"""What the model is shown at the gap."""
_CONTEXT_CHARACTERS = 1_500


def turn_id(position: int, message: Message) -> str:
    """The short id of a turn: u1, a2, …"""
    return f"{message.role[0]}{position + 1}"


def cut(
    turns: Sequence[Message],
    first_unread: int,
    window_tokens: int,
    zone: ZoneInfo,
    shortened: Collection[int] = (),
) -> list[Window]:
    """Windows over ``turns[first_unread:]``; the turns before it are context for the first. Of the
    messages with the ids ``shortened`` only the beginning and the end are read."""
    room = _room(window_tokens)
    lines = [
        (position, line)
        for position in range(first_unread, len(turns))
        for line in _lines(
            position, turns[position], room, zone, whole=turns[position].id not in shortened
        )
    ]
    windows: list[Window] = []
    batch: list[tuple[int, TranscriptLine]] = []
    used = 0
    for position, line in lines:
        cost = estimate_tokens(line.words) + 20
        if batch and used + cost > room:
            windows.append(_window(turns, batch, zone))
            batch, used = [], 0
        batch.append((position, line))
        used += cost
    if batch:
        windows.append(_window(turns, batch, zone))
    return windows


def count(content: str, window_tokens: int) -> int:
    """How many windows it takes to read all of a message."""
    return len(_pieces(content, _room(window_tokens)))


def is_long(content: str, window_tokens: int) -> bool:
    """Whether only the beginning and the end of a message are read if nobody asked for more."""
    return count(content, window_tokens) > MOST_WINDOWS


def _room(window_tokens: int) -> int:
    return max(500, min(window_tokens // 2, LARGEST))


def _window(
    turns: Sequence[Message], batch: list[tuple[int, TranscriptLine]], zone: ZoneInfo
) -> Window:
    start = batch[0][0]
    before = range(max(0, start - CONTEXT_TURNS), start)
    context = tuple(
        _line(position, turns[position], zone, turns[position].content[-_CONTEXT_CHARACTERS:])
        for position in before
    )
    return Window(tuple(line for _, line in batch), context)


def _lines(
    position: int, message: Message, room: int, zone: ZoneInfo, *, whole: bool
) -> Iterator[TranscriptLine]:
    """A message as the lines that the model is shown of it."""
    pieces = _pieces(message.content, room)
    words = [message.content[piece] for piece in pieces]
    if not whole and len(words) > MOST_WINDOWS:
        half = MOST_WINDOWS // 2
        mark = LEFT_OUT.format(count=pieces[-half].start - pieces[half - 1].stop)
        words[half - 1] += f"\n{mark}"
        words[-half] = f"{mark}\n{words[-half]}"
        words = [*words[:half], *words[-half:]]
    for part in words:
        yield _line(position, message, zone, part)


def _pieces(content: str, room: int) -> list[slice]:
    """The places of the overlapping pieces in which all of a message is read, or of the whole."""
    tokens = estimate_tokens(content)
    if tokens <= room:
        return [slice(0, len(content))]
    size = max(room * len(content) // tokens, 2 * PIECE_OVERLAP)
    starts = range(0, max(1, len(content) - PIECE_OVERLAP), size - PIECE_OVERLAP)
    return [slice(start, min(start + size, len(content))) for start in starts]


def _line(position: int, message: Message, zone: ZoneInfo, words: str) -> TranscriptLine:
    return TranscriptLine(
        turn_id(position, message), message.role, said(message.created_at, zone), words
    )


def said(at: datetime, zone: ZoneInfo) -> str:
    """The day of a turn as a model is shown it: 2026-11-18 Wed."""
    return f"{at.astimezone(zone):%Y-%m-%d %a}"
