"""Key and value of a candidate in the form in which they are kept."""

from __future__ import annotations

from memchat.errors import InputError
from memchat.language.text import visible_text
from memchat.memory.gate.checks import orders
from memchat.memory.gate.checks.keys import canonical, cardinality, normalise_key
from memchat.memory.gate.types import Case

VALUE_LIMIT = 280
_MAX_KEY_WORDS = 5


def check(case: Case) -> None:
    """Normalise the key and the value. What cannot be a slot's name waits for a person."""
    item = case.candidate
    try:
        key = canonical(normalise_key(item.key))
    except InputError as error:
        key = "note"
        case.holds.append(f"its key cannot be used: {error}")
    words = key.split("_")
    if cardinality(key) is None and (
        len(words) > _MAX_KEY_WORDS or orders.is_order(" ".join(words), wish=False)
    ):
        case.holds.append("its key says more than the name of a slot")
    table = cardinality(key)
    value = visible_text(item.value)
    if len(value) > VALUE_LIMIT:
        case.holds.append(f"its value is longer than {VALUE_LIMIT} characters")
    case.change(key=key, value=value, many=table == "many" if table else item.many)
