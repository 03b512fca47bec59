"""Notes as the tests add them."""

from __future__ import annotations

from memchat import MemChat
from memchat.db import Tx
from memchat.types import Note
from tests.support import private

ROOMS = (
    *("cellar", "attic", "kitchen", "garden", "garage"),
    *("library", "workshop", "terrace", "pantry", "hallway"),
)


def essay(rooms: int = len(ROOMS), sentences: int = 30) -> str:
    """A text of about as many chunks of a memo as rooms, each about another room."""
    return "\n\n".join(
        " ".join(
            f"In the {room} we counted {n} crates of {room} apples and wrote {n} {room} labels."
            for n in range(sentences)
        )
        for room in ROOMS[:rooms]
    )


def add(mc: MemChat, text: str, user: str = "ana", app: str = "default", **more) -> Note:
    note = mc.user(user, app=app).notes.add(text, **more)
    assert note is not None
    return note


def count(mc: MemChat, table: str) -> int:
    with private.database(mc).read() as tx:
        return tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()


def chunk_ids(tx: Tx, note_id: int) -> list[int]:
    """The chunks of one note, in their order."""
    sql = "SELECT id FROM chunks WHERE source_id = ? ORDER BY position"
    return list(tx.connection.exec_driver_sql(sql, (note_id,)).scalars())


def chunks(mc: MemChat) -> list[tuple[str, int, int, str, str | None]]:
    """Hash, offset, size, words and masked words of every chunk, in their order."""
    sql = (
        'SELECT c.hash, c."offset", c.size, substr(s.content, c."offset" + 1, c.size), c.masked'
        " FROM chunks c JOIN sources s ON s.id = c.source_id ORDER BY c.source_id, c.position"
    )
    with private.database(mc).read() as tx:
        return [tuple(row) for row in tx.connection.exec_driver_sql(sql)]
