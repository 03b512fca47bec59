"""Word lists: those of each language, made into patterns, and the keys of sensitive values.

Each file in ``data`` is one language; adding a file adds a language. Entries are separated by
commas. They are words or parts of regular expressions, in the form that ``text.fold`` returns:
lower case, straight apostrophes, no dotless i. A slash separates words with one meaning, or the two
of a pair.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_DATA = files("memchat.language") / "data"
_CALENDAR = "calendar"
_MARK = r"\w\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957"


@cache
def codes() -> tuple[str, ...]:
    """The codes of the languages that have a file."""
    names = (path.name.removesuffix(".toml") for path in _DATA.iterdir())
    return tuple(sorted(name for name in names if name != _CALENDAR))


@cache
def table(code: str) -> dict[str, Any]:
    """The content of one language's file, or of the calendar's."""
    return tomllib.loads((_DATA / f"{code}.toml").read_text(encoding="utf-8"))


def calendar() -> dict[str, Any]:
    """The names of weekdays, months and units of time, by language."""
    return table(_CALENDAR)


def with_parts(text: str, parts: Mapping[str, str]) -> str:
    """A regular expression with its ``{NAME}`` parts put in, which may have later ones in them."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


@cache
def kinds() -> tuple[str, ...]:
    """The kinds of words in the list of each language."""
    return tuple(kind for kind, words in table("en").items() if isinstance(words, str))


@cache
def entries(code: str, kind: str) -> tuple[str, ...]:
    """The entries of one kind in a language."""
    listed = (" ".join(entry.split()) for entry in table(code)[kind].split(","))
    return tuple(entry for entry in listed if entry)


def groups(code: str, kind: str) -> list[list[str]]:
    """The same, each entry split into its words with one meaning."""
    return [entry.split("/") for entry in entries(code, kind)]


@cache
def all_words(kind: str) -> frozenset[str]:
    """The words of one kind in all languages."""
    return frozenset(word for code in codes() for entry in groups(code, kind) for word in entry)


def alternatives(code: str, kind: str) -> str:
    """The entries of one kind as alternatives of a regular expression. Without entries the
    expression never matches."""
    return "|".join(word for group in groups(code, kind) for word in group) or r"(?!)"


def is_spaced(code: str) -> bool:
    """Whether a language puts spaces between words."""
    return bool(table(code)["spaced"])


@cache
def pattern(code: str, kind: str) -> re.Pattern[str]:
    """The entries of a kind in one language; whole words, if the language puts spaces between
    words."""
    words = alternatives(code, kind)
    if not is_spaced(code):
        return re.compile(f"(?:{words})")
    return re.compile(rf"(?<![{_MARK}])(?:{words})(?![{_MARK}])")


@cache
def any_language(kind: str) -> re.Pattern[str]:
    """The entries of a kind in all languages, in any case."""
    return re.compile("|".join(pattern(code, kind).pattern for code in codes()), re.IGNORECASE)


FUNCTION_WORDS = all_words("function_words")
REMEMBER = any_language("remember")
PASTE = any_language("paste")
NOT_TO_KEEP = any_language("not_to_keep")
"""A request not to remember something."""
KEEP_ELSE = re.compile(rf"\w*\s+(?:{alternatives('en', 'keep_else')})(?!\w)", re.IGNORECASE)
"""What follows if something other than a memory should not be kept: a seat, money, the receipt."""


@cache
def _distinctive_marks() -> tuple[dict[str, re.Pattern[str]], dict[str, re.Pattern[str]]]:
    """Patterns of the scripts, and of the letters, that only certain languages have."""
    tables = {code: table(code) for code in codes()}
    scripts, letters = (
        {code: re.compile(table[kind]) for code, table in tables.items() if table[kind]}
        for kind in ("script", "letters")
    )
    return scripts, letters


def languages_of(folded: str) -> tuple[str, ...]:
    """The listed languages in which a folded text may be written, the likeliest first; empty if
    there is none."""
    scripts, letters = _distinctive_marks()
    found = [code for code, script in scripts.items() if script.search(folded)]
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", folded)
    latin = [word for word in words if word[0] < "\u0250"]
    hits = {
        code: sum(word in entries(code, "function_words") for word in latin)
        for code in codes()
        if code not in scripts
    }
    for code, letter in letters.items():
        hits[code] += len(latin) if letter.search(folded) else 0
    best = max(hits.values(), default=0)
    if latin and best and best >= len(latin) / 8:
        found += sorted((c for c, n in hits.items() if n >= best * 0.6), key=lambda c: -hits[c])
    return tuple(found)


def find_markers(kind: str, folded: str, languages: tuple[str, ...]) -> list[re.Match[str]]:
    """The markers of one kind in a folded text, without those in harmless set phrases.

    Markers change the meaning of the words near them. One is only a hint: what follows from it is
    decided elsewhere. If the language is not known the lists of all languages are used, which can
    only make the result stricter.
    """
    found: list[re.Match[str]] = []
    for code in languages or codes():
        safe = [m.span() for m in pattern(code, "harmless").finditer(folded)]
        for m in pattern(code, kind).finditer(folded):
            before = bisect_left(safe, (m.end(), 0))
            if before == 0 or safe[before - 1][1] <= m.start():
                found.append(m)
    return found


_KEYS = """
health health_condition health_issue health_problem health_history mental_health
chronic_condition blood_pressure sex_life political_party party_membership
diabetes asthma depression anxiety cancer epilepsy adhd autism dementia
"""
_WORDS = """
diagnosis diagnoses illness illnesses disease diseases disability disorder medical medication
medications medicine medicines prescription prescriptions therapy therapist psychiatrist symptom
symptoms surgery pregnancy pregnant addiction hiv
debt debts salary wage wages income bankruptcy
religion religious faith denomination political politics sexuality sexual
"""
KEYS = frozenset(_KEYS.split())
WORDS = frozenset(_WORDS.split())
"""Words that make every key sensitive that contains them, as in ``asthma_medication``."""


def is_sensitive(key: str) -> bool:
    """Whether the values of this key are sensitive, whatever the model says.

    Allergies and diets are not, since they matter in everyday requests.
    """
    return key in KEYS or not WORDS.isdisjoint(key.split("_"))
