"""What a person does by hand: entering and changing memories, answering proposals, and taking
answers back.

Their own word is the evidence of what they enter, so no quote is needed; a yes counts as their own
word. To take an answer back, the rows are kept as they were before it (``RowImages``): what it
added is deleted, and what it replaced, ended or repeated gets its former state. The proposals wait
again, but for those whose words were forgotten meanwhile or whose message was deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from memchat import types
from memchat.db import Tx, details, messages, schema
from memchat.db.records import among, upsert
from memchat.errors import InputError, NotFound, SecretError
from memchat.facts import changes, keys, memories, proposals
from memchat.facts.changes import UPKEEP, Cause
from memchat.facts.consolidation import (
    INBOX,
    KEPT_REFUSAL,
    MANUAL,
    Protection,
    allow_again,
    end_memory,
    ingest,
)
from memchat.facts.in_force import apply_due_dates
from memchat.facts.memories import Fact, NewMemory, search_text
from memchat.facts.proposals import FORGET, PROMOTE, proposed, question, target_of
from memchat.forget import purge, tombstones
from memchat.forget.tombstones import Mark
from memchat.forget.undo import TAKEN_BACK
from memchat.language import secrets
from memchat.language.lexicon import is_sensitive
from memchat.language.telling import sentence_of
from memchat.learn.values import VALUE_LIMIT, true_sentence
from memchat.search import passages, turns
from memchat.workflows import rows as workflows


@dataclass(frozen=True, slots=True)
class ManualChanges:
    """Add, edit and restore memories in the caller's transaction."""

    tx: Tx

    def add(
        self,
        memory_type: str,
        key: str,
        value: str,
        expires_at: date | None,
        all_apps: bool,
        starts_at: date | None = None,
        keep_secret: bool = False,
        sentence: str | None = None,
    ) -> types.Memory:
        """Store a fact as entered. A known one is confirmed; of a key that holds one value the
        newest wins.

        A secret that is kept is marked sensitive, so that it is not part of every prompt.
        """
        tx = self.tx.within(self._home(all_apps), self.tx.shared)
        fact = given_fact(tx, memory_type, key, value, expires_at, starts_at, keep_secret, sentence)
        self._check_day(expires_at)
        if isinstance(starts_at, datetime):
            raise InputError("the first day is a date without a time; give day.date()")
        if starts_at is not None and expires_at is not None and expires_at < starts_at:
            raise InputError(
                f"it would end on {expires_at.isoformat()}, before it starts on "
                f"{starts_at.isoformat()}; give a later last day"
            )
        memory = ingest(tx, MANUAL, [fact])[0].memory
        assert memory is not None
        if fact.sensitive and not memory.sensitive:
            changes.set_columns(self.tx, memory.id, sensitive=1)  # it was known before
            memory = self._reload(memory.id)
        return memory

    def add_tags(self, memory: types.Memory, given: Iterable[str]) -> types.Memory:
        """Give a memory these tags beside its own."""
        changes.add_tags(self.tx, memory.id, checked_tags(given), MANUAL)
        return self._reload(memory.id)

    def add_metadata(
        self, memory: types.Memory, given: types.Metadata, *, add: bool = True
    ) -> types.Memory:
        """Note these values beside a memory, beside what is noted there or in its place."""
        details.put(self.tx, schema.memories, memory.id, details.checked(given), add=add)
        return self._reload(memory.id)

    def edit(self, memory: types.Memory, wanted: types.MemoryChanges) -> types.Memory:
        """Change words, type, last day, reach or tags. Raises InputError where another memory says
        the same."""
        cause = Cause("user", "edited by hand")
        if (tags := wanted.get("tags")) is not None:
            changes.put_tags(self.tx, memory.id, checked_tags(tags), cause)
        if (noted := wanted.get("metadata")) is not None:
            self.add_metadata(memory, noted, add=False)
        if wanted.keys() <= {"tags", "metadata", "keep_secret"}:
            return self._reload(memory.id)
        here = memories.app_id_of(self.tx, memory.id)
        all_apps, sensitive = wanted.get("all_apps"), wanted.get("sensitive")
        key, value = wanted.get("key"), wanted.get("value")
        app_id = here if all_apps is None else self._home(all_apps)
        kind, name, words = checked_fact(
            self.tx.types,
            wanted.get("type") or memory.memory_type,
            memory.key if key is None else key,
            memory.value if value is None else value,
            held=(memory.memory_type, memory.value),
        )
        same = (name, words) == (memory.key, memory.value)
        secret = not same and is_secret(name, words, wanted.get("keep_secret", False))
        until = wanted.get("expires_at", memory.expires_at)
        if "expires_at" in wanted:
            self._check_day(until)
        twin = memories.by_sha1(self.tx, [app_id], memories.sha1_of(kind, name, words))
        if twin is not None and twin.id != memory.id:
            raise InputError(f"memory {twin.id} says the same already; delete one of the two")
        if sensitive is None:
            by_key = name != memory.key and is_sensitive(name)
            sensitive = memory.sensitive or by_key or secret
        # New words count as said now, so that an older session read later does not override them.
        said_at = memory.said_at if same else self.tx.now
        given = memory.cues if words == memory.value else ()
        cues = memories.distinctive_cues(self.tx, here, given)
        told = wanted.get("sentence")
        told = memory.sentence if same and not told else told_by(self.tx, name, words, told)
        new = NewMemory(
            memory_type=kind,
            key=name,
            value=words,
            many=memory.many if name == memory.key else keys.cardinality(name) != "one",
            search_text=search_text(name, words, said_at, self.tx.zone, cues=cues),
            said_at=said_at,
            created_by=memory.created_by,
            expires_at=until,
            starts_at=memory.starts_at,
            cues=given,
            sensitive=sensitive,
            sentence=told,
        )
        allow_again(self.tx.within(app_id, self.tx.shared), new)
        changes.rewrite(self.tx, memory, app_id, new, cause)
        if memory.active and keys.cardinality(name) == "one":
            self._retire_rivals(memory.id, app_id, name, cause)
        if not same:
            # The turns that taught it are found by what it says now.
            proofs = changes.evidence_of_memory(self.tx, memory.id)
            for session_id in sorted({proof.session_id for proof in proofs}):
                turns.write(self.tx, session_id)
        return self._reload(memory.id)

    def restore(self, memory: types.Memory) -> types.Memory:
        """Restore a superseded, merged, ended or expired memory; the value that replaced it is
        retired."""
        cause = Cause("user", "restored by hand")
        apply_due_dates(self.tx)
        memory = self._reload(memory.id)
        if memory.active:
            raise InputError(f"memory {memory.id} is active already; there is nothing to restore")
        if memory.inactive_reason == "expired":
            changes.set_day(self.tx, memory, "expires_at", None, cause)
        changes.reactivate(self.tx, memory, cause, said_at=self.tx.now)
        if not memory.many:
            app_id = memories.app_id_of(self.tx, memory.id)
            self._retire_rivals(memory.id, app_id, memory.key, cause)
        return self._reload(memory.id)

    def undelete(self, memory: types.Memory) -> types.Memory:
        """Undo a deletion that is not purged yet; a value stored meanwhile is retired.

        That is also a no to a program that asked to forget it.
        """
        purge.unhide(self.tx, memory)
        proposals.reject_requests_to_forget(self.tx, memory.id)
        back = self._reload(memory.id)
        if back.active and keys.cardinality(back.key) == "one":
            app_id = memories.app_id_of(self.tx, back.id)
            cause = Cause("user", "deletion undone")
            self._retire_rivals(back.id, app_id, back.key, cause)
        return back

    def _retire_rivals(self, memory_id: int, app_id: int, key: str, cause: Cause) -> None:
        """Retire the other values that hold now; those that start later stay."""
        there = memories.with_key(self.tx, [app_id], key)
        begun = [m for m in there if m.starts_at is None or m.starts_at <= self.tx.today]
        if memory_id not in {m.id for m in begun}:
            return
        for rival in begun:
            if rival.id != memory_id:
                changes.deactivate(self.tx, rival, "superseded", cause, replaced_by=memory_id)

    def _check_day(self, day: date | None) -> None:
        if isinstance(day, datetime):
            raise InputError("the last day is a date without a time; give day.date()")
        if day is not None and day < self.tx.today:
            raise InputError(f"{day.isoformat()} is over already; give today or a later day")

    def _home(self, all_apps: bool) -> int:
        """The scope row of what is kept for this app, or for all."""
        return self.tx.shared if all_apps else self.tx.own

    def _reload(self, memory_id: int) -> types.Memory:
        found = memories.get(self.tx, self.tx.ids, memory_id)
        if found is None:
            raise NotFound(f"there is no memory {memory_id} here", see="memories list")
        return found


