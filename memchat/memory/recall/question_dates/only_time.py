"""Whether a question asks about a time and nothing else: "what did I say yesterday?".

Then all that lies there answers it. So a lack of other words is not enough: it has to speak of
what the person said, did, has or plans, or of what happened. "How are you today?" does not.
"""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re

from memchat.language.calendar import unaccented
from memchat.language.text import content_words

_ASKING = {
    word
    for words in (
        "say said tell told talk talked talking speak spoke discuss discussed mention mentioned happen happened do did doing ago since",
        "have having plan plans planned know remember chat conversation up coming anything something thing things on schedule",
        "sage sagte gesagt erzahlt erzahle besprochen reden geredet gesprochen passiert war habe hab geplant los steht vor seit plane",
        "weisst uber gemacht was qu est ce que ai j dit dire dis parle parler avons nous a t raconte passe passee fait faire prevu rien",
        "chose quoi depuis dije dicho decir conte contado hable hablado hablamos paso pasado hice hecho hacer tengo planes hace desde",
    )
    for word in words.split()
}
"""Words that name nothing to look for beside the time."""
_OF_THE_PERSON = re.compile(
    r"\b(?:"
    # English
    r"(?:did|do|have|had|was|were|am|are|will|shall|should) (?:i|we)|(?:what|anything|something) (?:i|we)"
    r"|did you (?:say|tell)|told|talked|spoke|discussed|mentioned|happen(?:s|ed|ing)?"
    r"|(?:tell me|know) (?:about|of|from)|remember|coming up|(?<!your )(?:plans?|schedule)|(?<!you )planned"
    r"|(?:what's|what is|anything|something) on"
    # German
    r"|(?:hab|habe|haben|hatte|hatten|war|waren) (?:ich|wir)|was (?:ich|wir)|gesagt|erzahlt|besprochen|gesprochen|geredet|passiert"
    r"|(?<!du )geplant|plane(?:n wir)?|steht|was (?:war|ist)(?: los)?(?=\W*$)|weisst du (?:uber|von)"
    # French
    r"|j'ai|ai-je|avons-nous|nous avons|on a|s'est passee?|(?<!tu as )prevu|raconte|parle"
    # Spanish
    r"|dije|dijimos|he (?:dicho|hecho|contado|hablado)|conte|hable|hablamos|hice|hicimos|tengo|tenemos|paso|pasado|(?<!tus )planes"
    r")\b"
)


def is_bare(rest: str) -> bool:
    """Whether a question, folded and without its time, asks for what lies there and no more."""
    said = " ".join(rest.split())
    if not _OF_THE_PERSON.search(said):
        return False
    return not {unaccented(word) for word in content_words(re.sub(r"[\W_]+", " ", said))} - _ASKING
