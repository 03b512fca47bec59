"""Pairs judged by a model: the real prompt and call, asked now or read from recorded answers."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.answers import Answers
from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.pairs import Pair, know, outcome, read
from benchmarks.lifecycle.stage import Stage
from memchat.errors import ExtractionError
from memchat.learn import candidate
from memchat.providers import Embedder

NOT_MEASURED = "not measured: give --model or --answers"
MERGED, RIGHT = 0.85, 0.90


def measure(
    answers: Answers | None, embedder: Embedder | None = None, pairs: Sequence[Pair] | None = None
) -> list[Figure]:
    """Same pairs merged and verdicts right, through the whole route of a session's end."""
    names = ("same merged, judged by a model", "verdicts right, judged by a model")
    goals = (f">= {MERGED:.0%}", f">= {RIGHT:.0%}")
    if answers is None:
        return [
            Figure(name, NOT_MEASURED, goal, None, by="none")
            for name, goal in zip(names, goals, strict=True)
        ]
    merged = same = right = wrong = failed = 0
    pairs = read() if pairs is None else pairs
    with Stage(embedder, answers) as stage:
        stage.extract = answers.taught
        for pair in pairs:
            old = know(stage, pair, pair.id)
            stage.clock.advance(days=1)
            answers.case = pair.id
            chat = stage.tell(pair.id, pair.message, facts=None)
            changes = [change.kind for change in chat.learned.changes] if chat.learned else []
            failed += chat.learned is None or chat.failure is not None
            came = outcome(stage, pair, old, pair.id, changes)
            right += bool(set(said_of(answers.said(pair.id))) & set(pair.verdicts))
            same += pair.label == "same"
            merged += pair.label == "same" and came.single
            wrong += came.wrong
    note = f"{wrong} wrong merges; {failed} of {len(pairs)} cases without a usable answer"
    return [
        Figure(names[0], f"{merged} of {same}", goals[0], merged >= MERGED * same, answers.by),
        Figure(
            names[1],
            f"{right} of {len(pairs)}",
            goals[1],
            right >= RIGHT * len(pairs),
            answers.by,
            note=note,
        ),
    ]


def said_of(replies: Sequence[str]) -> list[str]:
    """The verdicts of raw answers about the one known fact; "new" for items that name none, and
    nothing where the model was silent."""
    for reply in reversed(replies):
        try:
            facts = candidate.parse(reply).facts
        except ExtractionError:
            continue
        linked = [item.relation for item in facts if item.to is not None]
        return list(linked) or ["new" for _ in facts]
    return []
