"""Answers of an extraction model."""

from __future__ import annotations

import json
from typing import Any


def fact(
    quote: str, key: str, value: str, *, msg: str = "u1", memory_type: str = "profile", **more: Any
) -> dict[str, Any]:
    """One fact as the extraction model answers it."""
    return {
        "quotes": [{"msg": msg, "text": quote}],
        "ref": None,
        "type": memory_type,
        "key": key,
        "value": value,
        "many": False,
        "until_said": None,
        "until": None,
        "to": None,
        "is": "new",
        "flags": [],
        **more,
    }


def answer(*facts: dict[str, Any], title: str = "", summary: str = "") -> str:
    """A whole answer of the extraction model."""
    return json.dumps({"facts": list(facts), "forget": [], "title": title, "summary": summary})
