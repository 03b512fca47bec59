"""Everything that is kept of a person, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memchat.app.apps import Apps
from memchat.app.inbox import Inbox
from memchat.app.memories import Memories
from memchat.app.sessions import Sessions
from memchat.assembly import Assembly
from memchat.errors import NotFound
from memchat.store import usage
from memchat.types import EVERY_APP, Scope, to_json


def export(assembly: Assembly, scope: Scope) -> Iterator[dict[str, Any]]:
    """The records of a person, app by app; each page of them is read when it is asked for."""
    every_app = Apps(assembly, scope).list()
    shared = False
    for app in every_app:
        here = Scope(scope.user, app.name)
        yield _record("app", app)
        yield from _memories(Memories(assembly, here), with_shared=not shared)
        shared = True
        yield from _conversations(Sessions(assembly, here), Inbox(assembly, here), app.name)
    if not every_app:  # what was kept for every app lies in no other
        yield from _memories(Memories(assembly, scope), with_shared=True)
    with assembly.database.read() as tx:
        totals = usage.totals(tx, scope.user, None)
    for total in totals:
        yield _record("usage", total)


def _memories(memories: Memories, *, with_shared: bool) -> Iterator[dict[str, Any]]:
    cursor: str | None = ""
    while cursor is not None:
        page = memories.list(status="all", limit=500, cursor=cursor or None)
        for memory in page:
            if memory.app == EVERY_APP and not with_shared:
                continue
            try:
                proofs, history = memories.evidence(memory.id), memories.history(memory.id)
            except NotFound:
                continue  # it was deleted since the page was read
            yield _record(
                "memory",
                memory,
                evidence=[to_json(proof) for proof in proofs],
                history=[to_json(event) for event in history],
            )
        cursor = page.cursor


def _conversations(sessions: Sessions, inbox: Inbox, app: str) -> Iterator[dict[str, Any]]:
    cursor: str | None = ""
    while cursor is not None:
        page = sessions.list(limit=100, cursor=cursor or None)
        for session in page:
            try:
                said = [to_json(message) for message in sessions.messages(session.id)]
            except NotFound:
                continue  # it was deleted since the page was read
            yield _record("session", session, messages=said)
        cursor = page.cursor
    for status in ("pending", "rejected"):
        for item in inbox.list(status=status):
            yield _record("inbox_item", item, app=app)
    for refusal in inbox.refusals():
        yield _record("refusal", refusal, app=app)


def _record(kind: str, record: Any, **more: Any) -> dict[str, Any]:
    return {"record": kind, **to_json(record), **more}
