"""Programs that use the store over MCP: who called and wrote what, and what each asks to remember,
to change or to forget.

No message of the person proves what a program asks. Of one that they trust it is stored, with what
the program said as its proof, so that it is undone with that; it never replaces what the person
entered. Of any other, and where it reads as an order, it waits in the inbox. With a quote of the
person from a stored conversation, the gate decides whatever the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from memchat.config import Settings
from memchat.db import Tx, database, messages, sessions
from memchat.db.records import from_text
from memchat.db.schema import utc_text
from memchat.errors import InputError, NotFound
from memchat.facts import changes, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.consolidation import (
    ENDS_FIRST,
    Ingested,
    Protection,
    Source,
    ingest,
)
from memchat.facts.manual import checked_fact, checked_tags, given_fact, is_secret
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
    Client,
    ClientMode,
    ClientWrite,
    Memory,
    Proposal,
    SessionQuote,
    WriteKind,
    Written,
    clean_tags,
)

_ENSURE = """
    INSERT INTO clients (app_id, name, mode, calls, first_call_at, last_call_at)
    VALUES (?1, ?2, ?3, 1, ?4, ?4) ON CONFLICT (app_id, name) DO UPDATE SET
    mode = excluded.mode, calls = calls + 1, last_call_at = excluded.last_call_at RETURNING id
"""
_OF_MEMORIES = """
    SELECT s.memory_id, c.name FROM memory_sources s JOIN memories m ON m.id = s.memory_id
    JOIN messages t ON t.id = s.message_id JOIN clients c ON c.session_id = t.session_id
    WHERE s.memory_id IN (SELECT value FROM json_each(?)) AND m.created_by = 'mcp'
    ORDER BY s.message_id
"""
_ASKED_ALONE = """
    SELECT DISTINCT i.id FROM client_writes w JOIN clients c ON c.id = w.client_id
    JOIN proposals i ON i.id = w.target_id AND i.app_id = c.app_id
    WHERE w.client_id = ? AND w.kind = 'inbox' AND i.status = 'pending' AND i.created_at = w.at
    AND NOT EXISTS (SELECT 1 FROM client_writes o WHERE o.client_id <> w.client_id
        AND o.kind = 'inbox' AND o.target_id = i.id)
"""
"""What was asked later than the item is old was there before the program asked."""
_WAITING = """
    SELECT count(DISTINCT i.id) FROM client_writes w JOIN proposals i ON i.id = w.target_id
    WHERE w.client_id = c.id AND w.kind IN ('inbox', 'forget') AND i.status = 'pending'
"""
_LISTED = f"""
    SELECT c.name, c.mode, c.calls, c.first_call_at, c.last_call_at, c.session_id,
        (SELECT count(DISTINCT w.target_id) FROM client_writes w JOIN memories m
            ON m.id = w.target_id WHERE w.client_id = c.id AND w.kind = 'memory'),
        ({_WAITING}),
        (SELECT count(DISTINCT w.target_id) FROM client_writes w JOIN sources s
            ON s.id = w.target_id WHERE w.client_id = c.id AND w.kind = 'note'),
        (SELECT count(*) FROM client_writes w WHERE w.client_id = c.id AND w.kind = 'forget')
    FROM clients c WHERE c.app_id = ?
