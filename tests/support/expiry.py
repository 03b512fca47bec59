"""Instants and proposals with a last day."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from benchmarks.lifecycle.phrases import Instant

BERLIN = "Europe/Berlin"
FRIDAY = Instant(BERLIN, datetime(2026, 11, 20, 10, tzinfo=UTC), date(2026, 11, 20))


def row(text: str, said: str | None, code: str | None, **more: Any) -> dict[str, Any]:
    quote = more.pop("quote", text.rstrip(".。"))
    given = {"text": text, "quote": quote, "until_said": said, "until": code}
    return {"key": "stay", "value": "Rome", **given, **more}
