"""Calls the extraction model: cuts a conversation into windows, sends each, and reads the answers.

A reply that cannot be used is sent back to the model once, with the reason. A reply that may be
incomplete is followed by requests for the rest.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from memchat.errors import ExtractionError
from memchat.learn import candidate, verdict
from memchat.learn.candidate import MAX_FACTS, ExtractionAnswer
from memchat.learn.verdict import KnownFact
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Message, Role, Usage

Found = TypeVar("Found")

_BAD_ANSWER_SHOWN = 4_000


class JsonCall:
    """The calls for one purpose, with their instructions and the schema of the answer. ``usage``
    collects what they took."""

    def __init__(
        self, model: ChatModel, purpose: str, instructions: str, schema: dict[str, Any]
    ) -> None:
        self.usage: list[Usage] = []
        self._model = model
        self._purpose = purpose
        self._schema = schema
        if not model.schema_mode:
            shape = json.dumps(schema, separators=(",", ":"))
            instructions = f"{instructions}\nIts JSON schema: {shape}\n"
        self._system = ChatMessage("system", instructions)

    def ask(self, chat: Sequence[ChatMessage], read: Callable[[str], Found]) -> tuple[Found, str]:
        """What ``read`` finds in the reply to a chat, and the reply.

        A reply for which it raises ExtractionError is sent back once with the reason. Raises
        ProviderError when the provider fails, ExtractionError when the second reply is of no use.
        """
        reply = self._complete(chat)
        try:
            return read(reply), reply
        except ExtractionError as error:
            again = f"That could not be used: {error}. Answer with the JSON object alone."
        shown = reply[:_BAD_ANSWER_SHOWN] or "(nothing)"
        again_chat = [*chat, ChatMessage("assistant", shown), ChatMessage("user", again)]
        reply = self._complete(again_chat)
        try:
            return read(reply), reply
        except ExtractionError as error:
            raise ExtractionError(
                f"{self._model.name} gave no answer that can be used, also when asked again: "
                f"{error}; try again, or name another model"
            ) from None

    def _complete(self, chat: Sequence[ChatMessage]) -> str:
        sent = [self._system, *chat]
        completion = self._model.complete(sent, purpose=self._purpose, schema=self._schema)
        self.usage.append(completion.usage)
        return completion.text


log = logging.getLogger(__name__)

KNOWN_LIMIT = 2_000
MORE_ROUNDS = 3
"""How often a full answer is asked for the rest."""
ASK_FOR_MORE = "Now the facts after these that are still missing, if any."


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One turn, or a part of a very long one, as a model is shown it."""

    id: str
    role: Role
    text: str
    said: str = ""
    """The day, as in 2026-11-18 Wed."""


@dataclass(frozen=True, slots=True)
class Window:
    """The turns that one call reads, and the turns before them as context."""

    transcript: tuple[ShownTurn, ...]
    context: tuple[ShownTurn, ...] = ()


