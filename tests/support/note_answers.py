"""Memos to ask about, and what a model was sent about them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from memchat import MemChat
from memchat.testing import ScriptedModel
from memchat.types import ChatMessage, Note
from tests.support.notes import add
from tests.support.store import NOON

HEAD = re.compile(r"^\[(\d+)\] ", re.MULTILINE)


def memo(mc: MemChat, text: str, days_ago: int = 0, title: str | None = None, **more) -> Note:
    """A memo of so many days before the clock of the tests."""
    at: datetime = more.pop("created_at", NOON - timedelta(days=days_ago))
    return add(mc, text, title=title, created_at=at, **more)


def notes_sent(messages: Iterable[ChatMessage]) -> str:
    """What stands between the marks of a request."""
    (system,) = (one.content for one in messages if one.role == "system")
    found = re.findall(r'<notes mark="(\w+)">\n(.*?)\n</notes mark="\1">', system, re.DOTALL)
    assert len(found) == 1, "one fence, closed once"
    return str(found[0][1])


def numbers_sent(messages: Iterable[ChatMessage]) -> list[int]:
    """The numbers of the notes in a request, in their order."""
    return [int(number) for number in HEAD.findall(notes_sent(messages))]


def cites_all(messages: Iterable[ChatMessage]) -> str:
    """An answer that cites every note it was given."""
    return " ".join(f"Something [{number}]." for number in numbers_sent(messages))


def sent(model: ScriptedModel, call: int = -1) -> str:
    """The notes of one call."""
    return notes_sent(model.requests[call].messages)
