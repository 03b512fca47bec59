"""The other places that speak of a memory: what forgetting it leaves, and blanking that as well.

They are found before it is forgotten, while its words are known: messages by the keyword index, the
rest, which is short, by reading it. A place may mean something else by the same word, so a person
chooses. A message, title or summary is blanked where the words stand; another fact with them is
forgotten, and what waits for a yes, or was not kept, is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from memchat.memory.forgetting import purge, redaction, telling_words
from memchat.memory.forgetting.telling_words import TellingWords
from memchat.memory.recall import turn_texts
from memchat.store import (
    events,
    evidence,
    inbox,
    jobs,
    keywords,
    memories,
    mentions,
    messages,
    prompts,
    raw_sql,
    refusals,
    services,
    sessions,
)
from memchat.store.events import Cause
from memchat.store.memories import FORGOTTEN
from memchat.types import Elsewhere, Memory, Place, PlaceKind

_AROUND = 60
"""Characters on each side of a word that are shown with it."""


def find(tx: Connection, chosen: Sequence[Memory]) -> Elsewhere:
    """What will still speak of these memories when they are forgotten; of the first, by its id."""
    gone = purge.with_merged(tx, chosen)
    traces = redaction.Traces()
    for memory in gone.values():
        redaction.gather(tx, memory, memories.app_id_of(tx, memory.id), traces)
    app_ids = sorted({i for app_id in traces.scopes for i in mentions.related_app_ids(tx, app_id)})
    values = sorted({value for facts in traces.scopes.values() for _, value in facts})
    tells = telling_words.of(tx, app_ids, values)
    if not tells.groups:
        return Elsewhere(chosen[0].id, (), ())
    search = _Search(tx, app_ids, tells, traces, frozenset(gone))
    found = sorted(search.every(), key=lambda place: (place.at, place.id), reverse=True)
    return Elsewhere(chosen[0].id, tells.groups, tuple(found))


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks through all that some scopes hold, but for what the forgetting takes along."""

    tx: Connection
    app_ids: Sequence[int]
    tells: TellingWords
    traces: redaction.Traces
    gone: frozenset[int]

    def every(self) -> Iterator[Place]:
        yield from self._messages()
        yield from self._descriptions()
        yield from self._memories()
        yield from self._proposals("inbox", mentions.inbox_texts(self.tx, self.app_ids))
        yield from self._proposals("refusal", mentions.refusal_texts(self.tx, self.app_ids))

    def _messages(self) -> Iterator[Place]:
        ids = set(mentions.partly_indexed(self.tx, self.app_ids, self.tells.beginnings()))
        for group in self.tells.groups:
            ids |= keywords.rows_holding_all(self.tx, "messages", self.app_ids, group)
        turns = messages.by_ids(self.tx, sorted(ids))
        left = {turn.id: redaction.left_of(turn, self.traces) for turn in turns.values()}
        for turn_id, spans in self.tells.spans(left).items():
            turn = turns[turn_id]
            kind: PlaceKind = "message" if turn.role == "user" else "reply"
            shown = _around(left[turn_id], spans)
            yield Place(kind, turn_id, turn.session_id, turn.created_at, shown)

    def _descriptions(self) -> Iterator[Place]:
        rows = {row[0]: row for row in mentions.titles_and_summaries(self.tx, self.app_ids)}
        kinds: tuple[tuple[PlaceKind, int], ...] = (("title", 1), ("summary", 2))
        for kind, column in kinds:
            said = {i: row[column] for i, row in rows.items() if row[column]}
            for session_id, spans in self.tells.spans(said).items():
                values = self.traces.values.get(session_id, set())
                taught = session_id in self.traces.quotes
                if not (taught or redaction.speaks_of(said[session_id], values)):
                    at = raw_sql.parse_time(rows[session_id][3])
                    yield Place(kind, session_id, session_id, at, _around(said[session_id], spans))

    def _memories(self) -> Iterator[Place]:
        ids = set(mentions.unindexed_memories(self.tx, self.app_ids))
        for group in self.tells.groups:
            ids |= keywords.rows_holding_all(self.tx, "memories", self.app_ids, group)
        there = memories.by_ids(self.tx, self.app_ids, sorted(ids - self.gone))
        said = {memory.id: self._lines(memory) for memory in there.values()}
        for memory_id, spans in self.tells.spans(said).items():
            shown = _around(said[memory_id], spans)
            yield Place("memory", memory_id, None, there[memory_id].said_at, shown)

    def _lines(self, memory: Memory) -> str:
        """A memory in all the words that it ever had."""
        facts = redaction.facts_of(memory, events.of_memory(self.tx, memory.id))
        return "\n".join(sorted(f"{key.replace('_', ' ')}: {value}" for key, value in facts))

    def _proposals(
        self, kind: PlaceKind, rows: Sequence[tuple[int, int | None, datetime, str]]
    ) -> Iterator[Place]:
        found = {row[0]: row for row in rows}
        every = {i: row[3] for i, row in found.items()}
        facts = {fact for each in self.traces.scopes.values() for fact in each}
        turns = messages.by_ids(self.tx, sorted({row[1] for row in rows if row[1] is not None}))
        for item_id, spans in self.tells.spans(every).items():
            _, message_id, at, said = found[item_id]
            turn = turns.get(message_id) if message_id is not None else None
            rewritten = turn is not None and redaction.left_of(turn, self.traces) != turn.content
            if not (rewritten or redaction.places(redaction.lines(facts), said)):
                session_id = turn.session_id if turn is not None else None
                yield Place(kind, item_id, session_id, at, _around(said, spans))


