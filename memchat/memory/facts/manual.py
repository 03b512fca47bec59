"""What a person does to their memories by hand. The evidence is the actor; no quote is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection

from memchat.config import Settings
from memchat.errors import InputError, NotFound, SecretError
from memchat.language import secrets
from memchat.language.sensitive import is_sensitive
from memchat.memory.facts import cues
from memchat.memory.facts.consolidation import ADDED_BY_HAND, Consolidation, Fact, search_text
from memchat.memory.facts.in_force import settle
from memchat.memory.forgetting import purge, tombstone_marks
from memchat.memory.gate.checks import keys
from memchat.memory.recall import turn_texts
from memchat.store import (
    apps,
    embeddings,
    evidence,
    jobs,
    memories,
    memory_changes,
    meta,
    new_memory,
    tombstones,
)
from memchat.store.events import Cause
from memchat.store.new_memory import NewMemory
from memchat.types import MEMORY_TYPES, Keep, Memory, MemoryType, Scope, one_line

VALUE_LIMIT = 280


@dataclass(frozen=True, slots=True)
class ManualChanges:
    """Add, edit and restore, inside the caller's writer's transaction."""

    tx: Connection
    scope: Scope
    settings: Settings
    now: datetime
    embeds: bool = True
    """Whether there is something to make vectors with; else nothing waits for one."""

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
        """A fact as entered. One that is known already is confirmed; the newest of a key wins.

        A secret that is kept is sensitive, so that not every prompt has it.
        """
        own, shared = apps.ensure(self.tx, self.scope, self.now)
        app_id = shared if all_apps else own
        kind, name, words = _checked(memory_type, key, value)
        secret = _is_secret(name, words, keep_secret)
        self._check_day(expires_at)
        if isinstance(starts_at, datetime):
            raise InputError("the first day is a date without a time; give day.date()")
        if starts_at is not None and expires_at is not None and expires_at < starts_at:
            raise InputError(
                f"it would end on {expires_at.isoformat()}, before it starts on "
                f"{starts_at.isoformat()}; give a later last day"
            )
        self._clear_the_way(app_id, kind, name, words)
        given = cues.of_key(name)
        fact = Fact(
            memory_type=kind,
            key=name,
            value=words,
            said_at=self.now,
            search_text=self._search_text(name, words, self.now, given),
            created_by="manual",
            many=keys.cardinality(name) != "one",
            expires_at=expires_at,
            starts_at=starts_at,
            cues=given,
            sensitive=secret,
        )
        cause = Cause(self.now, "user", ADDED_BY_HAND)
        done = Consolidation(
            self.tx, app_id, shared, cause, self.settings.merge_threshold, self.settings.zone
        )
        memory = done.apply(fact).memory
        assert memory is not None
        if secret and not memory.sensitive:
            memory_changes.set_columns(self.tx, memory.id, sensitive=1)  # it was known before
            memory = self._fresh(memory.id)
        self._queue(memory.id)
        return memory

    def edit(
        self,
        memory: Memory,
        *,
        memory_type: str | None,
        key: str | None,
        value: str | None,
        expires_at: date | Keep | None,
        all_apps: bool | None,
        sensitive: bool | None = None,
        keep_secret: bool = False,
    ) -> Memory:
        """New words, type, day or reach. Raises InputError where it would be another's twin."""
        own, shared = apps.ensure(self.tx, self.scope, self.now)
        here = memories.app_id_of(self.tx, memory.id)
        app_id = here if all_apps is None else shared if all_apps else own
        kind, name, words = _checked(
            memory_type or memory.memory_type,
            memory.key if key is None else key,
            memory.value if value is None else value,
        )
        same = (name, words) == (memory.key, memory.value)
        secret = not same and _is_secret(name, words, keep_secret)
        until = memory.expires_at if isinstance(expires_at, Keep) else expires_at
        if not isinstance(expires_at, Keep):
            self._check_day(expires_at)
        twin = memories.by_sha1(self.tx, [app_id], new_memory.sha1_of(kind, name, words))
        if twin is not None and twin.id != memory.id:
            raise InputError(f"memory {twin.id} says the same already; delete one of the two")
        # New words are said now: an older session that is read later must not override them.
        said_at = memory.said_at if same else self.now
        given = memory.cues if words == memory.value else cues.of_key(name)
        new = NewMemory(
            memory_type=kind,
            key=name,
            value=words,
            many=memory.many if name == memory.key else keys.cardinality(name) != "one",
            search_text=self._search_text(name, words, said_at, cues.telling(self.tx, here, given)),
            said_at=said_at,
            created_by=memory.created_by,
            expires_at=until,
            starts_at=memory.starts_at,
            cues=given,
            sensitive=_as_it_is(memory, name) or secret if sensitive is None else sensitive,
        )
        self._clear_the_way(app_id, kind, name, words)
        old = memories.hash_of(self.tx, memory.id)
        cause = Cause(self.now, "user", "edited by hand")
        memory_changes.rewrite(self.tx, memory, app_id, new, cause)
        if memory.active and keys.cardinality(name) == "one":
            self._retire_rivals(memory.id, app_id, name, cause)
        embeddings.remove_unused(self.tx, [old])
        self._queue(memory.id)
        if not same:
            self._rewrite_moments(memory.id)
        return self._fresh(memory.id)

    def restore(self, memory: Memory) -> Memory:
        """Bring back a superseded, merged, ended or expired memory; a rival value gives way."""
        cause = Cause(self.now, "user", "restored by hand")
        settle(self.tx, apps.find(self.tx, self.scope).ids, self.settings.zone, self.now)
        memory = self._fresh(memory.id)
        app_id = memories.app_id_of(self.tx, memory.id)
        over = memory.inactive_reason == "expired"
        if memory.active:
            raise InputError(f"memory {memory.id} is active already; there is nothing to restore")
        if over:
            memory_changes.set_expiry(self.tx, memory, app_id, None, cause)
        memory_changes.reactivate(self.tx, memory, app_id, cause, said_at=self.now)
        if not memory.many:
            self._retire_rivals(memory.id, app_id, memory.key, cause)
        self._queue(memory.id)
        return self._fresh(memory.id)

    def undelete(self, memory: Memory) -> Memory:
        """Undo a deletion whose purge is held back; a value given meanwhile gives way."""
        purge.bring_back(self.tx, memory, self.now)
        back = self._fresh(memory.id)
        if back.active and keys.cardinality(back.key) == "one":
            app_id = memories.app_id_of(self.tx, back.id)
            cause = Cause(self.now, "user", "deletion undone")
            self._retire_rivals(back.id, app_id, back.key, cause)
        return back

    def _clear_the_way(self, app_id: int, kind: MemoryType, key: str, value: str) -> None:
        """A person's own word counts, also for what they had forgotten before."""
        if tombstones.any_in(self.tx, app_id):
            tombstones.remove(self.tx, [app_id], tombstone_marks.marks_of_words(key, value))
        sha1 = new_memory.sha1_of(kind, key, value)
        purge.make_way(self.tx, app_id, sha1, self.settings.zone, self.now)

    def _retire_rivals(self, memory_id: int, app_id: int, key: str, cause: Cause) -> None:
        """A value that holds now leaves no place to others that do; what is to come comes."""
        there = memories.with_key(self.tx, [app_id], key)
        begun = [m for m in there if m.starts_at is None or m.starts_at <= self._today]
        if memory_id not in {m.id for m in begun}:
            return
        for rival in begun:
            if rival.id != memory_id:
                memory_changes.deactivate(
                    self.tx, rival, app_id, "superseded", cause, replaced_by=memory_id
                )

    def _rewrite_moments(self, memory_id: int) -> None:
        """The turns that taught a memory are found by what it says now."""
        service_id = meta.get(self.tx, "service_id")
        for session_id in sorted({p.session_id for p in evidence.of_memory(self.tx, memory_id)}):
            zone, service = self.settings.zone, int(service_id) if service_id else None
            turn_texts.write(self.tx, session_id, zone, service, {}, self.now)

    def _search_text(self, key: str, value: str, said_at: datetime, given: Sequence[str]) -> str:
        return search_text(key, value, said_at, self.settings.zone, cues=given)

    def _check_day(self, day: date | None) -> None:
        if isinstance(day, datetime):
            raise InputError("the last day is a date without a time; give day.date()")
        if day is not None and day < self._today:
            raise InputError(f"{day.isoformat()} is over already; give today or a later day")

    @property
    def _today(self) -> date:
        return self.now.astimezone(self.settings.zone).date()

    def _queue(self, memory_id: int) -> None:
        if self.embeds:
            app_id = memories.app_id_of(self.tx, memory_id)
            jobs.enqueue(self.tx, "embed", app_id, memory_id, self.now)

    def _fresh(self, memory_id: int) -> Memory:
        found = memories.get(self.tx, apps.find(self.tx, self.scope).ids, memory_id)
        if found is None:
            raise NotFound(f"there is no memory {memory_id} here; see memchat memories list")
        return found


def _as_it_is(memory: Memory, key: str) -> bool:
    """Whether a memory is sensitive that nobody says so of; another key may tell."""
    return memory.sensitive or (key != memory.key and is_sensitive(key))


def _checked(memory_type: str, key: str, value: str) -> tuple[MemoryType, str, str]:
    kind = memory_type.strip().casefold()
    if kind not in MEMORY_TYPES:
        raise InputError(f"{memory_type!r} is no type; use {', '.join(MEMORY_TYPES)}")
    name = keys.canonical(keys.normalise_key(one_line(key, "key", 200)))
    return kind, name, one_line(value, "value", VALUE_LIMIT)


def _is_secret(key: str, value: str, keep: bool) -> bool:
    """Whether it looks like a secret; not an e-mail or a phone number. Raises SecretError where the
    person should be asked first."""
    kinds = {secret.kind for _words, secret in secrets.find_in_fact(key, value)}
    grave = sorted(kinds - secrets.PERSONAL)
    if grave and not keep:
        raise SecretError(grave[0])
    return bool(grave)
