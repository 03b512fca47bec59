"""The patterns of first-person clauses that state a fact: a type, a key and a value each.

Every value is a piece of the clause itself (with a verb in the third person where the bare word
would lie, as in ``does not like coriander``), so whoever checks it finds it in the quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from memchat.providers.offline.words import is_food
from memchat.types import MemoryType

Key = str | Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern at the start of a clause: group ``v`` is what is said, ``k`` and ``n`` name it."""

    pattern: re.Pattern[str]
    type: MemoryType
    key: Key
    many: bool = False
    listed: bool = False
    """Whether ``v`` is a list of several values."""
    prefix: str = ""
    """Put before the value; may use {n}."""


ADV = (
    r"(?:(?:really|also|still|now|just|actually|currently|recently|always|usually|mostly|absolutely"
    r"|both|already|finally|mainly|only|definitely|generally|quite|very|both|so|certainly|myself)\s+)*"
)
_NAME = r"(?P<v>[^\W\d_][\w'’-]*(?:\s+(?!and\b|from\b|in\b|i\b)(?-i:[^\W\d_a-z])[\w'’-]*){0,2})"
_DIETS = (
    r"(?:strict\s+)?(?:vegetarian|vegan|pescatarian|pescetarian|flexitarian|omnivore|coeliac|celiac"
    r"|kosher|halal|gluten-free|dairy-free|lactose[- ]free|vegetarisch|vegetarierin|vegetarier"
    r"|veganerin|veganer)"
)
_JOBS = (
    r"(?:[\w-]+\s+){0,3}?(?:\w{2,}(?:er|or|ist|ian|ician|ant|eer|smith|wright|maker)|nurse|student"
    r"|chef|cook|pilot|clerk|architect|postdoc|apprentice|intern|mechanic|surgeon|vet|pensioner|judge)"
)
_NOT_JOBS = (
    r"(?:big|huge|great|great\s+fan|member|morning|night|early|beginner|father|mother|parent|brother"
    r"|sister|daughter|lover|number|person|believer|runner|swimmer|reader|singer|owner|user|newcomer"
    r"|customer|bit|little|lot|few|vegetarian|vegan|pescatarian|flexitarian)"
)
_PETS = r"dog|cat|rabbit|hamster|parrot|horse|tortoise|goldfish|guinea pig|puppy|kitten|budgie"
PARTNERS = r"wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?"
_KIN = r"son|daughter|brother|sister|mother|mum|mom|father|dad"
KIN_KEYS = {"son": "child", "daughter": "child", "brother": "sibling", "sister": "sibling"}


def _taste(positive: bool) -> Callable[[str], str]:
    food, other = ("food_like", "like") if positive else ("food_dislike", "dislike")
    return lambda value: food if is_food(value) else other


def place_key(value: str) -> str:
    return "home" if re.match(r"(?:a|an|the|my)\s", value, re.IGNORECASE) else "city"


def _rule(pattern: str, type: MemoryType, key: Key, **rest: str | bool) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), type, key, **rest)  # type: ignore[arg-type]


IM = r"(?:i\s+am|i['’]m|ich\s+bin)\s+"
_WE = r"(?:i|we)\s+(?:have\s+|['’]ve\s+)?"
_NOT = r"(?:do\s+not|don['’]t|did\s+not|didn['’]t)"