@dataclass(frozen=True, slots=True)
class MentionsToBlank:
    """The places that a person wants blanked, as the job that does it keeps them."""

    words: tuple[tuple[str, ...], ...]
    ids: frozenset[tuple[str, int]]
    """Kind and id of each place."""

    @classmethod
    def of(cls, found: Elsewhere) -> MentionsToBlank:
        return cls(found.words, frozenset((place.kind, place.id) for place in found.places))

    @classmethod
    def load(cls, how: str | None) -> MentionsToBlank | None:
        """What ``dump`` wrote; None for a purge of another kind."""
        if how is None or not how.startswith("{"):
            return None
        held = json.loads(how)
        words = tuple(tuple(group) for group in held["words"])
        return cls(words, frozenset((kind, number) for kind, number in held["places"]))

    def dump(self) -> str:
        return json.dumps({"words": self.words, "places": sorted(self.ids)})

    def of_kind(self, kind: PlaceKind) -> set[int]:
        return {number for one, number in self.ids if one == kind}


def queue(
    tx: Connection, found: Elsewhere, app_id: int, now: datetime, *, blank_at: datetime
) -> None:
    """Have these places blanked by the job that purges the memory, or did: what undoes the one
    undoes the other."""
    wanted = MentionsToBlank.of(found)
    before = MentionsToBlank.load(jobs.instructions(tx, "forget", found.memory_id))
    if before is not None:
        wanted = MentionsToBlank(wanted.words, wanted.ids | before.ids)
    how = wanted.dump()
    jobs.enqueue(tx, "forget", app_id, found.memory_id, now, run_at=blank_at, how=how)


def blank(
    tx: Connection, app_id: int, chosen: MentionsToBlank, zone: ZoneInfo, now: datetime
) -> set[int]:
    """Blank what was chosen, as far as this scope row may speak of it, in the caller's transaction.

    Gives the scope rows whose saved vectors know too much now.
    """
    app_ids = mentions.related_app_ids(tx, app_id)
    facts = memories.by_ids(tx, app_ids, sorted(chosen.of_kind("memory"))).values()
    # One that is being forgotten on its own has its own purge and undoing.
    chosen_facts = [memory for memory in facts if memory.inactive_reason != FORGOTTEN]
    stale = purge.forget(tx, chosen_facts, zone, now)
    _drop_proposals(tx, app_ids, chosen)
    turns = messages.by_ids(tx, sorted(chosen.of_kind("message") | chosen.of_kind("reply")))
    told = chosen.of_kind("title") | chosen.of_kind("summary")
    in_use = services.in_use(tx)
    rewritten: list[int] = []
    for session_id in sorted({turn.session_id for turn in turns.values()} | told):
        found = sessions.by_id(tx, session_id)
        if found is None or found[1] not in app_ids:
            continue
        rewritten += _blank_turns(tx, session_id, turns.keys(), TellingWords(chosen.words))
        _blank_description(tx, session_id, chosen)
        turn_texts.write(tx, session_id, zone, in_use, {}, now)
        stale.add(found[1])
    purge.to_scrub(tx)
    touched = evidence.proved_memories(tx, rewritten)
    return stale | redaction.reindex(tx, touched, zone, Cause(now, "user"))


def _drop_proposals(tx: Connection, app_ids: Sequence[int], chosen: MentionsToBlank) -> None:
    waiting = {row[0] for row in mentions.inbox_texts(tx, app_ids)}
    refused = {row[0] for row in mentions.refusal_texts(tx, app_ids)}
    inbox.remove(tx, sorted(waiting & chosen.of_kind("inbox")))
    refusals.remove(tx, sorted(refused & chosen.of_kind("refusal")))


def _blank_turns(
    tx: Connection, session_id: int, ids: Collection[int], tells: TellingWords
) -> list[int]:
    turns = messages.of_session(tx, session_id)
    held = tells.spans({turn.id: turn.content for turn in turns if turn.id in ids})
    texts = {t.id: redaction.blanked(t.content, held[t.id]) for t in turns if t.id in held}
    if texts:
        prompts.remove(tx, [turn.id for turn in turns if turn.role == "assistant"])
    return redaction.rewrite(tx, session_id, turns, texts)


def _blank_description(tx: Connection, session_id: int, chosen: MentionsToBlank) -> None:
    title, summary = sessions.description(tx, session_id)
    said = {0: title, 1: summary}
    wanted = {0: chosen.of_kind("title"), 1: chosen.of_kind("summary")}
    texts = {n: words for n, words in said.items() if words and session_id in wanted[n]}
    for n, spans in TellingWords(chosen.words).spans(texts).items():
        said[n] = redaction.blanked(texts[n], spans)
    redaction.describe_anew(tx, session_id, said[0], said[1])


def _around(content: str, spans: Iterable[tuple[int, int]]) -> str:
    """The words around the first of these places, each of which is blanked."""
    every = sorted(spans)
    start, end = max(every[0][0] - _AROUND, 0), every[0][1] + _AROUND
    shown = " ".join(redaction.blanked(content, every)[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(content) else ''}"
