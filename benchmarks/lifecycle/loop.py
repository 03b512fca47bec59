"""The recall loop: fifty sessions that only chat about what is remembered teach nothing.

The chat double recites what its prompt holds, plainly or in other words; the extractor double
proposes the recital, the prompts, what is known and every sentence, under the known keys and new
ones, as if a "yes" had made all of it the user's.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.lifecycle.figure import Figure
from memchat import MemChat
from memchat.config import Settings
from memchat.learn.candidate import MAX_FACTS
from memchat.prompts import Prompts
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import ChatMessage

SESSIONS = 50
FACTS = (
    ("profile", "city", "Lisbon"),
    ("profile", "job", "ship's carpenter"),
    ("preference", "favourite_drink", "oolong tea"),
    ("fact", "pet", "a grey cat called Biscuit"),
    ("preference", "hobby", "restoring old radios"),
    ("profile", "allergy", "peanuts"),
    ("fact", "trip", "sailing to Madeira"),
    ("preference", "music", "fado"),
)
ASKED = (
    "What do you know about me?",
    "Where do I live?",
    "Tell me what you remember about me.",
    "What is my favourite drink again?",
    "Do I have a pet? What is it called?",
    "Was weißt du über mich?",
    "Remind me what I do for a living.",
    "Which food must I avoid?",
    "Que sais-tu de moi ?",
    "Do you still remember my hobby?",
    "¿Qué recuerdas de mí?",
    "List everything you have noted about me, please.",
    "私について何を覚えていますか？",
    "Am I allergic to anything?",
    "Can you summarise what I told you?",
)
ANSWERED = (
    "Yes.",
    "Right.",
    "Exactly, Lisbon.",
    "Thanks!",
    "Yes, that's right, thank you.",
    "Genau, danke.",
    "Correct, oolong tea.",
    "Oui, exact.",
    "Good, you remembered.",
    "Yes, I live in Lisbon.",
    "sí, gracias",
    "Ok great, peanuts, yes.",
    "はい、そうです。",
    "Biscuit, exactly!",
    "Perfect, and what else do you know?",
)
RESTATED = (
    "Exactly, Lisbon.",
    "Correct, oolong tea.",
    "Yes, I live in Lisbon.",
    "Ok great, peanuts, yes.",
    "Biscuit, exactly!",
)
"""Answers that say a fact's own words again: only they may count as a repeat."""
RECITALS = (
    "Here is what I have: {}.",
    "You told me this: {}. Shall I go on?",
    "From earlier conversations I know {}.",
    "You make your home in the Portuguese capital, build boats and keep a pet named Biscuit."
    " In short: {}.",
)


@dataclass(frozen=True, slots=True)
class Growth:
    """What the sessions added."""

    active: int
    inbox: int
    repeats: int
    """Repeats counted where the user had only said yes."""


def run(home: Path, sessions: int = SESSIONS) -> Growth:
    """Play the sessions to a store that knows FACTS, and count what it has more of then."""
    chat, extract = ScriptedModel(name="double/chat"), ScriptedModel(name="double/extract")
    prompts = Prompts(home / "prompts")
    settings = Settings(home=home, timezone="Europe/Lisbon")
    clock = FakeClock()
    repeats = 0
    with MemChat(
        settings=settings,
        chat_model=chat,
        extract_model=extract,
        embedder=HashEmbedder(),
        clock=clock,
    ) as mc:
        ana = mc.user("ana")
        for kind, key, value in FACTS:
            ana.memories.add(kind, key, value)
        mc.jobs.run()
        script = zip(cycle(ASKED), cycle(ANSWERED), cycle(RECITALS), strict=False)
        for number, (asked, answered, recital) in enumerate(islice(script, sessions)):
            clock.advance(days=1)
            before = {m.id: m.seen_count for m in ana.memories.list()}
            answered = ANSWERED[(number * 7 + number // len(ANSWERED)) % len(ANSWERED)]
            _script(chat, extract, prompts, recital)
            with ana.chat() as session:
                for words in (asked, answered):
                    assert session.send(words).read()
            assert session.failure is None, session.failure
            if answered not in RESTATED:
                after = ana.memories.list()
                repeats += sum(m.seen_count - before.get(m.id, m.seen_count) for m in after)
        active = len(ana.memories.list(status="all")) - len(FACTS)
        return Growth(active, len(ana.inbox.list()), repeats)


def measure() -> list[Figure]:
    """The figure of the table."""
    with tempfile.TemporaryDirectory() as folder:
        grown = run(Path(folder))
    return [
        Figure(
            f"growth over {SESSIONS} sessions about memory",
            f"{grown.active} memories, {grown.inbox} in the inbox",
            "0",
            grown.active == 0,
            note=f"extractor double proposes everything; {grown.repeats} repeats from a bare yes",
        )
    ]


def _script(chat: ScriptedModel, extract: ScriptedModel, prompts: Prompts, recital: str) -> None:
    def recite(sent: Sequence[ChatMessage]) -> str:
        lines = re.findall(r"^- #\d+ (\w+): (.*?)(?: \(|$)", sent[0].content, re.MULTILINE)
        listed = ", ".join(f"your {key} is {value}" for key, value in lines)
        return recital.format(listed or "nothing yet")

    chat.replies.clear()
    chat.replies.extend([recite] * 6)
    extract.replies.clear()
    rounds = range(0, 4 * MAX_FACTS, MAX_FACTS)
    extract.replies.extend(
        (lambda sent, start=start: _propose(sent, prompts, start)) for start in rounds
    )


def _propose(sent: Sequence[ChatMessage], prompts: Prompts, start: int) -> str:
    data = json.loads(sent[1].content.partition("\n")[2].rpartition("\n")[0])
    everything = list(_everything(data, sent[0].content + prompts.render("chat", memories="")))
    facts = everything[start : start + MAX_FACTS]
    recited = " ".join(line["text"] for line in data["transcript"] if line["role"] == "assistant")
    return json.dumps(
        {"facts": facts, "forget": [], "title": recited[:60], "summary": recited[:200]}
    )


def _everything(data: dict[str, Any], prompt: str) -> Iterator[dict[str, Any]]:
    turns = data["transcript"]
    users = [line for line in turns if line["role"] == "user"]
    last = users[-1]
    recitals = [line for line in turns if line["role"] == "assistant"]
    for line in users:
        yield _fact("note", line["text"], line["id"], line["text"])
        yield _fact("remark", line["text"], line["id"], line["text"], type="profile", many=False)
    for known in data["known"]:
        yield _fact(known["key"], known["value"], last["id"], last["text"])
        again = {"to": known["id"], "is": "same"}
        yield _fact(known["key"], known["value"], last["id"], last["text"], **again)
        ref = {"msg": recitals[0]["id"], "span": known["value"]}
        yield _fact("note", known["value"], last["id"], last["text"], ref=ref)
    for sentence in re.findall(r"[^.?]+[.?]", recitals[0]["text"]):
        ref = {"msg": recitals[0]["id"], "span": sentence.strip()}
        yield _fact("about", sentence.strip(), last["id"], last["text"], ref=ref)
        yield _fact("about", sentence.strip(), recitals[0]["id"], sentence.strip())
    for sentence in re.findall(r"[^.\n]{12,}\.", prompt)[:6]:
        yield _fact("rule", sentence.strip()[:60], last["id"], sentence.strip())


def _fact(key: str, value: str, msg: str, quote: str, **more: Any) -> dict[str, Any]:
    fact = {"quotes": [{"msg": msg, "text": quote}], "type": "preference", "key": key}
    return {**fact, "value": value, "many": True, **more}
