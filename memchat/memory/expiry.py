"""Until when a candidate holds: the user's words for it, and the day that their code names."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from memchat.errors import InputError
from memchat.memory import sentences
from memchat.memory.candidate import Candidate
from memchat.memory.dates import until_date
from memchat.memory.text import UNSPACED, find_span, fold, normal_value

if TYPE_CHECKING:
    from memchat.memory.evidence import Findings


def check_until(
    candidate: Candidate, found: Findings, zone: ZoneInfo
) -> tuple[Candidate, date | None]:
    """The candidate with the last day it holds; the words for it must stand in a quoted message."""
    code, said = candidate.until, candidate.until_said
    open_ended = candidate.model_copy(update={"until": None, "until_said": None})
    turn = max((turn for turn, _ in found.proofs), key=lambda turn: turn.message_id)
    if code is None:
        if said is not None:
            found.doubts.append("it ends some time, but the date could not be read")
        else:
            sentences.check_passing(candidate, found)
        return open_ended, None
    if said is None or not any(_holds(turn.text, said) for turn in found.quoted()):
        found.notes.append("the end date was dropped: the user gave no words for it")
        sentences.check_passing(candidate, found)
        return open_ended, None
    try:
        until = until_date(code, turn.said_at, zone)
    except InputError as error:
        found.doubts.append(str(error))
        return open_ended, None
    if until < turn.said_at.astimezone(zone).date():
        found.refusals.append("it was already over when it was said")
    return candidate, until


def _holds(text: str, words: str) -> bool:
    """Whether a quoted message holds a phrase; where no spaces part words, of any length."""
    return find_span(words, text) is not None or (
        UNSPACED.search(words) is not None and normal_value(words) in fold(text).text
    )
