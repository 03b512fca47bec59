"""The words to search by that stand with a user's memories, with what waits and what was not kept.

A model wrote them, for one fact, from all that it read: they may name another.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from memchat.store import plain

_TABLES = ("memories", "inbox", "refusals")


def strip(tx: Connection, app_id: int, unwanted: Callable[[str], bool]) -> set[int]:
    """Take words out of the cues of all that the user of a scope row has, in every app; the
    memories that had any, whose searched text is to be made anew."""
    changed = set()
    for table in _TABLES:
        found = plain.rows(
            tx,
            f"SELECT t.id, t.cues FROM apps here JOIN apps a ON a.user = here.user"
            f" JOIN {table} t ON t.app_id = a.id WHERE here.id = ? AND t.cues != ''",
            app_id,
        )
        for row_id, cues in found:
            left = " ".join(cue for cue in cues.split() if not unwanted(cue))
            if left != cues:
                plain.rows(tx, f"UPDATE {table} SET cues = ? WHERE id = ?", left, row_id)
                if table == "memories":
                    changed.add(int(row_id))
    return changed
