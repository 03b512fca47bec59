"""What a session's end makes of written conversations: found, noise, proof, change, expiry, cost.

    python -m benchmarks.extract_quality [--data DIR] [--model M | --answers FILE] [--record FILE]

Reads ``tricky_sessions_dev.jsonl`` (part of the project) and, where DIR holds it, the histories of
``memorybench_dev.json`` (another author's, not part of it). With no switch the offline stand-in
reads them: patterns and no model, named so in the table.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import answers as recorded
from benchmarks import fate
from benchmarks.answers import Answers
from benchmarks.desk import USER, Desk, at_desk
from benchmarks.fate import Aftermath
from benchmarks.wording import holds, holds_any, is_stale, says
from memchat.chat import Chat
from memchat.config.providers import OFFLINE_EXTRACT
from memchat.errors import ExtractionError, MemChatError
from memchat.language.text import find_span
from memchat.learn import candidate
from memchat.providers import Embedder
from memchat.types import InboxItem, Memory

TRICKY = Path(__file__).parents[1] / "tests" / "data" / "tricky_sessions_dev.jsonl"
HISTORIES = "memorybench_dev.json"
TEST_MARK = "[MEMORY TEST]"
"""Stands in the sessions of the histories that only ask; they are not read."""


def tricky(answers: Answers, embedder: Embedder | None = None, path: Path = TRICKY) -> Counter[str]:
    """The tricky sessions, each in a store of its own that was taught what is known the day
    before."""
    seen: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        at = datetime.fromisoformat(case["at"].replace("Z", "+00:00"))

        def use(desk: Desk, case: dict[str, Any] = case) -> None:
            known = desk.teach(case["known"])
            seen["known facts"] += len(known)
            seen["known facts entered by hand"] += len(desk.by_hand)
            desk.clock.advance(days=1)
            was = fate.before(desk)
            chat = desk.hold(case["id"], case["turns"])
            left = fate.after(desk, was, chat)
            _score_tricky(left, case, known, seen)
            _score_trace(desk, left, seen)
            _score_proof(desk, chat, seen)

        at_desk(answers, at - timedelta(days=1), case["zone"], embedder, use)
    return seen


def histories(folder: Path, answers: Answers, embedder: Embedder | None = None) -> Counter[str]:
    """The other author's histories, session after session in one store a person."""
    seen: Counter[str] = Counter()
    for person in json.loads((folder / HISTORIES).read_text(encoding="utf-8")):

        def use(desk: Desk, person: dict[str, Any] = person) -> None:
            expected: list[dict[str, Any]] = []
            for session in person["sessions"]:
                if any(TEST_MARK in turn["content"] for turn in session["turns"]):
                    continue
                turns = [{"role": t["role"], "text": t["content"]} for t in session["turns"]]
                was = fate.before(desk)
                chat = desk.hold(f"{person['user_id']} {session['session_id']}", turns)
                left = fate.after(desk, was, chat)
                expected += session["expected_memories_after"]
                _score_session(desk, left, session["expected_memories_after"], expected, seen)
                _score_trace(desk, left, seen)
                _score_proof(desk, chat, seen)
                desk.clock.advance(days=14)
            _score_stale(desk, expected, seen)
            _score_expiry(desk, person["memory_tests"], seen)

        at = datetime.fromisoformat("2026-01-12T18:00:00+00:00")
        at_desk(answers, at, "UTC", embedder, use)
    return seen