class Extractor:
    """The extraction call for one model and set of prompts."""

    def __init__(self, model: ChatModel, prompts: Prompts) -> None:
        self._model = model
        self.instructions = prompts.render("extract", limit=str(MAX_FACTS))

    def read(
        self, window: Window, known: Sequence[tuple[KnownFact, str]], keys: Sequence[str]
    ) -> tuple[list[ExtractionAnswer], list[Usage]]:
        """The answers to one window and to its follow-ups, and what they took. ``known`` comes
        nearest first, each with the day it was learnt.

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
        return answers, call.usage


def _parsed(reply: str) -> ExtractionAnswer:
    answer = candidate.parse(reply)
    if answer.broken:
        log.warning("%d items of an answer could not be read", len(answer.broken))
    return answer


def render_data(window: Window, known: Sequence[tuple[KnownFact, str]], keys: Sequence[str]) -> str:
    """The fenced data object: the turns to read, the turns before them, known facts that may be
    meant, and common keys that are free. No text in it can close the fence, because ``<`` is
    escaped."""
    data = {
        "transcript": [_marked(turn) for turn in window.transcript],
        "context": [_marked(turn) for turn in window.context],
        "known": [_as_sent(fact, learned) for fact, learned in fitting(known)],
        "keys": list(keys),
    }
    return fenced(data)


def _marked(turn: ShownTurn) -> dict[str, str]:
    text = verdict.mark_quoted(turn.text)
    return {"id": turn.id, "role": turn.role, "said": turn.said, "text": text}


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


CONTEXT_TURNS = 4
PIECE_OVERLAP = 200
LARGEST = 12_000
"""Tokens of a window, whatever the model could hold: cheap models lose the middle of long ones."""
MOST_WINDOWS = 8
"""Windows that one message takes if nobody asked to read all of it. Of a longer message half of
them are read at its beginning and half at its end."""
NEVER_LONG = 1_000
"""Characters that fit ``MOST_WINDOWS`` of any model, in any script."""
LEFT_OUT = "[{count:,} characters in the middle of this message are left out]"
"""What the model is shown at the gap."""
_CONTEXT_CHARACTERS = 1_500


def turn_id(position: int, message: Message) -> str:
    """The short id of a turn: u1, a2, …"""
    return f"{message.role[0]}{position + 1}"


def cut(
    turns: Sequence[Message],
    first_unread: int,
    window_tokens: int,
    zone: ZoneInfo,
    shortened: Collection[int] = (),
) -> list[Window]:
    """Windows over ``turns[first_unread:]``; the turns before it are context for the first. Of the
    messages with the ids ``shortened`` only the beginning and the end are read, where they would
    take more than ``MOST_WINDOWS``.

    A window ends at a turn, and is shown the last turns of the one before as context. A single
    message larger than a window is read in overlapping pieces.
    """
    room = _room(window_tokens)
    lines = [
        (position, line)
        for position in range(first_unread, len(turns))
        for line in _lines(
            position, turns[position], room, zone, whole=turns[position].id not in shortened
        )
    ]
    windows: list[Window] = []
    batch: list[tuple[int, ShownTurn]] = []
    used = 0
    for position, line in lines:
        cost = estimate_tokens(line.text) + 20
        if batch and used + cost > room:
            windows.append(_window(turns, batch, zone))
            batch, used = [], 0
        batch.append((position, line))
        used += cost
    if batch:
        windows.append(_window(turns, batch, zone))
    return windows


def count(content: str, window_tokens: int) -> int:
    """How many windows it takes to read all of a message."""
    return len(_pieces(content, _room(window_tokens)))


def is_long(content: str, window_tokens: int) -> bool:
    """Whether only the beginning and the end of a message are read if nobody asked for more."""
    return count(content, window_tokens) > MOST_WINDOWS


def _room(window_tokens: int) -> int:
    return max(500, min(window_tokens // 2, LARGEST))


def _window(turns: Sequence[Message], batch: list[tuple[int, ShownTurn]], zone: ZoneInfo) -> Window:
    start = batch[0][0]
    before = range(max(0, start - CONTEXT_TURNS), start)
    context = tuple(
        _line(position, turns[position], zone, turns[position].content[-_CONTEXT_CHARACTERS:])
        for position in before
    )
    return Window(tuple(line for _, line in batch), context)


def _lines(
    position: int, message: Message, room: int, zone: ZoneInfo, *, whole: bool
) -> Iterator[ShownTurn]:
    """A message as the lines that the model is shown of it."""
    pieces = _pieces(message.content, room)
    words = [message.content[piece] for piece in pieces]
    if not whole and len(words) > MOST_WINDOWS:
        half = MOST_WINDOWS // 2
        mark = LEFT_OUT.format(count=pieces[-half].start - pieces[half - 1].stop)
        words[half - 1] += f"\n{mark}"
        words[-half] = f"{mark}\n{words[-half]}"
        words = [*words[:half], *words[-half:]]
    for part in words:
        yield _line(position, message, zone, part)


def _pieces(content: str, room: int) -> list[slice]:
    """The places of the overlapping pieces in which all of a message is read, or of the whole."""
    tokens = estimate_tokens(content)
    if tokens <= room:
        return [slice(0, len(content))]
    size = max(room * len(content) // tokens, 2 * PIECE_OVERLAP)
    starts = range(0, max(1, len(content) - PIECE_OVERLAP), size - PIECE_OVERLAP)
    return [slice(start, min(start + size, len(content))) for start in starts]


def _line(position: int, message: Message, zone: ZoneInfo, words: str) -> ShownTurn:
    return ShownTurn(
        turn_id(position, message), message.role, words, said(message.created_at, zone)
    )


def said(at: datetime, zone: ZoneInfo) -> str:
    """The day of a turn as a model is shown it."""
    return f"{at.astimezone(zone):%Y-%m-%d %a}"
