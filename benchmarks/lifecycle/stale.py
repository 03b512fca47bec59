"""Facts that change, and change back: is the current value served, the old one only behind it?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.stage import Stage, answer, fact, known_to
from memchat.facts import keys
from memchat.providers import Embedder
from memchat.testing import Request
from memchat.types import ChatMessage


@dataclass(frozen=True, slots=True)
class Chain:
    """The values of one slot, in the order in which they are said."""

    key: str
    said: str
    question: str
    values: tuple[str, ...]


def _chain(line: str) -> Chain:
    key, said, question, values = (part.strip() for part in line.split("|"))
    return Chain(key, said, question, tuple(values.split(", ")))


CHAINS = tuple(
    _chain(line)
    for line in """
city | I live in {} now. | Where do I live? | Faro, Turin, Faro
city | Ich wohne jetzt in {}. | In welcher Stadt wohne ich? | Kassel, Erfurt, Kassel, Jena
city | Ahora vivo en {}. | Where do I live, in which city? | Burgos, Toledo
age | I am {} now. | How old am I? | 33, 34, 35
job | I work as a {} now. | What is my job? | welder, surveyor, welder
employer | I work for {} now. | Who do I work for? | Halvorsen, Lindqvist, Halvorsen
favourite_drink | My favourite drink is {} now. | What do I like to drink? | cocoa, kombucha, cocoa
favourite_colour | My favourite colour is {} now. | What is my favourite colour? | teal, amber
phone_model | My phone is a {} now. | Which phone do I have? | Pixel, Fairphone, Pixel
salary | My salary is {} euros now. | What is my salary? | 41000, 44500
weight | My weight is {} kg now. | What is my weight? | 81, 79, 81
commute | My commute takes {} minutes now. | How long is my commute? | 35, 50, 20
bedtime | My bedtime is {} now. | When is my bedtime? | 22:30, 23:15, 22:30
wake_time | My wake time is {} now. | When do I wake up, what is my wake time? | 6:10, 5:50
timezone | My time zone is {} now. | What is my time zone? | Lisbon, Helsinki
diet | I eat a {} diet now. | What is my diet? | vegetarian, pescatarian, vegetarian
partner | My partner is {} now. | Who is my partner? | Ravenna, Isolde
theme | I use the {} theme now. | Which theme do I use? | Solarized, Nord, Solarized
editor | My editor is {} now. | Which editor do I use? | Helix, Emacs, Helix
gym_day | My gym day is {} now. | What is my gym day? | Tuesday, Thursday, Tuesday
deadline | My deadline is {} now. | When is my deadline? | 15 October, 22 October, 15 October
stand_up | Our stand-up is at {} now. | When is our stand-up? | 9:30, 10:15, 9:45
office_room | My office room is {} now. | Which room is my office? | 214, 241, 214
team_size | My team size is {} now. | How large is my team, its size? | 8, 11
landlord | My landlord is {} now. | Who is my landlord? | Okafor, Petrov
laptop | My laptop is a {} now. | Which laptop do I have? | Tuxedo, Framework, Tuxedo
rent | My rent is {} euros now. | How high is my rent? | 950, 990, 1,040
bike_colour | My bike is {} now. | What colour is my bike? | red, green, red
piano_teacher | My piano teacher is {} now. | Who is my piano teacher? | Sorensen, Kowalski
release_month | Our release is in {} now. | In which month is our release? | March, May, March
database | Our database is {} now. | Which database do we use? | Postgres, SQLite, Postgres
car | My car is a {} now. | Which car do I have? | Kangoo, Berlingo, Kangoo
coffee_order | My coffee order is a {} now. | What is my coffee order? | cortado, ristretto
library_day | My library day is {} now. | What is my library day? | Monday, Friday, Monday
""".strip().splitlines()
)  # fmt: skip


def measure(embedder: Embedder | None = None) -> list[Figure]:
    """Replay every chain, ask after each change, and read the whole prompt."""
    stale: list[str] = []
    missing: list[str] = []
    asked = 0
    with Stage(embedder) as stage:
        built_in = [chain for chain in CHAINS if keys.cardinality(chain.key) == "one"]
        played = [(chain, True) for chain in CHAINS] + [(chain, False) for chain in built_in]
        for number, (chain, judged) in enumerate(played):
            user = f"chain {number}"
            for step, value in enumerate(chain.values):
                _say(stage, user, chain, value, judged)
                if step == 0:
                    continue
                asked += 1
                prompt = stage.prompt(user, chain.question)
                where = f"{chain.key} {step}{'' if judged else ' unjudged'}"
                missing += [where] if not _is_current(prompt, chain, value) else []
                others = set(chain.values) - {value}
                stale += [where] if any(serves(prompt, value, old) for old in others) else []
    back = sum(len(c.values) > len(set(c.values)) for c in CHAINS)
    note = f"{len(CHAINS)} chains, {back} go back; {len(built_in)} once more without a verdict"
    return [
        Figure(
            "stale facts served after an update",
            f"{len(stale)} of {asked} questions",
            "0",
            not stale,
            "scripted right verdicts",
            note=note + _where(stale),
        ),
        Figure(
            "current fact missing after an update",
            f"{len(missing)} of {asked} questions",
            "0",
            not missing,
            "scripted right verdicts",
            note="not in the prompt at all" + _where(missing) if missing else "",
        ),
    ]


def _say(stage: Stage, user: str, chain: Chain, value: str, judged: bool) -> None:
    """Say it; the double points at the fact with that key, where it is shown one."""
    line = chain.said.format(value)

    def reply(messages: Sequence[ChatMessage]) -> str:
        known = known_to(Request(tuple(messages), "extract"))
        same_slot = [item["id"] for item in known if item["key"] == chain.key]
        linked = {"relation": "updates", "to": same_slot[0]} if same_slot and judged else {}
        return answer(fact(line.rstrip("."), chain.key, value, **linked))

    stage.extract.replies.append(reply)
    stage.tell(user, line, facts=None)
    stage.clock.advance(days=1)


def _is_current(prompt: str, chain: Chain, value: str) -> bool:
    fact = re.compile(rf"- #\d+ {re.escape(f'{chain.key}: {value}')}(?: \(|$)")
    return any(fact.match(line) for line in prompt.splitlines())


def serves(prompt: str, current: str, old: str) -> bool:
    """Whether a prompt gives an old value anywhere but behind the current one, as "before"."""
    word = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    lines = [line for line in prompt.splitlines() if line.startswith(("- [", "- #"))]
    for number, line in enumerate(lines):
        shown = re.sub(r"[;(] ?before: .*", "", line)
        ahead = any(current in earlier for earlier in lines[: number + 1])
        if word.search(shown) or (word.search(line) and not ahead):
            return True
    return False


def _where(places: list[str]) -> str:
    return ": " + ", ".join(places) if places else ""
