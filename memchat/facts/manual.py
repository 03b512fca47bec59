"""What the user does to memories by hand. Their own word is the evidence; no quote is needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from memchat.config import Settings
from memchat.db import Tx
from memchat.errors import InputError, NotFound, SecretError
from memchat.facts import changes, keys, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.consolidation import MANUAL, allow_again, ingest
from memchat.facts.in_force import apply_due_dates
from memchat.facts.memories import Fact, NewMemory, search_text
from memchat.forget import purge
from memchat.language import secrets
from memchat.language.lexicon import is_sensitive
from memchat.learn.values import VALUE_LIMIT
from memchat.search import turns
from memchat.types import (
    MEMORY_TYPES,
    Memory,
    MemoryChanges,
    MemoryType,
    clean_tags,
    one_line,
)


@dataclass(frozen=True, slots=True)
class ManualChanges:
    """Add, edit and restore memories in the caller's transaction."""

    tx: Tx
    settings: Settings

    def add(
        self,
        memory_type: str,
        key: str,
        value: str,
        expires_at: date | None,
        all_apps: bool,
        starts_at: date | None = None,
        keep_secret: bool = False,
    ) -> Memory:
        """Store a fact as entered. A known one is confirmed; of a key that holds one value the
        newest wins.

        A secret that is kept is marked sensitive, so that it is not part of every prompt.
        """
        kind, name, words = checked_fact(memory_type, key, value)
        secret = is_secret(name, words, keep_secret)
        self._check_day(expires_at)
        if isinstance(starts_at, datetime):
            raise InputError("the first day is a date without a time; give day.date()")
        if starts_at is not None and expires_at is not None and expires_at < starts_at:
            raise InputError(
                f"it would end on {expires_at.isoformat()}, before it starts on "
                f"{starts_at.isoformat()}; give a later last day"
            )
        fact = given_fact(self.tx, kind, name, words, expires_at, starts_at)
        fact = replace(fact, sensitive=secret)
        tx = self._writing_to(self._home(all_apps))
        memory = ingest(tx, MANUAL, [fact], self.settings.merge_threshold).changes[0].memory
        assert memory is not None
        if secret and not memory.sensitive:
            changes.set_columns(self.tx, memory.id, sensitive=1)  # it was known before
            memory = self._reload(memory.id)
        return memory

    def add_tags(self, memory: Memory, given: Iterable[str]) -> Memory:
        """Give a memory these tags beside its own."""
        cause = Cause(self.tx.now, MANUAL.actor, MANUAL.cause)
        changes.add_tags(self.tx, memory.id, checked_tags(given), cause)
        return self._reload(memory.id)

    def edit(self, memory: Memory, wanted: MemoryChanges) -> Memory:
        """Change words, type, last day, reach or tags. Raises InputError where another memory says
        the same."""
        given = wanted.pop("tags", None)
        if given is not None:
            changes.put_tags(self.tx, memory.id, checked_tags(given), self._edited)
            if not wanted.keys() - {"keep_secret"}:
                return self._reload(memory.id)
        return self._reword(memory, wanted)

    def _reword(self, memory: Memory, wanted: MemoryChanges) -> Memory:
        here = memories.app_id_of(self.tx, memory.id)
        all_apps, sensitive = wanted.get("all_apps"), wanted.get("sensitive")
        key, value = wanted.get("key"), wanted.get("value")
        app_id = here if all_apps is None else self._home(all_apps)
        kind, name, words = checked_fact(
            wanted.get("type") or memory.memory_type,
            memory.key if key is None else key,
            memory.value if value is None else value,
        )
        same = (name, words) == (memory.key, memory.value)
        secret = not same and is_secret(name, words, wanted.get("keep_secret", False))
        until = wanted.get("expires_at", memory.expires_at)
        if "expires_at" in wanted:
            self._check_day(until)
        twin = memories.by_sha1(self.tx, [app_id], memories.sha1_of(kind, name, words))
        if twin is not None and twin.id != memory.id:
            raise InputError(f"memory {twin.id} says the same already; delete one of the two")
        # New words count as said now, so that an older session read later does not override them.
        said_at = memory.said_at if same else self.tx.now
        given = memory.cues if words == memory.value else ()
        new = NewMemory(
            memory_type=kind,
            key=name,
            value=words,
            many=memory.many if name == memory.key else keys.cardinality(name) != "one",
            search_text=self._search_text(
                name, words, said_at, memories.distinctive_cues(self.tx, here, given)
            ),
            said_at=said_at,
            created_by=memory.created_by,
            expires_at=until,
            starts_at=memory.starts_at,
            cues=given,
            sensitive=_is_sensitive_now(memory, name) or secret if sensitive is None else sensitive,
        )
        allow_again(self._writing_to(app_id), new)
        cause = self._edited
        changes.rewrite(self.tx, memory, app_id, new, cause)
        if memory.active and keys.cardinality(name) == "one":
            self._retire_rivals(memory.id, app_id, name, cause)
        if not same:
            self._reindex_turns(memory.id)
        return self._reload(memory.id)

    @property
    def _edited(self) -> Cause:
        return Cause(self.tx.now, "user", "edited by hand")

    def restore(self, memory: Memory) -> Memory:
        """Restore a superseded, merged, ended or expired memory; the value that replaced it is
        retired."""
        cause = Cause(self.tx.now, "user", "restored by hand")
        apply_due_dates(self.tx)
        memory = self._reload(memory.id)
        app_id = memories.app_id_of(self.tx, memory.id)
        over = memory.inactive_reason == "expired"
        if memory.active:
            raise InputError(f"memory {memory.id} is active already; there is nothing to restore")
        if over:
            changes.set_expiry(self.tx, memory, None, cause)
        changes.reactivate(self.tx, memory, cause, said_at=self.tx.now)
        if not memory.many:
            self._retire_rivals(memory.id, app_id, memory.key, cause)
        return self._reload(memory.id)

    def undelete(self, memory: Memory) -> Memory:
        """Undo a deletion that is not purged yet; a value stored meanwhile is retired.

        That is also a no to a program that asked to forget it.
        """
        purge.unhide(self.tx, memory)
        proposals.reject_requests_to_forget(self.tx, memory.id)
        back = self._reload(memory.id)
        if back.active and keys.cardinality(back.key) == "one":
            app_id = memories.app_id_of(self.tx, back.id)
            cause = Cause(self.tx.now, "user", "deletion undone")
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

    def _reindex_turns(self, memory_id: int) -> None:
        """Index the turns that taught a memory with what it says now."""
        proofs = changes.evidence_of_memory(self.tx, memory_id)
        for session_id in sorted({proof.session_id for proof in proofs}):
            turns.write(self.tx, session_id)

    def _search_text(self, key: str, value: str, said_at: datetime, given: Sequence[str]) -> str:
        return search_text(key, value, said_at, self.tx.zone, cues=given)

    def _check_day(self, day: date | None) -> None:
        if isinstance(day, datetime):
            raise InputError("the last day is a date without a time; give day.date()")
        if day is not None and day < self.tx.today:
            raise InputError(f"{day.isoformat()} is over already; give today or a later day")

    def _home(self, all_apps: bool) -> int:
        """The scope row of what is kept for this app, or for all."""
        return self.tx.shared if all_apps else self.tx.own

    def _writing_to(self, app_id: int) -> Tx:
        return self.tx.within(app_id, self.tx.shared)

    def _reload(self, memory_id: int) -> Memory:
        found = memories.get(self.tx, self.tx.ids, memory_id)
        if found is None:
            raise NotFound(f"there is no memory {memory_id} here; see memchat memories list")
        return found


