"""What is true for a while only: "this week", "until the end of May"."""

# ruff: noqa: E501  (word lists are read along, not down)
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memchat.memory.gate import calendar_words, markers
from memchat.memory.gate.candidate import Candidate
from memchat.memory.gate.sentences import place_of
from memchat.memory.gate.tails import CLAUSE
from memchat.memory.gate.text import content_words, says

if TYPE_CHECKING:
    from memchat.memory.gate.evidence import Findings

_UNTIL = re.compile(r"until|till|bis|jusqu'\w+|hasta|fino|até|tot")
_UNTIL_WHAT = 40
_JOIN = re.compile(r"(?<!\w)(so|and|because|weil|und|donc|et|así que|y|quindi|e|dus|en)(?= )")
_HOUR = re.compile(
    r"\s*(?:las? |le |les |alle |às |as |um |at )?(?:\d{1,2}(?:[:.h]\d{2})?\s*(?:am|pm|uhr|h|heures|uur)?(?=\s*(?:$|[,;)]|(?:in|on|every|each)\b|[.!]))"
    r"|noon|midnight|mittags?|mitternacht|midi|minuit|mezzogiorno|mezzanotte|mediodía|medianoche|late|spät|tard|tarde|tardi|laat)"
)
_EVENT = re.compile(
    r"\s*(?:i|i'm|we|my|our|the|further|then|after|ich|wir|mein\w*|unser\w*|zu[mr]|dahin|auf|je|mon|ma|mes|notre|ce|nouvel|que|mi|nuestr\w+|nuevo|il|la mi\w+|quando|che|a nuova|eu|meu|minha|segunda|ik|mijn|onze)(?!\w)"
)
"""What follows an "until" that names an event in place of a day."""


def check_passing(candidate: Candidate, found: Findings) -> None:
    """What is true for a while only needs an end, or a reader."""
    if candidate.relation == "ends":
        return
    words = content_words(candidate.value)
    for turn, span in found.proofs:
        place = place_of(found, turn, span)
        parts = _split_statements(place.inside, place.languages)
        about = [part for part in parts if any(says(part, word) for word in words)]
        after = _split_statements(CLAUSE.split(place.after)[0], place.languages)[0]
        text = f"{place.governing} {' , '.join(about or parts)} {after}"
        found_here = markers.marked("passing", text, place.languages)
        if any(_passes(text, match) for match in found_here):
            found.doubts.append("it holds for a while only, and no end is given")
            return


def _split_statements(text: str, languages: tuple[str, ...]) -> list[str]:
    """A text cut where "so", "and" or "because" and the first person open another statement."""
    parts = [""]
    for piece in _JOIN.split(text):
        if len(parts[-1]) and markers.opens_with("first_person", piece, languages):
            parts.append(piece)
        else:
            parts[-1] += piece
    return parts


def _passes(text: str, match: re.Match[str]) -> bool:
    """Whether an "until" leads to a day or an event: "until noon" and "bis Köln" do not end a
    habit."""
    if _UNTIL.fullmatch(match[0]) is None:
        return True
    rest = text[match.end() : match.end() + _UNTIL_WHAT]
    if _HOUR.match(rest):
        return False
    return bool(_EVENT.match(rest)) or calendar_words.read(CLAUSE.split(rest)[0]).anything
