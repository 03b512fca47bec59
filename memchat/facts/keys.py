"""Keys: the English names of what a value is about, and how many values a key holds."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from memchat.errors import InputError

Cardinality = Literal["one", "many"]
KEY_LIMIT = 64

_ONE = """
name full_name nickname age birthday gender pronouns city country nationality address home
job employer salary timezone marital_status partner diet native_language phone_model
height weight blood_type commute wake_time bedtime work_hours
theme units favourite_drink favourite_food favourite_colour
"""
ONE = frozenset(_ONE.split())
"""Keys that hold one value: a new one replaces the one before. A tool in use has the key of its
purpose (``editor``, ``issue_tracker``), and holds one value where the model says so."""

_MANY = """
allergy hobby skill project language pet friend child sibling colleague like dislike interest
goal plan appointment trip habit medication event book film music sport tool recipe note
next_step status approach problem decision task idea food_like food_dislike food_preference
preference learning health_condition family
"""
MANY = frozenset(_MANY.split())
"""Keys that hold several values; general ones are listed so that no value replaces another."""

_ALIASES = {
    "job": "job_title occupation profession role position work current_job current_role career",
    "employer": "company workplace works_at works_for current_employer",
    "city": "home_city location lives_in residence current_city hometown_current living_in town "
    "place_of_residence current_location city_of_residence",
    "country": "home_country country_of_residence",
    "name": "first_name user_name username preferred_name",
    "birthday": "birth_date date_of_birth birthdate",
    "diet": "dietary_preference diet_type current_diet eating_habits",
    "timezone": "time_zone",
    "partner": "spouse wife husband girlfriend boyfriend",
    "allergy": "allergies allergic_to food_allergy",
    "hobby": "hobbies pastime",
    "skill": "skills",
    "project": "projects current_project side_project",
    "language": "languages spoken_language speaks",
    "pet": "pets dog cat",
    "friend": "friends",
    "child": "children kid kids son daughter",
    "sibling": "siblings brother sister",
    "like": "likes liked loves enjoys",
    "dislike": "dislikes disliked hates",
    "food_dislike": "disliked_food food_dislikes disliked_foods",
    "food_like": "liked_food favorite_foods favourite_foods food_likes",
    "interest": "interests",
    "goal": "goals",
    "plan": "plans",
    "appointment": "appointments",
    "trip": "trips travel_plan travel",
    "learning": "learning_goal currently_learning studying",
    "favourite_drink": "favorite_drink",
    "favourite_food": "favorite_food",
    "favourite_colour": "favorite_color favourite_color favorite_colour",
}
ALIASES = {alias: key for key, names in _ALIASES.items() for alias in names.split()}

_COMMON = """
name birthday city country job employer diet allergy food_like food_dislike hobby skill
learning language pet partner child project goal trip appointment timezone
"""
COMMON_KEYS = tuple(_COMMON.split())
"""The keys named in the prompt. A longer list would invite the model to fill it."""


_GROUPS = {
    "people": "partner friend child sibling colleague pet family mother mum mom father dad parent "
    "grandmother grandfather aunt uncle cousin niece nephew neighbour neighbor boss roommate",
    "health": "allergy medication health_condition health blood_type height weight diet illness "
    "therapy sleep exercise doctor",
    "work": "job employer salary work_hours project skill editor issue_tracker tool task commute "
    "next_step status approach decision problem",
    "plans": "goal plan appointment trip event deadline wedding move holiday vacation",
}
_GROUP_OF = {key: group for group, keys in _GROUPS.items() for key in keys.split()}
GROUPS = ("about you", "people", "health", "work", "preferences", "plans", "more")


def group(memory_type: str, key: str) -> str:
    """Which of ``GROUPS`` a person looks for a memory in: by the slot that the model named, whose
    first word says whose it is (``sister_city``), else by its type."""
    name = canonical(key)
    found = _GROUP_OF.get(name) or _GROUP_OF.get(canonical(name.partition("_")[0]))
    if memory_type == "preference" and found not in ("health", "people"):
        return "preferences"
    return found or ("about you" if memory_type == "profile" else "more")


def normalise_key(raw: str) -> str:
    """A key in snake_case: letters of any script and digits, folded, joined by single underscores.

    Raises InputError for one that holds no letter or is over 64 characters.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", raw).casefold())
    text = text.replace("i\u0307", "i").replace("ı", "i")  # one letter, as capitals make it
    digits = (str(unicodedata.digit(c)) if unicodedata.category(c) == "Nd" else c for c in text)
    kept = "".join(c if _in_key(c) else " " for c in digits)
    key = "_".join(kept.split())
    if not re.search(r"[^\W\d_]", key):
        raise InputError("the key holds no letter; name the slot, e.g. favourite_drink")
    if len(key) > KEY_LIMIT:
        raise InputError(f"the key is {len(key)} characters long; at most {KEY_LIMIT} are kept")
    return key


def _in_key(char: str) -> bool:
    return char.isalpha() or unicodedata.category(char) in ("Nd", "Mn", "Mc", "Me")


def canonical(key: str) -> str:
    """The one name of a key that has several; other keys unchanged."""
    return ALIASES.get(key, key)


def cardinality(key: str) -> Cardinality | None:
    """How many values a known key holds; None for a key that is not in the table."""
    key = canonical(key)
    if key in ONE:
        return "one"
    return "many" if key in MANY else None
