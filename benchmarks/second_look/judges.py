"""Who answers the second look: doubles that always say the same or fail, a reader by hand, a model.

A judge gets what the model would be sent, and nothing of what the file says about a proposal.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import names
from benchmarks.answers import Answers, every
from benchmarks.desk import slot
from benchmarks.second_look.corpus import Line, Proposal
from memchat.errors import ProviderError
from memchat.language.text import normal_value
from memchat.types import ChatMessage

Say = Callable[[str, Sequence[ChatMessage], dict[str, Any] | None], str]
"""From a conversation's id, the messages and the schema to the raw answer."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A way to answer the second look."""

    name: str
    say: Say
    fails: bool = False
    """Whether its calls fail, so that the queue has to try again."""
    answers: Answers | None = None
    """A model's answers, asked now or recorded."""


def double(name: str) -> Judge:
    """One of DOUBLES by its name; ``right`` has to be told what is right."""
    if name in ("holds", "not", "unclear"):
        return Judge(f"always {name}", lambda case, sent, schema: every(sent, name))
    if name == "broken":
        return Judge("broken JSON and prose", _broken)
    if name == "500":
        return Judge("500 at every call", _fails, fails=True)
    return Judge("careless: holds for one in two", _careless)


def right(lines: Iterable[Line]) -> Judge:
    """One that says of each proposal what the file says: what is lost then, code alone lost."""
    files = {line.id: line.proposals for line in lines}

    def say(case: str, sent: Sequence[ChatMessage], schema: dict[str, Any] | None) -> str:
        asked = names.data_of(sent).get("candidates", ())
        verdicts = [
            {"id": one["id"], "answer": "holds" if _is_honest(one, files[case]) else "not"}
            for one in asked
        ]
        return json.dumps({"verdicts": verdicts})

    return Judge("right: as the file says", say)


def _is_honest(asked: Mapping[str, Any], proposals: Sequence[Proposal]) -> bool:
    """By key and value; by the relation too where the file has both a right and a wrong one."""
    key, _, value = asked["fact"].partition(": ")
    same = [
        one
        for one in proposals
        if slot(one.fact["key"]) == slot(key)
        and (not value or normal_value(one.fact["value"]) == normal_value(value))
    ]
    exact = [one for one in same if one.fact["is"] == asked.get("is", "new")]
    return any(one.honest for one in exact or same)


DOUBLES = ("right", "holds", "not", "unclear", "broken", "500", "careless")


def by_model(answers: Answers) -> Judge:
    """A model asked now, or its recorded answers."""

    def say(case: str, sent: Sequence[ChatMessage], schema: dict[str, Any] | None) -> str:
        answers.case = case
        return answers.complete(sent, purpose="verify", schema=schema).text

    return Judge(answers.by, say, answers=answers)


@dataclass(slots=True)
class ByHand:
    """A reader who writes the answers: first each call without one becomes a file, then the files
    are read.

    ``FOLDER/ask/NAME.json`` holds the messages exactly as they are sent, ``FOLDER/answer/NAME.txt``
    is what the reader writes; NAME is the conversation's id and the number of the call.
    """

    folder: Path
    asks: bool
    calls: Counter[str] = field(default_factory=Counter)
    written: int = 0
    missing: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """Calls that are not what the reader was asked."""

    def judge(self) -> Judge:
        """This reader as a judge."""
        return Judge("being asked" if self.asks else "a reader, by hand", self._say)

    def _say(self, case: str, sent: Sequence[ChatMessage], schema: dict[str, Any] | None) -> str:
        return self.answer(case, sent, schema) or every((), "unclear")

    def answer(
        self, case: str, sent: Sequence[ChatMessage], schema: dict[str, Any] | None
    ) -> str | None:
        """What the reader wrote for this call; None where it did not yet."""
        self.calls[case] += 1
        name = f"{re.sub('[^A-Za-z0-9_]', '_', case)}-{self.calls[case]}"
        ask = {"messages": [{"role": m.role, "content": m.content} for m in sent], "schema": schema}
        asked, answered = (
            self.folder / "ask" / f"{name}.json",
            self.folder / "answer" / f"{name}.txt",
        )
        if self.asks and not answered.is_file():
            asked.parent.mkdir(parents=True, exist_ok=True)
            answered.parent.mkdir(parents=True, exist_ok=True)
            asked.write_text(json.dumps(ask, ensure_ascii=False, indent=1), encoding="utf-8")
            self.written += 1
            return None
        if not answered.is_file():
            self.missing.append(name)
            return None
        if asked.is_file() and _asked(asked) != names.data_of(sent):
            self.changed.append(name)
        return answered.read_text(encoding="utf-8")


def _asked(path: Path) -> dict[str, Any]:
    messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
    return names.data_of([ChatMessage(m["role"], m["content"]) for m in messages])


def _broken(case: str, sent: Sequence[ChatMessage], schema: dict[str, Any] | None) -> str:
    if _half(case):
        return "All of these look fine to me, as far as I can tell."
    return every(sent, "holds")[:25]


def _fails(case: str, sent: Sequence[ChatMessage], schema: dict[str, Any] | None) -> str:
    raise ProviderError("the provider answered 500", status=500, retryable=True)


def _careless(case: str, sent: Sequence[ChatMessage], schema: dict[str, Any] | None) -> str:
    """By the candidate itself, so that the order in which they are asked changes nothing."""
    verdicts = []
    for asked in names.data_of(sent).get("candidates", ()):
        said = {name: value for name, value in asked.items() if name != "id"}
        holds = _half(case + json.dumps(said, sort_keys=True))
        verdicts.append({"id": asked["id"], "answer": "holds" if holds else "not", "why": "-"})
    return json.dumps({"verdicts": verdicts})


def _half(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 0