"""


def record_call(tx: Tx, app_id: int, name: str, mode: ClientMode, now: datetime) -> int:
    """Count a call of a program; its id."""
    return int(tx.rows(_ENSURE, app_id, name, mode, utc_text(now))[0][0])


def find(tx: Tx, app_id: int, name: str) -> int | None:
    """The id of the program of this name."""
    found = tx.rows("SELECT id FROM clients WHERE app_id = ? AND name = ?", app_id, name)
    return int(found[0][0]) if found else None


def app_id_of(tx: Tx, client_id: int) -> int:
    """The scope row in which a program calls."""
    return int(tx.rows("SELECT app_id FROM clients WHERE id = ?", client_id)[0][0])


def session_of(tx: Tx, client_id: int) -> int | None:
    """The conversation that holds what a program said; None where there is none (any more)."""
    found = tx.rows("SELECT session_id FROM clients WHERE id = ?", client_id)
    return None if not found or found[0][0] is None else int(found[0][0])


def set_session(tx: Tx, client_id: int, session_id: int) -> None:
    """Store which conversation holds what a program says."""
    tx.rows("UPDATE clients SET session_id = ? WHERE id = ?", session_id, client_id)


def record_write(tx: Tx, client_id: int, kind: WriteKind, target_id: int, now: datetime) -> None:
    """Note that a program wrote something."""
    tx.insert(
        "client_writes", client_id=client_id, at=utc_text(now), kind=kind, target_id=target_id
    )


def writes(
    tx: Tx, client_id: int, *, kind: WriteKind | None = None, since: datetime | None = None
) -> list[ClientWrite]:
    """What a program wrote, oldest first; of one kind, or since a time."""
    sql = (
        "SELECT kind, target_id, at FROM client_writes WHERE client_id = ?1"
        " AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR at >= ?3) ORDER BY id"
    )
    after = None if since is None else utc_text(since)
    rows = tx.rows(sql, client_id, kind, after)
    return [from_text(ClientWrite, row) for row in rows]


def of_memories(tx: Tx, memory_ids: Sequence[int]) -> dict[int, str]:
    """The program that stored each of these memories, by memory id; the last one where several
    did. Memories that no program stored are left out."""
    return dict(tx.rows(_OF_MEMORIES, database.json_list(memory_ids)))


def waiting(tx: Tx, client_id: int) -> int:
    """How many inbox items wait because a program asked."""
    sql = f"SELECT ({_WAITING}) FROM clients c WHERE c.id = ?"
    return int(tx.rows(sql, client_id)[0][0])


def asked_alone(tx: Tx, client_id: int) -> list[int]:
    """The inbox items that wait because this program asked, and nobody else did."""
    return [int(row[0]) for row in tx.rows(_ASKED_ALONE, client_id)]


def record_note(tx: Tx, client_id: int, note_id: int, now: datetime) -> None:
    """Note that a program stored this note, or replaced what it had stored."""
    sql = "SELECT id FROM client_writes WHERE client_id = ? AND kind = 'note' AND target_id = ?"
    found = tx.rows(sql, client_id, note_id)
    if found:
        sql = "UPDATE client_writes SET at = ? WHERE id = ?"
        tx.rows(sql, utc_text(now), found[0][0])
    else:
        record_write(tx, client_id, "note", note_id, now)


def note_written_at(tx: Tx, client_id: int, note_id: int) -> datetime | None:
    """When a program last stored this note; None where it did not."""
    sql = "SELECT at FROM client_writes WHERE client_id = ? AND kind = 'note' AND target_id = ?"
    found = tx.rows(sql, client_id, note_id)
    return database.parse_time(found[0][0]) if found else None


def remove_writes(tx: Tx, client_id: int, *, but_notes: Sequence[int] = ()) -> None:
    """Forget what a program wrote, once it was undone. What it asked to forget is asked still, and
    stays here, as do these notes."""
    sql = (
        "DELETE FROM client_writes WHERE client_id = ? AND kind <> 'forget' AND NOT"
        " (kind = 'note' AND target_id IN (SELECT value FROM json_each(?)))"
    )
    tx.rows(sql, client_id, database.json_list(but_notes))


def listed(tx: Tx, app_ids: Sequence[int]) -> list[Client]:
    """The programs that called for these scope rows, the last one first."""
    found = [row for one in app_ids for row in tx.rows(_LISTED, one)]
    clients = [from_text(Client, row) for row in found]
    return sorted(clients, key=lambda client: client.last_call_at, reverse=True)


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
    settings: Settings
    prompts: Prompts
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
        kind, name, words = checked_fact(memory_type, key, value)
        is_secret(name, words, False)
        _check_days(self.tx.today, expires_at, starts_at)
        fact = given_fact(self.tx, kind, name, words, expires_at, starts_at)
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
        same = (fact.key, fact.value, fact.starts_at) == (
            memory.key,
            memory.value,
            memory.starts_at,
        )
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

    def forget(self, memory: Memory) -> tuple[Written, set[int]]:
        """Put a memory out of use and ask the person whether it is forgotten for good. Gives also
        the scope rows whose saved vector index must be dropped."""
        client_id, since = self._client(), self.tx.now - timedelta(hours=1)
        before = writes(self.tx, client_id, kind="forget", since=since)
        stale: set[int] = set()
        if self._was_refused(memory, FORGET):
            return Written("refused", memory, reason=REFUSED), stale
        if self._is_full():
            return Written("refused", memory, reason=_FULL), stale
        hides = len(before) < FORGETS_AN_HOUR
        if hides:
            stale = Protection(self.tx, self._own).hide_for_program(memory, None)
            memory = replace(memory, active=False)
        item = self._ask_about(memory, FORGET, f"{self.name} asks to forget it")
        self._note("forget", item or memory.id)
        why = "the person is asked whether it is forgotten for good"
        if not hides:
            why += f"; it stays in use until then, as {FORGETS_AN_HOUR} were forgotten this hour"
        return Written("hidden" if hides else "waiting", memory, item, why), stale

    def promote(self, memory: Memory) -> Written:
        """Ask the person whether a memory of this app is kept for all their apps."""
        if self._was_refused(memory, PROMOTE):
            return Written("refused", memory, reason=REFUSED)
        if self._is_full():
            return Written("refused", memory, reason=_FULL)
        item = self._ask_about(memory, PROMOTE, f"{self.name} asks for it")
        return self._asked(item, _YES_FIRST, memory)

    def _take(self, fact: Fact) -> Written:
        if fact.starts_at and fact.expires_at and fact.expires_at < fact.starts_at:
            return Written("refused", reason=ENDS_FIRST)
        if is_order(fact):
            return self._ask(fact, f"{self.name} sent it, and {_ORDER}", _ORDER)
        if self.mode == "ask":
            known = self._known(fact)
            if known is not None:
                return Written("known", known)
            return self._ask(fact, self._wish(fact), _YES_FIRST)
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
        turns = {turn.id: turn for turn in reading.turns}
        if verdict.outcome == "refuse":
            return Written("refused", reason="; ".join(verdict.reasons))
        if verdict.outcome == "review":
            entry = inbox_entry(verdict, reading.known, turns)
            return self._queue(replace(entry, tags=fact.tags), entry.reason)
        if self._rejected(fact):
            return Written("refused", reason=REFUSED)
        if self._is_full():
            return Written("refused", reason=_FULL)
        source = Source("model", f"quoted by {self.name}", quote.session_id)
        proved = to_fact(verdict, turns, reading.known, self.tx.zone)
        done = ingest(self.tx, source, [proved], self.settings.merge_threshold)
        if done.changes[0].kind == "review":
            waiting = self._add_item(proposals.asked(fact, _CHANGES_OWN))[1]  # adds the tags
            return self._asked(waiting, _CHANGES_OWN, None)
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
        reading = SessionReading(*found, turns, 0, injected=shown_memory_lines(tx, turns))
        verdict = judge(
            _linked(tx, reading, item),
            reading.gate_turns(),
            list(reading.known.values()),
            # What models that took part were told proves nothing.
            prompt_text="\n".join(self.prompts.text(name) for name in ("chat", "tools")),
            injected=reading.injected,
            zone=tx.zone,
        )
        verdict = ask_first(tx, found[1], verdict, {turn.id: turn for turn in turns})
        if not _is_plainly_said(verdict):
            verdict = unlooked(verdict, NOBODY_LOOKED)
        return reading.refuse_if_forgotten(tx, tx.ids, verdict), reading

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
        source = Source("client", self.name, message_id=message_id)
        copy = None if fact.target_id is None else self._stored_before(fact)
        proved = replace(fact, proofs=proofs)
        done = ingest(self.tx, source, [proved], self.settings.merge_threshold)
        if copy is not None:
            self._merge_copy(copy, done.changes[0], message_id)
        kind, item = done.changes[0].kind, proposals.of_message(self.tx, message_id)
        full = item is not None and self._is_full()
        if item is not None and full:
            proposals.remove(self.tx, [item])
        elif item is not None:
            proposals.ask_for_program(self.tx, item, self.name, self._wish(fact))
        if kind in ("review", "refused"):
            # Nothing was stored that it could prove, and it may be words that were forgotten.
            messages.remove(self.tx, [message_id])
        if kind == "review" and full:
            return Written("refused", reason=_FULL)
        if kind == "review":
            return self._asked(item, _CHANGES_OWN, None)
        return self._stored(done)

    def _stored(self, done: Ingested) -> Written:
        change = done.changes[0]
        if change.memory is None:
            return Written("refused", reason=change.reason or "")
        self._note("memory", change.memory.id)
        known = change.kind == "repeated"
        return Written("known" if known else "stored", change.memory, replaced=change.before)

    def _known(self, fact: Fact) -> Memory | None:
        """The memory in use that says just this, so that nobody need be asked."""
        sha1 = memories.sha1_of(fact.memory_type, fact.key, fact.value)
        found = memories.by_sha1(self.tx, self.tx.ids, sha1)
        if found is None or not found.active or fact.target_id not in (None, found.id):
            return None
        same_days = _days(fact) == _days(found)
        return found if same_days and set(fact.tags) <= set(found.tags) else None

    def _stored_before(self, fact: Fact) -> Memory | None:
        """What a program stored under the key and with the value of a fact, before it said what
        the fact replaces."""
        sha1 = memories.sha1_of(fact.memory_type, fact.key, fact.value)
        found = memories.by_sha1(self.tx, (self._own,), sha1)
        if found is None or not found.active or found.created_by != "mcp":
            return None
        return None if found.id == fact.target_id else found

    def _merge_copy(self, copy: Memory, change: Change, message_id: int) -> None:
        """Keep a fact once: where it now stands in the place of what it replaces."""
        kept = change.memory
        if kept is None or not kept.active or kept.id == copy.id or change.kind == "review":
            return
        cause = Cause(self.tx.now, "client", self.name, message_id=message_id)
        changes.deactivate(self.tx, copy, "merged", cause, replaced_by=kept.id)

    def _ask(self, fact: Fact, reason: str, told: str) -> Written:
        """Ask the person for a reason; ``told`` is what the program is told of it."""
        target = None
        if fact.target_id is not None:
            target = memories.get(self.tx, self.tx.ids, fact.target_id)
        fact = replace(fact, tags=clean_tags((*fact.tags, *self._withdraw(fact))))
        return self._queue(proposals.asked(fact, reason, target), told)

    def _withdraw(self, fact: Fact) -> tuple[str, ...]:
        """Take back the question that this program alone asked before it said what the fact
        replaces, or named other days; the tags that waited with it."""
        asked = asked_alone(self.tx, self._client())
        for item in proposals.listed(self.tx, self._own):
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

    def _queue(self, entry: Proposal, told: str) -> Written:
        if self._is_full():
            return Written("refused", reason=_FULL)
        status, item = self._add_item(entry)
        if status == "rejected":
            return Written("refused", reason=REFUSED)
        return self._asked(item, told, None)

    def _is_full(self) -> bool:
        """Whether as much as may wait does, by the wish of this program."""
        return waiting(self.tx, self._client()) >= WAITING_AT_MOST

    def _rejected(self, fact: Fact) -> bool:
        """Whether the person said no to this."""
        no = {"key": fact.key, "value": fact.value, "status": "rejected"}
        return proposals.holds(self.tx, self._own, no)

    def _was_refused(self, memory: Memory, relation: str) -> bool:
        """Whether the person said no when a program asked the same before."""
        asked = {"memory_id": memory.id, "relation": relation, "status": "rejected"}
        return proposals.holds(self.tx, self._own, asked)

    def _ask_about(self, memory: Memory, relation: str, reason: str) -> int | None:
        entry = Proposal(reason, memory_id=memory.id, relation=relation)
        return self._add_item(entry)[1]

    def _add_item(self, entry: Proposal) -> tuple[str | None, int | None]:
        """Ask the person; what ``proposals.add`` gives, and the id of what waits."""
        status = proposals.add(self.tx, self._own, replace(entry, by=self.name), self.tx.now)
        found = proposals.find(self.tx, self._own, entry)
        return status, None if found is None or status == "rejected" else found.id

    def _asked(self, item: int | None, reason: str, memory: Memory | None) -> Written:
        if item is not None:
            self._note("inbox", item)
        return Written("waiting", memory, item, reason)

    def _note(self, kind: WriteKind, target_id: int) -> None:
        record_write(self.tx, self._client(), kind, target_id, self.tx.now)

    def _client(self) -> int:
        found = find(self.tx, self._own, self.name)
        assert found is not None  # its call was counted first
        return found

    def _session(self) -> int:
        """The conversation that holds what the program says; it is not a chat of the person."""
        tx, now, client_id = self.tx, self.tx.now, self._client()
        found = session_of(tx, client_id)
        if found is not None:
            sessions.touch(tx, found, now)
            return found
        session_id = sessions.start(tx, self._own, "", now, now)
        sessions.rename(tx, session_id, f"{self.name} (MCP)")
        sessions.end(tx, session_id, now)
        set_session(tx, client_id, session_id)
        return session_id

    @property
    def _own(self) -> int:
        return self.tx.own


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
