"""Cues: words for the situations that need a fact, which stand in the text it is searched by.

A model gives them with a fact. For one entered by hand they come from a table of known keys. They
are never shown, and prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from memchat.store import keywords, memory_lists, mentions

COMMON_FROM = 10
"""Facts from which on a person's cues are looked at for those that stand nearly everywhere."""
COMMON_SHARE = 5
"""A word that stands in more than one of so many facts tells none of them from another."""

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
    """The cues of a key that the table knows."""
    return tuple(_TABLE.get(key, "").split())


def telling(tx: Connection, app_id: int, cues: Sequence[str]) -> list[str]:
    """These cues without those that stand in over a fifth of the person's facts."""
    if not cues:
        return []
    scopes = mentions.related_app_ids(tx, app_id)
    count = memory_lists.count_active(tx, scopes)
    if count < COMMON_FROM:
        return list(cues)
    most = count // COMMON_SHARE
    return [cue for cue in cues if not keywords.is_held_by_more(tx, "memories", scopes, cue, most)]
