"""One person's store for an evaluation: conversations as they were written, and what is known."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.answers import Answers
from memchat import MemChat
from memchat.chat import Chat
from memchat.config import Settings
from memchat.errors import InputError
from memchat.facts.keys import canonical, normalise_key
from memchat.providers import Embedder
from memchat.testing import FakeClock, ScriptedModel
from memchat.types import Memory
from tests.support import empty_store

USER = "person"
PLAIN_REPLY = "All right."


@dataclass(slots=True)
class Desk:
    """One store, a model that reads, and a chat that answers as the file says."""

    mc: MemChat
    clock: FakeClock
    chat: ScriptedModel
    answers: Answers
    by_hand: list[str] = field(default_factory=list)
    """Keys of known facts that count as a person's own entry, since the gate asked about them."""

    def hold(self, case: str, turns: Sequence[Mapping[str, str]]) -> Chat:
        """Hold a conversation as it was written, and have it read."""
        self.answers.case = case
        with self.mc.user(USER).chat() as chat:
            for number, turn in enumerate(turns):
                if turn["role"] == "user":
                    after = turns[number + 1 : number + 2]
                    spoken = [t["text"] for t in after if t["role"] == "assistant"]
                    # A message that code answers alone leaves its reply unsaid: drop it here.
                    self.chat.replies.clear()
                    self.chat.replies.append(spoken[0] if spoken else PLAIN_REPLY)
                    assert chat.send(turn["text"]).read()
        self.chat.replies.clear()
        return chat

    def teach(self, facts: Sequence[Mapping[str, Any]]) -> dict[str, Memory]:
        """Make the facts known by a conversation of their own; each by the id the file gives it.

        What the gate would rather ask about gets a yes, and what then still is not there is entered
        by hand. Both may not be changed by a conversation, so they are counted.
        """
        if not facts:
            return {}
        said = [_sentence(fact) for fact in facts]
        each = enumerate(zip(facts, said, strict=True))
        proposed = [_as_said(fact, words, number) for number, (fact, words) in each]
        self.answers.taught.replies.append(
            json.dumps({"facts": proposed, "forget": [], "title": "", "summary": ""})
        )
        self.hold("set-up", [{"role": "user", "text": words} for words in said])
        self.answers.taught.replies.clear()
        for item in self.mc.user(USER).inbox.list():
            self.mc.user(USER).inbox.accept(item.id)
        found = {fact["id"]: self._known(fact) for fact in facts}
        self.mc.jobs.embed()
        return found

    def _known(self, fact: Mapping[str, Any]) -> Memory:
        for memory in self.mc.user(USER).memories.list(limit=1000):
            if memory.value == fact["value"] and slot(memory.key) == slot(fact["key"]):
                self.by_hand += [fact["key"]] if memory.created_by == "manual" else []
                return memory
        self.by_hand.append(fact["key"])
        return self.mc.user(USER).memories.add(fact.get("type", "fact"), fact["key"], fact["value"])


def slot(key: str) -> str:
    """The one name of a key, whichever of its names is given."""
    try:
        return canonical(normalise_key(key))
    except InputError:
        return key


def at_desk(
    answers: Answers,
    at: datetime,
    zone: str,
    embedder: Embedder | None,
    use: Callable[[Desk], None],
) -> None:
    """Open a store of its own for one person, and let ``use`` work with it."""
    with tempfile.TemporaryDirectory(prefix="memchat-evaluated-") as home:
        clock, chat = FakeClock(at), ScriptedModel(name="as written")
        settings = Settings(home=empty_store.place(Path(home) / "store"), timezone=zone)
        with MemChat(
            settings=settings, chat_model=chat, extract_model=answers, embedder=embedder,
            clock=clock,
        ) as mc:  # fmt: skip
            use(Desk(mc, clock, chat, answers))


def _sentence(fact: Mapping[str, Any]) -> str:
    return f"My {fact['key'].replace('_', ' ')} is {fact['value']}."


def _as_said(fact: Mapping[str, Any], words: str, number: int) -> dict[str, Any]:
    return {
        "quotes": [{"msg": f"u{2 * number + 1}", "text": words}],
        "type": fact.get("type", "fact"),
        "key": fact["key"],
        "value": fact["value"],
        "many": fact["many"],
        "is": "new",
    }
