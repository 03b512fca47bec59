"""What must hold in the store after every kill, judged from the diaries and the rows alone."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import crash_notes
from memchat.db import Tx
from memchat.db.records import utc_text
from memchat.forget.wording import FILLER
from memchat.processes import has_ended
from memchat.search import embeddings, vector_index
from memchat.search.embed import shortened
from memchat.search.vector_index import VectorIndex

_TAG = re.compile(r"Turn (\w+)$")
_FRESH = 20
"""Stored vectors compared with the index's own at each check."""


@dataclass(slots=True)
class Call:
    """One call of one process. ``returned`` is infinite for one that never came back."""

    name: str
    began: int
    what: dict[str, Any]
    returned: float = math.inf
    refused: bool = False


@dataclass(slots=True)
class Diaries:
    """All that the processes wrote down, read on as it grows."""

    folder: Path
    calls: dict[tuple[str, int], Call] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    _read: Counter[str] = field(default_factory=Counter)

    def read(self) -> None:
        """Take in the whole lines that are new."""
        for path in sorted(self.folder.iterdir()):
            with path.open("rb") as file:
                file.seek(self._read[path.name])
                for raw in file:
                    if raw.endswith(b"\n"):
                        self._read[path.name] += len(raw)
                        self._take(path.name, json.loads(raw))

    def _take(self, name: str, line: dict[str, Any]) -> None:
        if "error" in line:
            self.errors.append(f"{name}: {line['error']}")
        elif "began" in line:
            call = Call(line.pop("call"), line.pop("began"), line)
            self.calls[name, line.pop("n")] = call
        else:
            call = self.calls[name, line.pop("n")]
            call.returned = line.pop("returned")
            call.refused = "refused" in line
            call.what |= line

    @property
    def acknowledged(self) -> list[Call]:
        """The calls that returned."""
        return [call for call in self.calls.values() if call.returned < math.inf]


def every_fault(
    tx: Tx, diaries: Diaries, cut: int, since: datetime, indexes: list[VectorIndex]
) -> Iterator[str]:
    """All that is wrong in this snapshot, one line each.

    ``cut`` is a monotonic time before the snapshot: what was acknowledged until then must be in it.
    ``since`` is when the last start ended abandoned sessions and began to work off the queue.
    """
    tx.connection.exec_driver_sql("SELECT count(*) FROM apps").scalar()  # the snapshot begins here
    diaries.read()
    yield from _file(tx)
    yield from _keyword_rows(tx)
    yield from _index(tx, indexes)
    yield from _vectors(tx)
    yield from _replayed(tx)
    yield from _kept_turns(tx, diaries, cut)
    yield from _kept_memories(tx, diaries, cut)
    yield from _sessions(tx, since)
    yield from crash_notes.every_fault(tx, diaries.calls, cut, indexes)


def _rows(tx: Tx, sql: str) -> list[Any]:
    return list(tx.connection.exec_driver_sql(sql))


_SEARCHED = "(active = 1 OR inactive_reason = 'superseded')"


def _file(tx: Tx) -> Iterator[str]:
    for (found,) in _rows(tx, "PRAGMA integrity_check"):
        if found != "ok":
            yield f"integrity: {found}"
    for row in _rows(tx, "PRAGMA foreign_key_check"):
        yield f"foreign key: {tuple(row)}"


def _keyword_rows(tx: Tx) -> Iterator[str]:
    searched = _rows(tx, f"SELECT id, app_id || 'q' FROM memories WHERE {_SEARCHED}")
    yield from _differ("keyword rows of memories", searched, _scopes(tx, 0, searched))
    said = _rows(
        tx,
        "SELECT m.id, s.app_id || CASE m.role WHEN 'user' THEN 't' ELSE 'r' END"
        " FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.memory = 1",
    )
    yield from _differ("keyword rows of messages", said, _scopes(tx, 1, said))


def _scopes(tx: Tx, kind: int, wanted: list[Any]) -> list[Any]:
    """Each keyword row's scope, which stands before its words; one without words has any."""
    of = {row[0]: row[1] for row in wanted}
    rows = _rows(tx, f"SELECT rowid >> 2, text FROM passages_fts WHERE rowid & 3 = {kind}")
    return [(i, re.match(r"\d+[qtr]", text).group() if text else of.get(i)) for i, text in rows]


