"""Taking a stored reply apart: the lines that ``replies`` writes, found again in its text."""

from __future__ import annotations

import re

from memchat.memory.commands import replies
from memchat.types import ReplyParts


def _pattern(sentence: str) -> str:
    """A regular expression for a sentence of ``replies`` with anything in its gaps."""
    return re.sub(r"\\{\w+\\}", ".*", re.escape(sentence))


_HEAD = re.compile(rf"^{_pattern(replies.REMEMBERED)}$", re.MULTILINE)
_HEADINGS = "|".join(map(re.escape, replies.HEADINGS.values()))
_LISTED = re.compile(rf"\n(?:- #\d+ .*|(?:{_HEADINGS}):|{_pattern(replies.MORE_LISTED)})")
_QUESTIONS = (replies.FORGET_ONE, replies.FORGET_SOME, replies.BLANK)
_QUESTION = re.compile(rf"\n(?P<asked>{'|'.join(map(_pattern, _QUESTIONS))})\Z")


def lists(text: str) -> bool:
    """Whether a reply reads like a list of memories. Only its receipt proves that code wrote it."""
    return _HEAD.search(text) is not None


def split(text: str, listed: tuple[int, ...] = ()) -> ReplyParts:
    """The parts of a reply in which code listed these memories."""
    asked = _QUESTION.search(text)
    question = asked["asked"] if asked is not None else ""
    rest = text[: asked.start()] if asked is not None else text
    head = _HEAD.search(rest) if listed else None
    if head is None:
        return ReplyParts(rest, question=question)
    after = _LISTED.sub("", rest[head.end() :]).strip()
    return ReplyParts(rest[: head.end()], listed, after, question)
