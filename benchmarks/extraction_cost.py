"""What the extraction at a session's end costs: characters sent beside the transcript, and calls.

    python -m benchmarks.extraction_cost

Prints the overhead at 0, 50 and 5,000 memories, with the schema in the provider's schema mode and
in the prompt, counted at doubles that record what they are sent; then the calls of one attempt with
a provider that fails in each of several ways. Half of the memories are as long as memchat lets them
be and full of characters that JSON and the data fence must escape.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps, records
from memchat.db.database import Database
from memchat.errors import ProviderError
from memchat.facts import changes
from memchat.facts.changes import Cause
from memchat.facts.memories import NewMemory, search_text
from memchat.learn.candidate import MAX_FACTS
from memchat.learn.values import VALUE_LIMIT
from memchat.providers.embedders import HashEmbedder
from memchat.search import embeddings, passages
from memchat.testing import ScriptedModel
from memchat.types import MEMORY_TYPES, Scope, Usage

SIZES = (0, 50, 5_000)
MOST_CALLS = 3
LIMITS = {"instructions and schema": 5_900, "known": 2_000, "keys": 400}
TURNS = (
    "I live in Lisbon since May, near the river.",
    "My hobby is climbing, and on Sundays I sail a small boat.",
    "Which boat would you buy for the river?",
    "I work for Globex as a nurse.",
)
_QUOTES = ("I live in Lisbon since May", "My hobby is climbing", "I work for Globex")
_NASTY = ("<<<data>>>", '"boat"', "\\river\\", "été", "小船", "🚣", "climbing")


class CountingEmbedder(HashEmbedder):
    """Counts batches of documents with their sizes, and questions."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.questions = 0

    def embed_documents(self, texts: Sequence[str]) -> tuple[Any, Usage]:
        self.batches.append(len(texts))
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> tuple[Any, Usage]:
        self.questions += 1
        vectors, usage = HashEmbedder().embed_documents([text])
        return vectors[0], usage


@dataclass(slots=True)
class Cost:
    """One session's end. Sizes in characters as sent."""

    instructions: int
    schema: int
    known: int
    known_facts: int
    keys: int
    calls: int
    """To read; the second look counts apart."""
    looks: int
    batches: list[int] = field(default_factory=list)
    questions: int = 0
    seconds: float = 0.0

    @property
    def sizes(self) -> dict[str, int]:
        """What LIMITS speaks of."""
        return {
            "instructions and schema": self.instructions + self.schema,
            "known": self.known,
            "keys": self.keys,
        }


def fact(quote: str, key: str, value: str, msg: str) -> dict[str, Any]:
    """One fact as a model answers it."""
    return {"quotes": [{"msg": msg, "text": quote}], "type": "profile", "key": key, "value": value}


def answer(facts: Sequence[dict[str, Any]]) -> str:
    """A whole answer."""
    return json.dumps({"facts": facts, "forget": [], "title": "Boats", "summary": "About boats."})


THREE = answer(
    [
        fact(_QUOTES[0], "city", "Lisbon", "u1"),
        fact(_QUOTES[1], "hobby", "climbing", "u3"),
        fact(_QUOTES[2], "employer", "Globex", "u7"),
    ]
)


def fill(home: Path, count: int) -> None:
    """So many memories of Ana with their vectors, in one transaction."""
    now = datetime.now(UTC)
    settings = Settings(home=home, timezone="UTC")
    with MemChat(settings=settings, embedder=HashEmbedder()) as store:
        store.jobs.embed()  # names the store's embedding service
    facts = [_memory(n, now) for n in range(count)]
    database = Database(home)
    with database.write() as tx:
        own = apps.ensure(tx, Scope("ana")).own
        for new in facts:
            changes.add(tx, own, new, Cause("user"))
        texts = [new.search_text for new in facts]
        vectors, _ = HashEmbedder().embed_documents(texts)
        hashes = map(passages.text_hash, texts)
        service_id = int(records.get(tx, "service_id") or 0)
        embeddings.put(tx, service_id, zip(hashes, vectors, strict=True))
    database.close()


