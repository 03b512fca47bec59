"""Questions about long conversations, answered from what a budget lets into the prompt.

    python -m benchmarks.recall.answered --data DIR [--model M | --answers FILE] [--judge M]
                                         [--record FILE] [--questions N]

``memchat`` is the product's own prompt at a budget, ``plain`` the best turns of a plain hybrid
search in the same frame, ``whole`` every turn. Without a model it prints what share of a question's
evidence stands in the prompt; with one, or with its recorded answers, also how many answers a judge
takes for right, how many hold the expected words, and the F1 of their words.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import answers as recorded
from benchmarks.answers import Answers
from benchmarks.recall import data
from benchmarks.recall.data import Asked, Person
from benchmarks.recall.feed import Cached, Fed, What, feed
from benchmarks.recall.found import day, plain_orders
from benchmarks.recall.marks import Row, judged
from benchmarks.recall.stores import asked_at, covers, store
from memchat import MemChat
from memchat.errors import MemChatError
from memchat.prompts import Prompts
from memchat.providers import Completion, Embedder
from memchat.providers.local import MiniLMEmbedder, available
from memchat.search import render
from memchat.testing import ScriptedModel, ScriptedStream
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Hit, Recalled

BUDGETS = (500, 1000, 2000)
EVERYTHING = What(turns=True, facts=True, summaries=True)


class Answering:
    """A ``ChatModel`` for the product: each reply is a model's answer, or "-" without a model."""

    def __init__(self, answers: Answers | None) -> None:
        self.answers = answers
        self.name = "none" if answers is None else answers.name
        self.stand_in = self.tools = self.sees = self.schema_mode = False
        self.window = 1_000_000

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> ScriptedStream:
        """The reply, at once."""
        text = "-"
        if self.answers is not None:
            text = self.answers.complete(messages, purpose="answer").text
        return ScriptedModel([text]).stream(messages)

    def complete(
        self, messages: Sequence[ChatMessage], *, purpose: str, schema: dict[str, Any] | None = None
    ) -> Completion:
        """Not asked for: nothing is extracted here."""
        raise NotImplementedError(purpose)

    def about(self, case: str) -> str:
        """What the next reply is recorded under."""
        if self.answers is not None:
            self.answers.case = case
        return case


@dataclass(frozen=True, slots=True)
class Given:
    """An answer, the turns that stood in its prompt, and the tokens they took."""

    answer: str
    turns: frozenset[str]
    tokens: int


@dataclass(frozen=True, slots=True)
class Turns:
    """One person's turns as bare lines, in the product's own frame."""

    lines: Sequence[str]
    ids: Sequence[str]
    orders: Sequence[Sequence[int]]
    """For each question the lines' places, best first, by .7 cosine + .3 BM25 / best."""
    prompts: Prompts

    @classmethod
    def of(cls, embedder: Embedder, person: Person) -> Turns:
        """Every turn, dated and with its speaker."""
        turns = [(f"[{day(t.at)}] {u.text}", u.id) for t in person.talks for u in t.turns]
        lines = [render.escaped(text) for text, _ in turns]
        orders = plain_orders(embedder, lines, [asked.text for asked in person.asked])
        return cls(lines, [i for _, i in turns], [both for _, _, both in orders], Prompts())

    def given(self, model: Answering, place: int, asked: Asked, budget: int | None) -> Given:
        """The answer from the best of these lines that fit, or from all in their order."""
        chosen = range(len(self.lines)) if budget is None else self._within(place, budget)
        lines = [self.lines[i] for i in chosen]
        block = render.block(self.prompts, render.new_mark(), Recalled(tuple(map(_turn, lines))))
        system = self.prompts.render("chat", memories=block)
        said = [ChatMessage("system", system), ChatMessage("user", asked.text)]
        answer = "".join(model.stream(said))
        return Given(answer, frozenset(self.ids[i] for i in chosen), taken(lines))

    def _within(self, place: int, budget: int) -> list[int]:
        room, chosen = budget - render.frame_tokens(self.prompts), []
        for i in self.orders[place]:
            cost = estimate_tokens(f"- {self.lines[i]}\n")
            if cost <= room:
                chosen.append(i)
                room -= cost
        return chosen


@dataclass(frozen=True, slots=True)
class Question:
    """One question put in one way: ``case`` names both in the records."""

    way: str
    case: str
    asked: Asked
    given: Given


