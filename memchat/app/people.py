"""A person's apps and memory switches, and wiping all of it."""

from __future__ import annotations

from sqlalchemy import Connection

from memchat.app.opened import Opened
from memchat.errors import NotFound
from memchat.store import apps, inbox, jobs, sessions
from memchat.types import AppInfo, MemorySwitch, Scope


class People(Opened):
    """The verbs on apps and switches."""

    def apps(self, *, user: str) -> list[AppInfo]:
        """The user's apps, by name."""
        with self._database.read() as tx:
            return apps.of_user(tx, Scope(user).user)

    def set_memory(self, on: bool, *, user: str, app: str | None = None) -> None:
        """Switch memory on or off, for an app or, without one, for the user as a whole."""
        with self._database.write() as tx:
            own, shared = (
                apps.ensure(tx, Scope(user, app), self._clock())
                if app is not None
                else (0, apps.ensure_shared(tx, Scope(user).user, self._clock()))
            )
            apps.set_memory(tx, shared if app is None else own, on)
            if on:
                self._read_on(tx, user, app)

    def memory_switch(self, *, user: str, app: str | None = "default") -> MemorySwitch:
        """Whether memory takes part in this app, or without one for the user, and if not, why."""
        with self._database.read() as tx:
            if app is None:
                return apps.user_switch(tx, Scope(user).user)
            return apps.memory_switch(tx, Scope(user, app))

    def delete_app(self, app: str, *, user: str) -> int:
        """Remove an app with its memories and conversations for good; how many memories."""
        from memchat.memory.forgetting import purge

        with self._database.write() as tx:
            own = apps.find(tx, Scope(user, app)).own
            if own is None:
                raise NotFound(f"there is no app {app!r}; see memchat apps list")
            count, stale = purge.forget_app(tx, own, self.settings.zone, self._clock())
            self._drop_vectors(tx, stale)
        purge.scrub(self._database)
        return count

    def wipe(self, *, user: str) -> int:
        """Remove all that is kept of a user for good, in every app; how many memories."""
        from memchat.memory.forgetting import purge

        count = 0
        with self._database.write() as tx:
            for app_id in apps.ids_of_user(tx, Scope(user).user):
                gone, stale = purge.forget_app(tx, app_id, self.settings.zone, self._clock())
                self._drop_vectors(tx, stale)
                count += gone
        purge.scrub(self._database)
        return count

    def _read_on(self, tx: Connection, user: str, app: str | None) -> None:
        """Queue what was said with memory on and not read, or not looked at once more, because it
        went off before."""
        left = [("extract", *found) for found in sessions.ended_with_unread(tx, Scope(user).user)]
        for session_id in inbox.sessions_awaiting_second_look(tx, Scope(user).user):
            found = sessions.by_id(tx, session_id)
            if found is not None and found[0].ended_at is not None:
                left.append(("verify", *found))
        for kind, session, app_id in left:
            if (
                app in (None, session.app)
                and apps.memory_switch(tx, Scope(session.user, session.app)).on
            ):
                jobs.enqueue(tx, kind, app_id, session.id, self._clock())
