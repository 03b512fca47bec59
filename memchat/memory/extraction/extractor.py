"""Asks the extraction model what a conversation taught: one call for a window, and one repair.

The model is given one fenced JSON object: the turns to read, the turns before them, known facts
that may be meant, and the keys in use. Each part has a limit in characters.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

from memchat.memory.extraction import candidate
from memchat.memory.extraction.candidate import MAX_FACTS, ExtractionAnswer
from memchat.memory.extraction.json_call import JsonCall
from memchat.memory.gate import quoted_text
from memchat.memory.gate.types import KnownFact
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.types import ChatMessage, Usage

log = logging.getLogger(__name__)

Item = TypeVar("Item")

KNOWN_LIMIT = 2_000
KEYS_LIMIT = 1_000
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
        "known": _known(known),
        "keys": _within(KEYS_LIMIT, keys, lambda key: len(key) + 4),
    }
    return fenced(data)


def fenced(data: dict[str, Any]) -> str:
    """Data as one JSON object between two marks that no text in it can predict."""
    mark = secrets.token_hex(4)
    return f'<data mark="{mark}">\n{_sent(data)}\n</data mark="{mark}">'


def _sent(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _known(known: Sequence[tuple[KnownFact, str]]) -> list[dict[str, Any]]:
    items = []
    for fact, learned in known:
        item = {
            "id": fact.id,
            "type": fact.memory_type,
            "key": fact.key,
            "value": fact.value,
            "holds": "many" if fact.many else "one",
            "learned": learned,
        }
        if fact.starts is not None:
            item["starts"] = fact.starts.isoformat()
        items.append(item)
    return _within(KNOWN_LIMIT, items, lambda item: len(_sent(item)) + 2)


def _within(limit: int, items: Sequence[Item], size: Callable[[Item], int]) -> list[Item]:
    """The first of these items that together take no more than ``limit`` characters."""
    used = accumulate(map(size, items))
    return [item for item, total in zip(items, used, strict=True) if total <= limit]
