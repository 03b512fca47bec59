"""The turns of a conversation as a model is sent them, as many as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memchat.errors import InputError
from memchat.providers import ChatModel
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, Message, Role

_REPLY_SHARE = 4
"""One part in so many of the model's window is left for its reply."""
_TURN_TOKENS = 8
"""Tokens of a turn in addition to its words."""


@dataclass(frozen=True, slots=True)
class MessageWindow:
    """A system text and the newest turns that fit beside it."""

    system: str
    turns: Sequence[Message]
    dropped: Sequence[int]
    """Ids of the stored turns that do not fit."""

    @classmethod
    def fit(cls, model: ChatModel, system: str, turns: Sequence[Message]) -> MessageWindow:
        """As many turns as fit the model. Raises InputError where the last one alone does not."""
        room = model.window * (_REPLY_SHARE - 1) // _REPLY_SHARE - estimate_tokens(system)
        fitting = 0
        for turn in reversed(turns):
            room -= estimate_tokens(turn.content) + _TURN_TOKENS
            if room < 0:
                break
            fitting += 1
        if fitting == 0:
            raise InputError(
                f"the message is longer than {model.name} can read at once "
                f"({model.window} tokens); send it in parts"
            )
        split = len(turns) - fitting
        while turns[split].role != "user":
            split += 1  # a reply whose question does not fit is not sent
        return cls(system, turns[split:], [turn.id for turn in turns[:split] if turn.id])

    @property
    def messages(self) -> list[ChatMessage]:
        """What the model is sent."""
        return [ChatMessage("system", self.system), *alternating(self.turns)]


def alternating(turns: Sequence[Message]) -> list[ChatMessage]:
    """The turns as providers want them: beginning with the user, never two of one role in a row."""
    merged: list[tuple[Role, str]] = []
    for turn in turns:
        if merged and merged[-1][0] == turn.role:
            merged[-1] = (turn.role, f"{merged[-1][1]}\n\n{turn.content}")
        elif merged or turn.role == "user":
            merged.append((turn.role, turn.content))
    return [ChatMessage(role, content) for role, content in merged]
