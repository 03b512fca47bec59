"""Plain sentences for facts that no model has put into words, from the templates of a language.

Without a template, or for a value that would not read well in it, there is none: a wrong sentence
is worse than the bare name and value.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

from memchat.language import lexicon
from memchat.language.text import fold

LIMIT = 60
"""Characters of a value that is put into a template."""
ENGLISH = "en"
_JOINED = re.compile(r"[.;:!?\n]\s|[!?]$|[()“”\"]")
"""Signs of more than one bare value."""
_ARTICLE = re.compile(r"(?:an?|the|my|your)\s", re.IGNORECASE)
_OWN = {
    *("like", "dislike", "food_like", "food_dislike", "food_preference", "preference", "diet"),
    *("habit", "hobby", "sport", "instrument"),
}
"""Keys of what the person does or likes themselves."""
_VERB = re.compile(r"(?:am|is|are|was|has|have|does|can|will|do|i|we|you|he|she|it|they)\b")


@cache
def templates() -> dict[str, dict[str, str]]:
    """The templates by language and key."""
    text = (files("memchat.language") / "telling.toml").read_text("utf-8")
    return tomllib.loads(text)


def sentence_of(key: str, value: str, said: str = "") -> str | None:
    """A fact in one sentence, in the language that ``said`` is in, English where that cannot be
    told; None where no template fits."""
    value = " ".join(value.split())
    found = lexicon.languages_of(fold(said).text)
    code = found[0] if found else ENGLISH
    if code == ENGLISH and (acts := acting(key, value)) and not _JOINED.search(value):
        return f"You {acts.rstrip('.')}."
    template = templates().get(code, {}).get(key)
    if template is None or not _is_bare(value, code):
        return None
    lead = template.partition("{}")[0].split()
    if lead and lead[-1].casefold() == value.split()[0].casefold():
        return None  # "at at noon"
    if (code, key) == (ENGLISH, "job") and value[0].islower() and not _ARTICLE.match(value):
        value = f"{'an' if value[0] in 'aeiou' else 'a'} {value}"
    return template.format(value.rstrip("."))


def acting(key: str, value: str) -> str | None:
    """A value that begins with an English verb, as it reads after "you"; None for any other, and
    under a key that may speak of somebody else."""
    if key not in _OWN:
        return None
    verbs = templates()["verbs"].items()
    found = ((verb, yours) for verb, yours in verbs if value.startswith(f"{verb} "))
    verb, yours = next(found, ("", ""))
    return f"{yours}{value.removeprefix(verb)}" if verb else None


def _is_bare(value: str, code: str) -> bool:
    """Whether a value is one filler without a statement of its own."""
    folded = fold(value).text
    own = ("negation", "first_person")
    return (
        0 < len(value) <= LIMIT
        and not _JOINED.search(value)
        and not _VERB.match(folded)
        and not any(lexicon.find_markers(kind, folded, (code,)) for kind in own)
    )