def _memory(number: int, now: datetime) -> NewMemory:
    value = f"thing {number} of the boat near the river"
    if number % 2:
        value = (f"{number} {' '.join(_NASTY)} " * VALUE_LIMIT)[:VALUE_LIMIT].strip()
    kind = MEMORY_TYPES[number % len(MEMORY_TYPES)]
    key = f"thing_with_a_name_{_letters(number % 400)}"
    words = search_text(key, value, now, ZoneInfo("UTC"))
    return NewMemory(kind, key, value, True, words, now, "manual")


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def measure(home: Path, *, schema_mode: bool) -> Cost:
    """Hold a conversation over the store in ``home``, and end it."""
    embedder = CountingEmbedder()
    asked = ScriptedModel([THREE], schema_mode=schema_mode)
    with MemChat(
        settings=Settings(home=home, timezone="UTC"),
        chat_model=ScriptedModel(["Good to know."] * len(TURNS)),
        extract_model=asked,
        embedder=embedder,
    ) as store:
        chat = store.user("ana").chat()
        for turn in TURNS:
            assert chat.send(turn).read()
        batches, questions = len(embedder.batches), embedder.questions
        began = time.perf_counter()
        learned = chat.end()
        seconds = time.perf_counter() - began
    assert learned is not None and len(learned.changes) == 3, (chat.failure, learned)
    system, user = asked.requests[0].messages[:2]
    data = json.loads(user.content.splitlines()[1])
    schema = json.dumps(asked.requests[0].schema, separators=(",", ":")) if schema_mode else ""
    return Cost(
        instructions=len(system.content),
        schema=len(schema),
        known=len(_as_sent(data["known"])),
        known_facts=len(data["known"]),
        keys=len(_as_sent(data["keys"])),
        calls=sum(request.purpose == "extract" for request in asked.requests),
        looks=sum(request.purpose == "verify" for request in asked.requests),
        batches=embedder.batches[batches:],
        questions=embedder.questions - questions,
        seconds=seconds,
    )


def _as_sent(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False).replace("<", "\\u003c")


def _full(count: int) -> str:
    return answer([fact(_QUOTES[0], "city", "Lisbon", "u1")] * count)


FAILURES: dict[str, list[Any]] = {
    "500": [ProviderError("the provider failed", status=500, retryable=True)],
    "prose": ["Of course! Here is what I noticed about the user."],
    "broken JSON": ['{"facts": [{"quotes": [{"msg": "u1", "te'],
    "nothing": [""],
    "an empty object": ["{}"],
    "items of no use": ['{"facts": [{"city": "Lisbon"}]}'],
    "cut off in the third fact": [THREE[: THREE.index("Globex")]],
    "15 items": [_full(MAX_FACTS + 5)],
    "one full answer, then prose": [_full(MAX_FACTS), "That is all."],
}
"""What a provider answers, the last of it again and again."""


def calls_of_an_attempt(home: Path, answers: Sequence[Any]) -> int:
    """How often one attempt at an extraction asks a provider that answers so."""
    asked = ScriptedModel([*answers[:-1], *[answers[-1]] * 50])
    with MemChat(
        settings=Settings(home=home, timezone="UTC"),
        chat_model=ScriptedModel(["Good to know."] * len(TURNS)),
        extract_model=asked,
        embedder=HashEmbedder(),
    ) as store:
        chat = store.user("ana").chat()
        for turn in TURNS:
            assert chat.send(turn).read()
        chat.end()
    return len(asked.requests)


def main() -> None:
    """Measure and print."""
    print("characters sent beside the transcript; calls and embedding batches of one session end")
    print("memories  schema in  instructions + schema  known (facts)  keys  calls  batches    ms")
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            fill(Path(folder, str(size)), size)
            for mode in (True, False):
                home = Path(folder, f"{size}{mode}")
                shutil.copytree(Path(folder, str(size)), home)
                cost = measure(home, schema_mode=mode)
                where = "the mode" if mode else "prompt"
                sent = f"{cost.instructions} + {cost.schema} = {cost.instructions + cost.schema}"
                known = f"{cost.known} ({cost.known_facts})"
                print(
                    f"{size:>8}  {where:<9}  {sent:>21}  {known:>13}  {cost.keys:>4}"
                    f"  {cost.calls:>5}  {len(cost.batches):>7}  {cost.seconds * 1e3:>4.0f}",
                    flush=True,
                )
        print(f"\nlimits: {LIMITS}, 1 call, 1 batch\n\ncalls of an attempt, at most {MOST_CALLS}")
        for number, (name, answers) in enumerate(FAILURES.items()):
            calls = calls_of_an_attempt(Path(folder, f"failure{number}"), answers)
            print(f"{name:<30} {calls}", flush=True)


if __name__ == "__main__":
    main()
