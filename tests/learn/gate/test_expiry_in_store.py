"""The last day of a fact in the store: whole in its zone, and over afterwards."""

from __future__ import annotations

import io
import json
import re
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from benchmarks.lifecycle.phrases import phrases
from memchat import MemChat
from memchat.cli import main
from memchat.language.statements import time_phrases
from memchat.testing import FakeClock
from tests.support.answers import answer, fact
from tests.support.store import Opener


def test_a_move_next_month_is_stored_with_its_first_day(mc: MemChat, extract_model) -> None:
    ana = mc.user("ana")
    extract_model.replies.append(answer(fact("I live in Lisbon", "city", "Lisbon")))
    with ana.chat() as chat:
        chat.send("I live in Lisbon.")
    coming = {"from_said": "From next month", "from": "next:month", "to": "k1", "is": "updates"}
    moved = fact("From next month I live in Porto", "city", "Porto", **coming)
    extract_model.replies.append(answer(moved))
    with ana.chat() as chat:
        chat.send("From next month I live in Porto.")
    stored = [(m.value, m.starts_at) for m in ana.memories.list()]
    assert ("Porto", date(2026, 6, 1)) in stored


# --- the offline provider reads the same phrases by patterns


def test_the_offline_provider_names_the_right_code_or_none() -> None:
    read = 0
    known = [p for p in phrases() if p["lang"] in ("en", "de") and p["until"]]
    good = [p for p in known if p["expect"] not in ("review", "refuse", None)]
    for phrase in good:
        codes = {when.code for when in time_phrases(phrase["text"])}
        assert codes <= {phrase["until"]}, phrase
        read += bool(codes)
    assert read >= len(good) - 1
    for text in ("I had it until last Friday.", "I swim every Friday.", "Seit Montag bin ich da."):
        assert time_phrases(text) == []


# --- in the store: the last day is whole, and then it is over


ZONES = (
    "Pacific/Auckland",
    "Asia/Kolkata",
    "Europe/Berlin",
    "America/New_York",
    "Pacific/Honolulu",
)


def tell(mc: MemChat, model: Any, text: str, said: str, code: str, value: str) -> None:
    model.replies.append(answer(fact(text.rstrip("."), "stay", value, until_said=said, until=code)))
    with mc.user("ana").chat() as chat:
        chat.send(text)


def injected(mc: MemChat, chat_model: Any, question: str) -> str:
    with mc.user("ana").chat() as chat:
        assert chat.send(question).read()
        block = str(chat_model.requests[-1].messages[0].content)
        chat.abandon()
    return block


@pytest.mark.parametrize("zone", ZONES)
def test_a_fact_holds_the_whole_last_day_of_its_user_and_no_longer(
    open_store: Opener, chat_model, extract_model, zone: str
) -> None:
    clock = FakeClock(datetime(2026, 3, 24, 12, tzinfo=ZoneInfo(zone)))  # a Tuesday
    mc = open_store(timezone=zone, clock=clock)
    ana = mc.user("ana")
    tell(
        mc, extract_model, "I am in Utrecht until Sunday.", "until Sunday", "weekday:sun", "Utrecht"
    )
    (memory,) = ana.memories.list()
    assert memory.expires_at == date(2026, 3, 29)  # when summer time begins in Berlin
    clock.now = datetime(2026, 3, 29, 23, 59, 59, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    assert ana.memories.list() and ana.search("Utrecht").hits
    clock.advance(seconds=1)
    assert not ana.memories.list() and ana.memories.list(status="expired")
    (moment,) = ana.search("Utrecht").hits
    assert moment.kind == "message" and moment.since_changed == (memory.key,)


def test_an_old_chat_read_late_counts_from_its_own_day(
    open_store: Opener, chat_model, extract_model
) -> None:
    clock = FakeClock(datetime(2019, 6, 12, 9, tzinfo=UTC))  # a Wednesday
    mc = open_store(clock=clock)
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(
            fact(
                "I am in Utrecht until Friday",
                "stay",
                "Utrecht",
                until_said="until Friday",
                until="weekday:fri",
            )
        )
    )
    chat = ana.chat()
    chat.send("I am in Utrecht until Friday.")
    chat.end(wait=False)
    clock.now = datetime(2026, 11, 20, 9, tzinfo=UTC)
    mc.jobs.run(user="ana")
    (memory,) = ana.memories.list(status="expired")
    assert memory.expires_at == date(2019, 6, 14)
    assert not ana.memories.list()
    chat_model.replies.appendleft("No idea.")
    (line,) = re.findall(r"^- .*Utrecht.*$", injected(mc, chat_model, "Am I in Utrecht?"), re.M)
    assert "2019-06-12 user:" in line and line.endswith("(since changed: stay)")