def checked_fact(
    own: types.OwnTypes, memory_type: str, key: str, value: str, held: tuple[str, str] = ("", "")
) -> tuple[str, str, str]:
    """Type, key and value as they are stored. Raises InputError for those that cannot be: a type
    that is neither usual nor one of ``own``, a value that does not fit it. The type and the value
    that are ``held`` already may stay."""
    kind = memory_type.strip().casefold()
    if not kind or kind != held[0]:
        types.check_type(kind, own)
    name = keys.canonical(keys.normalise_key(types.one_line(key, "key", 200)))
    words = types.one_line(value, "value", VALUE_LIMIT, "; a longer text can be a note")
    if (kind, words) != held:
        check_value(own, kind, words)
    return kind, name, words


def check_value(own: types.OwnTypes, kind: str, value: str) -> None:
    """Raise InputError for a value that its own type does not admit."""
    if kind in own and (why := own[kind].misfit(value)):
        raise InputError(f"the value does not fit the type {kind}: {why}")


def given_fact(
    tx: Tx,
    memory_type: str,
    key: str,
    value: str,
    expires_at: date | None,
    starts_at: date | None,
    keep_secret: bool = False,
    sentence: str | None = None,
) -> Fact:
    """A fact as somebody gives it now, without a quote. Raises InputError for one that cannot be
    kept, SecretError for a secret unless ``keep_secret``."""
    kind, name, words = checked_fact(tx.types, memory_type, key, value)
    return Fact(
        memory_type=kind,
        key=name,
        value=words,
        said_at=tx.now,
        search_text=search_text(name, words, tx.now, tx.zone),
        created_by="manual",
        many=keys.cardinality(name) != "one",
        expires_at=expires_at,
        starts_at=starts_at,
        sensitive=is_secret(name, words, keep_secret),
        sentence=told_by(tx, name, words, sentence),
    )


