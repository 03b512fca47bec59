"""Cues: words for the situations that need a fact. The model gives them with the fact, with the
whole conversation before it, so they may name other facts. They are part of the text that search
indexes, are never shown, and prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memchat.db import Tx, database
from memchat.facts import lists
from memchat.search import keywords

COMMON_FROM = 10
"""From how many facts on cues that most of them share are left out."""
COMMON_SHARE = 5
"""A cue of more than one in this many facts does not tell them apart."""


def distinctive(tx: Tx, app_id: int, cues: Sequence[str]) -> list[str]:
    """These cues without those that more than a fifth of the user's facts have."""
    if not cues:
        return []
    scopes = keywords.related_app_ids(tx, app_id)
    count = lists.count_active(tx, scopes)
    if count < COMMON_FROM:
        return list(cues)
    most = count // COMMON_SHARE
    return [cue for cue in cues if not keywords.is_held_by_more(tx, "fact", scopes, cue, most)]


_TABLES = ("memories", "inbox", "refusals")


def remove_words(tx: Tx, app_id: int, unwanted: Callable[[set[str]], set[str]]) -> set[int]:
    """Remove words from the cues of everything the scope's user has, in every app.

    ``unwanted`` is given all cues and returns those to remove. Returns the ids of the memories that
    lost a cue; their search text has to be written again.
    """
    scopes = database.json_list(keywords.related_app_ids(tx, app_id))
    every = " UNION ALL ".join(
        f"SELECT '{table}', id, cues FROM {table}"
        " WHERE app_id IN (SELECT value FROM json_each(?1)) AND cues != ''"
        for table in _TABLES
    )
    found = tx.rows(every, scopes)
    gone = unwanted({cue for _, _, cues in found for cue in cues.split()})
    changed = set()
    for table, row_id, cues in found:
        left = " ".join(cue for cue in cues.split() if cue not in gone)
        if left != cues:
            tx.rows(f"UPDATE {table} SET cues = ? WHERE id = ?", left, row_id)
            if table == "memories":
                changed.add(int(row_id))
    return changed
