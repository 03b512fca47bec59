"""What it costs to close a conversation that holds very long messages, counted and not timed."""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from memchat.learn.own_words import quoted_spans
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact
from tests.support.store import Opener

COUNTED = {"find_cues": "a text is looked through for secrets", "_one_spelling": "a number"}
CITIES = ("Ulm", "Bern", "Graz", "Linz", "Cork", "Nice")
NUMBERS = itertools.count()
SAID = " ".join(f"I have lived in {city}." for city in CITIES)


def varied(size: int) -> str:
    """Words, numbers and quotations, the same at every run."""
    draw = random.Random(size)
    words = ("the page says", '"so"', "“never", "12.5", "room 4", "and then", "code", "Anna:")
    return " ".join(draw.choices(words, k=size // 5))[:size]


def counted(work: Callable[[], object]) -> Counter[str]:
    """How often it calls the functions that are counted."""
    calls: Counter[str] = Counter()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name in COUNTED:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def closing(open_store: Opener, size: int, facts: int) -> Counter[str]:
    """The work of closing a conversation with two replies of so many characters."""
    new = next(NUMBERS)  # what was looked at for another test is not looked at again
    replies = [f"{new}a {varied(size)}", f"{new}b {varied(size + 1)}"]
    reader = ScriptedModel(window=2_000)
    taught = [fact(f"I have lived in {c}", "city", c, many=True) for c in CITIES[:facts]]
    reader.replies.append(answer(*taught, title="Homes", summary="Ana has had homes."))
    reader.replies.extend([answer(title="Homes", summary="Ana has had homes.")] * 200)
    mc = open_store(chat_model=ScriptedModel(replies, window=2_000_000), extract_model=reader)
    chat = mc.user(f"ana {new}").chat()
    chat.send(SAID).read()
    chat.send("And then?").read()
    calls = counted(chat.end)
    assert chat.failure is None and mc.user(f"ana {new}").memories.list()
    return calls


def test_closing_costs_twice_as_much_for_replies_twice_as_long(open_store: Opener) -> None:
    once, twice = closing(open_store, 10_000, 1), closing(open_store, 20_000, 1)
    for name, what in COUNTED.items():
        assert 0 < twice[name] <= 2.5 * once[name], what


def test_closing_costs_no_more_looks_at_the_replies_for_each_fact(open_store: Opener) -> None:
    one, six = closing(open_store, 10_000, 1), closing(open_store, 10_000, 6)
    assert six["_one_spelling"] < 1.5 * one["_one_spelling"]
    assert six["find_cues"] < 1.5 * one["find_cues"] + 60, "beside what each fact says itself"


@pytest.mark.parametrize("mark", ["“", "„", "«", "「", "『", "»"])
def test_quotation_marks_that_nothing_closes_are_passed_over(mark: str) -> None:
    started = time.process_time()
    assert quoted_spans(mark * 150_000) == ()
    assert time.process_time() - started < 3, "it took minutes"


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("translate “one two” and “three", ["“one two”"]),
        ("translate “ “one two” three", ["“ “one two”"]),
        ("translate «one» “two” „three“ now", ["«one»", "“two”", "„three“"]),
    ],
)
def test_quotation_marks_that_are_closed_are_found_beside_others(
    text: str, foreign: list[str]
) -> None:
    assert [text[a:b] for a, b in quoted_spans(text)] == foreign
