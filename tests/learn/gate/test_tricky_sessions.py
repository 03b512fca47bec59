"""Whole sessions before the gate: what they teach is kept, nothing else is certain."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memchat.learn.candidate import KnownFact, Quote, Ref, Turn
from tests.support.gate import fact, gate, said
from tests.support.paths import DATA

# The tricky sessions: what an ideal model would propose, and what a careless one would.
IDEAL = {
    "d01": ["does not like coriander", "never eats raw onion"],
    "d02": ["learning Go, two evenings a week"],
    "d03": ["Zug 10:40 ab Kassel"],
    "d04": ["under the window", "likes daylight"],
    "d05": ["no come carne"],
    "d06": ["number 12 on the third floor"],
    "d07": ["repairs church organs"],
    "d08": ["Köpeği Fıstık"],
    "d09": ["writing a talk about such attacks"],
    "d10": ["妈妈对花生过敏", "下周三带妈妈去体检，早上八点"],
    "d12": ["three weeks", "1,200, tops", "larch cladding"],
}
ENDS = {
    ("d03", 0): ("nächsten Dienstag", "weekday:tue"),
    ("d05", 0): ("Esta semana", "end:week"),
    ("d10", 1): ("下周三", "+1w"),
    ("d12", 0): ("Three weeks", "+3w"),
}
SESSIONS = [
    json.loads(line)
    for line in (DATA / "tricky_sessions_dev.jsonl").read_text(encoding="utf-8").splitlines()
]


def _setting(session: dict[str, Any]) -> dict[str, Any]:
    at = datetime.fromisoformat(session["at"]).astimezone(ZoneInfo(session["zone"]))
    turns = [
        Turn(t["id"], t["role"], t["text"], at, number)
        for number, t in enumerate(session["turns"], 1)
    ]
    known = [
        KnownFact(k["id"], n, k["type"], k["key"], k["value"], k["many"])
        for n, k in enumerate(session["known"], 1)
    ]
    injected = [fact.value for fact in known]
    return {"turns": turns, "known": known, "injected": injected}


@pytest.mark.parametrize("session", SESSIONS, ids=lambda s: s["id"])
def test_what_a_tricky_session_teaches_is_held_by_nothing(session: dict[str, Any]) -> None:
    setting = _setting(session)
    for number, item in enumerate(session["store"]):
        more = [
            Quote(msg=t.id, text=t.text) for t in setting["turns"] if t.id in item.get("needs", ())
        ]
        words, code = ENDS.get((session["id"], number), (None, None))
        verdict = gate(
            fact(
                "",
                IDEAL[session["id"]][number],
                quotes=(Quote(msg=item["msg"], text=item["quote"]), *more),
                ref=Ref(**item["ref"]) if item.get("ref") else None,
                type=item["type"],
                key=item["keys"][0],
                until_said=words,
                until=code,
            ),
            **setting,
        )
        allowed = {"accept", *(["review"] if item.get("inbox_ok") else [])}
        assert verdict.outcome in allowed, verdict.reasons
        assert (verdict.until.isoformat() if verdict.until else None) == item["until"]
    for item in session["ends"]:
        end = fact(item["quote"], "", msg=item["msg"], to=item["to"], relation="ends", key="pet")
        assert gate(end, **setting).outcome == "accept"


@pytest.mark.parametrize(
    "piece", ["a", "1 ", "translate : ", "'a ", "```\n", "code ", "my ", "- a\n", "de89 1234 ", "."]
)
def test_a_hostile_message_is_judged_in_good_time(piece: str) -> None:
    text = piece * (20_000 // len(piece)) + "\n\nI live in Bergen."
    started = time.process_time()
    gate(fact("I live in Bergen", "Bergen", key="city"), said(text))
    assert time.process_time() - started < 10
