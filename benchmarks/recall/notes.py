"""Texts as notes: paragraphs, a note each, and whole sessions, a memo each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from benchmarks.recall.data import Person
from benchmarks.recall.paragraphs import line
from benchmarks.recall.rows import interval
from benchmarks.recall.stores import asked_at, store
from memchat.api.notes import Notes
from memchat.providers import Embedder

FIRST = 5
_AT = datetime(2023, 5, 1, tzinfo=UTC)


def paragraphs(
    embedder: Embedder, texts: Sequence[str], asked: Sequence[tuple[str, int]]
) -> list[list[int]]:
    """Print how often a question's paragraph is first, and among the first five hits; these hits.

    A hit stands for the note that it is a passage of.
    """
    with store(embedder, _AT) as mc:
        notes = mc.user("reader").notes
        for number, text in enumerate(texts):
            notes.add(text, external_id=number, profile="document", wait=False)
        mc.jobs.run(kinds=("note",))
        found = [_found(notes, text, FIRST) for text, _ in asked]
        chunks = sum(note.chunks for note in notes.list(limit=len(texts)))
    print(f"\n{len(asked)} questions, {len(texts)} paragraphs as notes of {chunks} chunks")
    print(line("memchat", found, asked) + "   goals 95.5, 99.5")
    return found


def sessions(embedder: Embedder, people: Sequence[Person]) -> list[float]:
    """Print how often a session that holds evidence is among the first five; 1 or 0 a question.

    The first five hits may be several of one session; so there is a line for the first five
    sessions too.
    """
    hits, distinct, every = [], [], []
    count = 0
    for person in people:
        session_of = {t.id: n for n, talk in enumerate(person.talks) for t in talk.turns}
        with store(embedder, asked_at(person)) as mc:
            notes = mc.user(person.name).notes
            for number, talk in enumerate(person.talks):
                said = "\n".join(turn.text for turn in talk.turns)
                notes.add(said, external_id=number, created_at=talk.at, wait=False)
            mc.jobs.run(kinds=("note",))
            count += len(person.talks)
            for asked in person.asked:
                wanted = {session_of[turn] for turn in asked.evidence}
                found = _found(notes, asked.text, 10 * FIRST)
                first = set(list(dict.fromkeys(found))[:FIRST])
                hits.append(float(bool(wanted & set(found[:FIRST]))))
                distinct.append(float(bool(wanted & first)))
                every.append(float(wanted <= first))
    print(f"\n{len(hits)} questions, {count} sessions of {len(people)} conversations as memos")
    for name, values, goal in (
        ("one that holds evidence, among five hits", hits, "   goal 90"),
        ("one that holds evidence, among five sessions", distinct, ""),
        ("all that hold evidence, among five sessions", every, ""),
    ):
        print(f"  {name:<46}{100 * np.mean(values):.1f} ±{interval(np.array(values)):.1f}{goal}")
    return hits


def _found(notes: Notes, question: str, limit: int) -> list[int]:
    """The notes that the hits belong to, by the numbers that they were added with."""
    return [int(hit.source_id) for hit in notes.search(question, limit=limit).hits]
