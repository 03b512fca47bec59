"""Words for numbers, weekdays and months, by which what is said in letters is compared."""

from __future__ import annotations

from memchat.language import lexicon


def _numbers() -> dict[str, int]:
    """Each language's numbers from two on; "fifteen=15" says where a list leaves some out."""
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
"""Full names only: ``day:1`` is Monday, ``month:1`` January."""
