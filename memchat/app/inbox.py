"""What waits for a person: held back facts, what was not kept, and what should not be there."""

from __future__ import annotations

from collections.abc import Iterable

from memchat.app.opened import Opened, found_item, found_refusal, found_session
from memchat.store import apps, inbox, refusals
from memchat.types import Audit, Finding, InboxItem, Memory, Refusal, Scope


class Inbox(Opened):
    """The verbs on the inbox and the audit."""

    def inbox(self, *, user: str, app: str = "default", status: str = "pending") -> list[InboxItem]:
        """What waits for a yes, oldest first; with ``rejected`` what got a no."""
        with self._database.read() as tx:
            own = apps.find(tx, Scope(user, app)).own
            return [] if own is None else inbox.listed(tx, own, status)

    def question(self, item: InboxItem, *, user: str, app: str = "default") -> str:
        """What a yes to an item would do, in plain words, as the memories are now."""
        from memchat.memory.facts import inbox_answers

        with self._database.read() as tx:
            return inbox_answers.current_question(tx, Scope(user, app), item)

    def accept(
        self, item_id: int, *, user: str, app: str = "default", value: str | None = None
    ) -> Memory:
        """Say yes to an item, with other words where ``value`` gives some: what was proposed is
        stored, replaced or ended. Where the memory it speaks of is gone, it is stored as new."""
        from memchat.memory.facts import inbox_answers

        scope, embeds = Scope(user, app), self._assembly.embeds()
        with self._database.write() as tx:
            item = found_item(tx, scope, item_id)
            now = self._clock()
            return inbox_answers.accept(tx, scope, item, self.settings, now, value, embeds=embeds)

    def reject(self, item_id: int, *, user: str, app: str = "default") -> None:
        """Say no to an item; the same is not asked again."""
        from memchat.memory.facts import inbox_answers

        scope = Scope(user, app)
        with self._database.write() as tx:
            inbox_answers.reject(tx, scope, found_item(tx, scope, item_id), self._clock())

    def refusals(
        self, *, user: str, app: str = "default", session_id: int | None = None
    ) -> list[Refusal]:
        """What was proposed from conversations, or from one of them, and not kept, oldest first."""
        scope = Scope(user, app)
        with self._database.read() as tx:
            if session_id is not None:
                found_session(tx, scope, session_id)
            own = apps.find(tx, scope).own
            return [] if own is None else refusals.listed(tx, own, session_id)

    def keep_refused(self, refusal_id: int, *, user: str, app: str = "default") -> Memory:
        """Keep anyway what was not kept: it counts as the person's own word.

        It is stored, replaces or ends as it was proposed, with its message as proof. Raises
        InputError where only the reason was noted, NotFound where there is nothing to end.
        """
        from memchat.memory.facts import inbox_answers

        scope, embeds = Scope(user, app), self._assembly.embeds()
        with self._database.write() as tx:
            refused = found_refusal(tx, scope, refusal_id)
            now = self._clock()
            return inbox_answers.keep_refused(tx, scope, refused, self.settings, now, embeds=embeds)

    def audit(self, *, user: str, app: str = "default") -> Audit:
        """Look through the app's memories, and the user's for every app; changes nothing."""
        from memchat.memory.facts.audit import Auditor

        meaning, _ = self._meaning()
        with self._database.read() as tx:
            scope = Scope(user, app)
            return Auditor(tx, scope, self.settings.zone, self._clock(), meaning).look()

    def mend(self, findings: Iterable[Finding], *, user: str, app: str = "default") -> int:
        """Do what these findings of an audit say, where it still holds; how many were mended.

        All of it can be undone with ``restore``, but for secrets, which are forgotten for good.
        """
        from memchat.memory.facts import audit
        from memchat.memory.forgetting import purge

        mended = 0
        for finding in findings:
            with self._database.write() as tx:
                done, stale = audit.mend(
                    tx, Scope(user, app), finding, self.settings.zone, self._clock()
                )
                self._drop_vectors(tx, stale)
            mended += done
        purge.scrub(self._database)
        return mended