def _index(tx: Tx, indexes: list[VectorIndex]) -> Iterator[str]:
    stored: dict[int, dict[int, bytes]] = {app: {} for (app,) in _rows(tx, "SELECT id FROM apps")}
    for app, memory, vector in _rows(
        tx,
        "SELECT m.app_id, m.id, e.embedding FROM memories m JOIN passages p ON p.id = m.id << 2"
        f" JOIN embeddings e ON e.hash = p.hash WHERE {_SEARCHED}",
    ):
        stored[app][memory] = vector
    for number, index in enumerate(indexes):
        yield from _said(tx, index)
        for app, rows in stored.items():
            yield from _differ(f"index {number} of scope {app}", rows, index.ids(tx, app))
            for memory in random.sample(sorted(rows), min(_FRESH, len(rows))):
                yield from _stale(tx, index, app, memory, rows[memory])


def _stale(tx: Tx, index: VectorIndex, app: int, memory: int, stored: bytes) -> Iterator[str]:
    import numpy as np

    vector = np.frombuffer(stored, "<f4")
    cosine = index.scores(tx, [app], vector, [memory]).get(memory, 0.0)
    if abs(cosine - 1) > 1e-4:
        yield f"the index holds an old vector of memory {memory} (cosine {cosine:.3f} to its row)"


