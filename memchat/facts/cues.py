"""Cues: words for the situations that need a fact. They are part of the text that search indexes.

The model gives them with a fact; for a fact entered by hand a table gives those of its key. They
are never shown, and prove nothing.

Cues: search words that a model added to memories, inbox items and refusals.

The model wrote a fact's cues with the whole conversation before it, so they may name other facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Connection

from memchat.db import database
from memchat.facts import lists
from memchat.search import keywords
from memchat.types import EVERY_APP

COMMON_FROM = 10
"""From how many facts on cues that most of them share are left out."""
COMMON_SHARE = 5
"""A cue of more than one in this many facts does not tell them apart."""

_TABLE = {
    "name": "greeting signature introduction letter form booking called",
    "nickname": "greeting chat call",
    "age": "birthday old born years form insurance",
    "birthday": "born age party gift celebration zodiac",
    "gender": "clothes form address",
    "pronouns": "bio introduction form address",
    "city": "live home weather restaurants directions local travel events",
    "country": "live home law tax holidays travel visa",
    "nationality": "passport visa travel embassy from",
    "address": "live home delivery directions parcel form",
    "home": "live house flat rent rooms furniture repairs",
    "job": "work career profession office colleagues expertise",
    "employer": "work company office colleagues job email",
    "salary": "money income budget tax rent saving",
    "timezone": "time clock meeting call schedule",
    "marital_status": "married single family wedding form",
    "partner": "husband wife spouse gift anniversary weekend family",
    "diet": "food cooking recipe dinner lunch restaurant meal eat groceries",
    "native_language": "speak translation writing words",
    "phone_model": "app settings charger repair screen buy",
    "height": "clothes size bike weight tall",
    "weight": "diet exercise fitness health kilos",
    "blood_type": "hospital donation doctor emergency health",
    "commute": "work travel train bus morning traffic",
    "wake_time": "morning alarm sleep schedule breakfast",
    "bedtime": "night sleep evening schedule tired",
    "work_hours": "meeting schedule call evening free",
    "favourite_drink": "drink cafe bar order thirsty",
    "favourite_food": "food dinner cooking restaurant order eat",
    "favourite_colour": "clothes paint design decoration gift buy",
    "allergy": "food restaurant recipe snack medicine ingredients doctor eat",
    "hobby": "weekend free time fun gift relax",
    "skill": "help project learn expertise career",
    "project": "work progress deadline plan build",
    "language": "speak translation travel writing learn",
    "pet": "animal vet food holiday walk fur",
    "friend": "meet party gift visit",
    "child": "kids school family parenting toys birthday holiday",
    "sibling": "family brother sister visit gift",
    "colleague": "work office meeting team",
    "like": "gift recommendation choose enjoy",
    "dislike": "avoid recommendation choose hate",
    "interest": "recommendation read learn weekend topic",
    "goal": "plan progress motivation habit",
    "plan": "schedule calendar upcoming prepare",
    "appointment": "calendar schedule reminder when date",
    "trip": "travel packing flight hotel holiday weather",
    "habit": "routine daily morning evening",
    "medication": "doctor pharmacy health alcohol pain side effects",
    "event": "calendar date prepare tickets",
    "book": "read recommendation author library",
    "film": "watch movie recommendation evening cinema",
    "music": "listen song playlist concert",
    "sport": "exercise training fitness weekend injury",
    "recipe": "cooking dinner ingredients meal",
    "food_like": "dinner cooking restaurant recipe eat order",
    "food_dislike": "dinner cooking restaurant recipe avoid eat",
    "food_preference": "dinner cooking restaurant recipe eat order",
    "learning": "study course practice exercises lesson",
    "health_condition": "doctor exercise food medicine travel pain",
    "family": "visit gift relatives holiday parents",
}


def of_key(key: str) -> tuple[str, ...]:
    """The cues of a key in the table; none for other keys."""
    return tuple(_TABLE.get(key, "").split())


def distinctive(tx: Connection, app_id: int, cues: Sequence[str]) -> list[str]:
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
_LACKING = (
    "SELECT m.id, m.app_id, m.key, m.value, m.sensitive FROM memories m"
    " JOIN apps a ON a.id = m.app_id"
    " LEFT JOIN apps shared ON shared.user = a.user AND shared.name = ?"
    " WHERE m.active = 1 AND m.cues = '' AND (m.expires_at IS NULL OR m.expires_at >= ?)"
    " AND a.memory = 1 AND coalesce(shared.memory, 1) = 1"
)


def remove_words(tx: Connection, app_id: int, unwanted: Callable[[set[str]], set[str]]) -> set[int]:
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
    found = database.rows(tx, every, scopes)
    gone = unwanted({cue for _, _, cues in found for cue in cues.split()})
    changed = set()
    for table, row_id, cues in found:
        left = " ".join(cue for cue in cues.split() if cue not in gone)
        if left != cues:
            database.rows(tx, f"UPDATE {table} SET cues = ? WHERE id = ?", left, row_id)
            if table == "memories":
                changed.add(int(row_id))
    return changed


@dataclass(frozen=True, slots=True)
class FactWithoutCues:
    """An active fact that has no cues."""

    id: int
    app_id: int
    key: str
    value: str
    sensitive: bool


def facts_without_cues(tx: Connection, today: date) -> list[FactWithoutCues]:
    """The facts in use today that have no cues, of all users whose memory is on."""
    return _read(database.rows(tx, f"{_LACKING} ORDER BY m.id", EVERY_APP, today.isoformat()))


def still_without_cues(
    tx: Connection, facts: Sequence[FactWithoutCues], today: date
) -> list[FactWithoutCues]:
    """Those of these facts that are still in use and unchanged, and still have no cues."""
    sql = f"{_LACKING} AND m.id IN (SELECT value FROM json_each(?))"
    ids = database.json_list(fact.id for fact in facts)
    there = {*_read(database.rows(tx, sql, EVERY_APP, today.isoformat(), ids))}
    return [fact for fact in facts if fact in there]


def _read(found: Sequence[Any]) -> list[FactWithoutCues]:
    return [
        FactWithoutCues(i, app_id, key, value, bool(sensitive))
        for i, app_id, key, value, sensitive in found
    ]


def set_cues(tx: Connection, fact: FactWithoutCues, words: Sequence[str]) -> bool:
    """Set the cues of a fact that is unchanged and has none; False if it changed or has some."""
    if not words:
        return False
    same = "id = ? AND active = 1 AND cues = '' AND key = ? AND value = ?"
    there = database.rows(tx, f"SELECT 1 FROM memories WHERE {same}", fact.id, fact.key, fact.value)
    if there:
        database.rows(tx, "UPDATE memories SET cues = ? WHERE id = ?", " ".join(words), fact.id)
    return bool(there)
