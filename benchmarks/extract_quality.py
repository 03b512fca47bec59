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
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import answers as recorded
from benchmarks.answers import Answers
from memchat import MemChat
from memchat.chat import Chat
from memchat.config import OFFLINE_EXTRACT, Settings
from memchat.errors import MemChatError
from memchat.memory.gate.text import content_words, find_span, fold, numbers
from memchat.providers import Embedder
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import Memory

TRICKY = Path(__file__).parents[1] / "tests" / "data" / "tricky_sessions_dev.jsonl"
HISTORIES = "memorybench_dev.json"
FOUND_SHARE = 0.5
"""The share of an expected fact's words and numbers that one memory and its quotes must hold."""
USER = "person"


@dataclass(slots=True)
class Desk:
    """One store, a model that reads, and a chat that answers as the file says."""

    mc: MemChat
    clock: FakeClock
    chat: ScriptedModel
    answers: Answers

    def hold(self, case: str, turns: Sequence[Mapping[str, str]]) -> Chat:
        """Hold a conversation as it was written, and have it read."""
        self.answers.case = case
        with self.mc.session(user=USER) as chat:
            for number, turn in enumerate(turns):
                if turn["role"] == "user":
                    after = turns[number + 1 : number + 2]
                    spoken = [t["text"] for t in after if t["role"] == "assistant"]
                    self.chat.replies.append(spoken[0] if spoken else "All right.")
                    assert chat.send(turn["text"]).text
        return chat


def at_desk(
    answers: Answers,
    at: datetime,
    zone: str,
    embedder: Embedder | None,
    use: Callable[[Desk], None],
) -> None:
    """Open a store of its own for one person, and let ``use`` work with it."""
    with tempfile.TemporaryDirectory(prefix="memchat-extract-") as home:
        clock, chat = FakeClock(at), ScriptedModel(name="as written")
        settings = Settings(home=Path(home) / "store", timezone=zone)
        with MemChat(
            settings=settings, chat_model=chat, extract_model=answers, embedder=embedder,
            clock=clock,
        ) as mc:  # fmt: skip
            use(Desk(mc, clock, chat, answers))


def tricky(answers: Answers, embedder: Embedder | None = None, path: Path = TRICKY) -> Counter[str]:
    """The tricky sessions, each in a store of its own."""
    seen: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        at = datetime.fromisoformat(case["at"].replace("Z", "+00:00"))

        def use(desk: Desk, case: dict[str, Any] = case) -> None:
            known = {
                fact["id"]: desk.mc.add(fact["type"], fact["key"], fact["value"], user=USER)
                for fact in case["known"]
            }
            desk.mc.embed_pending()
            desk.clock.advance(seconds=60)
            chat = desk.hold(case["id"], case["turns"])
            _score_tricky(desk, case, known, seen)
            _score_proof(desk, chat, seen)

        at_desk(answers, at, case["zone"], embedder, use)
    return seen


def histories(folder: Path, answers: Answers, embedder: Embedder | None = None) -> Counter[str]:
    """The other author's histories, session after session in one store a person."""
    seen: Counter[str] = Counter()
    for person in json.loads((folder / HISTORIES).read_text(encoding="utf-8")):

        def use(desk: Desk, person: dict[str, Any] = person) -> None:
            for session in person["sessions"]:
                if not session["expected_memories_after"]:
                    continue  # the last one only asks
                turns = [{"role": t["role"], "text": t["content"]} for t in session["turns"]]
                chat = desk.hold(f"{person['user_id']} {session['session_id']}", turns)
                _score_session(desk, session["expected_memories_after"], seen)
                _score_proof(desk, chat, seen)
                desk.clock.advance(days=14)
            _score_expiry(desk, person["memory_tests"], seen)

        at = datetime.fromisoformat("2026-01-12T18:00:00+00:00")
        at_desk(answers, at, "UTC", embedder, use)
    return seen


def _score_tricky(
    desk: Desk, case: dict[str, Any], known: Mapping[str, Memory], seen: Counter[str]
) -> None:
    active = [m for m in desk.mc.memories(user=USER) if m.created_by == "auto"]
    waiting = [item.value or "" for item in desk.mc.inbox(user=USER)]
    for wanted in case["store"]:
        hits = [m for m in active if _holds(m.value, wanted["has"])]
        seen["facts expected"] += 1
        seen["facts found"] += bool(hits)
        seen["facts waiting in the inbox"] += not hits and any(
            _holds(value, wanted["has"]) for value in waiting
        )
        until = wanted.get("until")
        if until:
            seen["ends expected"] += 1
            seen["ends right"] += any(m.expires_at and m.expires_at.isoformat() == until
                                      for m in hits)  # fmt: skip
        if wanted.get("is") == "updates" and wanted["to"] in known:
            seen["contradictions"] += 1
            old = desk.mc.memory(known[wanted["to"]].id, user=USER)
            seen["contradictions resolved"] += not old.active and bool(hits)
    for ended in case["ends"]:
        seen["contradictions"] += 1
        old = desk.mc.memory(known[ended["to"]].id, user=USER)
        seen["contradictions resolved"] += not old.active
    for trap in case["never"]:
        seen["traps"] += 1
        seen["traps stored"] += any(
            _holds(m.value, trap["has"]) and not _holds_any(m.value, trap["unless"]) for m in active
        )


