"""Writes memchat/language/data/calendar.toml: weekdays, months and units of time, from CLDR.

Run after changing LANGUAGES or with a newer Babel: ``python -m tools.calendar_names``. The names
are written as ``text.fold`` leaves text. Short forms are taken of English weekdays and of months
only: most others ("mar", "so", "per") are plain words of some language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import babel
from babel import Locale

from memchat.language.text import fold

TARGET = Path(__file__).parents[1] / "memchat" / "language" / "data" / "calendar.toml"
LANGUAGES = "en de fr es it pt nl tr ru ja zh ar hi ko th"
UNITS = {"d": "day", "w": "week", "m": "month", "y": "year"}
NO_NAMES = frozenset(("ago", "out", "set", "mag", "gen", "ara", "tem", "kas"))
"""Short forms of months that are also words: "ago" is Spanish and Italian for August."""
FORMS = ("format", "stand-alone")
PLURALS = ("zero", "one", "two", "few", "many", "other")
GLUED = ("ja", "zh")


def folded(names: Iterable[str]) -> list[str]:
    """The names in the spelling of the lists, each once, without those that hold digits."""
    words = (fold(str(name)).text.strip(" .").removesuffix("-feira") for name in names)
    return list(dict.fromkeys(word for word in words if word and not re.search(r"\d", word)))


def weekdays(locale: Locale, width: str) -> list[list[str]]:
    """The names of each day, Monday first."""
    tables = [locale.days[form][width] for form in FORMS]
    names = [folded(table[day] for table in tables) for day in range(7)]
    return [[re.sub("(?<=曜)日$", "", name) for name in each] for each in names]


def months(locale: Locale, width: str) -> list[list[str]]:
    """The names of each month, January first."""
    tables = [locale.months[form][width] for form in FORMS]
    return [folded(table[month] for table in tables) for month in range(1, 13)]


def short_months(locale: Locale) -> list[list[str]]:
    """Short forms of three letters and more that are no words themselves."""
    pairs = zip(months(locale, "wide"), months(locale, "abbreviated"), strict=True)
    return [
        [w for w in short if len(w) > 2 and w not in wide and w not in NO_NAMES]
        for wide, short in pairs
    ]


def units(locale: Locale, name: str) -> list[str]:
    """The words for a unit of time, in each form in which something is counted with it."""
    data = locale._data  # Babel has no other way to the patterns for units
    forms = data["unit_patterns"][f"duration-{name}"]
    patterns = [forms.get("long", forms["short"])]
    if locale.language not in GLUED:
        patterns += data["date_fields"][name].values()
    texts = [each.get(form) for each in patterns for form in PLURALS]
    words = [re.search(r"\{0\}\s*([^\s{}]+)", text) for text in texts if isinstance(text, str)]
    return folded(match[1] for match in words if match)


def table(code: str) -> str:
    """One language's part of the file."""
    locale = Locale.parse(code)
    lists = {
        "weekdays": weekdays(locale, "wide"),
        "short_weekdays": weekdays(locale, "abbreviated") if code in ("en", "zh") else [],
        "months": months(locale, "wide"),
        "short_months": short_months(locale),
    }
    lines = [f"[{code}]", *(f"{kind} = {_array(found)}" for kind, found in lists.items())]
    lines += [f"{unit} = {_list(units(locale, name))}" for unit, name in UNITS.items()]
    return "\n".join(lines)


def _list(words: list[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _array(lists: list[list[str]]) -> str:
    if not any(lists):
        return "[]"
    return "[\n" + "".join(f"  {_list(words)},\n" for words in lists) + "]"


def main() -> None:
    """Write the file anew."""
    head = (
        f"# Made by tools/calendar_names.py with Babel {babel.__version__} from Unicode CLDR"
        " (Unicode License v3).\n# Do not edit: change the tool and run it again."
    )
    parts = [head, *map(table, LANGUAGES.split())]
    TARGET.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
