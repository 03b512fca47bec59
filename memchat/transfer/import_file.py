"""Imports an export file: all of its records in one transaction, or none.

Records come in the order of ``kinds.KINDS``. Whatever one says, it is written into the scopes of
the one person who imports. What the store has already stays as it is there, apart from messages
that it lacks and notes that were changed later in the export. What was forgotten there stays
forgotten.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from memchat import types
from memchat.assembly import Assembly
from memchat.db import Tx, apps, database, details, jobs, messages, schema, sessions
from memchat.errors import InputError, MemChatError
from memchat.facts import changes, memories, programs, proposals
from memchat.facts.changes import Cause
from memchat.facts.in_force import said_order, values_of_key
from memchat.facts.memories import sha1_of
from memchat.forget import purge, tombstones
from memchat.forget.wording import FILLER
from memchat.notes import rows
from memchat.notes.index import Cutter
from memchat.search import passages, turns
from memchat.transfer import kinds
from memchat.transfer.kinds import KINDS, LEFT_TO_BACKUPS, Kind, Record, Values

_EVERY = 500
"""Records between two reports of the progress."""


class _DryRun(Exception):
    """Ends the transaction without its changes."""


_ITEM = ("created_at", "reason", "memory_type", "key", "value", "quote")


class _LeftOut(Exception):
    """The record belongs to one that is refused, forgotten or known, and goes the same way."""


class ImportRun:
    """One import into the scopes of one person. The scope of ``tx`` is that of no one app."""

    def __init__(self, tx: Tx, user: str, cutter: Cutter) -> None:
        self.tx, self.user, self.cutter = tx, user, cutter
        self._homes = apps.ids_of_user(self.tx, user)
        self._shared = apps.shared_id(self.tx, user)
        self._ids: dict[tuple[str, int | None], int | None] = {}
        """Which id each record of the file has here, None for one that is left out."""
        tables = {kind.name: kind.table for kind in KINDS.values()}
        self._kept = {name for name, one in tables.items() if not database.was_used(tx, one)}
        """The kinds whose tables take the ids of the file, as they never had a row. Otherwise new
        ids are given, since an id that was used once never comes to mean something else."""
        self._apps: dict[str, int] = {}
        self._open: tuple[Values, dict[int, Values]] | None = None
        """The conversation that is read, and its messages so far by their ids in the file."""
        self._starts: defaultdict[tuple[int, datetime], list[int]] = defaultdict(list)
        """The conversations that were here, by their scope row and when they began."""
        starts = sa.select(schema.sessions).where(schema.sessions.c.app_id.in_(self._homes))
        for row in tx.execute(starts.order_by(schema.sessions.c.id)):
            self._starts[row.app_id, row.started_at].append(row.id)
        self._reworded: dict[int, dict[str, int]] = {}
        self._new: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """The new rows by kind, each with its scope row, 0 where it has none of its own."""
        self._talks: dict[int, int] = {}
        """New and changed conversations, each with its scope row."""
        self._forgotten: set[int] = set()
        """New memories that were forgotten here. They are written until their words are blanked in
        the new conversations, and are then purged."""
        self._aside: set[int] = set()
        """Messages here that are not shown, as another version is: none proves anything."""
        self._unsaid: set[int] = set()
        """New memories that a message of those proves in the file. They are removed in the end
        where no other does, as the choice between the versions was made here."""
        self._replaced: dict[int, int] = {}
        """New memories with the id in the file of what replaced them."""
        self._added: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._forgotten_here: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._changed_notes = 0
        self._refused: list[types.RefusedRecord] = []

    def take(self, line: int, record: Record) -> None:
        """Write one record of a known kind, or note why it cannot be written. ``line`` is where it
        stands in the file."""
        name, in_file = record["record"], record.get("id")
        decided = record.get("status", "pending") != "pending" or record.get("unchecked")
        if name in LEFT_TO_BACKUPS or (name == "inbox_item" and decided):
            self._left_out[name] += 1
            return
        try:
            kind, values = kinds.checked(record)
            if kind is not kinds.MESSAGE:
                self._close_session()
            self._write(kind, values)
        except (_LeftOut, MemChatError) as error:
            if isinstance(error, MemChatError):
                self._refused.append(types.RefusedRecord(line, str(error)))
            if type(in_file) is int:
                self._ids.setdefault((name, in_file), None)

    def _write(self, kind: Kind, values: Values) -> None:
        if (kind.name, values.get("id")) in self._ids:
            raise InputError(f"an earlier {kind.name} has the same id")
        if "app" in values:
            if values["app"] not in self._apps:
                raise InputError("its app has no record before it")
            values["app_id"] = self._apps[values["app"]]
        getattr(self, f"_{kind.name}")(values)  # each kind has a method of its name below

    def _add(self, kind: Kind, values: Values, **more: Any) -> int:
        """Write a row with its references as they are here."""
        columns = dict(more)
        for field in kind.fields:
            name = "app_id" if field.name == "app" else field.name
            value = values[name]
            if field.refers is not None:
                value = self._ids.get((field.refers, value))
            elif field.type in (dict, list, object) and value is not None:
                value = json.dumps(value, ensure_ascii=field.type is object, sort_keys=True)
            if not field.derived and (name != "id" or kind.name in self._kept):
                columns[name] = value
        row_id = self.tx.insert_new(kind.table, **columns)
        if row_id is None:
            raise InputError(f"an earlier {kind.name} is the same, or has the same id")
        if "id" in values:
            self._ids[kind.name, values["id"]] = row_id
        if noted := values.get("metadata"):
            details.put(self.tx, kind.table, row_id, noted)
        self._new[kind.name][row_id] = values.get("app_id", 0)
        self._added[kind.name] += 1
        return row_id

    def _settle(self, outcome: Counter[str], kind: Kind, values: Values, here: int | None) -> None:
        """Count a record that is not written, and note its id here, where it has one."""
        self._ids[kind.name, values["id"]] = here
        outcome[kind.name] += 1

    def _need(self, kind: str, in_file: int) -> int:
        """The id here of a record that another cannot do without."""
        here = self._ids.get((kind, in_file))
        if here is None and (kind, in_file) in self._ids:
            raise _LeftOut
        if here is None:
            raise InputError(f"its {kind} {in_file} has no record before it")
        return here

    def _app(self, values: Values) -> None:
        name = values["name"]
        scope = None if name == types.EVERY_APP else types.Scope(self.user, name)
        found = self._shared if scope is None else apps.find(self.tx, scope).own
        if name in self._apps or found:
            self._apps.setdefault(name, found)
            self._known["app"] += 1
        else:
            here = types.EVERY_APP if scope is None else scope.app
            self._apps[name] = self._add(kinds.APP, values | {"name": here}, user=self.user)

    def _client(self, values: Values) -> None:
        client_id = programs.find(self.tx, values["app_id"], values["name"])
        if client_id is None:
            self._add(kinds.CLIENT, values)
        else:
            self._settle(self._known, kinds.CLIENT, values, client_id)

    def _session(self, values: Values) -> None:
        if values["client_id"] is not None:
            client_id = self._need("client", values["client_id"])
            if programs.app_id_of(self.tx, client_id) != values["app_id"]:
                raise InputError("it is in another app than its program")
        self._open = values, {}  # it is written when its messages are all read

    def _message(self, values: Values) -> None:
        session, turns = self._open or ({}, {})
        if values["session_id"] != session.get("id"):
            if ("session", values["session_id"]) in self._ids:
                self._need("session", values["session_id"])
            raise InputError("it does not stand behind the record of its session")
        said = values["role"] == "assistant" and not values["memory"]
        if session["client_id"] is not None and not (said and values["copied_from"] is None):
            # Their conversations are not shown among the chats, so nothing is learned from them.
            raise InputError("it is not what a program said, in a program's conversation")
        if values["id"] in turns:
            raise InputError("an earlier message has the same id")
        turns[values["id"]] = values

    def _close_session(self) -> None:
        """Write the conversation whose messages are all read now."""
        if self._open is None:
            return
        (values, by_id), self._open = self._open, None
        turns, app_id = [*by_id.values()], values["app_id"]
        client_id = self._ids.get(("client", values["client_id"]))
        found = self._same_session(values, turns, client_id)
        if found is None:
            if client_id is not None:
                ended_at = values["ended_at"] or values["last_activity_at"]
                values |= {"summary": None, "copied_from": None, "ended_at": ended_at}
            session_id = self._add(kinds.SESSION, values)
            before, is_read = 0, True
        else:
            session, same = found
            session_id, before = session.id, session.extracted_to
            is_read = before >= max(same.values(), default=0)
            self._settle(self._known, kinds.SESSION, values, session_id)
            for turn in turns:
                self._ids["message", turn["id"]] = same.get(turn["id"])
            self._known["message"] += len(same)
            last = [turn.id for turn in messages.of_session(self.tx, session_id)][-1:]
            if client_id is not None:
                turns = [turn for turn in turns if turn["id"] not in same]
            elif session.ended_at is None or not {*last} & {*same.values()}:
                turns = []  # it is open here, or went on here too
            else:
                # What is older than its last use here was here once, and was deleted.
                at = session.last_activity_at
                turns = [one for one in turns if one["created_at"] > at and one["id"] not in same]
            if not turns:
                return
            if client_id is None:
                said_at = turns[-1]["created_at"]
                sessions.change(self.tx, session_id, last_activity_at=said_at)
        for turn in turns:
            message_id = self._add(kinds.MESSAGE, turn)
            if is_read and turn["id"] <= (values["extracted_to"] or 0):
                before = message_id
        if client_id is not None:
            programs.set_session(self.tx, client_id, session_id)
        read_to = before if client_id is None else 0
        sessions.change(self.tx, session_id, extracted_to=read_to)
        self._talks[session_id] = app_id

    def _same_session(
        self, values: Values, turns: Sequence[Values], client_id: int | None
    ) -> tuple[types.Session, Mapping[int, int]] | None:
        """The same conversation as it was here before the import, and for the ids of these messages
        in the file those here.

        A program has one conversation. Others are recognised by when they began and by any of their
        messages, since the rest may have been deleted; each is found once.
        """
        there = self._starts[values["app_id"], values["started_at"]]
        if client_id is not None:
            known = programs.session_of(self.tx, client_id)
            there = [] if known is None else [known]
        for session_id in there:
            said = messages.of_session(self.tx, session_id, every=True)
            same = _pairs(turns, said)
            found = sessions.by_id(self.tx, session_id)
            if found and (same or client_id is not None or not (turns or said)):
                there.remove(session_id)
                shown = {turn.id for turn in messages.of_session(self.tx, session_id)}
                self._aside.update({turn.id for turn in said} - shown)
                return found[0], same
        return None

    def _memory(self, values: Values) -> None:
        sha1 = sha1_of(values["memory_type"], values["key"], values["value"])
        found = self._known_fact(values["app_id"], sha1, values["created_at"])
        if found is not None and not found[1]:
            return self._settle(self._known, kinds.MEMORY, values, found[0])
        forgotten = self._is_forgotten(values, values["said_at"])
        if forgotten or found is not None:
            self._settle(self._forgotten_here, kinds.MEMORY, values, None)
            if found is not None or not (self._new["message"] or self._new["session"]):
                return
        memory_id = self._add(kinds.MEMORY, values | {"replaced_by": None}, sha1=sha1)
        details.put_tags(self.tx, schema.memories, memory_id, values["tags"].split())
        if values["replaced_by"] is not None:
            self._replaced[memory_id] = values["replaced_by"]
        if forgotten:
            self._added["memory"] -= 1
            self._forgotten.add(memory_id)

    def _known_fact(
        self, app_id: int, sha1: str, created_at: datetime | None = None
    ) -> tuple[int, bool] | None:
        """The id of the memory that says this, that said it before it was edited, or that was made
        at this time and moved to another app since; and whether it is deleted and waits for its
        purge. None where there is none."""
        found = memories.id_of(self.tx, app_id, sha1)
        if found is not None or app_id in self._new["app"]:
            return found
        if app_id not in self._reworded:
            self._reworded[app_id] = {
                sha1_of(old["memory_type"], old["key"], old["value"]): memory_id
                for memory_id, old in changes.former_wordings(self.tx, app_id)
            }
        here = self._reworded[app_id].get(sha1)
        if here is None and created_at is not None:
            here = memories.made_at(self.tx, self._homes, sha1, created_at)
        return None if here is None or here in self._new["memory"] else (here, False)

    def _is_forgotten(self, values: Values, said_at: datetime) -> bool:
        """Whether this fact was forgotten after it was said. Others that share words with a
        forgotten one are not."""
        # What holds in every app may have been moved into one before it was forgotten.
        shared = [self._shared]
        app_ids = self._homes if values["app_id"] in shared else [values["app_id"], *shared]
        if not any(tombstones.any_in(self.tx, one) for one in app_ids):
            return False
        mark = tombstones.value_mark(values["key"], values["value"])
        return any(said_at <= at for at in tombstones.find(self.tx, app_ids, [mark]).values())

    def _evidence(self, values: Values) -> None:
        memory_id = self._need("memory", values["memory_id"])
        message_id = self._need("message", values["message_id"])
        if message_id in self._aside:
            self._unsaid.add(memory_id)
        elif memory_id in self._new["memory"] or message_id in self._new["message"]:
            self._add(kinds.EVIDENCE, values)

    def _event(self, values: Values) -> None:
        if self._need("memory", values["memory_id"]) not in self._new["memory"]:
            return
        for state in filter(None, (values["old"], values["new"])):
            if "replaced_by" in state:
                state["replaced_by"] = self._ids.get(("memory", state["replaced_by"]))
        self._add(kinds.EVENT, values)

    def _inbox_item(self, values: Values) -> None:
        for name in ("memory_id", "related_id", "target_id"):
            if values[name] is not None:
                self._need("memory", values[name])
        if values["app_id"] not in self._new["app"] and self._is_answered(values["app_id"], values):
            self._known["inbox_item"] += 1
        else:
            start, words = values["start"], values["quote"] or ""
            end = None if start is None else start + len(words)
            said = self._ids.get(("message", values["message_id"]))
            query = sa.select(schema.messages.c.session_id).where(schema.messages.c.id == said)
            there = self.tx.execute(query).scalar()
            self._add(kinds.INBOX_ITEM, values, end=end, session_id=there)

    def _is_answered(self, app_id: int, item: Values) -> bool:
        """Whether the same question was asked here before, or its answer is known."""
        message_id = self._ids.get(("message", item["message_id"]))
        if message_id is not None and message_id not in self._new["message"]:
            return True
        if proposals.holds(self.tx, app_id, {name: item[name] for name in _ITEM}):
            return True
        if item["key"] is None or item["value"] is None:
            return False
        sha1 = sha1_of(item["memory_type"] or "", item["key"], item["value"])
        known = item["relation"] != "ends" and self._known_fact(app_id, sha1) is not None
        return known or self._is_forgotten(item, item["created_at"])

    def _note(self, values: Values) -> None:
        app_id, changed_at = values["app_id"], values["updated_at"]
        key = values["type"], values["external_id"]
        known = rows.by_external_id(self.tx, app_id, *key)
        last = rows.deleted_at(self.tx, app_id, *key) if known is None else known.updated_at
        later = changed_at is not None and (last is None or changed_at > last)
        if known is None and last is not None and not later:
            return self._settle(self._forgotten_here, kinds.NOTE, values, None)
        same = known and (values["title"], values["content"]) == (known.title, known.text)
        if known is not None and (same or not later):
            return self._settle(self._known, kinds.NOTE, values, known.id)
        new = types.NewNote(values["content"], values["title"], *key, profile=values["profile"])
        cut = self.cutter.prepare(new)
        if not cut.parts:
            raise InputError("its content has no words")
        if known is None:
            note_id = self._add(kinds.NOTE, values, sized_for=cut.sized_for)
            details.put_tags(self.tx, schema.sources, note_id, values["tags"].split())
        else:
            note_id, _ = rows.put(self.tx, app_id, new, changed_at, sized_for=cut.sized_for)
            rows.change(self.tx, [note_id], missing=int(values["missing"]))
            self.tx.forget_bytes(app_id)
            self._changed_notes += 1
        rows.replace_chunks(self.tx, note_id, cut.parts, values["pair_id"], values["parent_id"])
        if known is None:
            rows.set_counts(self.tx, note_id, values["counts"] or {})

    def finish(self) -> types.Imported:
        """Complete what was written: links, search texts, queued work. Gives what was done."""
        self._close_session()
        for memory_id, in_file in self._replaced.items():
            replaced_by = self._ids.get(("memory", in_file))
            changes.set_columns(self.tx, memory_id, replaced_by=replaced_by)
        if self._talks or self._new["memory"]:
            apps.ensure_shared(self.tx, self.user)
        for session_id in self._talks:
            turns.write(self.tx, session_id)
        if self._forgotten:
            self._forget()
        if self._unsaid:
            self._take_back()
        searched = self._write_search_texts()
        self._retire_rivals()
        there = filter(None, (sessions.by_id(self.tx, session_id) for session_id in self._talks))
        described = sum(bool(one.extracted_to or one.summary) for one, _ in there)
        unread = [
            session.id
            for session, _ in sessions.ended_with_unread(self.tx, self.user)
            if session.id in self._talks and apps.memory_of(self.tx, session).on
        ]
        for session_id in unread:
            jobs.enqueue(self.tx, "extract", self._talks[session_id], session_id, self.tx.now)
        notes = self._added["note"] + self._changed_notes
        return types.Imported(
            dict(+self._added),
            dict(+self._known),
            self._forgotten_here["memory"],
            tuple(sorted(self._refused, key=lambda one: one.line)),
            len(unread),
            searched + described + notes if passages.wants_vectors(self.tx) else 0,
            changed_notes=self._changed_notes,
            deleted_notes=self._forgotten_here["note"],
            left_out=dict(self._left_out),
        )

    def _forget(self) -> None:
        """Purge the memories that were forgotten here, and blank their words in what came with
        them: also in replies to which they may have been shown, as no receipts come with those."""
        gone = [memory for memory in self._present() if memory.id in self._forgotten]
        known_at = min(memory.created_at for memory in gone)
        shown_in = {
            session_id
            for session_id in self._talks
            for turn in messages.of_session(self.tx, session_id)
            if turn.role == "assistant" and turn.created_at >= known_at
        }
        purge.forget(self.tx, gone, shown_in=shown_in)

    def _take_back(self) -> None:
        """Purge, without a tombstone, the new memories that only unseen versions prove."""
        proved = changes.evidence_of_memories(self.tx, self._unsaid)
        gone = [one for one in self._present() if one.id in self._unsaid.difference(proved)]
        purge.forget(self.tx, gone, tombstone=False)
        self._added["memory"] -= len(gone)
        self._known["memory"] += len(gone)

    def _write_search_texts(self) -> int:
        """Write the texts of the new memories; how many are searched."""
        searched = 0
        for memory in self._present():
            app_id = self._new["memory"][memory.id]
            words = purge.present_search_text(self.tx, memory, app_id)
            found = memory.active or memory.inactive_reason == "superseded"
            passages.put_text(self.tx, "fact", memory.id, app_id, words, searched=found)
            searched += found
        return searched

    def _retire_rivals(self) -> None:
        """Of a key that holds one value, the one that was said last holds, also where the store had
        another before."""
        new = self._new["memory"]
        slots = {(new[memory.id], memory.key) for memory in self._present() if memory.active}
        for app_id, key in sorted(slots):
            tx = self.tx.within(app_id)
            holding = sorted(values_of_key(tx, app_id, key), key=said_order)
            if all(memory.id in new for memory in holding):
                continue  # so it was where they come from
            cause = Cause("user", "imported")
            for memory in holding[:-1]:
                changes.deactivate(self.tx, memory, "superseded", cause, replaced_by=holding[-1].id)

    def _present(self) -> list[types.Memory]:
        """The new memories as their rows are now."""
        new = self._new["memory"]
        return [*memories.by_ids(self.tx, sorted({*new.values()}), sorted(new)).values()]


def _pairs(turns: Sequence[Values], said: Sequence[types.Message]) -> dict[int, int]:
    """Which messages are the same: their ids in the file, and those here. Words may have been
    blanked in one of the two."""
    left: defaultdict[tuple[str, datetime], list[types.Message]] = defaultdict(list)
    for message in said:
        left[message.role, message.created_at].append(message)
    pairs: dict[int, int] = {}
    for turn in turns:
        there = left[turn["role"], turn["created_at"]]
        same = next((one for one in there if _is_same(turn["content"], one.content)), None)
        if same is not None:
            there.remove(same)
            pairs[turn["id"]] = same.id
    return pairs


def _is_same(here: str, there: str) -> bool:
    return here == there or (
        len(here) == len(there)
        and all(a == b or FILLER in (a, b) for a, b in zip(here, there, strict=True))
    )


def import_file(
    assembly: Assembly,
    scope: types.Scope,
    file: Path,
    *,
    dry_run: bool,
    progress: types.OnProgress | None,
) -> types.Imported:
    """Import an export file as this person's. Others who write wait meanwhile."""
    done, report = None, types.timed(progress, "records")
    with suppress(_DryRun), kinds.opened(file) as (contains, records):
        # The model may be asked how much it reads, and so before the transaction.
        cutter = Cutter(assembly.usable_embedder() if contains.get("note") else None)
        expected = sum(contains.values())
        with assembly.database.write() as tx:
            run = ImportRun(tx, scope.user, cutter)
            for count, (line, record) in enumerate(records, 1):
                run.take(line, record)
                if count % _EVERY == 0:
                    report(count, max(expected, count))
            done = run.finish()
            if dry_run:
                raise _DryRun
    assert done is not None
    return replace(done, dry_run=dry_run)
