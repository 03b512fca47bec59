"""Finds the numbers, times and dates of a text, in one spelling, so that two texts can be compared.

Words for numbers, weekdays and months count as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from memchat.language import lexicon
from memchat.language.text import fold


def _number_words() -> dict[str, int]:
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


NUMBER_WORDS = _number_words()
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


_NUMBER = re.compile(
    r"(?<![\d.,:/])(?:\d{4}-\d{2}-\d{2}|\d{1,2}[:.]\d{2}(?=\s?(?:uhr|am|pm|h)\b)|\d{1,2}:\d{2}(?::\d{2})?"
    r"|\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,/]\d+)*)[²³]?"
)
_HAN_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_HAN_NUMBER = re.compile("[零〇一二两三四五六七八九十]+")


def numbers(text: str) -> set[str]:
    """The numbers, times and dates of a text in one spelling: ``1,200`` is ``1200``, ``1,5`` is
    ``1.5`` and never ``15``, ``three`` is ``3``, ``08:30`` is ``8:30``, and ``Tuesday`` is
    ``day:2``."""
    return set(_numbers(text))


@lru_cache(maxsize=512)
def _numbers(text: str) -> frozenset[str]:
    """The same, cached: every window of a conversation asks about the whole conversation."""
    folded = fold(text).text
    found = {_one_spelling(match[0]) for match in _NUMBER.finditer(folded)}
    for word in re.findall(r"[^\W\d_]+", folded):
        if word in NUMBER_WORDS:
            found.add(str(NUMBER_WORDS[word]))
        if word in DATE_WORDS:
            found.add(DATE_WORDS[word])
    for match in _HAN_NUMBER.finditer(folded):
        value = _han_value(match[0])
        if value is not None and value > 1:
            found.add(str(value))
    return frozenset(found)


def _one_spelling(number: str) -> str:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", number):
        return number
    if re.fullmatch(r"\d{1,2}[:.]\d{2}(:\d{2})?", number) and ":" in number:
        return number.lstrip("0") if number[1:2] != ":" else number
    groups = re.fullmatch(r"([1-9]\d{0,2})((?:[.,' ])\d{3})+((?:[.,]\d{1,2})?)", number)
    if groups:
        tail = groups[3]
        whole = number[: len(number) - len(tail)] if tail else number
        return re.sub(r"[.,' ]", "", whole) + tail.replace(",", ".")
    if re.fullmatch(r"\d+,\d+", number):
        return number.replace(",", ".")
    return number


def _han_value(text: str) -> int | None:
    if match := re.fullmatch("([二两三四五六七八九])?十([一二三四五六七八九])?", text):
        return 10 * _HAN_DIGITS.get(match[1] or "", 1) + _HAN_DIGITS.get(match[2] or "", 0)
    if len(text) == 1:
        return _HAN_DIGITS.get(text)
    return int("".join(str(_HAN_DIGITS.get(c, 0)) for c in text)) if "十" not in text else None
