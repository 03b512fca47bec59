"""Prompts for a blind reader who plays the chat model, and the count of what a judge saw.

A stored fact is to be used where it helps, and not to be mentioned where it does not matter.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.recall.everyday.kept import kept
from benchmarks.recall.everyday.lives import Life, Request, Stated
from memchat.providers import Embedder

ASKED = 30
FURTHER = 40
"""Facts beside a person's own twenty in the second half of the cases."""
READER = """\
Play a chat model. Each file that ends in .prompt.txt holds all that the model is sent: its
instructions, then the user's message. For each one write the reply that you would give, and
nothing else, to a file of the same name that ends in .reply.txt. Treat every file as if it were
the only one, and read nothing else.
"""
JUDGE = """\
Each file that ends in .judge.txt holds a user's message, a reply, and numbered facts about that
user. Does the reply mention or use any of these facts? What the message itself says is no use of
a fact. Write the numbers of the facts, or the word none, to a file of the same name that ends in
.verdict.txt.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One request in one store; the name tells nothing about it."""

    life: Life
    request: Request

    @property
    def name(self) -> str:
        """The first part of its files' names."""
        words = f"{len(self.life.facts)} {self.life.name} {self.request.text}"
        return hashlib.sha256(words.encode()).hexdigest()[:10]

    @property
    def row(self) -> str:
        """The line of the table that it counts in."""
        kind = "a fact helps" if self.request.needs else "foreign"
        return f"{kind}, {len(self.life.facts)} facts"


def cases(lives: Sequence[Life]) -> list[Case]:
    """Up to 30 foreign requests and 30 that a fact helps with, in a small and a larger store."""
    every = [(life, request) for life in lives for request in life.requests]
    drawn = random.Random(7)
    foreign = [one for one in every if not one[1].needs]
    helped = [one for one in every if one[1].needs]
    chosen = [
        *drawn.sample(foreign, min(ASKED, len(foreign))),
        *drawn.sample(helped, min(ASKED, len(helped))),
    ]
    wide = {life.name: widened(life, lives) for life in lives}
    small = [Case(life, request) for life, request in chosen]
    return small + [Case(wide[life.name], request) for life, request in chosen]


def widened(life: Life, lives: Sequence[Life]) -> Life:
    """The same person with facts of others that can stand beside theirs: no profile or preference,
    and no key twice."""
    keys = {fact.key for fact in life.facts}
    further = list[Stated]()
    for other in lives:
        for fact in other.facts if other.name != life.name else ():
            if not fact.own and fact.key not in keys and len(further) < FURTHER:
                keys.add(fact.key)
                further.append(fact)
    return replace(life, facts=(*further, *life.facts))


def ask(embedder: Embedder, lives: Sequence[Life], folder: Path) -> int:
    """Write each case's prompt; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.txt").write_text(READER, "utf-8")
    every = cases(lives)
    embedder.embed_documents([case.request.text for case in every])
    for life in {id(case.life): case.life for case in every}.values():
        with kept(embedder, life) as store:
            for case in (case for case in every if case.life is life):
                sent = store.prompt(case.request.text)
                text = "\n\n".join(f"<<{one.role}>>\n{one.content}" for one in sent)
                (folder / f"{case.name}.prompt.txt").write_text(text, "utf-8")
    return len(every)


def answers(lives: Sequence[Life], folder: Path) -> Iterator[str]:
    """Write what the judge reads for each reply that is there, and count the verdicts; the lines
    to print."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not there; --ask writes it")
    judging = folder / "judge"
    judging.mkdir(exist_ok=True)
    (judging / "README.txt").write_text(JUDGE, "utf-8")
    rows: dict[str, list[str]] = {}
    unanswered = unjudged = 0
    for case in cases(lives):
        reply = folder / f"{case.name}.reply.txt"
        verdict = judging / f"{case.name}.verdict.txt"
        if not reply.is_file():
            unanswered += 1
            continue
        told = _for_judge(case, reply.read_text("utf-8"))
        (judging / f"{case.name}.judge.txt").write_text(told, "utf-8")
        if verdict.is_file():
            used = named(case, verdict.read_text("utf-8"))
            rows.setdefault(case.row, []).append(_mark(case, used))
        else:
            unjudged += 1
    for row, marks in sorted(rows.items()):
        counted = ", ".join(f"{marks.count(mark)} {mark}" for mark in sorted(set(marks)))
        yield f"{row}: {len(marks)} judged: {counted}"
    yield f"{unanswered} prompts without a reply, {unjudged} replies without a verdict"


def named(case: Case, verdict: str) -> list[Stated]:
    """The facts that a verdict names; a number that is no fact's is an error."""
    numbers = [int(number) for number in re.findall(r"\d+", verdict)]
    wrong = [number for number in numbers if not 1 <= number <= len(case.life.facts)]
    if wrong or not (numbers or re.search(r"\bnone\b", verdict, re.IGNORECASE)):
        raise ValueError(f"{case.name}: a verdict is the word none or numbers of its facts")
    return [case.life.facts[number - 1] for number in numbers]


def _mark(case: Case, used: Sequence[Stated]) -> str:
    if case.request.needs & {fact.id for fact in used}:
        return "use the fact that helps"
    return "mention another fact" if used else "mention none"


def _for_judge(case: Case, reply: str) -> str:
    facts = "\n".join(
        f"{number}. {fact.key.replace('_', ' ')}: {fact.value}"
        for number, fact in enumerate(case.life.facts, 1)
    )
    return f"Message:\n{case.request.text}\n\nReply:\n{reply.strip()}\n\nFacts:\n{facts}\n"
