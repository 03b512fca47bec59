"""A cheap model chooses which of very many pinned facts fit a message; off by default."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from memchat.errors import ConfigError, ProviderError
from memchat.prompts import Prompts
from memchat.providers import ChatModel
from memchat.types import ChatMessage, Hit, Usage

ABOVE = 50
"""Pinned facts up to which their order, most confirmed first, is good enough."""


class _Chosen(BaseModel):
    model_config = ConfigDict(strict=True)
    ids: list[int]


@dataclass(frozen=True, slots=True)
class ModelFilter:
    """Calls the model once; where its answer cannot be used, nothing is chosen."""

    prompts: Prompts
    model: Callable[[], ChatModel]

    def choose(self, message: str, facts: Sequence[Hit]) -> tuple[list[int], Usage | None]:
        """The ids of the facts that fit the message, the best first, and what the call took."""
        if len(facts) <= ABOVE or self.model().stand_in:
            return [], None
        data = {"message": message, "facts": [{"id": f.id, "fact": f.text} for f in facts]}
        sent = [
            ChatMessage("system", self.prompts.text("relevant")),
            ChatMessage("user", json.dumps(data, ensure_ascii=False)),
        ]
        try:
            answer = self.model().complete(sent, purpose="relevance")
        except (ProviderError, ConfigError):
            return [], None
        text = answer.text
        try:
            chosen = _Chosen.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
        except ValidationError:
            return [], answer.usage
        known = {fact.id for fact in facts}
        return [i for i in dict.fromkeys(chosen.ids) if i in known], answer.usage
