"""What other products export, a module for each of them, in the same plain terms.

No record makes a reader fail, whatever it holds: what it cannot use it counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, ClassVar, NamedTuple

from memchat.types import Role, clean_text

ROLES: dict[str, Role] = dict.fromkeys(("user", "human"), "user")
ROLES |= dict.fromkeys(("assistant", "ai"), "assistant")
"""What products call the person and the assistant."""


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


class Fields:
    """What a JSON value holds by names, where it is an object; nothing is there that is of another
    kind than it should be."""

    def __init__(self, value: object) -> None:
        self._values: Mapping[str, Any] = value if isinstance(value, dict) else {}

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __bool__(self) -> bool:
        return bool(self._values)

    def value(self, name: str) -> Any:
        """Whatever stands under this name."""
        return self._values.get(name)

    def text(self, name: str) -> str:
        """A text, as it may be stored, else an empty one."""
        return text_of(self.value(name))

    def name(self, *names: str) -> str:
        """What can be a name or a number of a thing, under the first of these."""
        found = (self.value(name) for name in names)
        return next((str(one) for one in found if one and isinstance(one, str | int)), "")

    def time(self, *names: str) -> datetime | None:
        """A time, under the first of these names where there is one."""
        return next(filter(None, (moment(self.value(name)) for name in names)), None)

    def list(self, name: str) -> Sequence[Any]:
        """The elements of a list."""
        value = self.value(name)
        return value if isinstance(value, list) else ()

    def inner(self, name: str) -> Fields:
        """The fields of an object under this name."""
        return Fields(self.value(name))

    def each(self, name: str) -> Sequence[Fields]:
        """The fields of each element of a list."""
        return [Fields(one) for one in self.list(name)]

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._values.items()


class Reader:
    """Reads the records of one product, of which each has a class of its own."""

    PRODUCT: ClassVar[str]
    """Its name for people."""
    NO_MESSAGES = "conversations without a message that can be read"
    NO_TEXT = "messages without text"
    OTHER_BRANCHES = "messages of branches that were abandoned"
    HIDDEN = "system, tool and hidden messages"

    def __init__(self, left_out: Counter[str]) -> None:
        self._left_out = left_out

    @staticmethod
    def holds(record: Fields) -> bool:
        """Whether a JSON object is a record of the product, as far as what it holds shows."""
        raise NotImplementedError

    def take(self, record: Fields) -> Iterator[Item]:
        """What a record holds. What cannot be used is counted, with the reason."""
        raise NotImplementedError

    def finish(self) -> Iterator[Item]:
        """What is known once all records were taken."""
        yield from ()

    def _leave_out(self, what: str, count: int = 1) -> None:
        if count:
            self._left_out[what] += count


def text_of(value: object) -> str:
    """The value where it is a text, as it may be stored, else an empty one."""
    return clean_text(value).strip() if isinstance(value, str) else ""


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


def path_to(leaf: str, parents: Mapping[str, str], times: Mapping[str, object]) -> list[str]:
    """The names from the root of a tree to a leaf, to the newest one where that is not there; a
    circle ends it."""
    if leaf not in parents:
        inner = {*parents.values()}
        ends = [name for name in parents if name not in inner] or [*parents]
        leaf = max(ends, key=lambda name: str(times.get(name) or ""), default="")
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return [*path][::-1]
