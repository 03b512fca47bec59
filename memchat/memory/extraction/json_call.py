"""Calls of a model that answer with a JSON object; one of no use is asked for once more."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from memchat.errors import ExtractionError
from memchat.providers import ChatModel
from memchat.types import ChatMessage, Usage

Answer = TypeVar("Answer")

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

    def ask(self, chat: Sequence[ChatMessage], read: Callable[[str], Answer]) -> tuple[Answer, str]:
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
