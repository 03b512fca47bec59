"""Cutting a long conversation into windows that a cheap model reads well.

A window ends at a turn, follows the one before, and is shown that one's last turns for
understanding. A single message larger than a window is read in overlapping pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from memchat.memory.extraction.extractor import TranscriptLine, Window
from memchat.tokens import estimate_tokens
from memchat.types import Message

CONTEXT_TURNS = 4
PIECE_OVERLAP = 200
LARGEST = 12_000
"""Tokens of a window, whatever the model could hold: cheap models lose the middle of long ones."""
_CONTEXT_CHARACTERS = 1_500


def turn_id(position: int, message: Message) -> str:
    """The short id of a turn: u1, a2, …"""
    return f"{message.role[0]}{position + 1}"


def cut(
    turns: Sequence[Message], first_unread: int, window_tokens: int, zone: ZoneInfo
) -> list[Window]:
    """Windows over ``turns[first_unread:]``; the turns before it are context for the first."""
    room = max(500, min(window_tokens // 2, LARGEST))
    lines = [
        (position, line)
        for position in range(first_unread, len(turns))
        for line in _pieces(position, turns[position], room, zone)
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


def _pieces(position: int, message: Message, room: int, zone: ZoneInfo) -> Iterator[TranscriptLine]:
    content = message.content
    if estimate_tokens(content) <= room:
        yield _line(position, message, zone, content)
        return
    size = room * len(content) // estimate_tokens(content)
    for start in range(0, len(content), size - PIECE_OVERLAP):
        yield _line(position, message, zone, content[start : start + size])
        if start + size >= len(content):
            return


def _line(position: int, message: Message, zone: ZoneInfo, words: str) -> TranscriptLine:
    return TranscriptLine(
        turn_id(position, message), message.role, _said(message.created_at, zone), words
    )


def _said(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %a}"
