"""What waits for a person's decision, and what was proposed and not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from memchat.api.results import Answered
from memchat.api.room import Room, check_choice
from memchat.db import Tx
from memchat.errors import InputError, NotFound
from memchat.facts import answers, changes, proposals
from memchat.facts.proposals import FORGET, PROMOTE
from memchat.types import InboxItem, Memory, Refusal


class Inbox(Room):
    """Proposals that were not certain enough to be kept, each waiting for a yes or a no."""

    def list(self, *, status: str = "pending") -> Sequence[InboxItem]:
        """What waits for a yes, oldest first; with the status ``rejected`` what got a no."""
        check_choice(status, ("pending", "rejected"), "status")
        with self._database.read(self._scope) as tx:
            return proposals.listed(tx, tx.own, status)

    def question(self, item: InboxItem) -> str:
        """What a yes to an item would do, in plain words, as the memories are now."""
        with self._database.read(self._scope) as tx:
            return answers.current_question(tx, item)

    def accept(self, item_id: int, *, value: str | None = None, hold: float = 0.0) -> Memory:
        """Say yes to an item, with other words where ``value`` gives some: what was proposed is
        stored, replaced or ended. Where the memory it speaks of is gone, it is stored as new.

        A memory that a program asked to forget is deleted for good. With ``hold`` its purge waits
        so many seconds, and ``Memories.restore`` undoes the deletion meanwhile; else it is done
        when this returns. Raises NotFound where nothing waits under this number, StoreError as
        ``Memories.delete``.
        """
        with self._database.write(self._scope, ensure=True) as tx:
            item = self._found_item(tx, item_id)
            if value is not None and item.relation in (FORGET, PROMOTE):
                raise InputError("it is about a whole memory; answer it without other words")
            if item.relation != FORGET:
                return answers.accept(tx, item, self._settings, value)
            memory, stale = answers.forget(tx, item, hold)
            self._assembly.drop_vectors(tx, stale)
        if not hold:
            self._run_purge(memory.id)
        return memory

    def reject(self, item_id: int) -> InboxItem:
        """Say no to an item, which is returned; the same is not proposed again."""
        with self._database.write(self._scope, ensure=True) as tx:
            item = self._found_item(tx, item_id)
            answers.reject(tx, item)
        return item

    def accept_many(
        self, item_ids: Iterable[int], *, values: Mapping[int, str] | None = None
    ) -> Answered:
        """Say yes to many items at once, with other words for those in ``values``, by id.

        All is done in one transaction. Items that ``accept`` refuses wait as before, and so do
        requests to forget, which cannot be taken back; the result says why.
        """
        words = values or {}

        def yes(tx: Tx, item: InboxItem) -> None:
            value = words.get(item.id)
            answers.accept(tx, item, self._settings, value)

        return self._answer_many(item_ids, yes)

    def reject_many(self, item_ids: Iterable[int]) -> Answered:
        """Say no to many items at once, in one transaction."""
        return self._answer_many(item_ids, answers.reject)

    def take_back(self, answered: Answered) -> Sequence[InboxItem]:
        """Undo what ``accept_many`` or ``reject_many`` did; the items that wait again.

        What a yes stored is deleted, and what it replaced or ended is as it was. An item whose
        words were forgotten meanwhile does not come back. Raises InputError where a memory that it
        concerns was changed since; nothing is undone then.
        """
        from memchat.forget import purge

        with self._database.write(self._scope) as tx:
            back, stale = answers.take_back(tx, answered.items, answered.before, answered.at)
            self._assembly.drop_vectors(tx, stale)
        purge.scrub(self._database)
        return back

    def refusals(self, *, session_id: int | None = None) -> Sequence[Refusal]:
        """What was proposed from conversations, or from one of them, and not kept, oldest first."""
        with self._database.read(self._scope) as tx:
            if session_id is not None:
                self._found_session(tx, session_id)
            found = proposals.listed(tx, tx.own, "refused")
        return [one for one in found if session_id in (None, one.session_id)]

    def keep_refused(self, refusal_id: int) -> Memory:
        """Keep what was not kept after all: it counts as the person's own word.

        It is stored, replaces or ends as it was proposed, with its message as proof. Raises
        InputError where only the reason was noted, NotFound where there is nothing to end.
        """
        with self._database.write(self._scope, ensure=True) as tx:
            refused = self._found_refusal(tx, refusal_id)
            return answers.accept(tx, refused, self._settings)

    def _answer_many(
        self, item_ids: Iterable[int], answer: Callable[[Tx, InboxItem], object]
    ) -> Answered:
        done: list[InboxItem] = []
        failed: dict[int, str] = {}
        with self._database.write(self._scope, ensure=True) as tx:
            since = max(changes.latest_event(tx, app_id) for app_id in tx.ids)
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
                images = answers.take(before, tx, ids, tx.ids, since)
        return Answered(tuple(done), failed, tx.now, images)

    def _found_item(self, tx: Tx, item_id: int) -> InboxItem:
        item = proposals.get(tx, tx.ids, item_id)
        if item is None or item.status != "pending":
            raise NotFound(f"nothing waits under {item_id}; see memchat inbox list")
        return item

    def _found_refusal(self, tx: Tx, refusal_id: int) -> Refusal:
        found = proposals.get(tx, tx.ids, refusal_id)
        if found is None or found.status != "refused":
            raise NotFound(f"there is no refusal {refusal_id} here; see memchat sessions show")
        return found
