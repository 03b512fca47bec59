"""What other products export, a reader for each of them, in the same plain terms.

No record makes a reader fail, whatever it holds: what it cannot use it counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from memchat.types import Role, clean_text

if TYPE_CHECKING:
    from memchat.transfer.archive import Member

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
    until: date | None = None
    """The last day on which it holds, where the product knows one."""


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

    def said(self, name: str = "content") -> str:
        """A text, or the texts among the parts of a list, which a product may wrap once more."""
        parts = (
            text_of(one) or Fields(one).text("text") or Fields(one).inner("text").text("value")
            for one in self.list(name)
        )
        return self.text(name) or "\n".join(filter(None, parts))

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
    NO_FACT = "saved facts without text"
    MOST_RULES = 200

    def __init__(self, left_out: Counter[str], rules: dict[str, None]) -> None:
        """What was left out is counted in ``left_out``; ``rules`` are what the assistant had been
        told to be and to do, in system messages and the like."""
        self._left_out, self._rules = left_out, rules

    @staticmethod
    def holds(record: Fields) -> bool:
        """Whether a JSON object is a record of the product, as far as what it holds shows."""
        return False

    def take(self, record: Fields) -> Iterator[Item]:
        """What a record holds. What cannot be used is counted, with the reason."""
        raise NotImplementedError

    @staticmethod
    def begins(head: str) -> bool:
        """Whether a text that is no JSON is one of the product, as far as its beginning shows."""
        return False

    def read(self, member: Member) -> Iterator[Item]:
        """What such a text holds. Raises InputError where it cannot be read."""
        raise NotImplementedError

    def finish(self) -> Iterator[Item]:
        """What is known once all records were taken."""
        yield from ()

    def _leave_out(self, what: str, count: int = 1) -> None:
        if count:
            self._left_out[what] += count

    def _rule(self, text: str) -> None:
        if text and len(self._rules) < self.MOST_RULES:
            self._rules[text[:20_000]] = None

    def _talk(
        self, name: str, title: str, turns: Iterable[Turn | None], began: datetime | None
    ) -> Iterator[Conversation]:
        """The conversation of these turns, where there is one that can be read."""
        if kept := [turn for turn in turns if turn is not None]:
            yield Conversation(name, title, kept, began)
        else:
            self._leave_out(self.NO_MESSAGES)

    def _spoken(self, role: str, text: str, at: datetime | None) -> Turn | None:
        """What one of the two said; None, and counted, where it was another, or nothing."""
        if role not in ROLES:
            self._leave_out(self.HIDDEN)
            self._rule(text if role == "system" else "")
        elif not text:
            self._leave_out(self.NO_TEXT)
        else:
            return Turn(ROLES[role], text, at)
        return None

    def _facts(self, text: str, day: date | None) -> Iterator[SavedFact]:
        """Each line of a text as a fact, without the mark of a list or a heading."""
        for line in dict.fromkeys(text.splitlines()):
            if words := line.strip().lstrip("-*•# \t").strip():
                yield SavedFact(words.replace("**", ""), day)

    def _in_order(self, said: Sequence[Fields], leaf: str, *names: str) -> Sequence[Fields]:
        """The messages that lead to the last one that was shown, or to the newest; all, where none
        names another. The names are those of a message, of the one before it, and its time."""
        by_name = {one.name(names[0]): one for one in said}
        parents = {name: one.name(names[1]) for name, one in by_name.items()}
        if len(by_name) < len(said) or not any(parent in by_name for parent in parents.values()):
            return said
        times = {name: one.time(names[2]) for name, one in by_name.items()}
        path = [by_name[name] for name in path_to(leaf, parents, times)]
        self._leave_out(self.OTHER_BRANCHES, len(said) - len(path))
        return path


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
