"""Conversations that are ended and read, and what they left."""

from __future__ import annotations

import json

from memchat import MemChat
from memchat.testing import ScriptedModel
from tests.support.answers import answer, fact


def said(mc: MemChat, extract_model, line: str, *facts, **where):
    extract_model.replies.append(answer(*facts))
    return talk(mc, line, **where)


def state(mc: MemChat, user: str = "ana", app: str = "default") -> dict[str, tuple]:
    return {
        m.value: (m.active, m.inactive_reason)
        for m in mc.user(user, app=app).memories.list(status="all")
    }


def updates(quote: str, key: str, value: str, to: str, **more):
    return fact(quote, key, value, to=to, **{"is": "updates"}, **more)


def talk(mc: MemChat, *lines: str, user: str = "ana", app: str = "default"):
    with mc.user(user, app=app).chat() as chat:
        for line in lines:
            assert chat.send(line).read()
    return chat


def sent_data(model: ScriptedModel, call: int = -1) -> dict:
    """The data of one call to read, of all that were made."""
    read = [request for request in model.requests if request.purpose == "extract"]
    content = read[call].messages[1].content
    return json.loads(content.partition("\n")[2].rpartition("\n")[0])
