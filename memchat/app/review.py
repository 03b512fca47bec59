"""What waits for a person: held back facts, and what should not be there."""

from __future__ import annotations

from collections.abc import Iterable

from memchat.app.opened import Opened, found_item
from memchat.store import apps, inbox
from memchat.types import Audit, Finding, InboxItem, Memory, Scope


class Review(Opened):
    """The verbs on the inbox and the audit."""

    def inbox(self, *, user: str, app: str = "default", status: str = "pending") -> list[InboxItem]:
        """What waits for a yes, oldest first; with ``rejected`` what got a no."""
        with self._database.read() as tx:
            own = apps.find(tx, Scope(user, app)).own
            return [] if own is None else inbox.listed(tx, own, status)

    def accept(
        self, item_id: int, *, user: str, app: str = "default", value: str | None = None
    ) -> Memory:
        """Say yes to an item, with other words where ``value`` gives some."""
        from memchat.memory import review

        scope, embeds = Scope(user, app), self._assembly.embeds()
        with self._database.write() as tx:
            item = found_item(tx, scope, item_id)
            now = self._clock()
            return review.accept(tx, scope, item, self.settings, now, value, embeds=embeds)

    def reject(self, item_id: int, *, user: str, app: str = "default") -> None:
        """Say no to an item; the same is not asked again."""
        from memchat.memory import review

        scope = Scope(user, app)
        with self._database.write() as tx:
            review.reject(tx, scope, found_item(tx, scope, item_id), self._clock())

    def audit(self, *, user: str, app: str = "default") -> Audit:
        """Look through the app's memories, and the user's for every app; changes nothing."""
        from memchat.memory.audit import Auditor

        meaning, _ = self._meaning()
        with self._database.read() as tx:
            scope = Scope(user, app)
            return Auditor(tx, scope, self.settings.zone, self._clock(), meaning).look()

    def mend(self, findings: Iterable[Finding], *, user: str, app: str = "default") -> int:
        """Do what these findings of an audit say, where it still holds; how many were mended.

        All of it can be undone with ``restore``, but for secrets, which are forgotten for good.
        """
        from memchat.memory import audit, forget

        mended = 0
        for finding in findings:
            with self._database.write() as tx:
                done, stale = audit.mend(
                    tx, Scope(user, app), finding, self.settings.zone, self._clock()
                )
                self._drop_vectors(tx, stale)
            mended += done
        forget.scrub(self._database)
        return mended