def _is_sensitive_now(memory: Memory, key: str) -> bool:
    """Whether a memory is sensitive where the user does not say: as before, or by its new key."""
    return memory.sensitive or (key != memory.key and is_sensitive(key))


def checked_fact(memory_type: str, key: str, value: str) -> tuple[MemoryType, str, str]:
    """Type, key and value as they are stored. Raises InputError for those that cannot be."""
    kind = memory_type.strip().casefold()
    if kind not in MEMORY_TYPES:
        raise InputError(f"{memory_type!r} is no type; use {', '.join(MEMORY_TYPES)}")
    name = keys.canonical(keys.normalise_key(one_line(key, "key", 200)))
    return kind, name, one_line(value, "value", VALUE_LIMIT)


def given_fact(
    tx: Tx,
    kind: MemoryType,
    key: str,
    value: str,
    expires_at: date | None,
    starts_at: date | None,
) -> Fact:
    """A checked fact as the user gives it now, without a quote."""
    return Fact(
        memory_type=kind,
        key=key,
        value=value,
        said_at=tx.now,
        search_text=search_text(key, value, tx.now, tx.zone),
        created_by="manual",
        many=keys.cardinality(key) != "one",
        expires_at=expires_at,
        starts_at=starts_at,
    )


def checked_tags(given: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored. Raises InputError for those that cannot be, as for what looks like a
    secret."""
    said = given if isinstance(given, str) else [*given]
    found = clean_tags(said)
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
