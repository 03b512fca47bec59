"""What stands behind a quote in its sentence: what may turn it, and what speaks of something else."""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from dataclasses import dataclass

from memchat.memory.gate import markers
from memchat.memory.gate.text import content_words, numbers, says

CLAUSE = re.compile(
    r"[,;:、]|(?<!\w)-(?!\w)|(?<!\w)(?:but|aber|mais|pero|mas|maar|ama|но|but then|yet)(?!\w)"
)
_TAKING_LIST = """
anymore more longer mehr plus más più meer stopped quit used true really yet now do does did done
say said saying mean meant know think thought guess believe told tell serious seriously sure right
wish kidding joking lie lied lying wahr wirklich ernst sage gesagt meine glaube denke vrai vraiment
dis dit pense crois verdad digo dije creo pienso vero dico detto credo penso verdade disse acho
waar echt zeg gezegd denk geloof mind way chance
"""
TAKING_BACK = frozenset(_TAKING_LIST.split())
"""Words by which a tail says nothing new of its own."""
_CONFIRM = re.compile(
    r"^(?:or|oder|ou|o|u|of|yoksa|или)(?!\w)|(?<!\w)believe (?:that|it|me)|(?<!\w)(?:right|correct|true|really|sure|isn't|aren't|don't|stimmt|richtig|oder|ne|vrai|non|verdad|cierto|vero|certo|né|toch|waar|değil|правда|так)\W*\?"
    r"|(?<!\w)(?:that|it|das|es|ça|eso|lo|isso|dat|het)\W*(?:true|right|so)?\W*\?"
)
"""A tail that asks whether it is so: ", or is it Bergen?", ", right?"."""
_FURTHER = re.compile(
    r"[,;:、，](?!\d)\s*(?:(?:and|but|so|und|aber|et|mais|y|pero|e|ma|mas|en|maar|и|но)(?!\w))?|(?<!\w)(?:but|aber|mais|pero|mas|maar|ama|но)(?!\w)"
)
_ADDS = re.compile(
    r"(?<!\w)(?:and|even if|even though|although|und|auch wenn|obwohl|et|même si|y|aunque|e|anche se|en|ook al)(?!\w)"
)
_NOT_THE_OTHER = re.compile(
    r"\s*(?:(?:and )?not|nicht|pas|no|non|não|niet|не)(?: (?:in|aus|en|à|a|de|from|at|em|di|в))? \S+(?: \S+)?\W*$"
)


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows a quote that opens a clause of its own, all folded."""

    inside: str
    """The quote."""
    after: str
    value: str
    names: frozenset[str]
    """The names behind the quote."""
    languages: tuple[str, ...]

    @property
    def known(self) -> set[str]:
        """Words by which a clause would say nothing new."""
        return content_words(f"{self.inside} {self.value}") | TAKING_BACK


def asks_something_else(after: str, languages: tuple[str, ...]) -> bool:
    """Whether behind "I am vegetarian" comes a question of its own: ", what can I cook?"."""
    opening = re.match(
        r"(?:\s*[,;:-]|[^,;:?.!\n]{0,60},)\s*(?:(?:and|so|but|und|et|y|e|also|alors|así que) )?",
        after,
    )
    if opening is None or "?" not in after:
        return False
    rest = after[opening.end() :]
    words = re.findall(r"\w+", rest)
    if len(words) < 3 or markers.marked("negation", f"{opening[0]} {rest}", languages):
        return False
    if _CONFIRM.search(rest):
        return False
    asked = markers.opens_with("question", rest, languages)
    return asked or bool(content_words(rest) - TAKING_BACK)


def turning(tail: Tail) -> str:
    """Of what follows a quote the part that may turn it. A further clause with a subject and a
    matter of its own speaks of something else; so does "not Munich" behind a city."""
    kept: list[str] = []
    at = 0
    for join in (*_FURTHER.finditer(tail.after), None):
        clause = tail.after[at : join.start() if join else len(tail.after)]
        if at and _speaks_of_more(clause, tail):
            return " , ".join(kept)
        if not (at and _is_contrast(clause, tail)):
            kept.append(clause)
        at = join.end() if join else at
    return " , ".join(kept)


def supposing(tail: Tail) -> str:
    """The same for an if: what an "and" or "even if" adds behind a statement leaves it standing."""
    turned = turning(tail)
    join = _ADDS.search(turned)
    if join is None:
        return turned
    added = content_words(turned[join.end() :]) - tail.known
    fresh = {word for word in added if not _carries_marker(word, tail)}
    return turned[: join.start()] if fresh else turned


def _speaks_of_more(clause: str, tail: Tail) -> bool:
    if not markers.opens_with("first_person", clause.strip(), tail.languages):
        return False
    fresh = {word for word in content_words(clause) - tail.known if not _carries_marker(word, tail)}
    return bool(fresh)


def _carries_marker(word: str, tail: Tail) -> bool:
    kinds = ("negation", "hypothetical", "correction")
    return any(markers.marked(kind, word, tail.languages) for kind in kinds)


def _is_contrast(clause: str, tail: Tail) -> bool:
    """ "not Munich", "not 33": another name or number than the value's, denied."""
    if _NOT_THE_OTHER.match(clause) is None:
        return False
    return bool(numbers(clause) and numbers(tail.value)) or any(
        says(clause, name) for name in tail.names if not says(tail.value, name)
    )
