"""A question that a conversation waits for an answer to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Question:
    """What the person is asked to agree to before it is done. A yes, a no, or the number of one of
    several is an answer."""

    about: Literal["forget", "blank"]
    """Forgetting what was found, or blanking what else mentions what was forgotten."""
    count: int
    """How many things can be chosen from; those of ``blank`` are one."""
