"""Asks the extraction model what a conversation taught: one call for a window, and one repair.

The model is given one fenced JSON object: the turns to read, the turns before them, known facts
that may be meant, and common keys that are free.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from memchat.memory.extraction import candidate
from memchat.memory.extraction.candidate import MAX_FACTS, ExtractionAnswer
from memchat.memory.extraction.json_call import JsonCall
from memchat.memory.gate import quoted_text
from memchat.memory.gate.types import KnownFact
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.types import ChatMessage, Usage

log = logging.getLogger(__name__)

KNOWN_LIMIT = 2_000
MORE_ROUNDS = 3
"""How often a full answer is asked for the rest."""
ASK_FOR_MORE = "Now the facts after these that are still missing, if any."


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One turn, or a part of a very long one, as the model is shown it."""

    id: str
    role: str
    said: str
    words: str

    def to_json(self) -> dict[str, str]:
        marked = quoted_text.mark_quoted(self.words)
        return {"id": self.id, "role": self.role, "said": self.said, "text": marked}


@dataclass(frozen=True, slots=True)
class Window:
    """The turns that one call reads, and the turns before them as context."""

    transcript: tuple[TranscriptLine, ...]
    context: tuple[TranscriptLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answers of a call and its follow-ups, and their usage."""

    answers: list[ExtractionAnswer]
    usage: list[Usage]


class Extractor:
    """The extraction call for one model and set of prompts."""

    def __init__(self, model: ChatModel, prompts: Prompts) -> None:
        self._model = model
        self.instructions = prompts.render("extract", limit=str(MAX_FACTS))

    def read(
        self, window: Window, known: Sequence[tuple[KnownFact, str]], keys: Sequence[str]
    ) -> Extraction:
        """Read one window. ``known`` comes nearest first, each with the day it was learnt.

        Raises ProviderError when the provider fails, ExtractionError when its answer is of no use
        even after one repair.
        """
        call = JsonCall(self._model, "extract", self.instructions, candidate.json_schema())
        answers: list[ExtractionAnswer] = []
        seen: set[str] = set()
        chat = [ChatMessage("user", render_data(window, known, keys))]
        for _ in range(1 + MORE_ROUNDS):
            answer, reply = call.ask(chat, _parsed)
            new = [item for item in answer.facts if item.model_dump_json() not in seen]
            seen |= {item.model_dump_json() for item in new}
            answers.append(answer.model_copy(update={"facts": tuple(new)}))
            if not new or not (answer.more or len(answer.facts) >= MAX_FACTS):
                break
            chat += [ChatMessage("assistant", reply), ChatMessage("user", ASK_FOR_MORE)]
        return Extraction(answers, call.usage)


def _parsed(reply: str) -> ExtractionAnswer:
    answer = candidate.parse(reply)
    if answer.broken:
        log.warning("%d items of an answer could not be read", len(answer.broken))
    return answer


def render_data(window: Window, known: Sequence[tuple[KnownFact, str]], keys: Sequence[str]) -> str:
    """The fenced data object. No text in it can close the fence, because ``<`` is escaped."""
    data = {
        "transcript": [line.to_json() for line in window.transcript],
        "context": [line.to_json() for line in window.context],
        "known": [_as_sent(fact, learned) for fact, learned in fitting(known)],
        "keys": list(keys),
    }
    return fenced(data)


def fenced(data: dict[str, Any]) -> str:
    """Data as one JSON object between two marks that no text in it can predict."""
    mark = secrets.token_hex(4)
    return f'<data mark="{mark}">\n{_sent(data)}\n</data mark="{mark}">'


def _sent(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def fitting(known: Sequence[tuple[KnownFact, str]]) -> list[tuple[KnownFact, str]]:
    """The first of these facts that a call has room for."""
    used = accumulate(len(_sent(_as_sent(fact, learned))) + 2 for fact, learned in known)
    return [one for one, total in zip(known, used, strict=True) if total <= KNOWN_LIMIT]


def _as_sent(fact: KnownFact, learned: str) -> dict[str, Any]:
    item = {
        "id": fact.id,
        "type": fact.memory_type,
        "key": fact.key,
        "value": fact.value,
        "holds": "many" if fact.many else "one",
        "learned": learned,
    }
    return item if fact.starts is None else item | {"starts": fact.starts.isoformat()}
