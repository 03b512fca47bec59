"""What other products export, a module for each of them, in the same plain terms.

No record makes a reader fail, whatever it holds: what it cannot use it counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, ClassVar, NamedTuple

from memchat.types import Role, clean_text

NO_MESSAGES = "conversations without a message that can be read"
NO_TEXT = "messages without text"
OTHER_BRANCHES = "messages of branches that were abandoned"
HIDDEN = "system, tool and hidden messages"


class Turn(NamedTuple):
    """One message of the person or of the assistant."""

    role: Role
    text: str
    time: datetime | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation, in the order in which it was held."""

    id: str
    """The product's own name of it, the same in every export; empty where it has none."""
    title: str
    turns: Sequence[Turn]
    began: datetime | None = None


class SavedFact(NamedTuple):
    """What a product had saved about the person, as a memory of its own."""

    text: str
    day: date | None


Item = Conversation | SavedFact


class Reader:
    """Reads the records of one product, of which each has a class of its own."""

    PRODUCT: ClassVar[str]
    """Its name for people."""

    def __init__(self, left_out: Counter[str]) -> None:
        self._left_out = left_out

    @staticmethod
    def holds(record: Mapping[str, Any]) -> bool:
        """Whether a JSON object is a record of the product, as far as what it holds shows."""
        raise NotImplementedError

    def take(self, record: Mapping[str, Any]) -> Iterator[Item]:
        """What a record holds. What cannot be used is counted in ``left_out``, with the reason."""
        raise NotImplementedError

    def finish(self) -> Iterator[Item]:
        """What is known once all records were taken."""
        yield from ()


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def text_of(value: object) -> str:
    """The value where it is a text, as it may be stored, else an empty one."""
    return clean_text(value).strip() if isinstance(value, str) else ""


def name_of(value: object) -> str:
    """The value where it can be a name or a number of a thing, else an empty text."""
    return str(value) if isinstance(value, str | int) else ""


def moment(value: object) -> datetime | None:
    """A time: seconds or milliseconds since 1970, or an ISO text; None for anything else."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value.strip())
            return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            seconds = value / 1000 if abs(value) > 1e11 else value
            return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (ValueError, OverflowError, OSError):
        pass
    return None


def path_to(leaf: str, parents: Mapping[str, str]) -> list[str]:
    """The names from the root of a tree to a leaf; a circle ends it."""
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return [*path][::-1]
