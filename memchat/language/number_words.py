"""Words for numbers, weekdays and months, so that dates and numbers written in letters can be
compared."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memchat.language import lexicon


def _numbers() -> dict[str, int]:
    """The number words of all languages from two on. An entry such as "fifteen=15" gives its number
    where the list skips some."""
    found = {}
    for code in lexicon.codes():
        for place, entry in enumerate(lexicon.entries(code, "numbers"), 2):
            word, _, number = entry.partition("=")
            found[word] = int(number or place)
    return found


def _dates() -> dict[str, str]:
    return {
        name: f"{kind}:{number}"
        for names in lexicon.calendar().values()
        for kind, lists in (("day", names["weekdays"]), ("month", names["months"]))
        for number, words in enumerate(lists, 1)
        for name in words
    }


NUMBER_WORDS = _numbers()
DATE_WORDS = _dates()
"""Full names only: ``day:1`` is Monday, ``month:1`` is January."""


def run_of_digits(more: Iterable[str]) -> re.Pattern[str]:
    """A pattern for three or more digits in words: "four nine two seven"; ``more`` are other words
    for digits."""
    words = {word for word, number in NUMBER_WORDS.items() if number < 100} | set(more)
    packed = {word for word in words if re.match(r"[\u0e00-\u9fff가-힣]", word)}
    one, tight = ("|".join(sorted(w, key=len, reverse=True)) for w in (words - packed, packed))
    return re.compile(
        rf"(?<!\w)(?:{one})(?:[ ,-]{{1,2}}(?:{one})){{2,19}}(?!\w)"
        rf"|(?:{tight})(?: ?(?:{tight})){{2,19}}"
    )
