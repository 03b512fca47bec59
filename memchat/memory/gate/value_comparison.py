"""Comparing two values: whether they mean the same, and whether words say that one ended or
changed.

Two values may share words and differ in meaning, by a number, name, person, side or time of day.
Values that differ so are never merged, even where the model calls them the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from memchat.language import lexicon, markers
from memchat.language.numbers import numbers
from memchat.language.text import content_words, fold, holds_word, names, normal_value

_COUNTED = re.compile(r"(\d[\d.,:]*)\s?([^\W\d_]+)")


def _groups(kind: str) -> list[list[re.Pattern[str]]]:
    """Groups of words of one kind, as patterns that match their beginnings."""
    listed = (group for code in lexicon.codes() for group in lexicon.groups(code, kind))
    return [[_beginning(word) for word in group] for group in listed]


def _beginning(word: str) -> re.Pattern[str]:
    short = r"(?!\w)" if len(word) < 4 and word.isalpha() else r"\w{0,3}(?!\w)"
    spaced = not re.search("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]", word)
    return re.compile(rf"(?<!\w){word}{short}" if spaced else word)


_OPPOSITE_SIDES = _groups("opposites")
_PERSONS = _groups("people")
_RANKS = _groups("ordinals")


def difference(one: str, other: str) -> str | None:
    """What keeps two values apart: "number", "unit", "name", "person", "side or time" or
    "negation"; None where they may mean the same."""
    if numbers(one) != numbers(other) or _held(_RANKS, one) != _held(_RANKS, other):
        return "number"
    if _other_units(one, other):
        return "unit"
    if _has_unshared_name(one, other) or _has_unshared_name(other, one) or _other_order(one, other):
        return "name"
    if _held(_PERSONS, one) != _held(_PERSONS, other):
        return "person"
    a, b = fold(one).text, fold(other).text
    if any(_are_opposites(sides, a, b) for sides in _OPPOSITE_SIDES):
        return "side or time"
    lacking = words_differ(one, other)
    words, others = content_words(one), content_words(other)
    titles = one[:1].isupper() and other[:1].isupper() and words != others
    if len(words) == len(others) == 1 and (lacking or titles):
        return "name"
    if lacking and not (_has_case(one) and _has_case(other)):
        return "name"  # without capitals another word may be a name
    return "negation" if is_negated(one) != is_negated(other) else None


def are_equivalent(one: str, other: str) -> bool:
    """Whether two values have the same words in the same order, apart from endings, so that they
    may be merged without asking."""
    return (
        difference(one, other) is None
        and _small_signs(one) == _small_signs(other)
        and all_names(one) == all_names(other)
        and contains_words(one, other)
        and contains_words(other, one)
        and _in_order(one, other)
    )


def _small_signs(value: str) -> set[str]:
    """Single letters and symbols, by which blood groups, sizes, C and C++ or two emoji differ. Not
    the article in "a cat"."""
    bare = re.sub(r"(?<!\w)a (?=\w{2})", "", fold(value).text)
    letters = re.findall(r"(?<!\w)[^\W\d_](?!\w)", bare)
    signs = [c for c in value if unicodedata.category(c)[0] == "S" or c in "#*%&"]
    return {*letters, *signs}


def words_differ(one: str, other: str) -> bool:
    """Whether each of two values has a word that the other does not have."""
    return not contains_words(one, other) and not contains_words(other, one)


def contains_words(wide: str, narrow: str, *, loosely: bool = True) -> bool:
    """Whether a value has every content word of another, at least by its stem."""
    return normal_value(wide) == normal_value(narrow) or all(
        holds_word(wide, word, loosely=loosely) for word in content_words(narrow)
    )


def is_negated(value: str) -> bool:
    """Whether a value has a negation."""
    return bool(markers.find_markers("negation", fold(value).text, ()))


def negation_in(sentences: Sequence[str], languages: tuple[str, ...]) -> str | None:
    """``negation`` where one of these sentences has one, for a message."""
    said = fold(" \n".join(sentences)).text
    return "negation" if markers.find_markers("negation", said, languages) else None


def full_names(text: str) -> list[str]:
    """Names of several words as one: "New York"."""
    found = names(text, from_start=True)
    runs: list[list[str]] = [[]]
    for word in text.split():
        bare = word.strip(".,;:()'\"!?")
        if bare in found:
            runs[-1].append(bare)
        if bare not in found or bare != word:
            runs.append([])
    return [" ".join(run) for run in runs if run]


def all_names(value: str) -> set[str]:
    """Every name of a value, also its first word."""
    return names(value, from_start=True)


def says_it_ended(said: str, value: str, languages: tuple[str, ...]) -> bool:
    """Whether words say that a value ended: by a word of ending, or by a negation that the value
    does not have. Not where they add something, or name another number or name."""
    folded = fold(said).text
    if says_it_is_added(said) or names_another(said, value):
        return False
    return bool(markers.find_markers("over", folded, languages)) or _denied(said, value, languages)


def says_it_changed(said: str, value: str, languages: tuple[str, ...]) -> bool:
    """Whether words say that something replaces a value."""
    folded = fold(said).text
    signs = (markers.find_markers(kind, folded, languages) for kind in ("change", "over"))
    return any(signs) or _denied(said, value, languages)


def _denied(said: str, value: str, languages: tuple[str, ...]) -> bool:
    """Whether words negate every word of a value that is not negated itself."""
    denies = markers.find_markers("negation", fold(said).text, languages) and not is_negated(value)
    return bool(denies) and all(holds_word(said, word) for word in content_words(value))


def says_it_is_added(said: str) -> bool:
    """Whether words say that something is added to what there is."""
    return bool(markers.find_markers("added", fold(said).text, ()))


def _has_case(value: str) -> bool:
    return value.upper() != value.lower()


def names_another(said: str, value: str) -> bool:
    """Whether words name another number, or only other names, than a value. In scripts without
    capitals any word of the value that was not said may be a name."""
    if numbers(value) - numbers(said) and numbers(said) - numbers(value):
        return True
    if said.isupper():
        return False  # in capitals names and words look alike
    if not _has_case(value):
        return not all(holds_word(said, word, loosely=False) for word in content_words(value))
    mine, theirs = all_names(value), [n for n in names(said) if not _named(value, n)]
    if not theirs or all(_named(said, name) for name in mine):
        return False
    # "Eastgate Bakery" is another one than "Northwind Bakery", and shares a name with it.
    runs = (run.split() for run in full_names(said))
    shared = any({*run} & mine and {*run} & {*theirs} for run in runs)
    return shared or not any(_named(said, name) for name in mine)


def _has_unshared_name(one: str, other: str) -> bool:
    return any(not _named(other, name) for name in names(one) & all_names(one))


def _named(value: str, name: str) -> bool:
    """Whether a value has exactly this name: Priyanka is not Priya with an ending."""
    wanted, folded = fold(name).text, fold(value).text
    if not wanted.isascii() and not _has_case(name):
        return wanted in folded
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", folded) is not None


def _held(groups: list[list[re.Pattern[str]]], value: str) -> frozenset[int]:
    folded = fold(value).text
    return frozenset(
        i for i, words in enumerate(groups) if any(word.search(folded) for word in words)
    )


def _are_opposites(sides: list[re.Pattern[str]], one: str, other: str) -> bool:
    in_one = {i for i, side in enumerate(sides) if side.search(one)}
    in_other = {i for i, side in enumerate(sides) if side.search(other)}
    return bool(in_one and in_other and in_one != in_other)


def _other_order(one: str, other: str) -> bool:
    """Whether names stand in another order, unless they are a list: "Ana and Otto"."""
    first, second = _name_order(one), _name_order(other)
    return first != second and not (_listed(one, first) and _listed(other, second))


def _other_units(one: str, other: str) -> bool:
    """Whether one number has two units: hours and euros, but not cm and centimetres."""
    units, others = dict(_COUNTED.findall(fold(one).text)), dict(_COUNTED.findall(fold(other).text))
    return any(
        not (holds_word(a, b) or holds_word(b, a) or _is_short_for(a, b) or _is_short_for(b, a))
        for a, b in ((units[n], others[n]) for n in units.keys() & others.keys())
    )


def _is_short_for(short: str, long: str) -> bool:
    """Whether the letters of an abbreviation stand in a word in their order."""
    letters = iter(long)
    return short[0] == long[0] and all(letter in letters for letter in short)


def _name_order(value: str) -> list[str]:
    found = all_names(value)
    return [word for word in re.findall(r"[\w'’.&-]+", value) if word in found]


def _listed(value: str, order: list[str]) -> bool:
    places = [value.find(name) for name in order]
    between = [
        value[a + len(name) : b] for (a, b), name in zip(pairwise(places), order, strict=False)
    ]
    return all(
        re.fullmatch(r"\s*(?:,|&|\+|/|and|und|et|y|e|en|ve|и|と|和)?\s*", gap) for gap in between
    )


def _in_order(one: str, other: str) -> bool:
    words, others = _ordered(one), _ordered(other)
    return len(words) == len(others) and all(
        holds_word(a, b) or holds_word(b, a) for a, b in zip(words, others, strict=True)
    )


def _ordered(value: str) -> list[str]:
    """The content words in their order."""
    folded = fold(value).text
    return sorted(content_words(value), key=lambda word: (folded.find(word), word))
