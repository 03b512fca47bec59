"""Imports what another product exported: conversations with their own dates, and its saved facts as
proposals for the inbox.

The export is read twice: to see what there is, and to store it, so that neither takes memory for
more than one conversation. Some conversations are stored in one transaction, and others who write
take turns with them. All that an import stored names it, by which it is undone.
"""

from __future__ import annotations

import hashlib
import heapq
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import NamedTuple

from memchat import types
from memchat.api.sessions import ANSWER_TOKENS, BESIDE_TOKENS
from memchat.assembly import Assembly
from memchat.db import Tx, apps, jobs, messages, sessions
from memchat.errors import InputError
from memchat.facts import manual, proposals
from memchat.forget import tombstones
from memchat.jobs.worker import close_session
from memchat.language.secrets import mask
from memchat.learn import model_calls
from memchat.learn.candidate import MAX_FACTS
from memchat.learn.values import VALUE_LIMIT
from memchat.providers.litellm_calls import cost_usd
from memchat.tokens import estimate_tokens
from memchat.transfer import history_undo
from memchat.transfer.formats import Conversation, SavedFact, Turn
from memchat.transfer.source import OWN, Source

_AT_ONCE = 1_000
"""Messages that are stored in one transaction."""
_TITLE = 80
_OPEN = "conversations that are open in a chat"
_TWICE = "saved facts that were saved more than once"


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of one conversation: new, grown, known, deleted (here before) or open."""

    kind: str
    name: str
    session_id: int | None
    known: tuple[str, ...]
    """The hashes of all turns that are known from then on."""
    new: tuple[int, ...]
    """The places of the messages that are new."""
    unread: bool = False
    """Whether an earlier import left it unread, or it still waits to be read."""


class _Reading(NamedTuple):
    """What it takes to read one conversation, of which ``last`` was said last; no call where it was
    read already."""

    last: datetime
    place: int
    calls: int
    tokens: int


@dataclass(slots=True)
class HistoryImport:
    """One import into one app of one person."""

    assembly: Assembly
    scope: types.Scope
    path: Path
    newest: int
    """How many conversations are read for memories, the newest."""
    max_calls: int | None
    max_cost: float | None
    """In US dollars."""
    progress: types.OnProgress | None
    now: datetime = field(init=False)
    _chosen: dict[int, int] = field(default_factory=dict)
    """The place of each conversation to be read in the export, with its turn to be read."""
    _names: Counter[str] = field(default_factory=Counter)
    """How often each name was found so far."""
    _count: Counter[str] = field(default_factory=Counter)
    """Of how many conversations there is what fate."""
    _added: Counter[str] = field(default_factory=Counter)
    _to_read: dict[int, int] = field(default_factory=dict)
    """The new conversations to be read, with their turn to be read."""

    def __post_init__(self) -> None:
        self.now = self.assembly.clock()

    def preview(self) -> types.ImportedHistory:
        """What there is and what would become of it; nothing is stored. Raises InputError where
        nothing can be imported, and where memory is off."""
        source, report = Source(self.path), types.timed(self.progress, "conversations")
        newest: list[_Reading] = []
        days: list[datetime] = []
        facts: dict[tuple[str, str], SavedFact] = {}
        place = said = saved = 0
        with self.assembly.database.read(self.scope) as tx:
            for product, item in _conversations(source, facts):
                times, fate = self._times(item), self._fate(tx, product, item)
                days += [at for at in times if at < self.now]
                days = [min(days), max(days)] if days else []
                if fate.new:
                    self._added.update(session=fate.session_id is None, message=len(fate.new))
                said_now = item.turns if fate.unread else [item.turns[at] for at in fate.new]
                if fate.new or (fate.kind == "known" and fate.session_id is not None):
                    self._choose(newest, max(times), place, item.turns, said_now)
                place, said = place + 1, said + len(times)
                report(place, place)
            for product in dict.fromkeys(product for product, _ in facts):
                kept, (_, _, new) = self._new_facts(tx, product, facts, source.left_out)
                saved += kept
                self._added["inbox_item"] += len(new)
            switch = apps.memory_switch(tx, self.scope)
        if [*source.products] == [OWN]:
            return types.ImportedHistory(OWN, dry_run=True)
        if not (place or saved):
            raise InputError(f"nothing in {self.path} can be imported{source.why}")
        if not switch.on:
            raise InputError(f"{switch.reason}; nothing was imported")
        wanted = sorted((one for one in newest if one.calls), reverse=True)
        fit = bisect(range(len(wanted)), False, key=lambda n: self._exceeds(wanted[: n + 1]))
        order = wanted[:fit][::-1]
        self._chosen = {one.place: turn for turn, one in enumerate(order)}
        calls, tokens, cost = self._effort(order)
        product, (first, last) = " and ".join(source.products), days or (None, None)
        found = types.ImportedHistory(
            *(product, place, said, saved, first, last),
            to_read=len(order),
            calls=calls,
            effort=types.effort(calls, tokens, cost) if calls else "",
            capped=len(wanted) - len(order),
            dry_run=True,
        )
        return self._told(found, source)

    def run(self) -> types.ImportedHistory:
        """Store what is new. Raises InputError as ``preview`` does, and StoreError where it cannot
        be written; what was stored before then stays."""
        plan = self.preview()
        if plan.product == OWN:
            raise InputError(f"{self.path} is an export of memchat; import_file reads it")
        self.assembly.parts().worker.end_abandoned(self.scope.user)
        with self.assembly.database.read(self.scope) as tx:
            import_id = history_undo.new_id(tx)
        for counts in (self._names, self._added, self._count):
            counts.clear()
        source, report = Source(self.path), types.timed(self.progress, "conversations")
        facts: dict[tuple[str, str], SavedFact] = {}
        batch: list[tuple[int, str, Conversation]] = []
        place = size = 0
        for product, item in _conversations(source, facts):
            batch.append((place, product, item))
            place, size = place + 1, size + len(item.turns)
            if size >= _AT_ONCE:
                self._write(batch, import_id)
                batch, size = [], 0
                report(place, max(place, plan.conversations))
        self._write(batch, import_id)
        for product in dict.fromkeys(product for product, _ in facts):
            with self.assembly.database.write(self.scope, ensure=True) as tx:
                self._propose(tx, product, facts, import_id, source.left_out)
        done = replace(plan, to_read=len(self._to_read), dry_run=False)
        return self._told(replace(done, id=import_id if +self._added else None), source)

    def read(self) -> int:
        """Read the conversations that were stored for it, the oldest first, until the worker is
        stopped; how many still wait then. What fails is tried again by a worker."""
        worker = self.assembly.parts().worker
        report = types.timed(self.progress, "conversations read")
        for count, session_id in enumerate(sorted(self._to_read, key=self._to_read.__getitem__), 1):
            worker.run(kinds=("extract", "verify"), target_id=session_id)
            if worker.stopping.is_set():
                break
            report(count, len(self._to_read))
        with self.assembly.database.read() as tx:
            return sum(jobs.due_at(tx, "extract", one) is not None for one in self._to_read)

    def _told(self, done: types.ImportedHistory, source: Source) -> types.ImportedHistory:
        return replace(
            done,
            left_out=dict(source.left_out + Counter({_OPEN: self._count["open"]})),
            added=dict(+self._added),
            grown=self._count["grown"],
            known=self._count["known"],
            deleted=self._count["deleted"],
        )

    def _times(self, item: Conversation) -> list[datetime]:
        """When each message was said; where that is not known, when the one before it was, or the
        conversation began."""
        said = [self._past(turn.time) for turn in item.turns]
        before = self._past(item.began) or next(filter(None, said), self.now)
        times = []
        for at in said:
            before = at or before
            times.append(before)
        return times

    def _past(self, at: datetime | None) -> datetime | None:
        """The time, or None where nothing can have been said then."""
        return at if at and datetime(1970, 1, 1, tzinfo=UTC) < at <= self.now else None

    def _began(self, fact: SavedFact) -> datetime | None:
        """When the day of a fact began, where that is known."""
        zone, day = self.assembly.settings.zone, fact.day
        return None if day is None else self._past(datetime.combine(day, time.min, zone))

    def _fate(self, tx: Tx, product: str, item: Conversation) -> _Fate:
        """What becomes of a conversation, which is counted."""
        first = item.turns[0]
        said = f"{item.began or first.time or ''}|{first.role}|{first.text}"
        name = f"{product}:{item.id or hashlib.sha256(said.encode()).hexdigest()}"
        self._names[name] += 1
        again = self._names[name] > 1
        if again and not item.id:
            name += f":{self._names[name]}"
        hashes = sessions.turn_hashes(tx, [(turn.role, turn.text) for turn in item.turns])
        session_id, before = sessions.external(tx, tx.own, name)
        # The export has all of it: a turn is new where it was said oftener than it is known.
        left, new = Counter(before), list[int]()
        for at, turn in enumerate(hashes):
            left[turn] -= 1
            new += [at] if left[turn] < 0 else []
        there = None if session_id is None else sessions.by_id(tx, session_id)
        if there is None:  # in a preview, what stands twice in the export is not there yet
            kind = "deleted" if before else "known" if again and item.id else "new"
        else:
            kind = "open" if there[0].ended_at is None else "grown" if new else "known"
        if kind not in ("new", "grown"):
            new = []
        unread = kind in ("grown", "known") and there is not None and _is_unread(tx, there[0])
        self._count[kind] += 1
        known = *before, *(hashes[at] for at in new)
        return _Fate(kind, name, session_id, known, tuple(new), unread)

    def _choose(
        self,
        newest: list[_Reading],
        last: datetime,
        place: int,
        turns: Sequence[Turn],
        unread: Sequence[Turn],
    ) -> None:
        """Keep a conversation among the newest where it is one of them and the person spoke. One
        that was read already is one of them, and takes no call."""
        full = len(newest) >= self.newest
        late = not full or (newest and last > newest[0].last)
        if late and any(turn.role == "user" for turn in turns):
            said = unread if any(turn.role == "user" for turn in unread) else ()
            calls, tokens = _reading(said, self.assembly.extract_model().window)
            (heapq.heapreplace if full else heapq.heappush)(
                newest, _Reading(last, place, calls, tokens)
            )

    def _exceeds(self, chosen: Sequence[_Reading]) -> bool:
        """Whether reading these goes beyond a cap. Raises InputError where there is one in money
        and the price is not known."""
        calls, _, cost = self._effort(chosen)
        if self.max_cost is not None and cost is None:
            model = self.assembly.extract_model().name
            raise InputError(f"the price of {model} is not known; give a cap in calls instead")
        too_many = self.max_calls is not None and calls > self.max_calls
        return too_many or (self.max_cost is not None and (cost or 0) > self.max_cost)

    def _effort(self, chosen: Sequence[_Reading]) -> tuple[int, int, float | None]:
        """The calls, tokens and price: each is read, and looked at again."""
        calls, tokens = 2 * sum(one.calls for one in chosen), 2 * sum(one.tokens for one in chosen)
        prompts, model = self.assembly.parts().prompts, self.assembly.extract_model()
        instructions = estimate_tokens(prompts.render("extract", limit=str(MAX_FACTS)))
        sent, came = tokens + calls * (instructions + BESIDE_TOKENS), calls * ANSWER_TOKENS
        return calls, sent + came, cost_usd(model.name, sent, came)

    def _write(self, batch: Sequence[tuple[int, str, Conversation]], import_id: str) -> None:
        with self.assembly.database.write(self.scope, ensure=True) as tx:
            for place, product, item in batch:
                fate, turn_to_read = self._fate(tx, product, item), self._chosen.get(place)
                if fate.new:
                    self._store(tx, product, item, fate, import_id, turn_to_read)
                elif fate.session_id is not None and turn_to_read is not None:
                    self._queue(tx, fate.session_id, turn_to_read)

    def _store(
        self,
        tx: Tx,
        product: str,
        item: Conversation,
        fate: _Fate,
        import_id: str,
        turn_to_read: int | None,
    ) -> None:
        """Store what is new of a conversation, and queue its reading where it is to be read."""
        times, session_id = self._times(item), fate.session_id
        moments = sorted(times[at] for at in fate.new)
        if session_id is None:
            session_id = sessions.start(tx, tx.own, "", tx.now, moments[0])
            self._added["session"] += 1
        for at in sorted({moments[0], moments[-1]}):
            sessions.reopen(tx, session_id, "", tx.now, at)
        said = [(item.turns[at].role, item.turns[at].text, times[at]) for at in fate.new]
        added = [messages.add(tx, session_id, *one) for one in said]
        self._added["message"] += len(added)
        sessions.put_external(tx, tx.own, fate.name, session_id, fate.known)
        waits = jobs.due_at(tx, "extract", session_id) is not None
        begun, unread = fate.session_id is None, turn_to_read is None and not waits
        history_undo.note(tx, import_id, product, session_id, added, begun=begun, unread=unread)
        read_to = 0 if turn_to_read is not None or waits else added[-1]
        title = mask(types.first_words(item.title, _TITLE))[:_TITLE] or None
        sessions.mark_extracted(tx, session_id, read_to, title, None)
        self._queue(tx, session_id, turn_to_read)

    def _queue(self, tx: Tx, session_id: int, turn_to_read: int | None) -> None:
        """End a conversation, and queue its reading where it has its turn, or waits for it."""
        found = sessions.by_id(tx, session_id)
        assert found is not None
        if turn_to_read is not None and history_undo.UNREAD in (found[0].metadata or {}):
            sessions.mark_unread(tx, session_id, 1)
            history_undo.note_read(tx, session_id)
        # The queue is worked off by these times, the oldest conversation first.
        wait = timedelta(milliseconds=len(self._chosen) - (turn_to_read or 0))
        close_session(tx, found[0], self.now - wait)
        if turn_to_read is not None and jobs.due_at(tx, "extract", session_id) is not None:
            self._to_read[session_id] = turn_to_read

    def _new_facts(
        self,
        tx: Tx,
        product: str,
        facts: Mapping[tuple[str, str], SavedFact],
        left_out: Counter[str],
    ) -> tuple[int, tuple[int | None, list[str], dict[str, SavedFact]]]:
        """How many facts a product had saved about which the person can be asked; their
        conversation, the hashes that are known of it, and those that are new, by their hashes."""
        its = [fact for (of, _), fact in facts.items() if of == product]
        refused = [_refusal(tx, fact) for fact in its]
        left_out.update(filter(None, refused))
        kept = [fact for fact, why in zip(its, refused, strict=True) if not why]
        hashes = sessions.turn_hashes(tx, [("assistant", fact.text) for fact in kept])
        session_id, before = sessions.external(tx, tx.own, f"{product}:saved facts")
        new = {one: fact for one, fact in zip(hashes, kept, strict=True) if one not in before}
        deleted = session_id is None and before
        return len(kept), (session_id, before, {} if deleted else new)

    def _propose(
        self,
        tx: Tx,
        product: str,
        facts: Mapping[tuple[str, str], SavedFact],
        import_id: str,
        left_out: Counter[str],
    ) -> None:
        """Ask the person about what a product had saved. Its facts are messages of one
        conversation, which is neither read nor searched: so they keep their dates, are known again,
        and go with the import."""
        _, (session_id, before, new) = self._new_facts(tx, product, facts, left_out)
        if not new:
            return
        begun, added = session_id is None, list[int]()
        times = [self._began(fact) or tx.now for fact in new.values()]
        if session_id is None:
            session_id = sessions.start(tx, tx.own, "", tx.now, min(times))
            sessions.set_description(tx, session_id, f"What {product} had saved", None)
        for fact, at in zip(new.values(), times, strict=True):
            saved = f", saved {fact.day.isoformat()}" if fact.day else ""
            added.append(messages.add(tx, session_id, "assistant", fact.text, at, memory=False))
            asked = types.Proposal(
                f"imported from {product}{saved}",
                message_id=added[-1],
                memory_type="other",
                key="note",
                value=fact.text,
            )
            self._added["inbox_item"] += proposals.add(tx, tx.own, asked) is None
        history_undo.note(tx, import_id, product, session_id, added, begun=begun, unread=False)
        sessions.put_external(tx, tx.own, f"{product}:saved facts", session_id, [*before, *new])
        sessions.end(tx, session_id)


def _conversations(
    source: Source, facts: dict[tuple[str, str], SavedFact]
) -> Iterator[tuple[str, Conversation]]:
    """The conversations of an export; its saved facts go into ``facts``."""
    for product, item in source.items():
        if isinstance(item, Conversation):
            yield product, item
            continue
        source.left_out.update([_TWICE] if (product, item.text) in facts else [])
        facts[product, item.text] = item


def _is_unread(tx: Tx, session: types.Session) -> bool:
    waits = jobs.due_at(tx, "extract", session.id) is not None
    return waits or history_undo.UNREAD in (session.metadata or {})


def _reading(turns: Sequence[Turn], window: int) -> tuple[int, int]:
    """How many windows it takes to read these turns, and their tokens. Of a very long message only
    some windows are read."""
    room, windows, every = model_calls.window_room(window), 0, 0
    used = room
    for turn in turns:
        size = estimate_tokens(turn.text) + 20
        if size > room:
            pieces = min(model_calls.count(turn.text, window), model_calls.MOST_WINDOWS)
            windows, used, size = windows + pieces, room, min(size, pieces * room)
        elif used + size > room:
            windows, used = windows + 1, size
        else:
            used += size
        every += size
    return windows, every


def _refusal(tx: Tx, fact: SavedFact) -> str:
    """Why the person is not asked about a fact, or nothing."""
    if fact.until and fact.until < tx.today:
        return "saved facts whose last day is over"
    if len(fact.text) > VALUE_LIMIT:
        return f"saved facts of more than {VALUE_LIMIT} characters"
    if manual.is_secret("note", fact.text, keep=True):
        return "saved facts that look like a secret"
    if tombstones.match(tx, tx.ids, "note", fact.text, (), tx.now) is not None:
        return "saved facts that were forgotten here"
    return ""