RULES: tuple[Rule, ...] = (
    _rule(
        rf"(?:my\s+name\s+is|call\s+me|{IM}(?:called|named)|ich\s+hei(?:ß|ss)e|mein\s+name\s+ist)"
        rf"\s+{_NAME}",
        "profile",
        "name",
    ),
    _rule(rf"{IM}{ADV}(?P<v>\d{{1,3}})(?:\s+(?:years?\s+old|jahre\s+alt)|$)", "profile", "age"),
    _rule(r"i\s+(?:just\s+|recently\s+)?turned\s+(?P<v>\d{1,3})\b", "profile", "age"),
    _rule(rf"(?:i|we)\s+{ADV}(?:live|reside)\s+{ADV}in\s+(?P<v>.+)", "profile", place_key),
    _rule(
        rf"{_WE}{ADV}(?:moved|relocated)\s+(?:house\s+)?(?:from\s+.+?\s+)?to\s+(?P<v>.+)",
        "profile",
        place_key,
    ),
    _rule(rf"{IM}{ADV}(?:based|living)\s+in\s+(?P<v>.+)", "profile", place_key),
    _rule(r"ich\s+(?:wohne|lebe)\s+(?:jetzt\s+)?in\s+(?P<v>.+)", "profile", place_key),
    _rule(
        rf"(?:{IM}{ADV}(?:moving|relocating)|(?:i|we)\s+(?:will\s+)?move)\s+to\s+(?P<v>.+)",
        "fact",
        "planned_move",
    ),
    _rule(
        rf"(?:{IM}{ADV}(?:originally\s+)?from|i\s+come\s+from|i\s+grew\s+up\s+in)\s+(?P<v>.+)",
        "profile",
        "hometown",
    ),
    _rule(
        rf"i\s+{ADV}work\s+(?:(?:full|part)[- ]time\s+)?as\s+(?:an?\s+)?(?P<v>.+)",
        "profile",
        "job",
    ),
    _rule(
        rf"i\s+{ADV}(?:work|started\s+working|started)\s+(?:at|for|bei)\s+(?P<v>.+)",
        "profile",
        "employer",
    ),
    _rule(r"ich\s+arbeite\s+als\s+(?P<v>.+)", "profile", "job"),
    _rule(r"ich\s+arbeite\s+bei\s+(?P<v>.+)", "profile", "employer"),
    _rule(
        rf"my\s+(?:job|profession|occupation)\s+is\s+(?:an?\s+)?(?P<v>{_JOBS})", "profile", "job"
    ),
    _rule(rf"{IM}{ADV}(?:an?\s+)?(?P<v>{_DIETS})\b", "profile", "diet"),
    _rule(
        rf"{IM}{ADV}(?:allergic\s+to|allergisch\s+gegen)\s+(?P<v>.+)",
        "profile",
        "allergy",
        many=True,
        listed=True,
    ),
    _rule(
        r"i\s+have\s+an?\s+(?P<v>[\w-]+(?:\s+[\w-]+)?)\s+allergy", "profile", "allergy", many=True
    ),
    _rule(
        rf"{IM}{ADV}(?P<v>(?:lactose|gluten|fructose)\s+intolerant)",
        "profile",
        "intolerance",
        many=True,
    ),
    _rule(
        rf"{IM}(?:an?\s+)(?!{_NOT_JOBS}\b)(?P<v>{_JOBS})\b(?:\s+(?:at|for|in|by)\b.*)?$",
        "profile",
        "job",
    ),
    _rule(
        rf"i\s+(?:{_NOT}\s+{ADV}(?:like|enjoy)|mag\s+kein\w*)\s+(?P<v>.+)",
        "preference",
        _taste(False),
        many=True,
        listed=True,
        prefix="does not like ",
    ),
    _rule(
        rf"i\s+{ADV}{_NOT}\s+{ADV}(?P<n>eat|drink)\s+(?P<v>.+)",
        "preference",
        _taste(False),
        many=True,
        listed=True,
        prefix="does not {n} ",
    ),
    _rule(
        r"i\s+never\s+(?P<n>eat|drink)\s+(?P<v>.+)",
        "preference",
        _taste(False),
        many=True,
        listed=True,
        prefix="never {n}s ",
    ),
    _rule(
        rf"i\s+{ADV}(?P<n>hate|dislike|detest|avoid)\s+(?P<v>.+)",
        "preference",
        _taste(False),
        many=True,
        listed=True,
        prefix="{n}s ",
    ),
    _rule(
        rf"i\s+{ADV}(?:can['’]t|cannot|can\s+not)\s+stand\s+(?P<v>.+)",
        "preference",
        _taste(False),
        many=True,
        listed=True,
        prefix="cannot stand ",
    ),
    _rule(
        r"ich\s+mag\s+(?P<n>kein\w*)\s+(?P<v>.+)",
        "preference",
        _taste(False),
        many=True,
        prefix="mag {n} ",
    ),
    _rule(
        r"ich\s+mag\s+(?P<v>.+?\s+nicht)\b", "preference", _taste(False), many=True, prefix="mag "
    ),
    _rule(
        rf"i\s+{ADV}prefer\s+(?P<v>.+)", "preference", "preference", many=True, prefix="prefers "
    ),
    _rule(
        rf"i\s+{ADV}(?:like|love|enjoy|adore)\s+(?P<v>.+)",
        "preference",
        _taste(True),
        many=True,
        listed=True,
    ),
    _rule(
        rf"{IM}{ADV}(?:an?\s+)?(?:(?:big|huge|great)\s+)?(?:fan\s+of|fond\s+of|keen\s+on|into)"
        r"\s+(?P<v>.+)",
        "preference",
        _taste(True),
        many=True,
        listed=True,
    ),
    _rule(r"ich\s+(?:mag|liebe)\s+(?P<v>.+)", "preference", _taste(True), many=True, listed=True),
    _rule(
        r"my\s+favou?rite\s+(?P<k>[\w-]+(?:\s+[\w-]+){0,2})\s+(?:is|are)\s+(?P<v>.+)",
        "preference",
        "favourite_{k}",
    ),
    _rule(
        rf"(?:i|we)\s+{ADV}have\s+(?:an?|two|three)\s+(?:\w+\s+){{0,2}}?(?P<n>{_PETS})s?"
        rf"\s+(?:called|named)\s+{_NAME}",
        "profile",
        "pet",
        many=True,
        prefix="{n} ",
    ),
    _rule(
        rf"(?:my|our)\s+(?P<n>{_PETS})(?:['’]s\s+name)?(?:\s+is)?(?:\s+called|\s+named)?"
        r"\s+(?P<v>(?-i:[A-ZÀ-Þ])[\w'’-]+)",
        "profile",
        "pet",
        many=True,
        prefix="{n} ",
    ),
    _rule(
        rf"(?:i|we)\s+{ADV}have\s+(?P<v>(?:an?|two|three|four)\s+(?:\w+\s+)?(?:{_PETS})s?)$",
        "profile",
        "pet",
        many=True,
    ),
    _rule(
        rf"my\s+(?P<n>{PARTNERS})(?:['’]s\s+name)?(?:\s+is)?(?:\s+called|\s+named)?"
        r"\s+(?P<v>(?-i:[A-ZÀ-Þ])[\w'’-]+)",
        "profile",
        "partner",
    ),
    _rule(
        rf"(?:my|our)\s+(?P<k>{_KIN})(?:['’]s\s+name\s+is|\s+is\s+(?:called|named))\s+{_NAME}",
        "profile",
        "{k}",
        many=True,
        prefix="{k} ",
    ),
    _rule(r"my\s+birthday\s+is\s+(?:on\s+)?(?P<v>.+)", "profile", "birthday"),
    _rule(r"i\s+was\s+born\s+on\s+(?P<v>.+)", "profile", "birthday"),
    _rule(rf"i\s+{ADV}speak\s+(?P<v>.+)", "profile", "language", many=True, listed=True),
    _rule(
        rf"(?:{IM}{ADV}(?:learning|studying)|i\s+(?:have\s+)?started\s+(?:learning|studying)"
        r"|ich\s+lerne)\s+(?P<v>.+)",
        "fact",
        "learning",
        many=True,
    ),
    _rule(rf"i\s+{ADV}play\s+(?P<v>.+)", "preference", "hobby", many=True, prefix="plays "),
    _rule(
        r"my\s+hobb(?:y\s+is|ies\s+are)\s+(?P<v>.+)", "preference", "hobby", many=True, listed=True
    ),
    _rule(
        rf"{IM}{ADV}(?P<v>(?:writing|building|working\s+on|preparing|organi[sz]ing)\s+.+)",
        "fact",
        "project",
        many=True,
    ),
    _rule(
        r"my\s+(?P<k>budget|hometown|native\s+language|shoe\s+size|bike|car|team|instrument"
        r"|employer|locker)\s+is\s+(?P<v>.+)",
        "profile",
        "{k}",
    ),
)