def _score_tricky(
    left: Aftermath, case: dict[str, Any], known: Mapping[str, Memory], seen: Counter[str]
) -> None:
    taught = {memory.id for memory in known.values()}
    active = [m for m in left.rows if m.active and m.id not in taught]
    for wanted in case["store"]:
        kept = wanted.get("is") == "same" and wanted["to"] in known
        rows = [m for m in left.rows if m.active] if kept else active
        hits = [m for m in rows if holds(m.value, wanted["has"])]
        waits = any(holds(item.value or "", wanted["has"]) for item in left.waiting)
        seen["facts expected"] += 1
        seen["facts found"] += bool(hits)
        seen["facts waiting in the inbox"] += not hits and waits
        until = wanted.get("until")
        if until:
            seen["ends expected"] += 1
            seen["ends right"] += any(m.expires_at and m.expires_at.isoformat() == until
                                      for m in hits)  # fmt: skip
        if wanted.get("is") == "updates" and wanted["to"] in known:
            seen["changes expected"] += 1
            seen["changes applied"] += bool(hits) and not left.in_force(known[wanted["to"]].id)
    for ended in case["ends"]:
        seen["changes expected"] += 1
        seen["changes applied"] += not left.in_force(known[ended["to"]].id)
    for trap in case["never"]:
        seen["traps"] += 1
        seen["traps stored"] += any(
            holds(_row(m), trap["has"]) and not holds_any(_row(m), trap["unless"]) for m in active
        )


def _score_session(
    desk: Desk,
    left: Aftermath,
    expected: Sequence[dict[str, Any]],
    so_far: Sequence[dict[str, Any]],
    seen: Counter[str],
) -> None:
    quotes = {m.id: _quoted(desk, m) for m in left.rows}
    active = [m for m in left.rows if m.active]
    for item in expected:
        found = [m for m in active if says(_row(m), quotes[m.id], item)]
        over = "contradicts" in item and _is_over(left, quotes, item)
        seen["facts expected"] += 1
        seen["facts found"] += bool(found) or over
        waits = any(says(_row(w), w.quote or "", item) for w in left.waiting)
        seen["facts waiting in the inbox"] += not found and not over and waits
        if "contradicts" in item:
            stale = any(is_stale(_row(m), quotes[m.id], item) for m in active)
            seen["changes expected"] += 1
            seen["changes applied"] += (bool(found) or over) and not stale
    new = left.new()
    seen["stored"] += len(new)
    seen["stored, not expected"] += sum(
        not any(says(_row(m), quotes[m.id], item) for item in so_far) for m in new
    )


def _is_over(left: Aftermath, quotes: Mapping[int, str], item: Mapping[str, Any]) -> bool:
    """Whether the earlier fact was ended: then there may be nothing new in its place."""
    ended = [m for m in left.rows if m.inactive_reason == "ended" and left.before[m.id].active]
    return any(is_stale(_row(m), quotes[m.id], item) for m in ended)


def _score_stale(desk: Desk, expected: Sequence[dict[str, Any]], seen: Counter[str]) -> None:
    """After the last session: rows in force that say what a later session contradicts."""
    changes = [item for item in expected if "contradicts" in item]
    rows = desk.mc.user(USER).memories.list(limit=1000)
    seen["rows in force"] += len(rows)
    seen["stale rows in force"] += sum(
        any(is_stale(_row(m), _quoted(desk, m), item) for item in changes) for m in rows
    )


def _score_trace(desk: Desk, left: Aftermath, seen: Counter[str]) -> None:
    """Of what was proposed and is neither stored nor waiting, that which a person can find."""
    proposed = list(_proposals(desk.answers.said(desk.answers.case)))
    for proposal in proposed:
        rivals = [p["value"] for p in proposed if p is not proposal and p["key"] == proposal["key"]]
        came = left.of(proposal, None, rivals=rivals)
        seen["proposed"] += 1
        seen["not kept"] += came in ("refused", "lost")
        seen["refused with a trace"] += came == "refused"


def _proposals(replies: Sequence[str]) -> Iterator[dict[str, Any]]:
    for reply in replies:
        try:
            facts = candidate.parse(reply).facts
        except ExtractionError:
            continue
        for fact in facts:
            yield fact.model_dump(by_alias=True)


def _score_proof(desk: Desk, chat: Chat, seen: Counter[str]) -> None:
    """Of the quotes that the model gave, those that stand in a message of the person."""
    seen["sessions"] += 1
    seen["sessions without an answer"] += chat.failure is not None
    seen["sessions with a second look"] += desk.answers.case in desk.answers.looked
    seen["second look tokens"] += desk.answers.looks[desk.answers.case]
    assert chat.session_id is not None
    said = [
        m.content for m in desk.mc.user(USER).sessions.messages(chat.session_id) if m.role == "user"
    ]
    for quote in _quotes(desk.answers.said(desk.answers.case)):
        seen["quotes"] += 1
        seen["quotes verified"] += any(find_span(quote, text) for text in said)


