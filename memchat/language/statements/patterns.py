"""The patterns of first-person clauses that state a fact, from ``patterns.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_DATA = tomllib.loads((files("memchat.language.statements") / "patterns.toml").read_text("utf-8"))
_FOODS = frozenset(_DATA["foods"].split())
_KIN_KEYS = {"son": "child", "daughter": "child", "brother": "sibling", "sister": "sibling"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for the beginning of a clause: its group ``v`` is the value."""

    match: re.Pattern[str]
    type: str
    key: str
    many: bool = False
    listed: bool = False
    """Whether ``v`` is a list of several values."""
    prefix: str = ""

    @property
    def is_place(self) -> bool:
        """Whether the value is a place, an employer or the like, without what is said after it."""
        return self.key in ("{place}", "hometown", "employer", "job", "learning")

    def key_of(self, value: str, groups: Mapping[str, str | None]) -> str:
        """The key of a fact with this value."""
        if self.key == "{place}":
            return "home" if re.match(r"(?:a|an|the|my)\s", value, re.IGNORECASE) else "city"
        if self.key in ("{liked}", "{disliked}"):
            taste = self.key[1:-2]  # without the braces and the d
            return f"food_{taste}" if is_food(value) else taste
        name = (groups.get("k") or "").casefold()
        return as_key(_KIN_KEYS.get(name, self.key.format(k=name)))


def with_parts(text: str) -> str:
    """A regular expression with its ``{NAME}`` parts put in; a space stands for any white space."""
    for name, part in _DATA["parts"].items():
        text = text.replace(f"{{{name}}}", part)
    return text.replace(" ", r"\s+")


def as_key(text: str) -> str:
    """A key: lower-case words joined by underscores, without digits."""
    return re.sub(r"[\W\d_]+", "_", text.casefold().replace("'s", "").replace("’s", "")).strip("_")


def stem(word: str) -> str:
    """A word without its commonest English endings, casefolded."""
    word = word.casefold().replace("’", "'").removesuffix("'s")
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending) + rest
    return word


def is_food(text: str) -> bool:
    """Whether a word of the text is a food or a drink."""
    words = {word.casefold() for word in _WORD.findall(text)}
    forms = words | {stem(word) for word in words} | {word.removesuffix("s") for word in words}
    return not _FOODS.isdisjoint(forms)


def _pattern(match: str, **rest: str | bool) -> Pattern:
    return Pattern(re.compile(with_parts(match), re.IGNORECASE), **rest)  # type: ignore[arg-type]


PATTERNS = tuple(_pattern(**entry) for entry in _DATA["patterns"])
