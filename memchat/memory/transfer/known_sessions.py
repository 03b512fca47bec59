"""Recognising the conversations of an export that are in the store already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from memchat.memory.forgetting.redaction import FILLER
from memchat.memory.transfer.record_check import Values
from memchat.store import messages, sessions
from memchat.types import Message, Session


@dataclass(slots=True)
class KnownSessions:
    """The conversations that were in some scope rows before the import.

    One is recognised by when it began and by any of its messages, since the others may have been
    deleted and words in it blanked. Each is found once.
    """

    tx: Connection
    _by_start: dict[int, dict[datetime, list[int]]] = field(default_factory=dict)

    def find(
        self, app_id: int, started_at: datetime, turns: Sequence[Values]
    ) -> tuple[int, Mapping[int, int]] | None:
        """The id of the same conversation, and for the ids of these messages in the file those
        here; None where there is none. ``turns`` are its messages."""
        there = self._starts(app_id).get(started_at, [])
        for session_id in there:
            said = messages.of_session(self.tx, session_id)
            same = _pairs(turns, said)
            if same or not (turns or said):
                there.remove(session_id)
                return session_id, same
        return None

    def newer(
        self, session_id: int, turns: Sequence[Values], same: Mapping[int, int]
    ) -> tuple[Session, list[Values]] | None:
        """The conversation as it is here, and those of these messages with which it went on
        elsewhere; None where there are none, it is open, or went on here too.

        What is older than its last use here was here once, and was deleted.
        """
        found = sessions.by_id(self.tx, session_id)
        here = messages.ids_of(self.tx, session_id)
        if found is None or found[0].ended_at is None or not here or here[-1] not in same.values():
            return None
        session = found[0]
        later = [turn for turn in turns if turn["created_at"] > session.last_activity_at]
        return (session, later) if later else None

    def _starts(self, app_id: int) -> dict[datetime, list[int]]:
        if app_id not in self._by_start:
            found: defaultdict[datetime, list[int]] = defaultdict(list)
            for session_id, started_at in sessions.starts(self.tx, app_id):
                found[started_at].append(session_id)
            self._by_start[app_id] = dict(found)
        return self._by_start[app_id]


def _pairs(turns: Sequence[Values], said: Sequence[Message]) -> dict[int, int]:
    """Which messages are the same, in order: their ids in the file, and those here."""
    pairs: dict[int, int] = {}
    left = list(said)
    for turn in turns:
        for place, message in enumerate(left):
            if _same(turn, message):
                pairs[turn["id"]] = message.id
                del left[: place + 1]
                break
    return pairs


def _same(turn: Values, message: Message) -> bool:
    if (turn["role"], turn["created_at"]) != (message.role, message.created_at):
        return False
    here, there = message.content, turn["content"]
    return here == there or (
        len(here) == len(there)
        and all(a == b or FILLER in (a, b) for a, b in zip(here, there, strict=True))
    )
