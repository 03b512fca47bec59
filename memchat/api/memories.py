"""A person's memories: adding, reading, changing and forgetting them by hand, many of them in
batches, what else speaks of one that is being forgotten, and what waits for a yes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Unpack

from memchat import types
from memchat.api import base
from memchat.db import Tx, jobs
from memchat.errors import InputError, NotFound
from memchat.facts import audit, changes, keys, manual, memories, proposals
from memchat.facts.changes import Cause
from memchat.facts.in_force import as_of
from memchat.facts.manual import ManualChanges
from memchat.facts.memories import ValuesInForce
from memchat.facts.proposals import CALL, FORGET, PROMOTE
from memchat.forget import mentions, purge
from memchat.language.secrets import mask
from memchat.search import passages
from memchat.workflows import rows as workflows


class Mentions(base.Resource):
    """Messages, titles, summaries, notes and other memories that speak of what is forgotten."""

    def find(self, memory_ids: Sequence[int]) -> types.Elsewhere | None:
        """What will still speak of these memories once they are forgotten; None where nothing will.

        Ask before they are forgotten: afterwards their words are not known any more.
        """
        with self._database.read(self._scope) as tx:
            there = memories.by_ids(tx, tx.ids, memory_ids)
            found = mentions.find(tx, [*there.values()]) if there else None
        return found if found is not None and found.places else None

    def unproved(self, memory_ids: Sequence[int]) -> Sequence[types.Memory]:
        """The other memories that lose their proof when these are forgotten, as it stands in the
        same clause. They stay, and no words prove them any more."""
        with self._database.read(self._scope) as tx:
            there = memories.by_ids(tx, tx.ids, memory_ids)
            return mentions.unproved_by(tx, [*there.values()]) if there else []

    def blank(self, found: types.Elsewhere, *, hold: float = 0.0) -> base.Changed:
        """Blank what ``find`` found, or those of its places that are left in it; how many places.

        Messages, titles, summaries and notes lose the words, and other memories are forgotten; pass
        ``found.without_notes`` to leave the notes. The file of a note keeps the words. It is done
        with the purge of the memory, where that is still held, and undone with it; with ``hold`` it
        waits so many seconds. Raises StoreError where it could not be done now; it is tried again.
        """
        with self._database.write(self._scope) as tx:
            mentions.queue(tx, found, hold)
        if not hold:
            self._run_purge(found.memory_id)
        return base.Changed(len(found.places))


BATCH = 100
"""Memories changed in one transaction: other writers wait for no more than that."""


def batches(
    memory_ids: Iterable[int], progress: types.OnProgress | None = None
) -> Iterable[Sequence[int]]:
    """The ids, each once, in batches; ``progress`` is called when a batch is done."""
    ids, report = sorted(set(memory_ids)), progress and types.timed(progress)
    for first in range(0, len(ids), BATCH):
        batch = ids[first : first + BATCH]
        yield batch
        if report is not None:
            report(first + len(batch), len(ids))


EXPIRING_DAYS = 30
MOST_DAYS = 36_500


class Memories(base.Resource):
    """The memories of one person in one app, and those the person has in every app."""

    @property
    def own_types(self) -> Mapping[str, types.OwnType]:
        """The types beside preference, profile, fact and other that the store was opened with."""
        return self._settings.types

    def add(
        self,
        type: str,
        key: str,
        value: str,
        *,
        expires_at: date | None = None,
        starts_at: date | None = None,
        all_apps: bool = False,
        keep_secret: bool = False,
        tags: Iterable[str] = (),
        metadata: types.Metadata | None = None,
        sentence: str | None = None,
    ) -> types.Memory:
        """Remember a fact. It is on disk when this returns; its vector follows.

        ``type`` is preference, profile, fact, other or one of ``own_types``. The fact holds from
        ``starts_at`` through ``expires_at``. ``tags`` are at most 20 words of at most 40
        characters, in lower case with hyphens for spaces; one that was known keeps its own, too;
        ``metadata`` are values of your own, to filter by, which no model sees. ``sentence`` says
        the same to the person, as that of a draft does; where it does not say just that, or there
        is none, a template does, if one fits. What looks like a secret raises SecretError unless
        ``keep_secret`` is given; other text that cannot be kept, and a secret in a tag, raises
        InputError.
        """
        with self._database.write(self._scope, ensure=True) as tx:
            by_hand = ManualChanges(tx)
            fact = (type, key, value, expires_at, all_apps, starts_at, keep_secret, sentence)
            added = by_hand.add(*fact)
            added = by_hand.add_tags(added, tags) if tags else added
            return by_hand.add_metadata(added, metadata) if metadata else added

    def draft(self, statement: str) -> types.Draft:
        """What would be remembered of a statement such as "I'm allergic to peanuts": type, key,
        value, days and sentence, to be looked at, changed and given to ``add``. Nothing is stored.

        The model that reads conversations reads it; without one, or where it fails, patterns do,
        and what neither reads is drafted as a note. Raises InputError for a blank statement, and
        for a long one that nothing reads, SecretError for what looks like a secret.
        """
        from memchat.learn.learner import drafted
        from memchat.providers.offline import OfflineChat

        manual.is_secret("statement", statement, keep=False)
        hide = mask if self._settings.mask_before_extraction else str
        models = (self._assembly.extract_model(), OfflineChat("offline/extract"))
        now = self._assembly.clock().astimezone(self._settings.zone)
        return drafted(models, self._assembly.prompts, hide(statement), now, self.own_types)

    def get(self, memory_id: int) -> types.Memory:
        """One memory, active or not. Raises NotFound outside the scope."""
        with self._database.read(self._scope) as tx:
            found = self._found_memory(tx, memory_id)
            return self._standing(tx).as_of_today(found)

    def list(
        self,
        query: str = "",
        *,
        status: str = "active",
        within: int = 30,
        limit: int = 100,
        cursor: str | None = None,
        **only: Unpack[types.Filters],
    ) -> base.Page[types.Memory]:
        """The memories, those said last first; with ``query`` those that hold each of its words,
        and of these ``only`` those that a filter lets pass.

        ``status`` is active, inactive, expired, all, or expiring: those whose last day comes within
        so many days, the soonest first; or pending, completed or failed, by the state of their
        vector. ``cursor`` is that of the page before. Raises InputError for a bad filter.
        """
        base.check_count(limit)
        after = None if cursor is None else memories.Position(*base.place_of(cursor, parts=3))
        if after is not None and after.expires_at is None and status == "expiring":
            raise InputError("this cursor is of a list of another status")
        with self._database.read(self._scope) as tx:
            wanted = base.wanted(only, tx.zone, tx.types, query, status)
            now = self._standing(tx)
            by, most = _in_days(tx, within), limit + 1
            found = memories.listed(tx, tx.ids, wanted, now, by=by, limit=most, after=after)
        return base.page_of(found, limit, lambda one: (one.said_at, one.id, one.expires_at))

    def count(
        self,
        query: str = "",
        *,
        status: str = "active",
        within: int = 30,
        **only: Unpack[types.Filters],
    ) -> int:
        """How many memories ``list`` gives on all its pages."""
        with self._database.read(self._scope) as tx:
            wanted, by = base.wanted(only, tx.zone, tx.types, query, status), _in_days(tx, within)
            return len(memories.ids(tx, tx.ids, wanted, self._standing(tx), by))

    def tags(self) -> Mapping[str, int]:
        """The tags of the memories in use, each with how many have it, the most used first."""
        with self._database.read(self._scope) as tx:
            return memories.tag_counts(tx, tx.ids, self._standing(tx))

    def groups(self) -> Mapping[str, int]:
        """The groups that a person looks for memories in (``Wanted.group``), each with how many in
        use it has."""
        with self._database.read(self._scope) as tx:
            return memories.group_counts(tx, tx.ids, self._standing(tx))

    def update(self, memory_id: int, **changes: Unpack[types.MemoryChanges]) -> types.Memory:
        """Change a memory; what is not given stays.

        What can be given: ``value``, ``key`` and ``type``; ``expires_at``, where None lets it hold
        for good; ``all_apps``, whether it is kept for every app; ``sensitive``; ``tags``, all that
        it has from now on; ``sentence`` and ``keep_secret``, as in ``add``. New words drop the
        sentence that was there.
        Raises InputError where another memory says the same, SecretError as ``add`` does, TypeError
        for any other name.
        """
        if unknown := changes.keys() - types.MemoryChanges.__annotations__.keys():
            raise TypeError(f"a memory has no {', '.join(sorted(unknown))} that can be changed")
        with self._database.write(self._scope, ensure=True) as tx:
            return ManualChanges(tx).edit(self._found_memory(tx, memory_id), changes)

    def pin(self, memory_id: int, *, on: bool = True) -> types.Memory:
        """Give a memory to every chat, as far as there is room for it; or no longer.

        What replaces it later is pinned as well. Raises InputError for one not in use.
        """
        with self._database.write(self._scope) as tx:
            memory = self._found_memory(tx, memory_id)
            if on and not memory.active:
                raise InputError(f"memory {memory_id} is not in use; restore it first")
            changes.pin(tx, memory_id, Cause("user"), on=on)
            return self._found_memory(tx, memory_id)

    def delete(
        self,
        memory_id: int,
        *,
        keep_transcript: bool = False,
        hold: float = 0.0,
        blank: types.Elsewhere | None = None,
    ) -> base.Deleted:
        """Forget a memory for good: everywhere, with the words that proved it.

        It is out of sight at once. With ``hold`` its purge waits so many seconds, and ``restore``
        undoes the deletion meanwhile; else it is done when this returns. ``keep_transcript`` leaves
        the words where they were written, but nothing is found in them or learnt from them again.
        What else speaks of it stays, but for the places in ``blank``, which ``Mentions.find`` gave.
        Raises StoreError where the store cannot be written: then nothing was changed.
        """
        chosen = [memory_id]
        done = self.delete_many(chosen, keep_transcript=keep_transcript, hold=hold, blank=blank)
        if not done.memories:
            raise base.no_memory(memory_id)
        return done

    def delete_many(
        self,
        memory_ids: Iterable[int],
        *,
        keep_transcript: bool = False,
        hold: float = 0.0,
        blank: types.Elsewhere | None = None,
        progress: types.OnProgress | None = None,
    ) -> base.Deleted:
        """Forget many memories, as ``delete`` forgets one. Unknown ones are left out.

        ``progress`` is called after each transaction.
        """
        count, after = 0, list[Callable[[], object]]()
        for batch in batches(memory_ids, progress):
            with self._database.write(self._scope) as tx:
                found = [*memories.by_ids(tx, tx.ids, batch).values()]
                mentions.forget(tx, found, blank, keep_transcript=keep_transcript, hold=hold)
                count += len(found)
                after, tx.after_commit = tx.after_commit or after, []
        for work in after:  # once for all of them
            work()
        return base.Deleted(count)

    def restore(self, memory_id: int) -> types.Memory:
        """Bring back a superseded, merged, ended or expired memory, or one whose deletion is held.

        What is purged never comes back.
        """
        with self._database.write(self._scope) as tx:
            for memory in memories.hidden(tx, tx.ids):
                if memory.id == memory_id:
                    return ManualChanges(tx).undelete(memory)
            return ManualChanges(tx).restore(self._found_memory(tx, memory_id))

    def restore_many(
        self, memory_ids: Iterable[int], *, progress: types.OnProgress | None = None
    ) -> base.Changed:
        """Undo the deletion of many memories while it is held; how many came back.

        ``progress`` is called after each transaction.
        """
        count = 0
        for batch in batches(memory_ids, progress):
            with self._database.write(self._scope) as tx:
                ids, chosen = tx.ids, set(batch)
                back = [memory for memory in memories.hidden(tx, ids) if memory.id in chosen]
                for memory in back:
                    ManualChanges(tx).undelete(memory)
                for app_id in ids:
                    # What is purged stays gone, but other places that wait to be blanked stay.
                    jobs.cancel(
                        tx, "forget", sorted(chosen & jobs.unfinished_targets(tx, "forget", app_id))
                    )
                count += len(back)
        return base.Changed(count)

    def clear(self) -> base.Deleted:
        """Forget every memory of the app for good; those for every app stay."""
        with self._database.read(self._scope) as tx:
            own = tx.own
            ids = memories.ids_in_app(tx, own)
        for batch in batches(ids):
            with self._database.write(self._scope) as tx:
                found = [*memories.by_ids(tx, [own], batch).values()]
                found += [m for m in memories.hidden(tx, [own]) if m.id in batch]
                purge.forget(tx, found)
                tx.after_commit.clear()
        self._database.scrub()  # once for all of them
        return base.Deleted(len(ids))

    def history(self, memory_id: int) -> Sequence[types.Event]:
        """What happened to a memory, oldest first."""
        with self._database.read(self._scope) as tx:
            self._found_memory(tx, memory_id)
            return changes.events_of_memory(tx, memory_id)

    def evidence(self, memory_id: int) -> Sequence[types.Evidence]:
        """The words that prove a memory, oldest first; none for one entered by hand."""
        with self._database.read(self._scope) as tx:
            self._found_memory(tx, memory_id)
            return changes.evidence_of_memory(tx, memory_id)

    def origins(self, memory_ids: Iterable[int]) -> Mapping[int, types.MemoryOrigin]:
        """From which conversation of this app, and from which app, these memories come, by memory
        id. Those outside the scope are left out."""
        with self._database.read(self._scope) as tx:
            there = memories.by_ids(tx, tx.ids, [*memory_ids])
            return memories.origins_of(tx, tx.own, [*there])

    def replaced(self, memory_id: int) -> Sequence[types.Memory]:
        """The values that this memory replaced, the last one first."""
        with self._database.read(self._scope) as tx:
            self._found_memory(tx, memory_id)
            there = changes.replaced_memories(tx, memory_id)
        gone = [memory for memory in there if memory.inactive_reason == "superseded"]
        return sorted(gone, key=lambda memory: (memory.said_at, memory.id), reverse=True)

    def use_counts(self, memory_id: int) -> base.UseCounts:
        """How often a memory was found for a message, and how often it was given to a model."""
        with self._database.read(self._scope) as tx:
            return base.UseCounts(*memories.uses_of(tx, self._found_memory(tx, memory_id).id))

    def embedding_states(self, memory_ids: Sequence[int]) -> Sequence[types.EmbeddingState]:
        """The state of the vectors of these memories, in their order; unknown ones are left out."""
        with self._database.read(self._scope) as tx:
            there = memories.by_ids(tx, tx.ids, memory_ids)
            found = passages.of_memories(tx, [*there])
        return [found[i] for i in memory_ids if i in found]

    def browse(self, wanted: types.Wanted, *, limit: int = 20, offset: int = 0) -> types.Browsed:
        """One numbered page of memories, filtered and sorted for a person to look through. In any
        order pinned ones come first."""
        base.check_count(limit)
        base.check_count(offset, "offset")
        wanted = _checked(wanted)
        with self._database.read(self._scope) as tx:
            standing = self._standing(tx)
            ids = memories.ids(tx, tx.ids, wanted, standing, _in_days(tx, EXPIRING_DAYS))
            shown = ids[offset : offset + limit]
            found = memories.of_ids(tx, shown, standing)
            waiting = jobs.of_memories(tx, shown, tx.now)
        return types.Browsed(tuple(found), len(ids), waiting)

    def browse_ids(self, wanted: types.Wanted) -> Sequence[int]:
        """The ids of all memories that ``browse`` shows on all its pages, in their order."""
        wanted = _checked(wanted)
        with self._database.read(self._scope) as tx:
            by = _in_days(tx, EXPIRING_DAYS)
            return memories.ids(tx, tx.ids, wanted, self._standing(tx), by)

    def insights(self, *, top: int = 10) -> types.Insights:
        """Figures about the memories; of keys and of the most used memories the ``top`` ones."""
        base.check_count(top, "top")
        with self._database.read(self._scope) as tx:
            return audit.insights(tx, top)

    def _standing(self, tx: Tx) -> ValuesInForce:
        return as_of(tx, tx.ids)


def _in_days(tx: Tx, days: int) -> date:
    return tx.today + timedelta(days=min(max(days, 0), MOST_DAYS))


def _checked(wanted: types.Wanted) -> types.Wanted:
    base.check_choice(wanted.status, memories.STATUSES, "status")
    base.check_choice(wanted.sort, memories.SORTS, "sort")
    base.check_choice(wanted.group or "more", keys.GROUPS, "group")
    return memories.or_over(replace(wanted, tags=types.clean_tags(wanted.tags)))


class Inbox(base.Resource):
    """Proposals that were not certain enough to be kept, each waiting for a yes or a no."""

    def list(self, *, status: str = "pending") -> Sequence[types.InboxItem]:
        """What waits for a yes, oldest first; with the status ``rejected`` what got a no."""
        base.check_choice(status, ("pending", "rejected"), "status")
        with self._database.read(self._scope) as tx:
            return proposals.listed(tx, tx.own, status)

    def question(self, item: types.InboxItem) -> str:
        """What a yes to an item would do, in plain words, as the memories are now."""
        with self._database.read(self._scope) as tx:
            return manual.current_question(tx, item)

    def accept(
        self, item_id: int, *, value: str | None = None, hold: float = 0.0
    ) -> types.Memory | types.WorkflowRun:
        """Say yes to an item, with other words where ``value`` gives some: what was proposed is
        stored, replaced or ended. Where the memory it speaks of is gone, it is stored as new.

        A memory that a program asked to forget is deleted for good. With ``hold`` its purge waits
        so many seconds, and ``Memories.restore`` undoes the deletion meanwhile; else it is done
        when this returns. Where the run of a workflow asks whether to call a tool, it goes on, and
        is what this gives. Raises NotFound where nothing waits under this number, StoreError as
        ``Memories.delete``.
        """
        with self._database.write(self._scope, ensure=True) as tx:
            item = self._found_item(tx, item_id)
            if value is not None and item.relation in (FORGET, PROMOTE, CALL):
                raise InputError("its words cannot be changed; answer it without other words")
            if item.run_id is None and item.relation != FORGET:
                return manual.accept(tx, item, value)
            if item.run_id is not None:
                workflows.go_on(tx, workflows.run(tx, item.run_id), yes=True)
            else:
                memory = manual.forget(tx, item, hold)
        if item.run_id is not None:
            worker = self._assembly.parts().worker
            worker.run(kinds=(workflows.KIND,), target_id=item.run_id)
            with self._database.read(self._scope) as tx:
                return workflows.run(tx, item.run_id)
        if not hold:
            self._run_purge(memory.id)
        return memory

    def reject(self, item_id: int) -> types.InboxItem:
        """Say no to an item, which is returned; the same is not proposed again."""
        with self._database.write(self._scope, ensure=True) as tx:
            item = self._found_item(tx, item_id)
            manual.reject(tx, item)
            return item

    def accept_many(
        self, item_ids: Iterable[int], *, values: Mapping[int, str] | None = None
    ) -> base.Answered:
        """Say yes to many items at once, with other words for those in ``values``, by id.

        All is done in one transaction. Items that ``accept`` refuses wait as before, and so do
        requests to forget, which cannot be taken back; the result says why.
        """
        words = values or {}
        return self._answer_many(
            item_ids, lambda tx, item: manual.accept(tx, item, words.get(item.id))
        )

    def reject_many(self, item_ids: Iterable[int]) -> base.Answered:
        """Say no to many items at once, in one transaction."""
        return self._answer_many(item_ids, manual.reject)

    def take_back(self, answered: base.Answered) -> Sequence[types.InboxItem]:
        """Undo what ``accept_many`` or ``reject_many`` did; the items that wait again.

        What a yes stored is deleted, and what it replaced or ended is as it was. An item whose
        words were forgotten meanwhile does not come back. Raises InputError where a memory that it
        concerns was changed since; nothing is undone then.
        """
        with self._database.write(self._scope) as tx:
            return manual.take_back(tx, answered.items, answered.before, answered.at)

    def refusals(self, *, session_id: int | None = None) -> Sequence[types.Refusal]:
        """What was proposed from conversations, or from one of them, and not kept, oldest first."""
        with self._database.read(self._scope) as tx:
            if session_id is not None:
                self._found_session(tx, session_id)
            found = proposals.listed(tx, tx.own, "refused")
        return [one for one in found if session_id in (None, one.session_id)]

    def keep_refused(self, refusal_id: int) -> types.Memory:
        """Keep what was not kept after all: it counts as the person's own word.

        It is stored, replaces or ends as it was proposed, with its message as proof. Raises
        InputError where only the reason was noted, NotFound where there is nothing to end.
        """
        with self._database.write(self._scope, ensure=True) as tx:
            refused = proposals.get(tx, tx.ids, refusal_id)
            if refused is None or refused.status != "refused":
                raise NotFound(f"there is no refusal {refusal_id} here", see="sessions show")
            return manual.accept(tx, refused)

    def _answer_many(
        self, item_ids: Iterable[int], answer: Callable[[Tx, types.InboxItem], object]
    ) -> base.Answered:
        done: list[types.InboxItem] = []
        failed: dict[int, str] = {}
        with self._database.write(self._scope, ensure=True) as tx:
            since = changes.latest_event(tx)
            for item_id in dict.fromkeys(item_ids):
                try:
                    item = self._found_item(tx, item_id)
                    with tx.connection.begin_nested():
                        answer(tx, item)
                except (InputError, NotFound) as error:
                    failed[item_id] = str(error)
                else:
                    done.append(item)
            # Another transaction sees the rows as they were until this one is committed.
            with self._database.read(self._scope) as before:
                ids = [item.id for item in done]
                images = manual.images_of(before, tx, ids, since)
        return base.Answered(tuple(done), failed, tx.now, images)

    def _found_item(self, tx: Tx, item_id: int) -> types.InboxItem:
        item = proposals.get(tx, tx.ids, item_id)
        if item is None or item.status != "pending":
            raise NotFound(f"nothing waits under {item_id}", see="inbox list")
        return item
