"""Whether a question asks about what was or about what comes, told by its verbs."""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from typing import Literal

Kind = Literal["past", "future"]

_PAST_WORDS = re.compile(
    r"\b(?:did|were|had|said|told|talked|went|happened|mentioned|discussed|decided|spoke|been|bought|met"
    r"|war|waren|hatten?|wurden?|sagten?|(?:hab\w*|hat|bin|ist|sind)\b.*\b\w*ge\w{2,}(?:t|en)|erzahlt|besprochen|passiert"
    r"|ai-je|as-tu|avons-nous|avais|avait|etais|etait|disais|j'ai \w+(?:e|i|u|it)|ai \w+e"
    r"|dije|dijo|dijiste|hice|hicimos|hizo|fui|fue|era|estaba|tuve|conte|hable|hablamos|paso|he \w+[ai]do)\b"
    r"|\bwas\b(?!.*\b(?:ich|mein\w*|habe|steht|ist|du)\b)"
)
_FUTURE_WORDS = re.compile(
    r"\b(?:will|shall|going to|gonna|plans?|planned|upcoming|have to|coming up|due"
    r"|werden?|wird|geplant|steht|stehen|plane|termine?|vais|vas|va|allons|aurai|prevu\w*"
    r"|voy|vamos|tengo|tendre|pendiente|planead\w+)\b|'ll\b"
)


def tense_of(words: str) -> Kind | None:
    """Of a folded question; None where it tells neither, or both."""
    past, future = _PAST_WORDS.search(words), _FUTURE_WORDS.search(words)
    if bool(past) == bool(future):
        return None
    return "past" if past else "future"
