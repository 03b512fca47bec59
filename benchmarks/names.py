"""Short ids of one call, written as the facts they stand for, and found again in another call.

A call names the facts it shows k1, k2, … in an order that may differ the next time. A recorded
answer therefore says ``"to": {"key": …, "value": …}``, and a verdict of the second look
``"id": {"fact": …, "is": …}``; when it is replayed, the ids of that call are put back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memchat.language.text import normal_value
from memchat.types import ChatMessage

NOT_SHOWN = "k0"
"""Stands for a fact that the call at hand does not show; no call gives this id."""
NOT_ASKED = "c0"
Named = dict[str, str]


def data_of(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """The fenced data object of a call, empty where there is none to read."""
    for message in messages:
        lines = message.content.strip().split("\n")
        if message.role == "user" and len(lines) > 2 and lines[0].startswith("<data "):
            return _object("\n".join(lines[1:-1]))
    return {}


def by_name(text: str, messages: Sequence[ChatMessage]) -> str:
    """An answer with the call's short ids written as what they stand for."""
    data = data_of(messages)
    known = {item["id"]: _named(item) for item in data.get("known", ())}
    asked = {c["id"]: _claim(c) for c in data.get("candidates", ()) if c.get("fact")}
    text = _rewrite(text, "to", lambda given: known.get(given, given))
    return _rewrite(text, "id", lambda given: asked.get(given, given)) if asked else text


def by_id(text: str, messages: Sequence[ChatMessage]) -> str:
    """A recorded answer with the short ids of this call."""
    data = data_of(messages)
    text = _rewrite(text, "to", lambda given: _shown(given, data.get("known", ())))
    return _rewrite(text, "id", lambda given: _asked(given, data.get("candidates", ())))


def shown_as(fact: Mapping[str, Any], messages: Sequence[ChatMessage]) -> str:
    """The id by which a call shows a fact, or NOT_SHOWN."""
    return str(_shown(_named(fact), data_of(messages).get("known", ())))


def _shown(given: Any, known: Sequence[Mapping[str, Any]]) -> Any:
    """By key and value; else by the value alone, or the key alone, where that is one fact."""
    if not isinstance(given, dict):
        return given
    value, key = normal_value(given.get("value", "")), given.get("key")
    equal = [item for item in known if normal_value(item["value"]) == value]
    for found in (
        [i for i in equal if i["key"] == key],
        equal,
        [i for i in known if i["key"] == key],
    ):
        if len(found) == 1:
            return found[0]["id"]
    return NOT_SHOWN


def _asked(given: Any, candidates: Sequence[Mapping[str, Any]]) -> Any:
    if not isinstance(given, dict):
        return given
    return next((c["id"] for c in candidates if _claim(c) == given), NOT_ASKED)


def _claim(candidate: Mapping[str, Any]) -> Named:
    """What a candidate proposes: the fact, and what it is to a known one."""
    return {name: candidate[name] for name in ("fact", "is") if name in candidate}


def _named(fact: Mapping[str, Any]) -> Named:
    return {"key": fact["key"], "value": fact["value"]}


def _rewrite(text: str, field: str, change: Callable[[Any], Any]) -> str:
    """Change the values of a field wherever it stands, in whole JSON and in a broken one."""
    decoder, parts, at = json.JSONDecoder(strict=False), [], 0
    for match in re.finditer(rf'"{field}"\s*:\s*', text):
        if match.end() < at:
            continue
        try:
            given, end = decoder.raw_decode(text, match.end())
        except ValueError:
            continue
        if isinstance(given, (str, dict)):
            parts += [text[at : match.end()], json.dumps(change(given), ensure_ascii=False)]
            at = end
    return "".join([*parts, text[at:]])


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
