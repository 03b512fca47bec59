"""Writes the texts by which a conversation is found: its turns with their facts, and its summary.

They are written when the conversation was read, and again where words of it were forgotten. The
index blends the vectors of neighbouring turns; these texts hold one turn each.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from memchat.db import Tx, messages, sessions
from memchat.facts import changes
from memchat.facts.memories import FORGOTTEN, Fact
from memchat.search import passages, render
from memchat.search.passages import Passage
from memchat.types import Message, Session

Made = tuple[int, Mapping[str, Any]]
"""A service and its vectors by the hash of their text."""
_REPLY_LIMIT = 600
"""Characters of a reply that are blended into the turns next to it."""
_SPEAKER = re.compile(r"[^\W\d_a-z][\w.'’-]{0,30}(?: [\w.'’-]{1,30}){0,2}: ")
"""The name of a speaker before the words, as in messages of a group chat or in a transcript."""


@dataclass(frozen=True, slots=True)
class Texts:
    """What of a conversation is embedded: its turns by id, and its summary."""

    turns: Mapping[int, str]
    summary: str | None = None

    @property
    def every(self) -> list[str]:
        """All of them, to be embedded in one batch."""
        return [*self.turns.values(), *([self.summary] if self.summary else [])]


def texts(
    tx: Tx,
    session: Session,
    turns: Sequence[Message],
    zone: ZoneInfo,
    *,
    summary: str | None,
    new_facts: Iterable[Fact] = (),
) -> Texts:
    """The texts under which these turns are embedded, without copies, which no search finds.
    ``new_facts`` are about to be written."""
    facts: defaultdict[int, dict[tuple[str, str], None]] = defaultdict(dict)
    for message_id, _, memory in changes.taught_by(tx, [turn.id for turn in turns]):
        if memory.inactive_reason != FORGOTTEN:
            facts[message_id][memory.key, memory.value] = None
    for fact in new_facts:
        if fact.relation != "ends":
            for message_id, _, _ in fact.proofs:
                facts[message_id][fact.key, fact.value] = None
    said = {
        turn.id: _text(turn, session.user, facts[turn.id], zone)
        for turn in turns
        if turn.copied_from is None
    }
    return Texts(said, _summary_line(session.started_at, zone, summary) if summary else None)


def write(tx: Tx, session_id: int, made: Made | None = None) -> None:
    """Write the passages of what has been read of a conversation, from the rows as they are now,
    with the vectors ``made`` of them."""
    found = sessions.by_id(tx, session_id)
    if found is None:
        return
    session, app_id = found
    read = messages.of_session(tx, session_id, learnable=True)
    read = [turn for turn in read if turn.id <= session.extracted_to]
    wanted = texts(tx, session, read, tx.zone, summary=session.summary)
    messages.set_texts(tx, session_id, wanted.turns)
    line, hashes = wanted.summary, passages.hashes(tx, "summary", [session_id])
    if line and hashes.get(session_id) != (key := passages.text_hash(line)):
        assert session.summary is not None
        passages.put(tx, Passage("summary", session_id, app_id, session.summary, line, key))
    if made is not None:
        passages.keep_vectors(tx, *made)


def _summary_line(started_at: datetime, zone: ZoneInfo, summary: str) -> str:
    return f"[{_day(started_at, zone)}] {summary}"


def _text(turn: Message, user: str, facts: Iterable[tuple[str, str]], zone: ZoneInfo) -> str:
    words = render.message_line(turn)
    by_user = turn.role == "user"
    # A person's message is embedded whole, in windows where it is long. No search finds a reply.
    words = words if by_user else words[:_REPLY_LIMIT]
    who = "" if _SPEAKER.match(words) else f"{user if by_user else turn.role}: "
    first = f"[{_day(turn.created_at, zone)}] {who}{words}"
    return "\n".join([first, *(f"{key.replace('_', ' ')}: {value}" for key, value in facts)])


def _day(at: datetime, zone: ZoneInfo) -> str:
    day = at.astimezone(zone)
    return f"{day.day} {day:%B %Y}"
