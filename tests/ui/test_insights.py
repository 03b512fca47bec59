"""The insights page."""

from __future__ import annotations

from datetime import timedelta

from memchat import MemChat
from tests.support import private
from tests.support.ui.tab import ANA, app, press, text


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
        active = tx.exec_driver_sql("SELECT count(*) FROM memories WHERE active").scalar()
        unread = tx.exec_driver_sql(
            "SELECT count(*) FROM memories WHERE active AND read_count = 0"
        ).scalar()
        said = tx.exec_driver_sql("SELECT count(*) FROM messages WHERE role = 'user'").scalar()
        done = tx.exec_driver_sql("SELECT count(*) FROM jobs WHERE status = 0").scalar()
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