def _said(tx: Tx, index: VectorIndex) -> Iterator[str]:
    """What the index holds of conversations, against another that reads all rows anew."""
    import numpy as np

    for (app,) in _rows(tx, "SELECT id FROM apps"):
        turns = embeddings.of_turns(tx, index.service_id, app)
        size = next((len(turn[3]) // 4 for turn in turns if turn[3] is not None), 1)
        rows = dict(zip(*vector_index.blend_neighbours(turns, size), strict=True))
        yield from _differ(f"messages of scope {app}", rows, index.ids(tx, app, "turn"))
        told = embeddings.of_kind(tx, index.service_id, "summary", app).ids
        yield from _differ(f"summaries of scope {app}", told, index.ids(tx, app, "summary"))
        for message in random.sample(sorted(rows), min(_FRESH, len(rows))):
            vector = np.asarray(rows[message], np.float32)
            cosine = index.scores(tx, [app], vector, [message], "turn").get(message, 0.0)
            if abs(cosine - 1) > 1e-4:
                yield f"the index holds an old vector of message {message} (cosine {cosine:.3f})"


def _vectors(tx: Tx) -> Iterator[str]:
    queued = "SELECT owner_id FROM passages WHERE kind = 'fact' AND status = -1"
    waiting = {memory for (memory,) in _rows(tx, queued)}
    for (memory,) in _rows(
        tx,
        f"SELECT id FROM memories WHERE {_SEARCHED}"
        " AND id << 2 NOT IN (SELECT p.id FROM passages p JOIN embeddings e ON e.hash = p.hash)",
    ):
        if memory not in waiting:
            yield f"memory {memory} has no vector and nothing will make one"
    held = {key for (key,) in _rows(tx, "SELECT hash FROM embeddings")}
    held -= {key for (key,) in _rows(tx, "SELECT hash FROM passages")}
    asked = _rows(tx, "SELECT content FROM messages WHERE role = 'user'")
    held -= {embeddings.query_hash(shortened(content)) for (content,) in asked}
    if held:
        yield f"{len(held)} vectors are left of words that are no more"


def _replayed(tx: Tx) -> Iterator[str]:
    """The events, told from the beginning, end in the rows."""
    told: dict[int, dict[str, Any]] = {}
    for memory, app, kind, new in _rows(
        tx, "SELECT memory_id, app_id, kind, new FROM memory_events ORDER BY id"
    ):
        state = told.setdefault(memory, {"active": True})
        state["app"] = app
        state |= json.loads(new) if new else {}
        if kind in ("supersede", "merge", "expire", "end", "hide"):
            state["active"] = False
        elif kind in ("add", "restore"):
            state["active"] = True
        elif kind == "forget":
            told[memory] = {"gone": True}
    rows = {
        row.id: row
        for row in _rows(tx, "SELECT id, app_id, active, value, key, expires_at FROM memories")
    }
    yield from _differ("rows told by events", {i for i, s in told.items() if "gone" not in s}, rows)
    for memory, row in rows.items():
        state = told.get(memory, {})
        happened = (state.get("app"), state.get("active"), state.get("value"), state.get("key"))
        if happened != (row.app_id, bool(row.active), row.value, row.key):
            yield f"memory {memory} is {tuple(row)} but its events say {state}"


def _kept_turns(tx: Tx, diaries: Diaries, cut: int) -> Iterator[str]:
    rows = _rows(tx, "SELECT id, session_id, role, content FROM messages")
    by_id = {row.id: row for row in rows}
    tagged = {found[1]: row for row in rows if (found := _TAG.search(row.content))}
    for call in diaries.calls.values():
        if call.returned > cut or call.name not in ("say", "listen"):
            continue
        if call.name == "say":
            found = _TAG.search(call.what["text"])
            row = tagged.get(found[1]) if found else None
            there = row is not None and row.session_id == call.what["session"]
        else:
            row = by_id.get(call.what["id"])
            there = row is not None
        if row is None or not there or not _same_words(call.what["text"], row.content):
            yield f"LOST an acknowledged message: {call.what}, the row is {row}"


def _same_words(said: str, kept: str) -> bool:
    """Equal but for what a deletion blanked."""
    return said == kept or (
        len(said) == len(kept) and all(b in (a, FILLER) for a, b in zip(said, kept, strict=True))
    )


def _kept_memories(tx: Tx, diaries: Diaries, cut: int) -> Iterator[str]:
    rows: dict[int, str] = dict(map(tuple, _rows(tx, "SELECT id, value FROM memories")))
    went_with: dict[int, set[int]] = defaultdict(set)
    for loser, winner in _rows(
        tx, "SELECT memory_id, related_id FROM memory_events WHERE kind = 'merge'"
    ):
        went_with[loser].add(winner)
    calls: dict[int, list[Call]] = defaultdict(list)
    for call in diaries.calls.values():
        if call.name in ("add", "edit", "delete") and "id" in call.what and not call.refused:
            calls[call.what["id"]].append(call)
    for memory, done in calls.items():
        deleted = [c for c in done if c.name == "delete"]
        written = [c for c in done if c.name != "delete"]
        if memory not in rows:
            acknowledged = [c for c in written if c.returned <= cut]
            if acknowledged and not _may_be_gone(memory, calls, went_with):
                yield f"LOST an acknowledged memory: {memory}, {acknowledged[-1].what}"
        elif any(c.returned <= cut for c in deleted):
            yield f"memory {memory} was deleted, acknowledged, and is back"
        elif (allowed := _may_stand(written, cut)) and rows[memory] not in allowed:
            yield f"LOST an acknowledged edit of {memory}: {rows[memory]!r}, not {allowed}"


def _may_be_gone(memory: int, calls: dict[int, list[Call]], went_with: dict[int, set[int]]) -> bool:
    """Whether anybody began to delete it, or what it was merged into."""
    seen, ahead = set[int](), {memory}
    while ahead:
        seen |= ahead
        if any(call.name == "delete" for one in ahead for call in calls.get(one, ())):
            return True
        ahead = set().union(*(went_with.get(one, set()) for one in ahead)) - seen
    return False


def _may_stand(written: list[Call], cut: int) -> set[str]:
    """The values no acknowledged write came wholly after; empty where nothing is certain."""
    last = max((c.began for c in written if c.returned <= cut), default=None)
    if last is None:
        return set()
    return {c.what["value"] for c in written if c.returned >= last}


def _sessions(tx: Tx, since: datetime) -> Iterator[str]:
    for session, owner in _rows(
        tx, "SELECT id, lease_owner FROM sessions WHERE ended_at IS NULL AND lease_owner NOT NULL"
    ):
        if has_ended(owner):
            yield f"session {session} is open, its process {owner} is gone"
    for session, status, owner, run_at in _rows(
        tx,
        "SELECT s.id, j.status, j.lease_owner, j.run_at FROM sessions s"
        " LEFT JOIN jobs j ON j.kind = 'extract' AND j.source_id = s.id"
        " WHERE s.ended_at IS NOT NULL AND EXISTS (SELECT 1 FROM messages m"
        " WHERE m.session_id = s.id AND m.role = 'user' AND m.id > s.extracted_to)",
    ):
        under_way = owner is not None and not has_ended(owner)
        if status != -1 or not (under_way or run_at >= utc_text(since)):
            yield f"LOST session {session}: ended, unread, its job is {(status, owner, run_at)}"
    for job, kind, status, error in _rows(
        tx,
        "SELECT * FROM (SELECT id, kind, status, error_message FROM jobs UNION ALL"
        " SELECT id, kind, status, error_message FROM passages)"
        " WHERE status > 0 OR error_message > ''",
    ):
        yield f"job {job} ({kind}) failed with {status}: {error}"
    for session, count in _rows(
        tx,
        "SELECT session_id, count(*) FROM usage WHERE purpose = 'extract'"
        " GROUP BY session_id HAVING count(*) > 1",
    ):
        yield f"session {session} was read {count} times"


def _differ(what: str, wanted: Any, found: Any) -> Iterator[str]:
    wanted, found = {_plain(row) for row in wanted}, {_plain(row) for row in found}
    if wanted != found:
        yield f"{what}: missing {sorted(wanted - found)[:5]}, too many {sorted(found - wanted)[:5]}"


def _plain(row: Any) -> Any:
    return row if isinstance(row, int) else tuple(row)
