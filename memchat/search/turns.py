"""The texts of a conversation that are embedded: each turn, with the facts drawn from it.

They are written at the end of a conversation, in the batch of its facts, and again where words of
it were forgotten. The vectors of neighbouring turns are blended in by the index, not here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.db import jobs, messages, sessions
from memchat.db.apps import Context
from memchat.facts import history
from memchat.facts.fact import Fact
from memchat.facts.memories import FORGOTTEN, text_hash
from memchat.search import embeddings, keywords, render, services
from memchat.types import Message, Session

if TYPE_CHECKING:
    from memchat.providers import Vectors

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
    tx: Connection,
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
    for one in history.learned_from(tx, [turn.id for turn in turns]):
        if one.inactive_reason != FORGOTTEN:
            facts[one.message_id][one.key, one.value] = None
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


def rewrite(ctx: Context, session_ids: Iterable[int]) -> None:
    """Index conversations again whose words or facts were changed."""
    in_use = services.in_use(ctx.tx)
    for session_id in session_ids:
        write(ctx, session_id, in_use, {})


def write(
    ctx: Context, session_id: int, service_id: int | None, vectors: Mapping[str, Vectors]
) -> None:
    """Index what has been read of a conversation, from the rows as they are now.

    ``vectors`` are those made for it, by text hash. One that is missing is asked for by a job.
    """
    tx = ctx.tx
    found = stored(tx, session_id, ctx.zone)
    if found is None:
        return
    session, app_id, wanted = found
    messages.index(tx, wanted.turns, session.id)
    summary = text_hash(wanted.summary) if wanted.summary else None
    if summary is not None and sessions.summary_hash(tx, session.id) != summary:
        sessions.set_summary_hash(tx, session.id, app_id, summary)
    if service_id is None:
        return
    in_use = services.in_use(tx)
    hashes = {text_hash(words) for words in wanted.every}
    lacking = hashes - embeddings.get(tx, in_use or service_id, sorted(hashes)).keys()
    # Where the service was changed or removed while they were made, they are the old one's.
    made = lacking & vectors.keys() if in_use == service_id else set()
    embeddings.put(tx, service_id, [(key, vectors[key]) for key in made], ctx.now)
    late = [i for i, words in wanted.turns.items() if text_hash(words) in made]
    messages.record_change(tx, session.id, late)
    if summary in made:
        keywords.record(tx, app_id, "sessions", [session.id])
    if lacking - made:
        jobs.enqueue(tx, "index", app_id, session.id, ctx.now)


def lacking(tx: Connection, session_id: int, zone: ZoneInfo, service_id: int) -> dict[str, str]:
    """The texts of a conversation that have no vector, by hash; none where it is gone."""
    found = stored(tx, session_id, zone)
    if found is None:
        return {}
    wanted = {text_hash(words): words for words in found[2].every}
    known = embeddings.get(tx, service_id, list(wanted))
    return {key: words for key, words in wanted.items() if key not in known}


def stored(tx: Connection, session_id: int, zone: ZoneInfo) -> tuple[Session, int, Texts] | None:
    """A conversation as far as it was read, its scope row and its texts by the rows; None where it
    is gone."""
    found = sessions.by_id(tx, session_id)
    if found is None:
        return None
    session, app_id = found
    turns = messages.of_session(tx, session_id, learnable=True)
    turns = [turn for turn in turns if turn.id <= session.extracted_to]
    return session, app_id, texts(tx, session, turns, zone, summary=session.summary)


def summary_text(session: Session, hashed: str, zone: ZoneInfo) -> str | None:
    """The text of a summary as it was embedded under this hash, in whatever zone that was; None
    where the summary is another by now."""
    for days in (0, -1, 1, -2, 2):
        started = session.started_at + timedelta(days=days)
        words = _summary_line(started, zone, session.summary or "")
        if text_hash(words) == hashed:
            return words
    return None


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
