"""Answers of the second look, and facts that it is asked about."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from memchat.testing import Request, ScriptedModel
from tests.support.answers import fact

HOLDS = json.dumps({"verdicts": [{"id": "c1", "answer": "holds", "why": None, "now": None}]})

OWL = fact("I keep an owl", "pet", "an owl", many=True)
SKI = fact("I ski", "hobby", "ski", many=True)
TEA = fact("I drink tea", "drink", "tea", many=True)
SAID = "I keep an owl. I ski. I drink tea."
Judge = Callable[[Request], str]


def sent(request: Request) -> dict[str, Any]:
    """The data of a second look as the model is sent it."""
    content = request.messages[1].content
    data: dict[str, Any] = json.loads(content.partition("\n")[2].rpartition("\n")[0])
    return data


def judge(**said: dict[str, Any] | str) -> Judge:
    """A judge that answers by key; it leaves out what it has no answer for."""

    def look(request: Request) -> str:
        verdicts = []
        for item in sent(request)["candidates"]:
            verdict = said.get(item["fact"].partition(":")[0])
            if verdict is not None:
                more = {"answer": verdict} if isinstance(verdict, str) else verdict
                verdicts.append({"id": item["id"], **more})
        return json.dumps({"verdicts": verdicts})

    return look


def looks(model: ScriptedModel) -> list[Request]:
    """The second looks that a model was asked for."""
    return [request for request in model.requests if request.purpose == "verify"]


def values(mc) -> set[str]:
    return {memory.value for memory in mc.user("ana").memories.list()}
