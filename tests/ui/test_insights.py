"""The insights page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from streamlit.testing.v1 import AppTest

from memchat import MemChat
from tests.support import private
from tests.support.ui.tab import ANA, app, buttons, press, text
from ui.desk import Desk


def test_insights_figures_are_the_stores_own(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    for n in range(3):
        ana.memories.add("fact", "thing", f"value {n}")
    ana.memories.add("profile", "city", "Lisbon", expires_at=(mc.now + timedelta(days=5)).date())
    with ana.chat() as talk:
        talk.send("Where do I live?").read()
    at = app("insights")
    shown = {m.label: m.value for m in at.metric}
    with private.database(mc).read() as tx:
        active = tx.connection.exec_driver_sql(
            "SELECT count(*) FROM memories WHERE active"
        ).scalar()
        unread = tx.connection.exec_driver_sql(
            "SELECT count(*) FROM memories WHERE active AND read_count = 0"
        ).scalar()
        said = tx.connection.exec_driver_sql(
            "SELECT count(*) FROM messages WHERE role = 'user'"
        ).scalar()
        work = "SELECT status FROM jobs UNION ALL SELECT status FROM passages"
        done = tx.connection.exec_driver_sql(
            f"SELECT count(*) FROM ({work}) WHERE status = 0"
        ).scalar()
    assert shown["In use"] == str(active) == "4"
    assert shown["Never used"] == str(unread)
    assert shown["Messages this week"] == str(said)
    assert f"{done} done" in text(at)
    figures = ana.memories.insights()
    assert sum(figures.kept.values()) == sum(figures.types.values()) == 4
    assert "city: Lisbon" in text(at)


def test_the_audit_shows_what_it_finds_and_mends_it(mc: MemChat) -> None:
    mc.user(**ANA).memories.add(
        "profile", "city", "Lisbon", expires_at=(mc.now + timedelta(days=5)).date()
    )
    at = app("insights")
    press(at, "audit")
    assert [e.label for e in at.expander if e.label.startswith("Expiring")]


def test_mending_is_shown_before_it_is_done_and_can_be_undone(mc: MemChat) -> None:
    memories = mc.user(**ANA).memories
    for cat in ("a cat called Miso", "the cat called Miso"):
        memories.add("fact", "pet", cat)
    at = app("insights")
    press(at, "audit")
    press(at, buttons(at, "mend-")[0])
    assert "Your pets include a cat called Miso. goes" in text(at).replace(":gray[", "").replace(
        "]", ""
    )
    assert len(memories.list()) == 2
    press(at, "mend-yes")
    assert [one.value for one in memories.list()] == ["the cat called Miso"]
    press(at, buttons(at, "undo-")[-1])
    assert len(memories.list()) == 2


def charts(at: AppTest) -> int:
    """How many charts over time the page has."""
    return sum('<div class="memchat-chart"' in each.proto.body for each in at.get("html"))


def test_an_empty_store_says_what_will_be_seen_here(desk: Desk) -> None:
    at = app("insights")
    assert "Once there are memories and chats, this page shows" in text(at)
    assert not at.metric and not charts(at)


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_day_has_figures_in_words_and_no_empty_axes(mc: MemChat, count: int) -> None:
    ana = mc.user(**ANA)
    for n in range(count):
        ana.memories.add("fact", f"thing {n}", "value")
    at = app("insights")
    told = "1 memory" if count == 1 else "2 memories"
    assert f"{told} kept so far. From " in text(at)
    assert "0 messages of yours in the last 30 days." in text(at)
    assert "Those that are used most are listed here." in text(at)
    assert not charts(at)


def test_a_chat_before_the_first_memory_draws_no_empty_axes(mc: MemChat) -> None:
    with mc.user(**ANA).chat() as talk:
        talk.send("Good morning!").read()
    at = app("insights")
    assert "No memory is kept yet." in text(at)
    assert "1 message of yours in the last 30 days." in text(at)
    assert "Memories about you, preferences and facts are counted here." in text(at)
    assert not charts(at)


def test_after_some_days_the_charts_are_drawn(mc: MemChat) -> None:
    ana = mc.user(**ANA)
    ana.memories.add("fact", "thing", "value")
    with ana.chat() as talk:
        for _ in range(2):
            talk.send("Good morning!").read()
    before = f"{mc.now - timedelta(days=2):%Y-%m-%dT%H:%M:%S.%fZ}"
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql("UPDATE memories SET created_at = ?", (before,))
        tx.connection.exec_driver_sql("UPDATE messages SET created_at = ? WHERE id < 3", (before,))
    assert charts(app("insights")) == 2
