"""Programs that use the store over MCP: who called and wrote what, and what each asks to remember,
to change or to forget.

No message of the person proves what a program asks. Of one that they trust it is stored, with what
the program said as its proof, so that it is undone with that; it never replaces what the person
entered. Of any other, and where it reads as an order, it waits in the inbox. With a quote of the
person from a stored conversation, the gate decides whatever the program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from memchat.db import Tx, messages, sessions
from memchat.db import schema as t
from memchat.db.records import among, from_row
from memchat.errors import InputError, NotFound
from memchat.facts import changes, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.consolidation import ENDS_FIRST, Protection, ingest
from memchat.facts.manual import checked_tags, given_fact
from memchat.facts.memories import Fact
from memchat.facts.proposals import FORGET, PROMOTE
from memchat.language import text
from memchat.language.text import holds_word
from memchat.learn.candidate import Candidate, Quote, Relation, Verdict
from memchat.learn.gate import judge
from memchat.learn.model_calls import NOBODY_LOOKED, unlooked
from memchat.learn.outcomes import inbox_entry, to_fact
from memchat.learn.own_words import reads_as_instruction
from memchat.learn.session_reading import SessionReading, ask_first, shown_memory_lines
from memchat.learn.values import is_negated
from memchat.prompts import Prompts
from memchat.types import (
    Change,
    ClientInfo,
    ClientMode,
    ClientWrite,
    Memory,
    Proposal,
    RequestDone,
    SessionQuote,
    WriteKind,
    Written,
    clean_tags,
)

_c, _w, _p = t.clients.c, t.client_writes.c, t.proposals.c
_OF_MEMORIES = (
    sa.select(t.memory_sources.c.memory_id, _c.name)
    .select_from(t.memory_sources.join(t.memories).join(t.messages))
    .join(t.clients, _c.session_id == t.messages.c.session_id)
    .where(among(t.memory_sources.c.memory_id, "ids"), t.memories.c.created_by == "mcp")
    .order_by(t.memory_sources.c.message_id)
)


def _wrote(table: sa.Table, *only: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """How many rows of a table, for which these conditions hold, a program wrote."""
    query = sa.select(sa.func.count(_w.target_id.distinct())).where(
        _w.client_id == _c.id, table.c.id == _w.target_id, *only
    )
    return query.correlate(t.clients).scalar_subquery()


_WAITING = _wrote(t.proposals, _w.kind.in_(("inbox", "forget")), _p.status == "pending")


def record_call(tx: Tx, app_id: int, name: str, mode: ClientMode) -> int:
    """Count a call of a program; its id."""
    same = sa.update(t.clients).where(_c.app_id == app_id, _c.name == name)
    counted = same.values(mode=mode, calls=_c.calls + 1, last_call_at=tx.now).returning(_c.id)
    new = {"calls": 1, "first_call_at": tx.now, "last_call_at": tx.now}
    known: int | None = tx.execute(counted).scalar()
    return known or tx.insert(t.clients, app_id=app_id, name=name, mode=mode, **new)


KEPT = timedelta(days=1)
"""For how long a request that was done is known."""
AT_MOST = timedelta(minutes=1)
"""How long a request may take: after that it is done again, as its process may have died."""


def begin_request(tx: Tx, client_id: int, key: str, request: str) -> RequestDone | None:
    """What came of a request of a program with this key; None where it was not begun before, which
    it is then."""
    c, table, hashed = t.client_requests.c, t.client_requests, _hash(key)
    over = (c.at < tx.now - KEPT) | (c.status.is_(None) & (c.at < tx.now - AT_MOST))
    tx.execute(sa.delete(table).where(over))
    there = sa.select(c.request, c.status, c.row_id).where(c.client_id == client_id)
    if found := tx.execute(there.where(c.key == hashed)).first():
        return RequestDone(found.status, found.row_id, same=found.request == request)
    row = {"client_id": client_id, "key": hashed, "request": request, "at": tx.now}
    tx.execute(sa.insert(table).values(row))
    return None


def finish_request(
    tx: Tx, client_id: int, key: str, status: int | None, row_id: int | None
) -> None:
    """Keep what came of a request; without a status it may be sent again."""
    c, table = t.client_requests.c, t.client_requests
    one = (c.client_id == client_id) & (c.key == _hash(key))
    if status is None:
        tx.execute(sa.delete(table).where(one))
    else:
        tx.execute(sa.update(table).where(one).values(status=status, row_id=row_id))


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def find(tx: Tx, app_id: int, name: str) -> int | None:
    """The id of the program of this name."""
    query = sa.select(_c.id).where(_c.app_id == app_id, _c.name == name)
    return tx.execute(query).scalar()


def app_id_of(tx: Tx, client_id: int) -> int:
    """The scope row in which a program calls."""
    return int(tx.execute(sa.select(_c.app_id).where(_c.id == client_id)).scalar_one())


def session_of(tx: Tx, client_id: int) -> int | None:
    """The conversation that holds what a program said; None where there is none (any more)."""
    return tx.execute(sa.select(_c.session_id).where(_c.id == client_id)).scalar()


def set_session(tx: Tx, client_id: int, session_id: int) -> None:
    """Store which conversation holds what a program says."""
    tx.execute(sa.update(t.clients).where(_c.id == client_id).values(session_id=session_id))


def record_write(tx: Tx, client_id: int, kind: WriteKind, target_id: int) -> None:
    """Note that a program wrote something."""
    tx.insert(t.client_writes, client_id=client_id, at=tx.now, kind=kind, target_id=target_id)


def writes(
    tx: Tx, client_id: int, *, kind: WriteKind | None = None, since: datetime | None = None
) -> list[ClientWrite]:
    """What a program wrote, oldest first; of one kind, or since a time."""
    query = sa.select(t.client_writes).where(_w.client_id == client_id).order_by(_w.id)
    if kind is not None:
        query = query.where(_w.kind == kind)
    if since is not None:
        query = query.where(_w.at >= since)
    return [from_row(ClientWrite, row) for row in tx.execute(query)]


def of_memories(tx: Tx, memory_ids: Sequence[int]) -> dict[int, str]:
    """The program that stored each of these memories, by memory id; the last one where several
    did. Memories that no program stored are left out."""
    return dict(tx.rows(_OF_MEMORIES, ids=memory_ids))


def waiting(tx: Tx, client_id: int) -> int:
    """How many inbox items wait because a program asked."""
    return tx.execute(sa.select(_WAITING).where(_c.id == client_id)).scalar_one()


def asked_alone(tx: Tx, client_id: int) -> list[int]:
    """The inbox items that wait because this program asked, and nobody else did."""
    others = t.client_writes.alias().c
    asked_too = (others.kind == "inbox", others.target_id == _p.id)
    too = sa.exists().where(others.client_id != _w.client_id, *asked_too)
    query = sa.select(_p.id).distinct().join_from(t.client_writes, t.clients)
    query = query.join(t.proposals, (_p.id == _w.target_id) & (_p.app_id == _c.app_id))
    query = query.where(_w.client_id == client_id, _w.kind == "inbox", _p.status == "pending")
    # What was asked later than the item is old was there before the program asked.
    query = query.where(_p.created_at == _w.at, ~too)
    return list(tx.execute(query).scalars())


def record_note(tx: Tx, client_id: int, note_id: int) -> None:
    """Note that a program stored this note, or replaced what it had stored."""
    theirs = sa.delete(t.client_writes).where(_w.client_id == client_id, _w.kind == "note")
    tx.execute(theirs.where(_w.target_id == note_id))
    record_write(tx, client_id, "note", note_id)


def remove_writes(tx: Tx, client_id: int, *, but_notes: Sequence[int] = ()) -> None:
    """Forget what a program wrote, once it was undone. What it asked to forget is asked still, and
    stays here, as do these notes."""
    kept = (_w.kind == "note") & _w.target_id.in_(but_notes)
    theirs = sa.delete(t.client_writes).where(_w.client_id == client_id, _w.kind != "forget")
    tx.execute(theirs.where(~kept))


def listed(tx: Tx) -> list[ClientInfo]:
    """The programs that called in the app, the last one first."""
    forgets = sa.select(sa.func.count()).where(_w.client_id == _c.id, _w.kind == "forget")
    query = sa.select(
        t.clients,
        _wrote(t.memories, _w.kind == "memory").label("memories"),
        _WAITING.label("waiting"),
        _wrote(t.sources, _w.kind == "note").label("notes"),
        forgets.scalar_subquery().label("forgotten"),
    )
    query = query.where(_c.app_id == tx.own).order_by(_c.last_call_at.desc(), _c.id)
    return [from_row(ClientInfo, row) for row in tx.execute(query)]


def is_order(fact: Fact) -> bool:
    """Whether a fact, or its tags, read as an instruction."""
    said = "\n".join(tag.replace("-", " ") for tag in fact.tags)
    return any(map(reads_as_instruction, (fact.value, fact.key, said)))


def _check_days(today: date, expires_at: date | None, starts_at: date | None) -> None:
    if any(isinstance(day, datetime) for day in (expires_at, starts_at)):
        raise InputError("a day is a date without a time")
    if expires_at is not None and expires_at < today:
        over = expires_at.isoformat()
        raise InputError(f"{over} is over; give today, {today.isoformat()}, or a later day")


FORGETS_AN_HOUR = 10
"""Memories that a program can put out of use within an hour; further ones stay in use until the
person decides."""
WAITING_AT_MOST = 200
"""Inbox items that wait because one program asked; beyond that it can ask nothing more."""
_FULL = (
    f"{WAITING_AT_MOST} things that it asked for wait in the inbox already; ask again when the "
    "person has answered some"
)
REFUSED = "the person said no to it before"
_ORDER = "it reads as an instruction, not as a fact"
_YES_FIRST = "the person is asked first"
_TAGS_WAIT = "its tags wait in the person's inbox"
DAYS_UNPROVED = "its days are not proved by the quote"
_CHANGES_OWN = "it would change what the person entered or had forgotten"


@dataclass(frozen=True, slots=True)
class Program:
    """The requests of one program, in the caller's transaction."""

    tx: Tx
    prompts: Prompts
    client_id: int
    name: str
    mode: ClientMode

    def fact(
        self,
        memory_type: str,
        key: str,
        value: str,
        expires_at: date | None = None,
        starts_at: date | None = None,
        tags: Iterable[str] = (),
    ) -> Fact:
        """What the program gave, checked. Raises InputError for what cannot be kept, SecretError
        for a secret."""
        fact = given_fact(self.tx, memory_type, key, value, expires_at, starts_at)
        _check_days(self.tx.today, expires_at, starts_at)
        return replace(fact, created_by="mcp", tags=checked_tags(tags))

    def remember(self, fact: Fact, quote: SessionQuote | None = None) -> Written:
        """Store a fact, or ask the person about it. Raises NotFound for a quote of a conversation
        outside the scope."""
        if quote is None:
            return self._take(fact)
        done = self._take_quoted(fact, quote)
        tagged = done.memory is not None and done.memory.active and fact.tags
        return self._tag(done, fact.tags) if tagged else done

    def remember_instead(self, memory: Memory, fact: Fact) -> Written:
        """Store a fact in the place of a memory, under its key. Raises InputError where that is not
        in use."""
        if not memory.active:
            now = "" if memory.replaced_by is None else f"; {memory.replaced_by} took its place"
            raise InputError(f"memory {memory.id} is not in use{now}")
        same = all(getattr(fact, n) == getattr(memory, n) for n in ("key", "value", "starts_at"))
        relation: Relation = "same" if same else "updates"
        return self._take(replace(fact, relation=relation, target_id=memory.id))

    def change(
        self,
        memory: Memory,
        value: str | None,
        expires_at: date | None,
        starts_at: date | None,
        tags: Iterable[str] = (),
    ) -> Written:
        """Replace the value and the last day of a memory, or with None keep them, and add tags. A
        first day to come stays unless another is given. Raises as ``fact`` and
        ``remember_instead``."""
        said = memory.value if value is None else value
        starts = starts_at or memory.starts_at
        fact = self.fact(memory.memory_type, memory.key, said, expires_at, starts, tags)
        done = self.remember_instead(memory, fact)
        now = done.memory
        if now is None or done.status not in ("stored", "known"):
            return done
        if done.status == "known" and now.tags != memory.tags:
            done = replace(done, status="stored")
        return replace(done, last_day_gone=memory.expires_at if now.expires_at is None else None)

    def forget(self, memory: Memory) -> Written:
        """Put a memory out of use and ask the person whether it is forgotten for good."""
        entry = Proposal(f"{self.name} asks to forget it", memory_id=memory.id, relation=FORGET)
        if (refused := self._refusal(entry)) is not None:
            return replace(refused, memory=memory)
        since = self.tx.now - timedelta(hours=1)
        before = writes(self.tx, self.client_id, kind="forget", since=since)
        hides = len(before) < FORGETS_AN_HOUR
        if hides:
            Protection(self.tx).hide_for_program(memory, None)
            memory = replace(memory, active=False)
        item = self._add(entry)
        record_write(self.tx, self.client_id, "forget", item)
        why = "the person is asked whether it is forgotten for good"
        if not hides:
            why += f"; it stays in use until then, as {FORGETS_AN_HOUR} were forgotten this hour"
        return Written("hidden" if hides else "waiting", memory, item, why)

    def promote(self, memory: Memory) -> Written:
        """Ask the person whether a memory of this app is kept for all their apps."""
        entry = Proposal(f"{self.name} asks for it", memory_id=memory.id, relation=PROMOTE)
        return replace(self._ask(entry, _YES_FIRST), memory=memory)

    def _take(self, fact: Fact) -> Written:
        if fact.starts_at and fact.expires_at and fact.expires_at < fact.starts_at:
            return Written("refused", reason=ENDS_FIRST)
        if is_order(fact):
            return self._propose(fact, f"{self.name} sent it, and {_ORDER}", _ORDER)
        if self.mode == "ask":
            known = self._known(fact)
            if known is not None:
                return Written("known", known)
            return self._propose(fact, self._wish(fact), _YES_FIRST)
        return Written("refused", reason=REFUSED) if self._rejected(fact) else self._store(fact)

    def _take_quoted(self, fact: Fact, quote: SessionQuote) -> Written:
        if not quote.text.strip():
            raise InputError("the quote is empty; give the person's own words")
        item = Candidate(
            quotes=(Quote(text=quote.text),),
            type=fact.memory_type,
            key=fact.key,
            value=fact.value,
            many=fact.many,
            cues=fact.cues,
        )
        verdict, reading = self._judged(item, quote.session_id)
        days = {"starts": fact.starts_at, "until": fact.expires_at}
        given: dict[str, Any] = {name: day for name, day in days.items() if day is not None}
        if given and verdict.outcome != "refuse":
            # The person has to confirm days that the program gave.
            reasons = (*verdict.reasons, DAYS_UNPROVED)
            verdict = replace(verdict, outcome="review", reasons=reasons, **given)
        if verdict.outcome == "refuse":
            return Written("refused", reason="; ".join(verdict.reasons))
        if verdict.outcome == "review":
            entry = inbox_entry(verdict, reading)
            return self._ask(replace(entry, tags=fact.tags), entry.reason)
        if self._rejected(fact):
            return Written("refused", reason=REFUSED)
        if self._is_full():
            return Written("refused", reason=_FULL)
        source = Cause("model", f"quoted by {self.name}", quote.session_id)
        (done,) = ingest(self.tx, source, [to_fact(verdict, reading)])
        if done.kind == "review":
            return self._ask(proposals.asked(fact, _CHANGES_OWN), _CHANGES_OWN)  # adds the tags
        return self._stored(done)

    def _judged(self, item: Candidate, session_id: int) -> tuple[Verdict, SessionReading]:
        """Judge a proposal whose quotes stand in a conversation of the scope, over the whole of it,
        as the gate judges a model's own; no second look is made of it. Raises NotFound for a
        conversation elsewhere."""
        tx = self.tx
        found = sessions.by_id(tx, session_id)
        if found is None or found[1] != tx.own:
            raise NotFound(f"there is no session {session_id} here; recall gives its number")
        turns = messages.of_session(tx, session_id, learnable=True)
        reading = SessionReading(*found, turns, 0, tx.zone, injected=shown_memory_lines(tx, turns))
        verdict = judge(
            _linked(tx, reading, item),
            reading.gate_turns(),
            list(reading.known.values()),
            # What models that took part were told proves nothing.
            prompt_text="\n".join(self.prompts.text(name) for name in ("chat", "tools")),
            injected=reading.injected,
        )
        verdict = ask_first(tx, reading, verdict)
        if not _is_plainly_said(verdict):
            verdict = unlooked(verdict, NOBODY_LOOKED)
        return reading.refuse_if_forgotten(tx, verdict), reading

    def _tag(self, done: Written, tags: tuple[str, ...]) -> Written:
        """Give tags to what a quote of the person proved. The quote proves no tags, so these are
        taken as the mode allows."""
        assert done.memory is not None
        tagged = self.change(done.memory, None, done.memory.expires_at, None, tags)
        if tagged.memory is not None:
            return replace(done, memory=tagged.memory)
        reason = _TAGS_WAIT if tagged.status == "waiting" else f"no tags: {tagged.reason}"
        return replace(done, inbox_id=tagged.inbox_id, reason=reason)

    def _store(self, fact: Fact) -> Written:
        said = f"{fact.key}: {fact.value}"
        message_id = messages.add(
            self.tx, self._session(), "assistant", said, self.tx.now, memory=False
        )
        proofs = ((message_id, len(said) - len(fact.value), fact.value),)
        source = Cause("client", self.name, message_id=message_id)
        copy = None if fact.target_id is None else self._stored_before(fact)
        proved = replace(fact, proofs=proofs)
        (done,) = ingest(self.tx, source, [proved])
        if copy is not None:
            self._merge_copy(copy, done, message_id)
        kind, item = done.kind, proposals.of_message(self.tx, message_id)
        full = item is not None and self._is_full()
        if item is not None and full:
            proposals.remove(self.tx, [item])
        elif item is not None:
            proposals.ask_for_program(self.tx, item, self.name, self._wish(fact))
        if kind in ("review", "refused"):
            # Nothing was stored that it could prove, and it may be words that were forgotten.
            messages.remove(self.tx, [message_id])
        if kind != "review":
            return self._stored(done)
        if full:
            return Written("refused", reason=_FULL)
        if item is not None:
            record_write(self.tx, self.client_id, "inbox", item)
        return Written("waiting", inbox_id=item, reason=_CHANGES_OWN)

    def _stored(self, change: Change) -> Written:
        if change.memory is None:
            return Written("refused", reason=change.reason or "")
        record_write(self.tx, self.client_id, "memory", change.memory.id)
        known = change.kind == "repeated"
        return Written("known" if known else "stored", change.memory, replaced=change.before)

    def _known(self, fact: Fact) -> Memory | None:
        """The memory in use that says just this, so that nobody need be asked."""
        found = memories.by_sha1(self.tx, self.tx.ids, fact.sha1)
        if found is None or not found.active or fact.target_id not in (None, found.id):
            return None
        same_days = _days(fact) == _days(found)
        return found if same_days and set(fact.tags) <= set(found.tags) else None

    def _stored_before(self, fact: Fact) -> Memory | None:
        """What a program stored under the key and with the value of a fact, before it said what
        the fact replaces."""
        found = memories.by_sha1(self.tx, [self.tx.own], fact.sha1)
        if found is None or not found.active or found.created_by != "mcp":
            return None
        return None if found.id == fact.target_id else found

    def _merge_copy(self, copy: Memory, change: Change, message_id: int) -> None:
        """Keep a fact once: where it now stands in the place of what it replaces."""
        kept = change.memory
        if kept is None or not kept.active or kept.id == copy.id or change.kind == "review":
            return
        cause = Cause("client", self.name, message_id=message_id)
        changes.deactivate(self.tx, copy, "merged", cause, replaced_by=kept.id)

    def _propose(self, fact: Fact, reason: str, told: str) -> Written:
        """Ask the person about a fact for a reason; the program is ``told`` another."""
        target = memories.get(self.tx, self.tx.ids, fact.target_id or 0)
        fact = replace(fact, tags=clean_tags((*fact.tags, *self._withdraw(fact))))
        return self._ask(proposals.asked(fact, reason, target), told)

    def _withdraw(self, fact: Fact) -> tuple[str, ...]:
        """Take back the question that this program alone asked before it said what the fact
        replaces, or named other days; the tags that waited with it."""
        asked = asked_alone(self.tx, self.client_id)
        for item in proposals.listed(self.tx, self.tx.own):
            if item.id not in asked or (item.key, item.value) != (fact.key, fact.value):
                continue
            moved = item.target_id is None and _days(item) != _days(fact)
            if moved or fact.target_id is not None:
                proposals.remove(self.tx, [item.id])
                return item.tags
        return ()

    def _wish(self, fact: Fact) -> str:
        until = f" until {fact.expires_at.isoformat()}" if fact.expires_at is not None else ""
        return f"{self.name} asks to keep it{until}"

    def _ask(self, entry: Proposal, told: str) -> Written:
        """Ask the person; ``told`` is what the program is told of it."""
        if (refused := self._refusal(entry)) is not None:
            return refused
        item = self._add(entry)
        record_write(self.tx, self.client_id, "inbox", item)
        return Written("waiting", inbox_id=item, reason=told)

    def _refusal(self, entry: Proposal) -> Written | None:
        """What the program is told where the person is not asked."""
        known = proposals.find(self.tx, self.tx.own, entry)
        if known is not None and known.status == "rejected":
            return Written("refused", reason=REFUSED)
        return Written("refused", reason=_FULL) if self._is_full() else None

    def _is_full(self) -> bool:
        """Whether as much as may wait does, by the wish of this program."""
        return waiting(self.tx, self.client_id) >= WAITING_AT_MOST

    def _add(self, entry: Proposal) -> int:
        """Put a question to the person, or find it where it waits; its id."""
        proposals.add(self.tx, self.tx.own, replace(entry, by=self.name))
        return int(proposals.find(self.tx, self.tx.own, entry).id)

    def _rejected(self, fact: Fact) -> bool:
        """Whether the person said no to this."""
        no = {"key": fact.key, "value": fact.value, "status": "rejected"}
        return proposals.holds(self.tx, self.tx.own, no)

    def _session(self) -> int:
        """The conversation that holds what the program says; it is not a chat of the person."""
        tx, now = self.tx, self.tx.now
        found = session_of(tx, self.client_id)
        if found is not None:
            sessions.change(tx, found, last_activity_at=now)
            return found
        session_id = sessions.start(tx, tx.own, "", now, now)
        sessions.change(tx, session_id, title=f"{self.name} (MCP)")
        sessions.end(tx, session_id)
        set_session(tx, self.client_id, session_id)
        return session_id


def _days(one: Fact | Memory | Proposal) -> tuple[date | None, date | None]:
    return one.starts_at, one.expires_at


def _linked(tx: Tx, reading: SessionReading, item: Candidate) -> Candidate:
    """The proposal with a link to the stored fact that it repeats or changes."""
    linked = reading.link_by_key(tx, item)
    known = reading.known.get(linked.to or "")
    if known is None or text.normal_value(known.value) != text.normal_value(item.value):
        return linked
    return linked.model_copy(update={"relation": "same"})


def _is_plainly_said(verdict: Verdict) -> bool:
    """Whether the quotes hold every word of the value, and deny it or not as the value does."""
    value, said = verdict.candidate.value, " \n".join(proof.quote for proof in verdict.spans)
    held = all(holds_word(said, word) for word in text.content_words(value))
    return held and is_negated(said) == is_negated(value)