def _score_expiry(desk: Desk, tests: Sequence[dict[str, Any]], seen: Counter[str]) -> None:
    """A year later: whatever had an end may not be served, whoever asks."""
    rows = desk.mc.user(USER).memories.list(status="all", limit=1000)
    ending = [m for m in rows if m.expires_at]
    seen["given an end"] += len(ending)
    desk.clock.advance(days=366)
    for test in tests:
        if test["category"] != "temporal_relevance":
            continue
        shown = {
            hit.memory.id
            for hit in desk.mc.user(USER).search(test["query"]).hits
            if hit.memory is not None
        }
        seen["questions after the end"] += bool(ending)  # else there is nothing to serve
        seen["expired served"] += any(m.id in shown for m in ending)


def _quotes(replies: Sequence[str]) -> Iterator[str]:
    for reply in replies:
        for match in re.finditer(r'"text"\s*:\s*("(?:[^"\\]|\\.)*")', reply):
            yield json.loads(match[1], strict=False)


def _row(one: Memory | InboxItem) -> str:
    return f"{(one.key or '').replace('_', ' ')} {one.value or ''}"


def _quoted(desk: Desk, memory: Memory) -> str:
    return " ".join(proof.quote for proof in desk.mc.user(USER).memories.evidence(memory.id))


ROWS = (
    ("facts found", "facts expected"),
    ("facts waiting in the inbox", "facts expected"),
    ("traps stored", "traps"),
    ("stored, not expected", "stored"),
    ("stale rows in force", "rows in force"),
    ("changes applied", "changes expected"),
    ("refused with a trace", "not kept"),
    ("quotes verified", "quotes"),
    ("ends right", "ends expected"),
    ("given an end", "facts expected"),
    ("expired served", "questions after the end"),
    ("known facts entered by hand", "known facts"),
    ("sessions without an answer", "sessions"),
    ("sessions with a second look", "sessions"),
)


def as_text(name: str, by: str, seen: Counter[str], tokens: int) -> str:
    """One part of the table; a line that nothing was counted for is left out. ``tokens`` is what
    all calls took; those of the second look are told apart."""
    lines = [f"{name}, read by {by}"]
    lines += [f"  {row:<28} {seen[row]:>5} of {seen[of]}" for row, of in ROWS if seen[of]]
    look, looks = seen["second look tokens"], seen["sessions with a second look"]
    lines.append(f"  {'tokens a session':<28} {(tokens - look) // max(1, seen['sessions']):>5}")
    if looks:
        lines.append(f"  {'tokens a second look':<28} {look // looks:>5}")
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="what a session's end makes of conversations")
    parser.add_argument("--data", type=Path, help=f"the folder that holds {HISTORIES}")
    reader = parser.add_mutually_exclusive_group()
    reader.add_argument("--model", help="a litellm model, asked now")
    reader.add_argument("--answers", type=Path, help="a file that --record wrote")
    parser.add_argument("--record", type=Path, help="write what the model said to this file")
    args = parser.parse_args()
    try:
        reads = Answers(None, args.answers) if args.answers else None
        reads = reads or recorded.named(args.model or OFFLINE_EXTRACT)
        offline = args.model is None and args.answers is None
        by = "the offline stand-in (patterns, no model)" if offline else reads.by
        print(as_text(TRICKY.name, by, tricky(reads), reads.tokens))
        if args.data is not None and (args.data / HISTORIES).is_file():
            before = reads.tokens
            seen = histories(args.data, reads)
            print(as_text(HISTORIES, by, seen, reads.tokens - before))
        else:
            print(f"{HISTORIES}: not measured, give --data with the folder that holds it")
        if args.record:
            reads.save(args.record)
    except MemChatError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
