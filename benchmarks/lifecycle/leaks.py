"""Random facts for several users and apps: does one of them turn up where it is not at home?"""

from __future__ import annotations

import random
import re

from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.stage import Stage, fact
from memchat.providers import Embedder

USERS = ("ada", "ben", "cleo", "dov")
APPS = ("home", "work", "travel")
FACTS_EACH = 4
KEYS = ("hobby", "project", "friend", "food_like", "pet", "plan")
CONSONANTS = "bdfgklmnprstvwxz"
VOWELS = "aeiou"


def measure(embedder: Embedder | None = None, seed: int = 1) -> list[Figure]:
    """Teach, ask everywhere about everything, and grep prompts, tables and files."""
    chance = random.Random(seed)
    with Stage(embedder) as stage:
        home = {
            word: (user, app)
            for user in USERS
            for app in APPS
            for word in _teach(stage, user, app, chance)
        }
        found = [
            f"{word} of {'/'.join(home[word])} in {user}/{app}"
            for user in USERS
            for app in APPS
            for word in _words_seen(stage, user, app, list(home))
            if home[word] != (user, app)
        ]
        missing = [w for w, (u, a) in home.items() if w not in _listed(stage, u, a)]
        hidden, traces = _incognito(stage, chance)
    asked = len(USERS) * len(APPS)
    seen = f"{len(found)} of {len(home) * (asked - 1)} chances"
    note = f"{len(USERS)} users x {len(APPS)} apps, prompts, recall, lists, inbox; {len(missing)}"
    note += f" not found at home{': ' + ', '.join(found[:5]) if found else ''}"
    return [
        Figure("leaked across users and apps", seen, "0", not found and not missing, note=note),
        Figure(
            "leaked from incognito",
            f"{len(traces)} of {hidden} words",
            "0",
            not traces,
            note="every table and every byte of every file",
        ),
    ]


def _teach(stage: Stage, user: str, app: str, chance: random.Random) -> list[str]:
    words = [_word(chance) for _ in range(FACTS_EACH)]
    lines = [f"I really like {word}." for word in words]
    facts = [
        fact(line, chance.choice(KEYS), word, msg=f"u{2 * i + 1}", many=True, kind="profile")
        for i, (line, word) in enumerate(zip(lines, words, strict=True))
    ]
    stage.tell(user, *lines, facts=facts, app=app)
    return words


def _word(chance: random.Random) -> str:
    return "".join(chance.choice(some) for _ in range(5) for some in (CONSONANTS, VOWELS))


def _words_seen(stage: Stage, user: str, app: str, words: list[str]) -> set[str]:
    """The facts that a scope's prompts, search, lists and inbox hold, asked for everybody's."""
    texts = [_listed(stage, user, app)]
    texts += [f"{i.value} {i.quote}" for i in stage.mc.user(user, app=app).inbox.list()]
    for first in range(0, len(words), 6):
        some = words[first : first + 6]
        question = "Do I like " + ", ".join(some) + "?"
        # The question itself stands in the prompt: only the rest may not hold a word.
        texts.append(stage.prompt(user, question, app).replace(question, ""))
        texts += [h.text for h in stage.mc.user(user, app=app).search(question).hits]
    return set(re.findall(r"\w+", "\n".join(texts))) & set(words)


def _listed(stage: Stage, user: str, app: str) -> str:
    return "\n".join(m.value for m in stage.mc.user(user, app=app).memories.list(status="all"))


def _incognito(stage: Stage, chance: random.Random) -> tuple[int, list[str]]:
    words = [_word(chance) for _ in range(12)]
    lines = [f"I really like {word}." for word in words]
    chat = stage.tell("ada", *lines, app="home", incognito=True)
    assert chat.learned is None
    rows, raw = stage.rows(), stage.bytes()
    return len(words), [word for word in words if word in rows or word.encode() in raw]
