"""A history of 60 conversations across two years in which 20 things change, as ChatGPT exports it,
and the key to it: what a careful reader notes of each conversation, whatever is known by then.

The person is made up. ``talks`` is always the same; nothing here was fitted to what memchat does.

    python -m tests.support.two_years FILE    writes the export, and prints what is so at the end

So any model can read it: ``memchat import FILE --learn now`` with MEMCHAT_EXTRACT_MODEL set, then
compare ``memchat memories list`` with what was printed. A part of it, as FILE:0:30, has only those.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from memchat.types import ChatMessage
from tests.support.answers import answer, fact
from tests.support.histories import talk

ENDED = ""
BEGINNING = datetime(2024, 1, 8, 18, 30, tzinfo=UTC)
DAYS = 725
LIFE: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("profile", "city"): [
        ("Utrecht", "I live in Utrecht"),
        ("Leuven", "we moved to Leuven on Saturday"),
        ("Trondheim", "since this week I live in Trondheim"),
        ("Bergen", "I have moved to Bergen for good"),
    ],
    ("profile", "employer"): [
        ("Halvorsen Boats", "I work at Halvorsen Boats"),
        ("the Fjord Archive", "I work for the Fjord Archive now"),
        ("Bergen Museum", "I have started at Bergen Museum"),
    ],
    ("profile", "job"): [
        ("joiner", "I am a joiner"),
        ("conservator", "I work as a conservator these days"),
        ("head of conservation", "they made me head of conservation"),
    ],
    ("profile", "partner"): [
        ("Ines", "my partner is called Ines"),
        (ENDED, "Ines and I are no longer together"),
        ("Marit", "my partner Marit is coming along"),
    ],
    ("fact", "car"): [
        ("a red Skoda", "I drive a red Skoda"),
        ("an old Volvo", "I drive an old Volvo instead of the other one now"),
        (ENDED, "I sold the old Volvo and have no car any more"),
    ],
    ("preference", "diet"): [
        ("vegetarian", "I am a vegetarian"),
        ("vegan", "I eat vegan by now"),
        ("pescatarian", "I am pescatarian these days, fish is fine"),
    ],
    ("fact", "learning"): [
        ("Norwegian", "I am learning Norwegian"),
        ("Portuguese", "I am learning Portuguese now and stopped with the other one"),
    ],
    ("fact", "bank"): [
        ("Triodos", "my bank is Triodos"),
        ("Sbanken", "I changed my bank to Sbanken"),
    ],
    ("fact", "dentist"): [
        ("Dr. Vos", "my dentist is Dr. Vos"),
        ("Dr. Lie", "I go to another dentist now, Dr. Lie"),
    ],
    ("fact", "laptop"): [
        ("a ThinkPad", "my laptop is a ThinkPad"),
        ("a Framework", "I replaced my laptop with a Framework"),
    ],
    ("fact", "instrument"): [
        ("the cello", "I play the cello"),
        ("the viola", "I gave that up and play the viola now"),
    ],
    ("preference", "commute"): [
        ("by bike", "I go to work by bike"),
        ("by tram", "I go to work by tram now"),
    ],
    ("preference", "sport"): [
        ("fencing", "my sport is fencing"),
        ("rowing", "I took up rowing and dropped what I did before"),
    ],
}
"""What was so one after the other, by type and key, and the words with which each was told."""
ASKED = (
    "Can you help me plan the weekend?",
    "I need a short text for a card.",
    "What should I pack for three days of rain?",
    "Draft a polite mail for me, please.",
    "How do I get red wine out of a linen shirt?",
    "Explain compound interest in two sentences.",
    "Give me three ideas for dinner on a Tuesday.",
)
IDLE = (
    "What is the difference between oak and ash when it is steamed?",
    "How long does bread dough rest in the fridge?",
    "Why is the sky green before a hailstorm?",
    "Which of Bach's suites is the shortest?",
    "Translate: the ferry leaves at noon.",
    "How many metres are there in a nautical mile?",
    "My neighbour says that she has moved to Lisbon; what is the weather there like?",
    "Suppose I were a baker in Rome: when would I get up?",
    "A character in my story drives a yellow Fiat. Give him a name.",
)
BACK = (
    "Years ago, long before today, this was another matter. What do people do about such memories?"
)


@dataclass(frozen=True)
class Talk:
    """One conversation, and what it tells: nothing without a ``key``."""

    name: str
    at: datetime
    words: tuple[str, ...]
    kind: str = ""
    key: str = ""
    value: str = ENDED
    before: str = ENDED
    """What was so until then."""
    quote: str = ""

    @property
    def exported(self) -> dict[str, Any]:
        return talk(self.name, *self.words, at=self.at.timestamp())


def talks() -> list[Talk]:
    """The conversations, the oldest first."""
    rng = random.Random(31)
    order = [slot for slot, told in LIFE.items() for _ in told]
    rng.shuffle(order)
    places = sorted(rng.sample(range(60), len(order)))
    days = sorted(rng.sample(range(DAYS), 60))
    steps, now, made = dict.fromkeys(LIFE, 0), dict.fromkeys(LIFE, ENDED), list[Talk]()
    for number in range(60):
        at = BEGINNING + timedelta(days=days[number], minutes=rng.randrange(200))
        name, asked = f"talk-{number:02}", rng.choice(ASKED)
        if number in places:
            kind, key = slot = order[places.index(number)]
            value, quote = LIFE[slot][steps[slot]]
            told = quote[0].upper() + quote[1:]
            words = (f"{asked} By the way, number {number}.", "Gladly.", f"{told}.", "I see.")
            found = Talk(name, at, words, kind, key, value, now[slot], told)
            steps[slot], now[slot] = steps[slot] + 1, value
        elif rng.random() < 0.4 and any(now.values()):
            slot = rng.choice([one for one in LIFE if now[one]])
            told = next(quote for value, quote in LIFE[slot] if value == now[slot])
            said = f"as I said, {told}"
            words = (
                f"{asked} Once more, number {number}.",
                "Of course.",
                f"Well, {said}.",
                "Right.",
            )
            found = Talk(name, at, words, *slot, now[slot], now[slot], told)
        else:
            words = (f"{rng.choice((*IDLE, BACK))} ({number})", "Here is what I know.", "Thanks.")
            found = Talk(name, at, words)
        made.append(found)
    return made


def holding() -> set[tuple[str, str]]:
    """What is so at the end, by key."""
    return {(key, told[-1][0]) for (_, key), told in LIFE.items() if told[-1][0]}


class Reader:
    """Answers as a careful cheap model, and checks what it is sent: each conversation whole and
    alone, with its own day, and with ``known`` that is no secret to it."""

    def __init__(self, every: Sequence[Talk]) -> None:
        self._by_words = {one.words[0]: one for one in every}
        self.read: list[str] = []
        self.shown: dict[str, list[str]] = {}
        """The values of its key that it was shown with each conversation that tells something."""

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        sent = messages[-1].content
        shown = sent.replace("⟦", "").replace("⟧", "")  # around what is not the person's own words
        data = json.loads(shown[shown.index("\n") : shown.rindex("</data")])
        said = [(turn["role"][0], turn["text"]) for turn in data["transcript"]]
        told = self._by_words[said[0][1]]
        assert said == [("ua"[n % 2], text) for n, text in enumerate(told.words)]
        days = {date.fromisoformat(turn["said"][:10]) for turn in data["transcript"]}
        assert days <= {told.at.date(), told.at.date() + timedelta(days=1)}
        assert not data["context"]
        self.read.append(told.name)
        if not told.key:
            return answer(title=told.name)
        known = {one["value"]: one["id"] for one in data["known"] if one["key"] == told.key}
        self.shown[told.name] = [*known]
        value, more = told.value, {"is": "new", "to": None}
        if value == ENDED:
            value, more = told.before, {"is": "ends", "to": known.get(told.before)}
        elif value in known:
            more = {"is": "same", "to": known[value]}
        elif known:
            more = {"is": "updates", "to": next(iter(known.values()))}
        found = fact(told.quote, told.key, value, msg="u3", memory_type=told.kind, **more)
        return answer(found, title=told.name)


def main() -> None:
    file, *part = sys.argv[1].split(":")
    some = talks()[slice(*map(int, part))] if part else talks()
    Path(file).write_text(json.dumps([one.exported for one in some]), encoding="utf-8")
    for key, value in sorted(holding()):
        print(f"{key}: {value}")


if __name__ == "__main__":
    main()