def asked_all_ways(
    embedder: Embedder, people: Sequence[Person], model: Answering
) -> Iterator[Question]:
    """Every question in every way and at every budget."""
    for person in people:
        turns = Turns.of(embedder, person)
        with store(embedder, asked_at(person)) as mc:
            fed = feed(mc, person, EVERYTHING)
            for budget in BUDGETS:
                with reopened(mc, embedder, model, budget) as other:
                    for place, asked in enumerate(person.asked):
                        way = f"memchat {budget}"
                        case = model.about(f"{way} {person.name}{place}")
                        yield Question(way, case, asked, product(other, person, fed, asked))
        for budget in (*BUDGETS, None):
            way = f"plain {budget}" if budget else "whole"
            for place, asked in enumerate(person.asked):
                case = model.about(f"{way} {person.name}{place}")
                yield Question(way, case, asked, turns.given(model, place, asked, budget))


def measure(
    embedder: Embedder, people: Sequence[Person], answers: Answers | None, judge: Answers | None
) -> list[Row]:
    """A row for each way, over every question."""
    rows: dict[str, Row] = {}
    for one in asked_all_ways(embedder, people, Answering(answers)):
        row = rows.setdefault(one.way, Row(one.way))
        row.add(one.asked, one.given.turns, one.given.tokens)
        if answers is not None and judge is not None:
            right = judged(judge, one.case, one.asked, one.given.answer)
            row.mark(one.asked, one.given.answer, right)
    return list(rows.values())


def _turn(line: str) -> Hit:
    """A line that stands for itself."""
    return Hit("message", 0, line, 1.0, None, None, "words", 0)


@contextmanager
def reopened(mc: MemChat, embedder: Embedder, model: Answering, budget: int) -> Iterator[MemChat]:
    """The same store with another budget, and the model that answers."""
    settings = mc.settings.with_(budget_tokens=budget)
    with MemChat(
        settings=settings, embedder=embedder, clock=mc._assembly.clock, chat_model=model
    ) as other:
        yield other


def product(mc: MemChat, person: Person, fed: Fed, asked: Asked) -> Given:
    """The product's answer to a single message, from what it injects."""
    answer = mc.user(person.name).answer(asked.text)
    hits = {(hit.kind, hit.id): hit for hit in (*answer.shown.listed, *answer.shown.hits)}.values()
    turns = frozenset[str]().union(*(covers(mc, person, fed, hit) for hit in hits))
    frame = render.frame_tokens(Prompts()) if hits else 0
    return Given(answer.text, turns, frame + answer.shown.tokens)


def taken(lines: Sequence[str]) -> int:
    """The tokens of a block with these lines; its mark, drawn anew each time, counts alike."""
    frame = render.frame_tokens(Prompts()) if lines else 0
    return frame + sum(estimate_tokens(f"- {line}\n") for line in lines)


def some(people: Sequence[Person], count: int | None) -> list[Person]:
    """The people with so many of all their questions, drawn the same way each time."""
    every = [(n, asked) for n, person in enumerate(people) for asked in person.asked]
    drawn = random.Random(7).sample(every, min(count or len(every), len(every)))
    return [
        replace(person, asked=tuple(asked for n, asked in drawn if n == number))
        for number, person in enumerate(people)
    ]


def main() -> int:
    """Measure and print; 1 where there is nothing to measure with, 2 where a model fails."""
    parser = argparse.ArgumentParser(prog="benchmarks.recall.answered", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    by = parser.add_mutually_exclusive_group()
    by.add_argument("--model", help="a litellm model that answers, asked now")
    by.add_argument("--answers", type=Path, help="a file that --record wrote, its judge's as well")
    parser.add_argument("--judge", help="another litellm model that judges; else the same")
    parser.add_argument("--record", type=Path, help="write what the models said to this file")
    parser.add_argument("--questions", type=int, help="so many of all, drawn the same way")
    args = parser.parse_args()
    if not (args.data / "locomo_dev.json").is_file() or not available():
        print("the data or the weights of MiniLM are not there; nothing is measured",
              file=sys.stderr)  # fmt: skip
        return 1
    embedder = Cached(MiniLMEmbedder(None))
    people = some(data.people(args.data), args.questions)
    try:
        model = recorded.named(args.model) if args.model else None
        if args.answers:
            model = Answers(None, args.answers)
        judge = recorded.named(args.judge) if args.judge else model
        rows = measure(embedder, people, model, judge)
    except MemChatError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        embedder.save()
    print(as_text(rows, sum(len(p.asked) for p in people), model, judge))
    if args.record and model is not None:
        model.kept += judge.kept if judge is not None and judge is not model else []
        model.save(args.record)
    return 0


def as_text(rows: Sequence[Row], count: int, model: Answers | None, judge: Answers | None) -> str:
    """The table, with who answered and who judged."""
    by = "Accuracy was not measured: give --model or --answers."
    if model is not None and judge is not None:
        by = f"Answered by {model.by}, judged by {judge.by}."
    order = sorted(rows, key=lambda row: (row.name == "whole", row.name.split()[0] != "plain"))
    return "\n".join([f"{count} questions. {by}", Row.HEAD, *(row.line() for row in order)])


if __name__ == "__main__":
    sys.exit(main())
