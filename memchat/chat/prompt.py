"""The prompt of a turn: the system text with the memories and passages of notes recalled, and the
turns that fit.

The turns of a conversation as a model is sent them, as many as fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from memchat.chat.conversation import Conversation, Parts
from memchat.errors import InputError
from memchat.notes.search import MOST_TOKENS
from memchat.providers import ChatModel
from memchat.search import render, search
from memchat.search.embed import Question
from memchat.search.receipts import SentPrompt
from memchat.tokens import estimate_tokens
from memchat.types import ChatMessage, MemorySwitch, Message, Recalled, Role, Scope, Usage

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


NO_ROOM = "the message left no room for memories"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is sent for a message, and what was recalled for it."""

    messages: list[ChatMessage]
    shown: Recalled
    sent: SentPrompt
    """The same as it is stored with the reply."""
    dropped_turns: int
    filter_usage: Usage | None
    """What the model filter took, where it was asked."""


def build(
    parts: Parts, conversation: Conversation, text: str, switch: MemorySwitch, *, tools: bool
) -> Prompt:
    """Recall what the message asks for and put the prompt together. ``tools``: they are offered.

    The window is fitted twice, as the memories recalled may need some room of it. Raises InputError
    where the message alone does not fit the model.
    """
    query, shown, filter_usage = None, Recalled(), None
    if switch.on:
        searched = search.searched(text, conversation.turns)
        query = parts.query_timeout.start(searched)  # its vector is made while this goes on
        conversation.pending_queries.append(query)
    model = parts.model()
    window = MessageWindow.fit(model, _system(parts, switch, "", tools=tools), conversation.turns)
    if query is not None:
        question = parts.query_timeout.wait(query)
        fitting, filter_usage = _filter_pinned(parts, conversation, text)
        shown = parts.block.for_prompt(
            conversation.scope,
            question,
            dropped=window.dropped,
            session_id=conversation.session_id,
            first=fitting,
        )
        shown = replace(shown, notes=parts.notes.for_prompt(conversation.scope, question))
        # The message fits alone: what does not fit beside it is left out, and the result says so.
        without = Recalled(degraded=NO_ROOM, dropped=shown.lines + shown.dropped)
        for given in (shown, replace(shown, notes=())):
            block = recalled(parts, conversation.fence_mark, given)
            with suppress(InputError):
                system = _system(parts, switch, block, tools=tools)
                window = MessageWindow.fit(model, system, conversation.turns)
                without = given
                break
        shown = without
    sent = SentPrompt(
        window.system,
        window.turns[0].id,
        tools,
        len(window.turns),
        shown.lines,
        shown.dropped,
        shown.degraded,
    )
    return Prompt(window.messages, shown, sent, len(window.dropped), filter_usage)


def recalled(parts: Parts, mark: str, shown: Recalled) -> str:
    """The memories and the passages of notes as a prompt has them, each fenced by the mark."""
    blocks = (render.block(parts.prompts, mark, shown), parts.notes.render(mark, shown.notes))
    return "\n".join(filter(None, blocks))


def for_message(
    parts: Parts, scope: Scope, question: Question, max_tokens: int | None = None
) -> tuple[str, Recalled]:
    """The memories and passages for a message outside of any conversation, and what they are.

    With ``max_tokens`` both together have no more; the notes have what the memories leave.
    """
    mark, memories, left = render.new_mark(), parts.block, MOST_TOKENS
    if max_tokens is not None:
        memories = replace(memories, settings=parts.settings.with_(budget_tokens=max_tokens))
    shown = memories.for_prompt(scope, question)
    if max_tokens is not None:
        left = max_tokens - estimate_tokens(render.block(parts.prompts, mark, shown)) - 1
    shown = replace(shown, notes=parts.notes.for_prompt(scope, question, most_tokens=left))
    return recalled(parts, mark, shown), shown


def _filter_pinned(
    parts: Parts, conversation: Conversation, text: str
) -> tuple[list[int], Usage | None]:
    """The pinned facts that a cheap model finds to fit, where that is switched on."""
    if parts.model_filter is None:
        return [], None
    facts = parts.block.pinned(conversation.scope, conversation.session_id)
    return parts.model_filter.choose(text, facts)


def _system(parts: Parts, switch: MemorySwitch, block: str, *, tools: bool) -> str:
    rule = ""
    if tools:
        rule = parts.prompts.text("tools")
    elif not switch.on:
        rule = parts.prompts.render("off", reason=switch.reason)
    return parts.prompts.render("chat", memories=rule + block)