def _score_session(desk: Desk, expected: Sequence[dict[str, Any]], seen: Counter[str]) -> None:
    rows = desk.mc.memories(user=USER, status="all", limit=1000)
    texts = {m.id: _words(desk, m) for m in rows}
    active = [m for m in rows if m.active]
    for item in expected:
        found = [m for m in active if _share(item["fact"], texts[m.id]) >= FOUND_SHARE]
        seen["facts expected"] += 1
        seen["facts found"] += bool(found)
        if "contradicts" in item:
            stale = [m for m in active if m not in found
                     and _share(item["contradicts"], texts[m.id]) >= 0.99]  # fmt: skip
            seen["contradictions"] += 1
            seen["contradictions resolved"] += bool(found) and not stale
    new = [m for m in active if m.created_at == desk.clock()]
    seen["stored"] += len(new)
    seen["stored, not expected"] += sum(
        all(_share(item["fact"], texts[m.id]) < FOUND_SHARE for item in expected) for m in new
    )


def _score_proof(desk: Desk, chat: Chat, seen: Counter[str]) -> None:
    """Of the quotes that the model gave, those that stand in a message of the person."""
    seen["sessions"] += 1
    seen["sessions without an answer"] += chat.failure is not None
    assert chat.session_id is not None
    said = [m.content for m in desk.mc.messages(chat.session_id, user=USER) if m.role == "user"]
    for quote in _quotes(desk.answers.said(desk.answers.case)):
        seen["quotes"] += 1
        seen["quotes verified"] += any(find_span(quote, text) for text in said)


def _score_expiry(desk: Desk, tests: Sequence[dict[str, Any]], seen: Counter[str]) -> None:
    """A year later: whatever had an end may not be served, whoever asks."""
    rows = desk.mc.memories(user=USER, status="all", limit=1000)
    ending = [m for m in rows if m.expires_at]
    seen["given an end"] += len(ending)
    desk.clock.advance(days=366)
    for test in tests:
        if test["category"] != "temporal_relevance":
            continue
        shown = {
            hit.memory.id
            for hit in desk.mc.recall(test["query"], user=USER).hits
            if hit.memory is not None
        }
        seen["questions after the end"] += bool(ending)  # else there is nothing to serve
        seen["expired served"] += any(m.id in shown for m in ending)


def _quotes(replies: Sequence[str]) -> Iterator[str]:
    for reply in replies:
        for match in re.finditer(r'"text"\s*:\s*("(?:[^"\\]|\\.)*")', reply):
            yield json.loads(match[1], strict=False)


def _words(desk: Desk, memory: Memory) -> str:
    proofs = desk.mc.evidence(memory.id, user=USER)
    return " ".join([memory.key.replace("_", " "), memory.value, *(p.quote for p in proofs)])


def _share(fact: str, text: str) -> float:
    wanted = content_words(fact) | numbers(fact)
    folded = fold(text).text
    return sum(word in folded for word in wanted) / max(1, len(wanted))


def _holds(value: str, words: Sequence[str]) -> bool:
    folded = fold(value).text
    return all(fold(word).text in folded for word in words)


def _holds_any(value: str, words: Sequence[str]) -> bool:
    return any(fold(word).text in fold(value).text for word in words)


ROWS = (
    ("facts found", "facts expected"),
    ("facts waiting in the inbox", "facts expected"),
    ("traps stored", "traps"),
    ("stored, not expected", "stored"),
    ("quotes verified", "quotes"),
    ("contradictions resolved", "contradictions"),
    ("ends right", "ends expected"),
    ("given an end", "facts expected"),
    ("expired served", "questions after the end"),
    ("sessions without an answer", "sessions"),
)


def as_text(name: str, by: str, seen: Counter[str], tokens: int) -> str:
    """One part of the table; a line that nothing was counted for is left out."""
    lines = [f"{name}, read by {by}"]
    lines += [f"  {row:<28} {seen[row]:>5} of {seen[of]}" for row, of in ROWS if seen[of]]
    sessions = max(1, seen["sessions"])
    lines.append(f"  {'tokens a session':<28} {tokens // sessions:>5}")
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