def told_by(tx: Tx, key: str, value: str, given: str | None = None) -> str | None:
    """The sentence for a fact that no model read: the one that was given, where it is true to it,
    else that of a template, in the language that the person writes in."""
    told = true_sentence(given, key, value, value)
    return told or sentence_of(key, value, messages.said_last(tx) or value)


def checked_tags(given: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored. Raises InputError for those that cannot be, as for what looks like a
    secret."""
    said = given if isinstance(given, str) else [*given]
    found = types.clean_tags(said)
    if any(is_secret("tag", tag, keep=True) for tag in (*said, *found)):  # a key may have capitals
        raise InputError("a tag looks like a secret; leave it out")
    return found


def is_secret(key: str, value: str, keep: bool) -> bool:
    """Whether a value looks like a secret other than an e-mail address or a phone number. Raises
    SecretError unless ``keep``."""
    kinds = {secret.kind for _words, secret in secrets.find_in_fact(key, value)}
    grave = sorted(kinds - secrets.PERSONAL)
    if grave and not keep:
        raise SecretError(grave[0])
    return bool(grave)


def accept(tx: Tx, item: types.Proposal, value: str | None = None) -> types.Memory:
    """Do what a proposal says, also one that was not kept, with ``value`` in place of its own; of
    a pair, the newer memory replaces the other.

    Where the memory that it would replace is gone or was reworded, it is stored as new. Raises
    InputError for a masked value without ``value``, where only the reason was noted, and for a
    request to forget, which ``forget`` answers; NotFound where there is nothing to end.
    """
    cause = KEPT_REFUSAL if item.status == "refused" else INBOX
    if item.run_id is not None:
        raise InputError("a call cannot be taken back; say yes to this one by itself")
    if item.memory_id is not None:
        memory = _accept_about(tx, item, item.memory_id, cause)
    elif item.memory_type is None or item.key is None:
        raise InputError(
            f"its words were not noted, because {item.reason}; to keep it all the same, enter it "
            "by hand",
            see="memories add",
        )
    elif value is None and item.masked and item.relation != "ends":
        raise InputError(
            "its value is hidden; say the value again to keep it", see="inbox accept --help"
        )
    else:
        said = item if value is None else replace(item, value=value)
        memory = _Acceptance(tx, cause, said, value is not None).apply()
    proposals.remove(tx, [item.id])
    return memory


def _accept_about(tx: Tx, item: types.Proposal, memory_id: int, cause: Cause) -> types.Memory:
    """Do what is proposed about a whole memory, or a pair."""
    if item.related_id is not None:
        old = memories.get(tx, tx.ids, item.related_id)
        new = changes.current(tx, tx.ids, [memory_id]).get(memory_id)
        if new is None or old is None or new.id == old.id:
            raise NotFound("one of the two memories is gone or retired; reject the item")
        if old.active:
            changes.deactivate(tx, old, "superseded", cause, replaced_by=new.id)
        return new
    if item.relation == FORGET:
        raise InputError("forgetting cannot be taken back; say yes to this one by itself")
    memory = _there(tx, memory_id)
    if item.relation == PROMOTE:
        return ManualChanges(tx).edit(memory, {"all_apps": True})
    if memory.active:
        changes.deactivate(tx, memory, "ended", cause)
    return memory


def forget(tx: Tx, item: types.Proposal, hold: float) -> types.Memory:
    """Say yes to a request to forget: the memory is hidden, and its purge is due in ``hold``
    seconds.

    Raises NotFound where the memory is gone.
    """
    memory_id = item.memory_id or 0
    memory = _hidden(tx, memory_id)
    if memory is not None:
        purge.queue_purge(tx, memory, hold)
    else:
        memory = _there(tx, memory_id)
        Protection(tx).hide_for_program(memory, hold)
    proposals.remove(tx, [item.id])
    return _hidden(tx, memory_id) or memory


def reject(tx: Tx, item: types.Proposal) -> None:
    """Answer no: the same is not asked again. What was forgotten before gets a new tombstone, and
    the item is removed with its words. The run of a workflow that asks is stopped."""
    if item.run_id is not None:
        workflows.stop(tx, item.run_id)
        return
    found = marks(item)
    if item.relation == FORGET and item.memory_id is not None:
        hidden = _hidden(tx, item.memory_id)
        if hidden is not None:
            purge.unhide(tx, hidden)
    if tombstones.find(tx, tx.ids, found):
        tombstones.add(tx, tx.own, 0, found, tx.now)
        proposals.remove(tx, [item.id])
    else:
        proposals.change(tx, item.id, status="rejected")


def marks(item: types.Proposal) -> set[Mark]:
    """The marks by which it is known that the words of a proposal were forgotten."""
    if item.key is None or item.value is None:
        return set()
    found = tombstones.fact_marks(item.key, item.value)
    if item.quote is not None and item.message_id is not None:
        found |= tombstones.proof_marks(item.key, item.quote, item.message_id)
    return found


def current_question(tx: Tx, item: types.Proposal) -> str:
    """The question of an item, for the memories as they are now."""
    if item.key is not None:
        asked = question(item, target_of(tx, tx.ids, item))
        return f"{asked} Tags: {', '.join(item.tags)}." if item.tags else asked
    found = memories.by_ids(tx, tx.ids, [i for i in (item.memory_id, item.related_id) if i])
    newer = found.get(item.memory_id or 0)
    if newer is None and item.memory_id is not None and item.relation == FORGET:
        newer = _hidden(tx, item.memory_id)
    if item.related_id is None:
        return question(item, newer)
    return question(item, found.get(item.related_id), newer)


@dataclass(frozen=True, slots=True)
class _Acceptance:
    """A yes to a proposed fact, inside the caller's transaction."""

    tx: Tx
    cause: Cause
    proposal: types.Proposal
    reworded: bool
    """Whether the person gave the value with the yes, and so says it now."""

    def apply(self) -> types.Memory:
        """Store, replace, end or repeat, as proposed; the memory in question."""
        what, tx = self.proposal, self.tx
        target = target_of(tx, tx.ids, what)
        if what.relation == "ends":
            if target is None:
                raise NotFound("what it would end is gone or has other words by now; reject it")
            said_at, proofs, _ = self._proof()
            return end_memory(tx, target, what, said_at, proofs, self.cause)
        name = f"{'refusal' if what.status == 'refused' else 'item'} {what.id}"
        if what.expires_at is not None and what.expires_at < tx.today:
            raise InputError(f"{name} was over on {what.expires_at}; reject it")
        in_every_app = target is not None and target.app == types.EVERY_APP
        writing = tx.within(tx.shared, tx.shared) if in_every_app else tx
        fact = self._fact(target, writing.own)
        forgotten = marks(replace(what, quote=fact.quotes[0] if fact.quotes else ""))
        forgotten |= tombstones.wording_marks(fact.key, fact.value)
        tombstones.remove(tx, tx.ids, forgotten)
        done = ingest(writing, self.cause, [fact])[0]
        if done.memory is None:
            raise InputError(f"{name} cannot be kept: {done.reason}")
        starts_later = what.starts_at is not None and what.starts_at > tx.today
        if what.relation == "updates" and target is not None and not starts_later:
            # Consolidation does not retire it where another row had the new words already.
            left = memories.get(tx, tx.ids, target.id)
            if left is not None and left.active and left.id != done.memory.id:
                changes.deactivate(tx, left, "superseded", self.cause, replaced_by=done.memory.id)
        return done.memory

    def _fact(self, target: types.Memory | None, app_id: int) -> Fact:
        """The proposal as a fact; one that speaks of a memory takes over its type and key."""
        what = self.proposal
        fields = proposed(what) | {"value": types.one_line(what.value or "", "value", VALUE_LIMIT)}
        if target is None:
            fields |= {"relation": "new", "target_id": None}
        else:
            names = ("memory_type", "key", "many")
            fields |= {name: getattr(target, name) for name in names}
            fields["target_id"] = target.id
        if target is not None and what.relation == "same" and not self.reworded:
            fields["value"] = target.value
            fields["expires_at"] = what.expires_at or target.expires_at
        key, value = fields["key"], fields["value"]
        if what.relation != "same" or self.reworded:
            check_value(self.tx.types, fields["memory_type"], value)
        if (cardinality := keys.cardinality(key)) is not None:
            fields["many"] = cardinality == "many"
        said_at, proofs, quote = self._proof()
        told = true_sentence(fields["sentence"], key, value, quote)
        fields["sentence"] = told or told_by(self.tx, key, value)
        if what.relation != "same":
            # It counts as said now where it replaces something newer.
            rivals = [target] if target is not None else []
            if cardinality == "one":
                rivals += memories.with_key(self.tx, [app_id], key)
            if any(rival.said_at > said_at for rival in rivals):
                said_at = self.tx.now
        text = search_text(key, value, said_at, self.tx.zone, quote, what.cues)
        return Fact(said_at=said_at, search_text=text, created_by="manual", proofs=proofs, **fields)

    def _proof(self) -> tuple[datetime, tuple[tuple[int, int, str], ...], str]:
        """When it was said, the words that prove it, and the quote by itself."""
        what = self.proposal
        turn = _message(self.tx, what)
        said_at = turn.created_at if turn is not None and not self.reworded else self.tx.now
        if turn is None or what.start is None or what.masked:
            return said_at, (), ""
        quote = turn.content[what.start : what.end]
        return said_at, ((turn.id, what.start, quote),) if quote else (), quote


def _message(tx: Tx, item: types.Proposal) -> types.Message | None:
    """The message that a proposal quotes."""
    message_id = item.message_id or 0
    return messages.by_ids(tx, [message_id]).get(message_id)


def _hidden(tx: Tx, memory_id: int) -> types.Memory | None:
    """A memory that is out of use until the person decides whether it is forgotten."""
    there = memories.hidden(tx, tx.ids)
    return next((memory for memory in there if memory.id == memory_id), None)


def _there(tx: Tx, memory_id: int) -> types.Memory:
    memory = memories.get(tx, tx.ids, memory_id)
    if memory is None:
        raise NotFound("the memory is gone; reject the item")
    return memory


Row = Mapping[str, Any]
_CHANGED = (
    "app_id", "active", "inactive_reason", "replaced_by", "said_at", "last_seen_at", "seen_count",
    "expires_at", "starts_at", "pinned", "sensitive",
)  # fmt: skip
"""The columns that an answer may change. The words of a memory are not among them: forgetting may
have taken some of them away meanwhile."""


@dataclass(frozen=True, slots=True)
class RowImages:
    """The rows of one user that a transaction changed, by table."""

    before: Mapping[str, Sequence[Row]]
    """As they were before it."""
    after: Mapping[str, Sequence[Row]]
    since: int
    """The last event before it."""
    last_event: int

    @property
    def added(self) -> list[int]:
        """The ids of the memories that were added."""
        known = {row["id"] for row in self.before["memories"]}
        return [row["id"] for row in self.after["memories"] if row["id"] not in known]


def images_of(before: Tx, tx: Tx, item_ids: Sequence[int], since: int) -> RowImages:
    """What ``tx`` changed since the event ``since``, and its inbox items.

    ``before`` is another transaction, which does not see what ``tx`` has not committed yet.
    """
    touched = changes.changed_since(tx, since)
    old_rows: dict[str, list[Row]] = {}
    new_rows: dict[str, list[Row]] = {}
    for column, ids in (
        (schema.memories.c.id, touched),
        (schema.memory_sources.c.memory_id, touched),
        (schema.memory_tags.c.memory_id, touched),
        (schema.details.c.memory_id, touched),
        (schema.proposals.c.id, item_ids),
        (schema.tombstones.c.app_id, tx.ids),
    ):
        old, new = _rows(before, column, ids), _rows(tx, column, ids)
        old_rows[column.table.name] = [row for key, row in old.items() if key not in new]
        new_rows[column.table.name] = [row for key, row in new.items() if key not in old]
    return RowImages(old_rows, new_rows, since, changes.latest_event(tx))


def _rows(tx: Tx, column: sa.Column[int], values: Sequence[int]) -> dict[tuple[Any, ...], Row]:
    stored = sa.select(*(one for one in column.table.c if one.computed is None))
    wanted = stored.where(among(column, values))
    return {tuple(row): dict(row._mapping) for row in tx.execute(wanted)}


def take_back(
    tx: Tx, items: Sequence[types.Proposal], images: RowImages, answered_at: datetime
) -> list[types.Proposal]:
    """Take these answers back, in the caller's transaction. Gives the items that wait again.

    Raises InputError where a memory was changed since; nothing is taken back then.
    """
    ids = [*images.added, *(row["id"] for row in images.before["memories"])]
    past = changes.events_by(tx, "memory_id", ids)
    if any(event.id > images.last_event and event.kind not in UPKEEP for event in past):
        raise InputError(
            "a memory that it concerns was changed or forgotten since, so nothing was taken back",
            see="memories list",
        )
    cause = Cause("user", TAKEN_BACK)
    _remove_added(tx, images.added, cause)
    _put_back(tx, images, cause)
    there = {item.id for item in items if _may_wait(tx, item, answered_at)}
    back = [proposals.get(tx, tx.ids, i) for i in _put_items_back(tx, images, there)]
    return [item for item in back if item is not None]


def _remove_added(tx: Tx, added: Sequence[int], cause: Cause) -> None:
    there = memories.by_ids(tx, tx.ids, added)
    every = purge.traces_of(tx, there.values())
    purge.drop_receipt_lines(tx, every)
    changes.remove(tx, [*there])
    changes.blank_events(tx, there)
    for traces in every:
        changes.record(tx, traces.memory.id, traces.app_id, "forget", cause)
    if every:
        tx.forget_bytes(*{traces.app_id for traces in every})


def _put_back(tx: Tx, images: RowImages, cause: Cause) -> None:
    """Give the memories that were there, their evidence, their tags and the tombstones their state
    of before; each memory gets a ``restore`` event, and the cause of what happened to it becomes
    that of ``cause``."""
    old, new = images.before, images.after
    e, ids = schema.memory_events.c, [row["id"] for row in old["memories"]]
    past = e.memory_id.in_(ids), e.id > images.since, e.id <= images.last_event
    by_person = sa.update(schema.memory_events).where(*past, e.actor == "user")
    tx.execute(by_person.values(cause=cause.cause))
    for row in old["memories"]:
        home = memories.app_id_of(tx, row["id"])
        if home != row["app_id"]:
            changes.record_move(tx, row["id"], home, row["app_id"], cause)
        values = {name: row[name] for name in _CHANGED}
        changes.set_columns(tx, row["id"], updated_at=tx.now, **values)
        passages.show(tx, row["id"], row["app_id"])
        if not row["active"] and row["inactive_reason"] != "superseded":
            passages.hide(tx, row["id"])
        changes.record(tx, row["id"], row["app_id"], "restore", cause)
    for stored, names in (
        (schema.memory_sources, ("memory_id", "id")),
        (schema.memory_tags, ("memory_id", "tag")),
        (schema.details, ("id",)),
        (schema.tombstones, ("memory_id", "id", "created_at")),
    ):
        for row in new[stored.name]:
            tx.execute(sa.delete(stored).where(*(stored.c[name] == row[name] for name in names)))
        # The quotes of before may hold words that were forgotten since.
        if (there := old[stored.name]) and stored is not schema.memory_sources:
            tx.execute(upsert(stored), there)


def _put_items_back(tx: Tx, images: RowImages, item_ids: Collection[int]) -> list[int]:
    """Store these inbox items as they were; their ids. One that stayed in the store and was deleted
    there since is left out."""
    items, stayed = schema.proposals, {row["id"] for row in images.after["proposals"]}
    ids = []
    for row in images.before["proposals"]:
        if row["id"] in item_ids:
            same = sa.update(items).where(items.c.id == row["id"])
            put = same if row["id"] in stayed else sa.insert(items)
            if tx.execute(put.values(**row)).rowcount:
                ids.append(row["id"])
    return ids


def _may_wait(tx: Tx, item: types.Proposal, answered_at: datetime) -> bool:
    """Whether an item may come back: its memories and its message are there, with the words that
    it quotes, and nothing of what it says was forgotten since."""
    pair = {i for i in (item.memory_id, item.related_id) if i is not None}
    # What a program asked to forget may be hidden until the answer.
    hides = item.relation == FORGET
    there = memories.homes_of(tx, pair) if hides else memories.by_ids(tx, tx.ids, [*pair])
    forgotten = tombstones.find(tx, tx.ids, marks(item)).values()
    if len(there) < len(pair) or any(at > answered_at for at in forgotten):
        return False
    turn = _message(tx, item)
    if item.message_id is None or turn is None or item.masked or item.quote is None:
        return item.message_id is None or turn is not None
    return turn.content[item.start : item.end] == item.quote
