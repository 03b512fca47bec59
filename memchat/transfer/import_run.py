"""Writing the records of an export into the store, in the caller's transaction.

The records come in the order of ``record_kinds.EVERY``. Whatever a record says, it is written into
the scopes of the one person who imports. What the store has stays as it is there; what was
forgotten there stays forgotten.

Recognising the facts of an export that the store has, has reworded, or has forgotten, and the
questions about facts that are answered by that.

Recognising the conversations of an export that are in the store already.

Recognising the calls of models of an export that are in the store already.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from memchat.db import apps, messages, record_kinds, sessions, usage
from memchat.db.apps import Context
from memchat.db.record_kinds import RecordKind
from memchat.errors import InputError, MemChatError
from memchat.facts import clients, history, inbox, memories
from memchat.facts.memories import sha1_of
from memchat.forget import tombstones
from memchat.forget.redaction import FILLER
from memchat.transfer import record_check
from memchat.transfer.imported import (
    Cut,
    ImportedClients,
    ImportedNotes,
    ImportedRows,
    check_message,
    written,
)
from memchat.transfer.record_check import RecordIds, Values
from memchat.types import EVERY_APP, Imported, Message, RefusedRecord, Scope, Session

_ITEM = ("created_at", "reason", "memory_type", "key", "value", "quote")


@dataclass(slots=True)
class KnownMemories:
    """The facts of some scope rows, as they were before the import."""

    tx: Connection
    homes: Sequence[int]
    """Every scope row of the person."""
    shared: int | None
    """The one that holds in every app."""
    _reworded: dict[int, dict[str, int]] = field(default_factory=dict)

    def find(self, app_id: int, sha1: str) -> tuple[int, bool] | None:
        """The id of the memory that says this, or that said it before it was edited, and whether
        it is deleted and waits for its purge; None where there is none."""
        found = memories.id_of(self.tx, app_id, sha1)
        if found is not None:
            return found
        edited = self._former(app_id).get(sha1)
        return None if edited is None else (edited, False)

    def is_forgotten(self, app_id: int, values: Values, said_at: datetime) -> bool:
        """Whether this fact was forgotten after it was said. Others that share words with a
        forgotten one are not."""
        # What holds in every app may have been moved into one before it was forgotten.
        shared = [] if self.shared is None else [self.shared]
        app_ids = self.homes if app_id in shared else [app_id, *shared]
        if not any(tombstones.any_in(self.tx, one) for one in app_ids):
            return False
        mark = tombstones.value_mark(values["key"], values["value"])
        return any(said_at <= at for at in tombstones.find(self.tx, app_ids, [mark]).values())

    def answers(self, app_id: int, item: Values) -> bool:
        """Whether the same question as that of this inbox item was asked here before, or its answer
        is known."""
        if inbox.holds(self.tx, app_id, {name: item[name] for name in _ITEM}):
            return True
        if item["key"] is None or item["value"] is None:
            return False
        sha1 = sha1_of(item["memory_type"] or "", item["key"], item["value"])
        known = item["relation"] != "ends" and self.find(app_id, sha1) is not None
        return known or self.is_forgotten(app_id, item, item["created_at"])

    def _former(self, app_id: int) -> dict[str, int]:
        """The former wordings of edited memories, by hash."""
        if app_id not in self._reworded:
            self._reworded[app_id] = {
                sha1_of(old["memory_type"], old["key"], old["value"]): memory_id
                for memory_id, old in history.former_wordings(self.tx, app_id)
            }
        return self._reworded[app_id]


@dataclass(slots=True)
class KnownSessions:
    """The conversations that were in some scope rows before the import.

    One is recognised by when it began and by any of its messages, since the others may have been
    deleted and words in it blanked. Each is found once.
    """

    tx: Connection
    _by_start: dict[int, dict[datetime, list[int]]] = field(default_factory=dict)

    def find(
        self, app_id: int, started_at: datetime, turns: Sequence[Values]
    ) -> tuple[int, Mapping[int, int]] | None:
        """The id of the same conversation, and for the ids of these messages in the file those
        here; None where there is none. ``turns`` are its messages."""
        there = self._starts(app_id).get(started_at, [])
        for session_id in there:
            said = messages.of_session(self.tx, session_id)
            same = _pairs(turns, said)
            if same or not (turns or said):
                there.remove(session_id)
                return session_id, same
        return None

    def newer(
        self, session_id: int, turns: Sequence[Values], same: Mapping[int, int]
    ) -> tuple[Session, list[Values]] | None:
        """The conversation as it is here, and those of these messages with which it went on
        elsewhere; None where there are none, it is open, or went on here too.

        What is older than its last use here was here once, and was deleted.
        """
        found = sessions.by_id(self.tx, session_id)
        here = messages.ids_of(self.tx, session_id)
        if found is None or found[0].ended_at is None or not here or here[-1] not in same.values():
            return None
        session = found[0]
        later = [turn for turn in turns if turn["created_at"] > session.last_activity_at]
        return (session, later) if later else None

    def _starts(self, app_id: int) -> dict[datetime, list[int]]:
        if app_id not in self._by_start:
            found: defaultdict[datetime, list[int]] = defaultdict(list)
            for session_id, started_at in sessions.starts(self.tx, app_id):
                found[started_at].append(session_id)
            self._by_start[app_id] = dict(found)
        return self._by_start[app_id]


def _pairs(turns: Sequence[Values], said: Sequence[Message]) -> dict[int, int]:
    """Which messages are the same, in order: their ids in the file, and those here."""
    pairs: dict[int, int] = {}
    left = list(said)
    for turn in turns:
        for place, message in enumerate(left):
            if _same(turn, message):
                pairs[turn["id"]] = message.id
                del left[: place + 1]
                break
    return pairs


def _same(turn: Values, message: Message) -> bool:
    if (turn["role"], turn["created_at"]) != (message.role, message.created_at):
        return False
    here, there = message.content, turn["content"]
    return here == there or (
        len(here) == len(there)
        and all(a == b or FILLER in (a, b) for a, b in zip(here, there, strict=True))
    )


_SPENT = ("at", "purpose", "model", "prompt_tokens", "completion_tokens")


@dataclass(slots=True)
class KnownUsage:
    """The calls that were in some scope rows before the import."""

    tx: Connection
    _of_app: dict[int, set[tuple[Any, ...]]] = field(default_factory=dict)

    def holds(self, app_id: int, values: Values) -> bool:
        """Whether the same call is there."""
        if app_id not in self._of_app:
            self._of_app[app_id] = usage.of_app(self.tx, app_id, _SPENT)
        return tuple(values[name] for name in _SPENT) in self._of_app[app_id]


class _LeftOut(Exception):
    """The record belongs to one that is refused, forgotten or known, and goes the same way."""


@dataclass(frozen=True, slots=True)
class _Conversation:
    """A session of the file, with those of its messages that were read so far."""

    values: Values
    turns: dict[int, Values] = field(default_factory=dict)
    """By their ids in the file."""


@dataclass
class ImportRun:
    """One import into the scopes of one person."""

    ctx: Context
    """Its scope is that of no one app."""
    user: str
    cut: Cut
    """Cuts the texts of notes into chunks."""

    def __post_init__(self) -> None:
        # This refuses a new name that cannot be seen.
        self._homes = apps.ids_of_user(self.ctx.tx, self.user)
        self._shared = apps.shared_id(self.ctx.tx, self.user)
        self._ids = RecordIds(self.ctx.tx)
        self._memories = KnownMemories(self.ctx.tx, self._homes, self._shared)
        self._sessions = KnownSessions(self.ctx.tx)
        self._usage_here = KnownUsage(self.ctx.tx)
        self._rows = ImportedRows(self.ctx, self.user)
        self._notes = ImportedNotes(self.ctx, self.cut)
        self._clients = ImportedClients(self.ctx)
        self._apps: dict[str, int] = {}
        self._old_apps: set[int] = set()
        self._open: _Conversation | None = None
        self._new: defaultdict[str, set[int]] = defaultdict(set)
        self._added: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._forgotten = 0
        self._changed_notes = 0
        self._deleted_notes = 0
        self._refused: list[RefusedRecord] = []
        self._take: Mapping[str, Callable[[Values], None]] = {
            "app": self._app,
            "client": self._client,
            "memory": self._memory,
            "evidence": self._evidence,
            "event": self._event,
            "note": self._note,
            "inbox_item": self._inbox_item,
            "client_write": self._client_write,
            "refusal": self._refusal,
            "receipt": self._receipt,
            "muted": self._muted,
            "usage": self._usage,
        }

    def take(self, line: int, record: Mapping[str, Any]) -> None:
        """Write one record of a known kind, or note why it cannot be written. ``line`` is where it
        stands in the file."""
        try:
            kind, values = record_check.checked(record)
            if kind is record_kinds.MESSAGE:
                self._hold_message(values)
                return
            self._close_session()
            if kind is record_kinds.SESSION:
                self._open_session(values)
            else:
                self._take[kind.name](values)
        except _LeftOut:
            self._ids.leave_out(record)
        except MemChatError as error:
            self._refused.append(RefusedRecord(line, str(error)))
            self._ids.leave_out(record)

    def finish(self, *, embeds: bool) -> tuple[Imported, set[int]]:
        """Complete what was written: links, search texts, queued work. Gives what was done, and the
        scope rows whose saved vector index must be dropped."""
        self._close_session()
        stale = self._rows.complete(self._ids, embeds=embeds) | self._notes.reworded
        queued = self._notes.queue() if embeds else 0
        done = Imported(
            dict(+self._added),
            dict(+self._known),
            self._forgotten,
            tuple(sorted(self._refused, key=lambda one: one.line)),
            self._rows.unread,
            self._rows.unembedded + queued,
            changed_notes=self._changed_notes,
            deleted_notes=self._deleted_notes,
        )
        return done, stale

    def _app(self, values: Values) -> None:
        name = values["name"]
        if name in self._apps:  # it stands twice in the file
            self._known["app"] += 1
            return
        if name == EVERY_APP:
            app_id = self._shared
        else:
            scope = Scope(self.user, name)
            app_id, name = apps.find(self.ctx.tx, scope).own, scope.app
        if app_id is not None:
            self._old_apps.add(app_id)
            self._known["app"] += 1
        else:
            columns = {"user": self.user, **values, "name": name}
            app_id = record_kinds.add(self.ctx.tx, record_kinds.APP, columns)
            assert app_id is not None
            self._added["app"] += 1
        self._apps[values["name"]] = app_id

    def _app_id(self, values: Values) -> int:
        if values["app"] not in self._apps:
            raise InputError("its app has no record before it")
        return self._apps[values["app"]]

    def _client(self, values: Values) -> None:
        self._ids.check_new(record_kinds.CLIENT, values["id"])
        client_id = self._clients.find(self._app_id(values), values)
        if client_id is None:
            self._add(record_kinds.CLIENT, values)
        else:
            self._ids.put(record_kinds.CLIENT, values["id"], client_id)
            self._known["client"] += 1

    def _open_session(self, values: Values) -> None:
        self._ids.check_new(record_kinds.SESSION, values["id"])
        app_id = self._app_id(values)
        if values["client_id"] is not None:
            self._clients.check_session(self._need("client", values["client_id"]), app_id)
        self._open = _Conversation(values)

    def _hold_message(self, values: Values) -> None:
        if self._ids.is_left_out("session", values["session_id"]):
            raise _LeftOut
        if self._open is None or values["session_id"] != self._open.values["id"]:
            raise InputError("it does not stand behind the record of its session")
        if self._open.values["client_id"] is not None:
            check_message(values)
        self._ids.check_new(record_kinds.MESSAGE, values["id"])
        if values["id"] in self._open.turns:
            raise InputError("an earlier message has the same id")
        self._open.turns[values["id"]] = values

    def _close_session(self) -> None:
        """Write the session whose messages are all read now."""
        if self._open is None:
            return
        held, self._open = self._open, None
        values, turns = held.values, [*held.turns.values()]
        app_id = self._app_id(values)
        if values["client_id"] is not None:
            return self._add_said_by_client(app_id, values, turns)
        found = None
        if app_id in self._old_apps:
            found = self._sessions.find(app_id, values["started_at"], turns)
        if found is not None:
            session_id, same = found
            self._ids.put(record_kinds.SESSION, values["id"], session_id)
            for turn in turns:
                self._ids.put(record_kinds.MESSAGE, turn["id"], same.get(turn["id"]))
            self._known["session"] += 1
            self._known["message"] += len(same)
            return self._continue_session(app_id, session_id, values, turns, same)
        new_id = self._add(record_kinds.SESSION, values | {"extracted_to": 0})
        read_to = self._add_turns(turns, values)
        self._rows.add_session(new_id, app_id, read_to=read_to, summary=values["summary"])

    def _add_said_by_client(self, app_id: int, values: Values, turns: Sequence[Values]) -> None:
        """Write what a program said into the one conversation that it has here."""
        client_id = self._need("client", values["client_id"])
        session_id, same = self._clients.said_here(client_id, turns)
        if session_id is None:
            ended_at = values["ended_at"] or values["last_activity_at"]
            own = {"extracted_to": 0, "summary": None, "copied_from": None, "ended_at": ended_at}
            session_id = self._add(record_kinds.SESSION, values | own)
            clients.set_session(self.ctx.tx, client_id, session_id)
        else:
            self._ids.put(record_kinds.SESSION, values["id"], session_id)
            self._known["session"] += 1
            self._known["message"] += len(same)
        for in_file, here in same.items():
            self._ids.put(record_kinds.MESSAGE, in_file, here)
        self._add_turns([turn for turn in turns if turn["id"] not in same], values)
        self._rows.add_session(session_id, app_id, read_to=0, summary=None)

    def _continue_session(
        self,
        app_id: int,
        session_id: int,
        values: Values,
        turns: Sequence[Values],
        same: Mapping[int, int],
    ) -> None:
        """Add what was said in a known conversation after its last use here."""
        found = self._sessions.newer(session_id, turns, same)
        if found is None:
            return
        session, later = found
        was_read = session.extracted_to >= max(same.values())
        read_to = self._add_turns(later, values)
        sessions.touch(self.ctx.tx, session_id, later[-1]["created_at"])
        read_to = max(session.extracted_to, read_to if was_read else 0)
        self._rows.add_session(session_id, app_id, read_to=read_to, summary=session.summary)

    def _add_turns(self, turns: Sequence[Values], session: Values) -> int:
        """Write messages; the id of the last that was read where they come from, or 0."""
        read_to = 0
        for turn in turns:
            message_id = self._add(record_kinds.MESSAGE, turn)
            read_to = message_id if turn["id"] <= (session["extracted_to"] or 0) else read_to
        return read_to

    def _memory(self, values: Values) -> None:
        self._ids.check_new(record_kinds.MEMORY, values["id"])
        app_id = self._app_id(values)
        sha1 = memories.sha1_of(values["memory_type"], values["key"], values["value"])
        found = self._memories.find(app_id, sha1)
        if found is None and app_id in self._old_apps:
            moved = memories.made_at(self.ctx.tx, self._homes, sha1, values["created_at"])
            found = None if moved is None or moved in self._new["memory"] else (moved, False)
        if found is not None:
            memory_id, deleted = found
            self._ids.put(record_kinds.MEMORY, values["id"], None if deleted else memory_id)
            self._forgotten += deleted
            self._known["memory"] += not deleted
            return
        forgotten = self._memories.is_forgotten(app_id, values, values["said_at"])
        self._forgotten += forgotten
        if forgotten and not (self._new["session"] or self._new["message"]):
            self._ids.put(record_kinds.MEMORY, values["id"], None)
            return
        replaced_by = values["replaced_by"]
        words = {"sha1": sha1, "search_text": "", "text_hash": ""}
        columns = values | words | {"replaced_by": None}
        given = columns.pop("tags").split()
        memory_id = self._add(record_kinds.MEMORY, columns, counted=not forgotten)
        memories.write_tags(self.ctx.tx, memory_id, given)
        self._rows.add_memory(memory_id, app_id, replaced_by=replaced_by, forgotten=forgotten)

    def _evidence(self, values: Values) -> None:
        memory_id = self._need("memory", values["memory_id"])
        message_id = self._need("message", values["message_id"])
        if memory_id in self._new["memory"] or message_id in self._new["message"]:
            self._add(record_kinds.EVIDENCE, values)

    def _event(self, values: Values) -> None:
        memory_id = self._need("memory", values["memory_id"])
        if memory_id not in self._new["memory"]:
            return
        for state in filter(None, (values["old"], values["new"])):
            if "replaced_by" in state:
                state["replaced_by"] = self._ids.here("memory", state["replaced_by"])
        self._add(record_kinds.EVENT, values)

    def _note(self, values: Values) -> None:
        self._ids.check_new(record_kinds.NOTE, values["id"])
        app_id = self._app_id(values)
        known = self._notes.find(app_id, values)
        if known is not None:
            self._ids.put(record_kinds.NOTE, values["id"], known.id)
            changed = self._notes.update(known, app_id, values)
            if changed:
                self._new["note"].add(known.id)
            self._changed_notes += changed
            self._known["note"] += not changed
        elif self._notes.is_deleted(app_id, values):
            self._ids.put(record_kinds.NOTE, values["id"], None)
            self._deleted_notes += 1
        else:
            cut = self._notes.cut_text(values)
            note_id = self._add(record_kinds.NOTE, values | {"sized_for": cut.sized_for})
            self._notes.add_chunks(note_id, app_id, values, cut)

    def _inbox_item(self, values: Values) -> None:
        app_id = self._app_id(values)
        message_id = self._ids.here("message", values["message_id"])
        for name in ("memory_id", "related_id", "target_id"):
            if values[name] is not None:
                self._need("memory", values[name])
        decided = message_id is not None and message_id not in self._new["message"]
        if app_id in self._old_apps and (decided or self._memories.answers(app_id, values)):
            self._ids.put(record_kinds.INBOX_ITEM, values["id"], None)
            self._known["inbox_item"] += 1
            return
        self._add(record_kinds.INBOX_ITEM, values)

    def _client_write(self, values: Values) -> None:
        client_id = self._need("client", values["client_id"])
        kind, in_file = written(values)
        target_id = 0 if in_file is None else self._need(kind, in_file)
        added = self._clients.add_write(client_id, values, target_id, self._new["note"])
        (self._added if added else self._known)["client_write"] += 1

    def _refusal(self, values: Values) -> None:
        if self._ids.here("message", values["message_id"]) not in self._new["message"]:
            self._of_new_session(values["session_id"])
        self._add(record_kinds.REFUSAL, values)

    def _receipt(self, values: Values) -> None:
        if self._need("message", values["message_id"]) not in self._new["message"]:
            return
        item_id = self._need(values["kind"], values["item_id"])
        self._add(record_kinds.RECEIPT, values | {"item_id": item_id})

    def _muted(self, values: Values) -> None:
        self._of_new_session(values["session_id"])
        self._need("memory", values["memory_id"])
        self._add(record_kinds.MUTED, values)

    def _usage(self, values: Values) -> None:
        app_id = self._app_id(values)
        if app_id in self._old_apps and self._usage_here.holds(app_id, values):
            self._known["usage"] += 1
            return
        self._add(record_kinds.USAGE, values)

    def _of_new_session(self, in_file: int) -> None:
        if self._need("session", in_file) not in self._new["session"]:
            raise _LeftOut

    def _need(self, kind: str, in_file: int) -> int:
        """The id here of a record that this one cannot do without."""
        here = self._ids.here(kind, in_file)
        if here is not None:
            return here
        if self._ids.is_left_out(kind, in_file):
            raise _LeftOut
        raise InputError(f"its {kind} {in_file} has no record before it")

    def _add(self, kind: RecordKind, values: Values, *, counted: bool = True) -> int:
        """Write a row with its references as they are here."""
        columns = {name: value for name, value in values.items() if name not in kind.derived}
        for name in kind.refers.keys() & columns.keys():
            columns[name] = self._ids.here(kind.refers[name], values[name])
        if "app" in columns:
            columns["app_id"] = self._app_id(columns)
            del columns["app"]
        in_file = columns.pop("id", None)
        kept = self._ids.kept(kind, in_file) if in_file is not None else None
        if kept is not None:
            columns["id"] = kept
        row_id = record_kinds.add(self.ctx.tx, kind, columns)
        if row_id is None:
            raise InputError(f"an earlier {kind.name} is the same, or has the same id")
        if in_file is not None:
            self._ids.put(kind, in_file, row_id)
        self._new[kind.name].add(row_id)
        self._added[kind.name] += counted
        return row_id
