"""Marker words, which change the meaning of the words near them, in a folded text.

The lists are in ``data``. A marker is only a hint; what follows from it is decided elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache

from memchat.language import lexicon

FUNCTION_WORDS = lexicon.all_words("function_words")
REMEMBER = lexicon.any_language("remember")
PASTE = lexicon.any_language("paste")
NOT_TO_KEEP = lexicon.any_language("not_to_keep")
"""A request not to remember something."""
KEEP_ELSE = re.compile(rf"\w*\s+(?:{lexicon.alternatives('en', 'keep_else')})(?!\w)", re.IGNORECASE)
"""What follows if something other than a memory should not be kept: a seat, money, the receipt."""


@cache
def _told_by() -> tuple[dict[str, re.Pattern[str]], dict[str, re.Pattern[str]]]:
    """Patterns of the scripts, and of the letters, that only certain languages have."""
    tables = {code: lexicon.table(code) for code in lexicon.codes()}
    scripts, letters = (
        {code: re.compile(table[kind]) for code, table in tables.items() if table[kind]}
        for kind in ("script", "letters")
    )
    return scripts, letters


def languages_of(folded: str) -> tuple[str, ...]:
    """The listed languages in which a folded text may be written, the likeliest first; empty if
    there is none."""
    scripts, letters = _told_by()
    found = [code for code, script in scripts.items() if script.search(folded)]
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", folded)
    latin = [word for word in words if word[0] < "\u0250"]
    hits = {
        code: sum(word in lexicon.entries(code, "function_words") for word in latin)
        for code in lexicon.codes()
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

    If the language is not known the lists of all languages are used, which can only make the result
    stricter.
    """
    found: list[re.Match[str]] = []
    for code in languages or lexicon.codes():
        safe = [m.span() for m in lexicon.pattern(code, "harmless").finditer(folded)]
        for m in lexicon.pattern(code, kind).finditer(folded):
            before = bisect_left(safe, (m.end(), 0))
            if before == 0 or safe[before - 1][1] <= m.start():
                found.append(m)
    return found


def opens_with(kind: str, folded: str, languages: tuple[str, ...]) -> bool:
    """Whether a folded text begins with a marker of one kind."""
    text = folded.lstrip(" \"'([-¿¡")
    return any(lexicon.pattern(code, kind).match(text) for code in languages or lexicon.codes())
