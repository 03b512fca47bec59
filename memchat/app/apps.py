"""The apps of a person."""

from __future__ import annotations

from collections.abc import Sequence

from memchat.app.results import Deleted
from memchat.app.room import Room
from memchat.errors import NotFound
from memchat.store import apps
from memchat.types import AppInfo, Scope


class Apps(Room):
    """The apps of one person: each has memories, notes and conversations of its own."""

    def list(self) -> Sequence[AppInfo]:
        """The person's apps, by name."""
        with self._database.read() as tx:
            return apps.of_user(tx, self._scope.user)

    def delete(self, app: str) -> Deleted:
        """Delete an app with its memories, notes and conversations for good.

        Raises NotFound where the person has no such app.
        """
        from memchat.memory.forgetting import purge

        scope = Scope(self._scope.user, app)
        with self._database.write() as tx:
            own = apps.find(tx, scope).own
            if own is None:
                raise NotFound(f"there is no app {app!r}; see memchat apps list")
            held = next(one for one in apps.of_user(tx, scope.user) if one.name == scope.app)
            count, stale = purge.forget_app(self._context(tx), own)
            self._assembly.drop_vectors(tx, stale)
        purge.scrub(self._database)
        return Deleted(count, held.sessions, apps=1, notes=held.notes)
