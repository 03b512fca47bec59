"""What a program over MCP asks to remember, to change or to forget.

No message of the person proves it. Of a program that they trust it is stored, with what the
program said as its proof, so that it is undone with that; it never replaces what the person
entered. Of any other, and where it reads as an order, it waits in the inbox. With a quote of the
person from a stored conversation, the gate decides whatever the program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from memchat.config import Settings
from memchat.db import Tx, messages, sessions
from memchat.errors import InputError
from memchat.facts import changes, clients, inbox, memories
from memchat.facts.consolidation import (
    ENDS_FIRST,
    Confirmation,
    Ingested,
    Source,
    ingest,
    queue_embedding,
)
from memchat.facts.fact import Fact, inbox_entry
from memchat.facts.history import Cause
from memchat.facts.inbox import FORGET, PROMOTE, NewInboxItem
from memchat.facts.manual import checked_fact, checked_tags, given_fact, is_secret
from memchat.learn.candidate import Candidate, Quote, Relation
from memchat.learn.own_words import reads_as_instruction
from memchat.learn.quoted_proposal import QuotedProposal
from memchat.prompts import Prompts
from memchat.types import (
    Change,
    ClientMode,
    InboxItem,
    Memory,
    SessionQuote,
    WriteKind,
    Written,
    clean_tags,
)


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
_CHANGES_OWN = "it would change what the person entered or had forgotten"


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """The requests of one program, in the caller's transaction."""

    tx: Tx
    settings: Settings
    prompts: Prompts
    name: str
    mode: ClientMode
    embeds: bool
    """Whether there is an embedding service; without one no embedding is queued."""

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
        before = clients.writes(self.tx, client_id, kind="forget", since=since)
        stale: set[int] = set()
        if self._was_refused(memory, FORGET):
            return Written("refused", memory, reason=REFUSED), stale
        if self._is_full():
            return Written("refused", memory, reason=_FULL), stale
        hides = len(before) < FORGETS_AN_HOUR
        if hides:
            stale = Confirmation(self.tx, self._own).hide_for_program(memory, None)
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
        instructions = "\n".join(self.prompts.text(name) for name in ("chat", "tools"))
        said = QuotedProposal.read(self.tx, item, quote.session_id, instructions)
        said = said.on_days(fact.starts_at, fact.expires_at)
        if said.outcome == "refuse":
            return Written("refused", reason=said.reason)
        if said.outcome == "review":
            entry = said.inbox_entry()
            return self._queue(replace(entry, tags=fact.tags), entry.reason)
        if self._rejected(fact):
            return Written("refused", reason=REFUSED)
        if self._is_full():
            return Written("refused", reason=_FULL)
        source = Source("model", f"quoted by {self.name}", quote.session_id)
        done = ingest(self.tx, source, [said.fact()], self.settings.merge_threshold)
        if done.changes[0].kind == "review":
            waiting = self._add_item(inbox_entry(fact, _CHANGES_OWN, None))[1]  # adds the tags
            return self._asked(waiting, _CHANGES_OWN, None)
        return self._stored(done)

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
        kind, item = done.changes[0].kind, inbox.of_message(self.tx, message_id)
        full = item is not None and self._is_full()
        if item is not None and full:
            inbox.remove(self.tx, [item])
        elif item is not None:
            inbox.set_reason(self.tx, item, self._wish(fact))
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
        if self.embeds:
            queue_embedding(self.tx, done.written)
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
        return self._queue(inbox_entry(fact, reason, target), told)

    def _withdraw(self, fact: Fact) -> tuple[str, ...]:
        """Take back the question that this program alone asked before it said what the fact
        replaces, or named other days; the tags that waited with it."""
        asked = clients.asked_alone(self.tx, self._client())
        for item in inbox.listed(self.tx, self._own, "pending"):
            if item.id not in asked or (item.key, item.value) != (fact.key, fact.value):
                continue
            moved = item.target_id is None and _days(item) != _days(fact)
            if moved or fact.target_id is not None:
                inbox.remove(self.tx, [item.id])
                return item.tags
        return ()

    def _wish(self, fact: Fact) -> str:
        until = f" until {fact.expires_at.isoformat()}" if fact.expires_at is not None else ""
        return f"{self.name} asks to keep it{until}"

    def _queue(self, entry: NewInboxItem, told: str) -> Written:
        if self._is_full():
            return Written("refused", reason=_FULL)
        status, item = self._add_item(entry)
        if status == "rejected":
            return Written("refused", reason=REFUSED)
        return self._asked(item, told, None)

    def _is_full(self) -> bool:
        """Whether as much as may wait does, by the wish of this program."""
        return clients.waiting(self.tx, self._client()) >= WAITING_AT_MOST

    def _rejected(self, fact: Fact) -> bool:
        """Whether the person said no to this."""
        no = {"key": fact.key, "value": fact.value, "status": "rejected"}
        return inbox.holds(self.tx, self._own, no)

    def _was_refused(self, memory: Memory, relation: str) -> bool:
        """Whether the person said no when a program asked the same before."""
        asked = {"memory_id": memory.id, "relation": relation, "status": "rejected"}
        return inbox.holds(self.tx, self._own, asked)

    def _ask_about(self, memory: Memory, relation: str, reason: str) -> int | None:
        entry = NewInboxItem(reason, memory_id=memory.id, relation=relation)
        return self._add_item(entry)[1]

    def _add_item(self, entry: NewInboxItem) -> tuple[str | None, int | None]:
        own = self._own
        status = inbox.add(self.tx, own, entry, self.tx.now)
        waiting: list[InboxItem] = inbox.listed(self.tx, own, "pending")
        same = [
            item.id
            for item in waiting
            if (item.key, item.value, item.memory_id) == (entry.key, entry.value, entry.memory_id)
            and (item.relation == entry.relation or entry.key is not None)
        ]
        return status, same[-1] if same else None

    def _asked(self, item: int | None, reason: str, memory: Memory | None) -> Written:
        if item is not None:
            self._note("inbox", item)
        return Written("waiting", memory, item, reason)

    def _note(self, kind: WriteKind, target_id: int) -> None:
        clients.record_write(self.tx, self._client(), kind, target_id, self.tx.now)

    def _client(self) -> int:
        found = clients.find(self.tx, self._own, self.name)
        assert found is not None  # its call was counted first
        return found

    def _session(self) -> int:
        """The conversation that holds what the program says; it is not a chat of the person."""
        tx, now, client_id = self.tx, self.tx.now, self._client()
        found = clients.session_of(tx, client_id)
        if found is not None:
            sessions.touch(tx, found, now)
            return found
        session_id = sessions.start(tx, self._own, "", now, now)
        sessions.rename(tx, session_id, f"{self.name} (MCP)")
        sessions.end(tx, session_id, now)
        clients.set_session(tx, client_id, session_id)
        return session_id

    @property
    def _own(self) -> int:
        return self.tx.own


def _days(one: Fact | Memory | InboxItem) -> tuple[date | None, date | None]:
    return one.starts_at, one.expires_at
