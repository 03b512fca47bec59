"""Marks for an answer: a judging model's, whether it holds the expected words, their F1."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from benchmarks.answers import Answers
from benchmarks.recall.data import Asked
from memchat.types import ChatMessage

_JUDGE = (
    "You compare an answer with the expected one. Say yes where it gives the same information, in"
    " any words and any form of dates, whatever else it says; otherwise say no. Answer with one"
    " word: yes or no."
)
_ASIDE = frozenset(["a", "an", "the", "and", "of", "in", "on", "at", "to", "is", "was"])


@dataclass(slots=True)
class Row:
    """One way of filling the prompt, over every question."""

    HEAD: ClassVar[str] = (
        f"{'':<14}{'evidence':>10}{'tokens':>10}{'judged':>10}{'holds':>10}{'F1':>10}"
    )
    name: str
    evidence: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    f1: list[float] = field(default_factory=list)

    def add(self, asked: Asked, turns: Collection[str], tokens: int) -> None:
        """What stood in one question's prompt."""
        self.evidence.append(len(asked.evidence & set(turns)) / len(asked.evidence))
        self.tokens.append(tokens)

    def mark(self, asked: Asked, answer: str, right: bool) -> None:
        """What came of it."""
        self.right.append(right)
        self.held.append(holds(answer, asked.answer))
        self.f1.append(f1(answer, asked.answer))

    def line(self) -> str:
        """The row as it is printed; without a model its marks are missing."""
        text = f"{self.name:<14}{100 * np.mean(self.evidence):10.1f}{np.mean(self.tokens):10.0f}"
        for marks in (self.right, self.held, self.f1):
            text += f"{100 * np.mean(marks):10.1f}" if marks else f"{'-':>10}"
        return text


def judged(judge: Answers, case: str, asked: Asked, answer: str) -> bool:
    """Whether a model takes the answer for the expected one."""
    judge.case = f"judge {case}"
    told = f"Question: {asked.text}\nExpected: {asked.answer}\nAnswer: {answer}"
    messages = [ChatMessage("system", _JUDGE), ChatMessage("user", told)]
    said = judge.complete(messages, purpose="judge").text
    return re.match(r"\W*yes\b", said, re.IGNORECASE) is not None


def holds(answer: str, expected: str) -> bool:
    """Whether every word of the expected answer stands in the answer."""
    return set(_words(expected)) <= set(_words(answer))


def f1(answer: str, expected: str) -> float:
    """The harmonic mean of the shares of words that both have."""
    mine, theirs = _words(answer), _words(expected)
    shared = sum((Counter(mine) & Counter(theirs)).values())
    return 2 * shared / (len(mine) + len(theirs)) if shared else 0.0


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.casefold()) if word not in _ASIDE]