def test_a_date_counts_from_the_message_that_names_it(
    open_store: Opener, chat_model, extract_model
) -> None:
    clock = FakeClock(datetime(2026, 11, 19, 22, 55, tzinfo=UTC))  # 23:55 in Berlin
    mc = open_store(clock=clock)
    ana = mc.user("ana")
    extract_model.replies.append(
        answer(
            {
                **fact("", "stay", "Utrecht", until_said="until tomorrow", until="tomorrow"),
                "quotes": [
                    {"msg": "u1", "text": "I am in Utrecht until tomorrow"},
                    {"msg": "u3", "text": "Utrecht is great"},
                ],
            }
        )
    )
    with ana.chat() as chat:
        chat.send("I am in Utrecht until tomorrow.")
        clock.advance(seconds=600)
        chat.send("Utrecht is great.")
    (memory,) = ana.memories.list()
    assert memory.expires_at == date(2026, 11, 20)


def test_expired_facts_are_never_shown_and_never_take_the_place_of_others(
    mc: MemChat, clock: FakeClock, chat_model
) -> None:
    ana = mc.user("ana")
    for number in range(60):
        ana.memories.add(
            "fact",
            f"meeting_{'abcdefghij'[number % 10] * (number // 10 + 1)}",
            f"project meeting about the Helsinki budget {number}",
            expires_at=date(2026, 5, 2),
        )
    kept = ana.memories.add("fact", "venue", "the Helsinki budget talks are at Kallio hall")
    clock.advance(days=3)
    found = ana.search("project meeting about the Helsinki budget", limit=5)
    assert [hit.id for hit in found.hits] == [kept.id]
    assert len(ana.memories.list(status="expired")) == 60  # the sweep has not come by yet
    block = injected(mc, chat_model, "Where is the project meeting about the Helsinki budget?")
    assert "Kallio" in block and "project meeting about" not in block


# --- what will soon be over


def test_the_expiring_are_listed_soonest_first(mc: MemChat, clock: FakeClock) -> None:
    ana = mc.user("ana")
    clock.advance(days=-3)
    ana.memories.add("fact", "over", "over", expires_at=date(2026, 4, 30))
    clock.advance(days=3)
    days = {"late": 60, "soon": 2, "today": 0, "month": 30, "after": 31}
    for key, ahead in days.items():
        until = date(2026, 5, 1) + timedelta(days=ahead)
        ana.memories.add("fact", key, key, expires_at=until)
    ana.memories.add("fact", "lasting", "lasting")

    def keys(**more: Any) -> list[str]:
        return [m.key for m in ana.memories.list(status="expiring", **more)]

    assert keys() == ["today", "soon", "month"]
    assert keys(within=2) == ["today", "soon"]
    assert keys(within=10**9) == ["today", "soon", "month", "after", "late"]
    first = ana.memories.list(status="expiring", within=2, limit=1)
    assert keys(within=2, limit=1, cursor=first.cursor) == ["soon"]
    assert ana.memories.count(status="expiring", within=2) == 2


def test_the_command_lists_the_expiring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMCHAT_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("MEMCHAT_EMBED_MODEL", "none")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with MemChat(home=tmp_path / "store") as mc:
        ana = mc.user("ana")
        today = datetime.now(mc.settings.zone).date()
        for key, ahead in (("far", 20), ("near", 3), ("beyond", 90)):
            ana.memories.add("fact", key, key, expires_at=today + timedelta(days=ahead))
        ana.memories.add("fact", "lasting", "lasting")

    def listed(*args: str) -> list[str]:
        capsys.readouterr()
        assert main(["memories", "list", "--user", "ana", "--json", *args]) == 0
        return [memory["key"] for memory in json.loads(capsys.readouterr().out)]

    assert listed("--expiring") == ["near", "far"]
    assert listed("--expiring", "7") == ["near"]
    assert listed("--expiring", "100") == ["near", "far", "beyond"]
    assert listed("--status", "expiring") == ["near", "far"]
    assert main(["memories", "list", "--user", "ana", "7"]) == 2
    assert "goes with --expiring" in capsys.readouterr().err
