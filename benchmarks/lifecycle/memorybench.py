"""Facts that another author's histories replace: is the replaced one shown to the extractor, and
the current one above it afterwards? The data is not part of the project."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from benchmarks.lifecycle.figure import Figure
from benchmarks.lifecycle.stage import REPLY, Stage, answer, known_to
from memchat.facts.consolidation import MANUAL, ingest
from memchat.facts.memories import Fact, search_text
from memchat.language.text import content_words, numbers
from memchat.providers import Embedder
from memchat.types import Memory, Scope

FILE = "memorybench_dev.json"
EVERYBODY = "everybody"
ZONE = ZoneInfo("Europe/Berlin")
SHOWN = "replaced fact among those shown to the extractor"
ABOVE = "current fact above the replaced one"


@dataclass(frozen=True, slots=True)
class Case:
    """One fact that a session replaces. ``replaced`` is its wording in the earlier sessions."""

    session: Mapping[str, Any]
    person: str
    current: str
    replaced: str
    questions: tuple[str, ...]


def measure(folder: Path | None, embedder: Embedder | None = None) -> list[Figure]:
    """Two figures over every ``contradicts`` case; not measured where the file is not there."""
    path = folder / FILE if folder is not None else None
    if path is None or not path.is_file():
        why = "not measured: give --data DIR" if path is None else f"not measured: no {FILE} there"
        return [Figure(name, why, goal, None) for name, goal in ((SHOWN, "all"), (ABOVE, "all"))]
    people = json.loads(path.read_text(encoding="utf-8"))
    cases = list(_cases(people))
    with Stage(embedder) as stage:
        stored = _store(stage, people)
        shown = [case for case in cases if _is_shown(stage, case)]
        missed = sorted(case.person for case in cases if case not in shown)
        asked, above, neither = _after_superseding(stage, cases, stored)
    return [
        Figure(
            SHOWN,
            f"{len(shown)} of {len(cases)}",
            "all",
            len(shown) == len(cases),
            note=f"{len(stored)} facts of {len(people)} people in one scope"
            + (f"; missed: {', '.join(missed)}" if missed else ""),
        ),
        Figure(
            ABOVE,
            f"{above} of {asked} questions",
            "all, and never the stale one without it",
            above + neither == asked,
            note=f"in {neither} neither was shown; the stale one counts only as a line of its own",
        ),
    ]


def _cases(people: list[dict[str, Any]]) -> Iterator[Case]:
    for person in people:
        earlier: list[str] = []
        for session in person["sessions"]:
            for item in session["expected_memories_after"]:
                if "contradicts" in item:
                    replaced = max(earlier, key=lambda f: _likeness(item["contradicts"], f))
                    questions = [
                        test["query"]
                        for test in person["memory_tests"]
                        if any(_likeness(item["fact"], m) > 0.5 for m in test["required_memories"])
                    ]
                    name = f"{person['user_id']}: {item['contradicts']}"
                    yield Case(session, name, item["fact"], replaced, (item["fact"], *questions))
            earlier += [item["fact"] for item in session["expected_memories_after"]]


def _likeness(part: str, whole: str) -> float:
    """The share of a wording's words and numbers that another one holds."""
    words, others = (content_words(t) | numbers(t) for t in (part, whole))
    return len(words & others) / max(1, len(words)) - len(others - words) / 1000


def _store(stage: Stage, people: list[dict[str, Any]]) -> dict[str, Memory]:
    """The facts of every person's sessions before the one that replaces something, in one scope."""
    first = {}
    for person in people:
        for session in person["sessions"]:
            if any("contradicts" in item for item in session["expected_memories_after"]):
                break
            for item in session["expected_memories_after"]:
                fact = " ".join(item["fact"].split())
                first[item["fact"]] = stage.mc.user(EVERYBODY).memories.add("fact", "note", fact)
    stage.mc.jobs.run()
    return first


def _is_shown(stage: Stage, case: Case) -> bool:
    """Hold the conversation and look at what the extraction call is given beside it."""
    with stage.mc.user(EVERYBODY).chat() as chat:
        for turn in case.session["turns"]:
            if turn["role"] == "user":
                stage.chat.replies.append(REPLY)
                assert chat.send(turn["content"]).read()
        stage.extract.replies.append(answer())
    wanted = " ".join(case.replaced.split())
    return any(item["value"] == wanted for item in known_to(stage.extract.requests[-1]))


def _after_superseding(
    stage: Stage, cases: list[Case], stored: Mapping[str, Memory]
) -> tuple[int, int, int]:
    for case in cases:
        _supersede(stage, case, stored[case.replaced])
    stage.mc.jobs.run()
    asked = above = neither = 0
    for case in cases:
        current, old = (" ".join(words.split()) for words in (case.current, case.replaced))
        for question in case.questions:
            lines = [
                line
                for line in stage.prompt(EVERYBODY, question).splitlines()
                if line.startswith(("- [", "- #"))
            ]
            is_current = [number for number, line in enumerate(lines) if f": {current} (" in line]
            is_old = [n for n, line in enumerate(lines) if f": {old} (" in line]
            asked += 1
            neither += not is_current and not is_old
            above += bool(is_current) and not is_old
    return asked, above, neither


def _supersede(stage: Stage, case: Case, old: Memory) -> None:
    stage.clock.advance(days=1)
    now, words = stage.clock(), " ".join(case.current.split())
    with stage.mc._assembly.database.write(Scope(EVERYBODY), ensure=True) as tx:
        fact = Fact(
            memory_type="fact",
            key="note",
            value=words,
            said_at=now,
            search_text=search_text("note", words, now, ZONE),
            created_by="manual",
            many=True,
            relation="updates",
            target_id=old.id,
        )
        done = ingest(tx, MANUAL, [fact])[0].memory
        assert done is not None
    stage.mc.user(EVERYBODY).memories.update(done.id, expires_at=None)
