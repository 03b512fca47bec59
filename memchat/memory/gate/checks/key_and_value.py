"""Key and value of a candidate in the form in which they are kept."""

from __future__ import annotations

from memchat.errors import InputError
from memchat.language.text import visible_text
from memchat.memory.gate.checks import instructions
from memchat.memory.gate.keys import canonical, cardinality, normalise_key
from memchat.memory.gate.types import Case

VALUE_LIMIT = 280
_MAX_KEY_WORDS = 5


def check(case: Case) -> None:
    """Normalise the key and the value. What cannot be a slot's name waits for a person."""
    item = case.candidate
    try:
        key = canonical(normalise_key(item.key))
    except InputError:
        key = "note"
        case.reviews.append("no name that can be used was proposed for it")
    words = key.split("_")
    if cardinality(key) is None and (
        len(words) > _MAX_KEY_WORDS or instructions.is_instruction(" ".join(words), wish=False)
    ):
        case.reviews.append("its name says more than a name should")
    table = cardinality(key)
    value = visible_text(item.value)
    if len(value) > VALUE_LIMIT:
        case.reviews.append(f"it is longer than {VALUE_LIMIT} characters")
    case.change(key=key, value=value, many=table == "many" if table else item.many)
