"""Programs that use the store over MCP: who called, and what each of them wrote."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memchat.db import Tx, database
from memchat.db.records import from_text
from memchat.db.schema import utc_text
from memchat.types import Client, ClientMode, ClientWrite, WriteKind

_ENSURE = """
    INSERT INTO clients (app_id, name, mode, calls, first_call_at, last_call_at)
    VALUES (?1, ?2, ?3, 1, ?4, ?4) ON CONFLICT (app_id, name) DO UPDATE SET
    mode = excluded.mode, calls = calls + 1, last_call_at = excluded.last_call_at RETURNING id
"""
_OF_MEMORIES = """
    SELECT s.memory_id, c.name FROM memory_sources s JOIN memories m ON m.id = s.memory_id
    JOIN messages t ON t.id = s.message_id JOIN clients c ON c.session_id = t.session_id
    WHERE s.memory_id IN (SELECT value FROM json_each(?)) AND m.created_by = 'mcp'
    ORDER BY s.message_id
"""
_ASKED_ALONE = """
    SELECT DISTINCT i.id FROM client_writes w JOIN clients c ON c.id = w.client_id
    JOIN inbox i ON i.id = w.target_id AND i.app_id = c.app_id
    WHERE w.client_id = ? AND w.kind = 'inbox' AND i.status = 'pending' AND i.created_at = w.at
    AND NOT EXISTS (SELECT 1 FROM client_writes o WHERE o.client_id <> w.client_id
        AND o.kind = 'inbox' AND o.target_id = i.id)
"""
"""What was asked later than the item is old was there before the program asked."""
_WAITING = """
    SELECT count(DISTINCT i.id) FROM client_writes w JOIN inbox i ON i.id = w.target_id
    WHERE w.client_id = c.id AND w.kind IN ('inbox', 'forget') AND i.status = 'pending'
"""
_LISTED = f"""
    SELECT c.name, c.mode, c.calls, c.first_call_at, c.last_call_at, c.session_id,
        (SELECT count(DISTINCT w.target_id) FROM client_writes w JOIN memories m
            ON m.id = w.target_id WHERE w.client_id = c.id AND w.kind = 'memory'),
        ({_WAITING}),
        (SELECT count(DISTINCT w.target_id) FROM client_writes w JOIN sources s
            ON s.id = w.target_id WHERE w.client_id = c.id AND w.kind = 'note'),
        (SELECT count(*) FROM client_writes w WHERE w.client_id = c.id AND w.kind = 'forget')
    FROM clients c WHERE c.app_id = ?
"""


def record_call(tx: Tx, app_id: int, name: str, mode: ClientMode, now: datetime) -> int:
    """Count a call of a program; its id."""
    return int(tx.rows(_ENSURE, app_id, name, mode, utc_text(now))[0][0])


def find(tx: Tx, app_id: int, name: str) -> int | None:
    """The id of the program of this name."""
    found = tx.rows("SELECT id FROM clients WHERE app_id = ? AND name = ?", app_id, name)
    return int(found[0][0]) if found else None


def app_id_of(tx: Tx, client_id: int) -> int:
    """The scope row in which a program calls."""
    return int(tx.rows("SELECT app_id FROM clients WHERE id = ?", client_id)[0][0])


def session_of(tx: Tx, client_id: int) -> int | None:
    """The conversation that holds what a program said; None where there is none (any more)."""
    found = tx.rows("SELECT session_id FROM clients WHERE id = ?", client_id)
    return None if not found or found[0][0] is None else int(found[0][0])


def set_session(tx: Tx, client_id: int, session_id: int) -> None:
    """Store which conversation holds what a program says."""
    tx.rows("UPDATE clients SET session_id = ? WHERE id = ?", session_id, client_id)


def record_write(tx: Tx, client_id: int, kind: WriteKind, target_id: int, now: datetime) -> None:
    """Note that a program wrote something."""
    tx.insert(
        "client_writes", client_id=client_id, at=utc_text(now), kind=kind, target_id=target_id
    )


def writes(
    tx: Tx, client_id: int, *, kind: WriteKind | None = None, since: datetime | None = None
) -> list[ClientWrite]:
    """What a program wrote, oldest first; of one kind, or since a time."""
    sql = (
        "SELECT kind, target_id, at FROM client_writes WHERE client_id = ?1"
        " AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR at >= ?3) ORDER BY id"
    )
    after = None if since is None else utc_text(since)
    rows = tx.rows(sql, client_id, kind, after)
    return [from_text(ClientWrite, row) for row in rows]


def of_memories(tx: Tx, memory_ids: Sequence[int]) -> dict[int, str]:
    """The program that stored each of these memories, by memory id; the last one where several
    did. Memories that no program stored are left out."""
    return dict(tx.rows(_OF_MEMORIES, database.json_list(memory_ids)))


def waiting(tx: Tx, client_id: int) -> int:
    """How many inbox items wait because a program asked."""
    sql = f"SELECT ({_WAITING}) FROM clients c WHERE c.id = ?"
    return int(tx.rows(sql, client_id)[0][0])


def asked_alone(tx: Tx, client_id: int) -> list[int]:
    """The inbox items that wait because this program asked, and nobody else did."""
    return [int(row[0]) for row in tx.rows(_ASKED_ALONE, client_id)]


def record_note(tx: Tx, client_id: int, note_id: int, now: datetime) -> None:
    """Note that a program stored this note, or replaced what it had stored."""
    sql = "SELECT id FROM client_writes WHERE client_id = ? AND kind = 'note' AND target_id = ?"
    found = tx.rows(sql, client_id, note_id)
    if found:
        sql = "UPDATE client_writes SET at = ? WHERE id = ?"
        tx.rows(sql, utc_text(now), found[0][0])
    else:
        record_write(tx, client_id, "note", note_id, now)


def note_written_at(tx: Tx, client_id: int, note_id: int) -> datetime | None:
    """When a program last stored this note; None where it did not."""
    sql = "SELECT at FROM client_writes WHERE client_id = ? AND kind = 'note' AND target_id = ?"
    found = tx.rows(sql, client_id, note_id)
    return database.parse_time(found[0][0]) if found else None


def remove_writes(tx: Tx, client_id: int, *, but_notes: Sequence[int] = ()) -> None:
    """Forget what a program wrote, once it was undone. What it asked to forget is asked still, and
    stays here, as do these notes."""
    sql = (
        "DELETE FROM client_writes WHERE client_id = ? AND kind <> 'forget' AND NOT"
        " (kind = 'note' AND target_id IN (SELECT value FROM json_each(?)))"
    )
    tx.rows(sql, client_id, database.json_list(but_notes))


def listed(tx: Tx, app_ids: Sequence[int]) -> list[Client]:
    """The programs that called for these scope rows, the last one first."""
    found = [row for one in app_ids for row in tx.rows(_LISTED, one)]
    clients = [from_text(Client, row) for row in found]
    return sorted(clients, key=lambda client: client.last_call_at, reverse=True)
