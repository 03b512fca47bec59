"""A very long message with a fact at its beginning, in its middle and at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memchat.testing import ScriptedModel
from memchat.types import ChatMessage
from tests.support.answers import answer, fact

WINDOW = 2_048
"""Tokens of the model that reads it: a message of 80,000 characters takes 23 calls."""
FACTS = {
    "I moved to Lisbon": ("city", "Lisbon"),
    "I moved to Zanzibar": ("former_city", "Zanzibar"),
    "My name is Otto": ("name", "Otto"),
}
_FILLER = "Some word of the day. "


def long_text(characters: int = 80_000) -> str:
    first, middle, last = FACTS
    half = _FILLER * (characters // 2 // len(_FILLER))
    return f"{first}. {half}{middle}. {half}{last}."


def reads_facts(messages: Sequence[ChatMessage]) -> str:
    """The answer of a model that finds each of the facts in what it is shown."""
    shown = messages[1].content
    return answer(*(fact(words, *told) for words, told in FACTS.items() if words in shown))


def reader(reply: Callable[[Sequence[ChatMessage]], str] = reads_facts) -> ScriptedModel:
    """An extraction model with small windows."""
    return ScriptedModel([reply] * 200, window=WINDOW)


def calls(model: ScriptedModel) -> int:
    """How often it was asked to read something."""
    return sum(request.purpose == "extract" for request in model.requests)
