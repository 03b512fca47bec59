"""Proposals before the gate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memchat.learn.candidate import Candidate, KnownFact, Quote, Turn, Verdict
from memchat.learn.gate import judge
from tests.support.paths import DATA

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)


def said(*texts: str, first: str = "user") -> list[Turn]:
    roles = ("user", "assistant") if first == "user" else ("assistant", "user")
    return [
        Turn(f"{roles[i % 2][0]}{i + 1}", roles[i % 2], text, AT, i + 1)  # type: ignore[arg-type]
        for i, text in enumerate(texts)
    ]


def fact(quote: str, value: str, *, msg: str = "u1", **fields: Any) -> Candidate:
    fields = {"type": "fact", "key": "thing", **fields}
    quotes = fields.pop("quotes", None) or (Quote(msg=msg, text=quote),)
    return Candidate(quotes=quotes, value=value, **fields)


def gate(
    candidate: Candidate,
    turns: Sequence[Turn],
    known: Sequence[KnownFact] = (),
    prompt: str = "",
    injected: Sequence[str] = (),
) -> Verdict:
    return judge(candidate, turns, known, prompt_text=prompt, injected=injected)


def corpus(honest: bool) -> list[dict[str, Any]]:
    lines = (DATA / "gate_corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["honest"] is honest]


def of_corpus(row: dict[str, Any]) -> Verdict:
    candidate = fact(row["quote"], row["value"], type=row["type"], key=row["key"])
    return gate(candidate, said(row["said"]))


def outcome(text: str, quote: str, key: str, value: str, kind: str = "profile") -> str:
    return gate(fact(quote, value, key=key, type=kind), said(text)).outcome
