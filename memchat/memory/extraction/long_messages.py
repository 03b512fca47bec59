"""What it takes to read all of a message that is read only at its beginning and end otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from memchat.memory.extraction import windows
from memchat.memory.extraction.candidate import MAX_FACTS
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.providers.litellm_usage import cost_usd
from memchat.tokens import estimate_tokens
from memchat.types import LongMessage, Message

BESIDE_TOKENS = 1_000
"""About what a call holds beside instructions and the message: known facts, keys, the turns before
it."""
ANSWER_TOKENS = 600
"""About what a call answers."""


def found(
    turns: Iterable[Message], to_read_whole: Collection[int], model: ChatModel, prompts: Prompts
) -> list[LongMessage]:
    """The long ones among these messages. ``to_read_whole`` are the ids of those of which all is
    read."""
    long = [turn for turn in turns if windows.is_long(turn.content, model.window)]
    return [_planned(turn, turn.id in to_read_whole, model, prompts) for turn in long]


def _planned(turn: Message, read_all: bool, model: ChatModel, prompts: Prompts) -> LongMessage:
    calls = windows.count(turn.content, model.window)
    instructions = estimate_tokens(prompts.render("extract", limit=str(MAX_FACTS)))
    sent = estimate_tokens(turn.content) + calls * (instructions + BESIDE_TOKENS)
    came = calls * ANSWER_TOKENS
    return LongMessage(
        turn.id,
        len(turn.content),
        read_all,
        windows.MOST_WINDOWS,
        calls,
        sent + came,
        cost_usd(model.name, sent, came),
        model.name,
    )
