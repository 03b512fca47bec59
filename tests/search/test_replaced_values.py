"""Values that were replaced: shown behind the new one, and crowding nothing out."""

from __future__ import annotations

from datetime import date

import pytest

from memchat.providers.embedders import HashEmbedder
from tests.support.searches import Down, fill


def test_a_replaced_value_stands_behind_the_new_one_and_is_dated(mc, clock) -> None:
    fill(mc, ("profile", "city", "Lisbon"))
    clock.advance(days=1)
    fill(mc, ("profile", "city", "Porto"))
    (hit,) = mc.user("ana").search("which city do I live in?").hits
    before = "before: Lisbon, replaced 2026-05-02"
    assert hit.text == f"[profile] city: Porto (said 2026-05-02; {before})"


def test_the_last_day_of_a_fact_is_not_taken_for_that_of_the_value_it_replaced(mc, clock) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Faro to 20 November", expires_at=date(2026, 11, 20))
    clock.advance(days=2)
    ana.memories.add("profile", "city", "Faro to 19 November", expires_at=date(2026, 11, 19))
    (hit,) = ana.search("Faro").hits
    before = "before: Faro to 20 November, replaced 2026-05-03"
    assert hit.text.endswith(f"; until 2026-11-19; {before})")


def moved(mc, clock, *cities: str) -> None:
    for name in cities:
        mc.user("ana").memories.add("profile", "city", name)
        clock.advance(days=30)


def test_a_replaced_value_is_found_behind_the_one_that_is_there_now(mc, clock) -> None:
    moved(mc, clock, "Zanzibar", "Porto", "Faro")
    mc.jobs.run()
    (hit,) = mc.user("ana").search("Zanzibar").hits
    assert hit.memory.value == "Faro"
    assert hit.text.endswith("before: Porto, replaced 2026-06-30; Zanzibar, replaced 2026-05-31)")


def test_however_often_a_value_was_replaced_its_place_is_taken_once(mc, clock) -> None:
    moved(mc, clock, *(f"Porto {word}" for word in ("old", "new", "north", "south", "east")))
    mc.jobs.run()
    hits = mc.user("ana").search("Porto", limit=3).hits
    assert [hit.memory.value for hit in hits] == ["Porto east"]


@pytest.mark.parametrize("often", [5, 29, 60])
@pytest.mark.parametrize("embedder", [HashEmbedder(), Down()])
def test_a_value_replaced_often_crowds_nothing_else_out(open_store, clock, often, embedder) -> None:
    mc = open_store()
    moved(mc, clock, *(f"Porto harbour street {n}" for n in range(often)))
    for n in range(6):
        walk = f"walked past Porto harbour with {n} friends"
        mc.user("ana").memories.add("fact", f"visit_{'abcdef'[n]}", walk)
    mc.jobs.run()
    hits = open_store(embedder=embedder).user("ana").search("Porto harbour street", limit=10).hits
    assert [hit.memory.key for hit in hits].count("city") == 1
    assert len(hits) == 7, "the current value, and every other fact"


def test_chains_of_several_slots_crowd_nothing_out_either(mc, clock) -> None:
    ana = mc.user("ana")
    for n in range(15):
        for key in ("city", "job", "employer"):
            ana.memories.add("profile", key, f"harbour keeper {n} {key}")
        clock.advance(days=1)
    ana.memories.add("fact", "walk", "to the harbour")
    mc.jobs.run()
    hits = ana.search("harbour keeper", limit=4).hits
    assert sorted(hit.memory.key for hit in hits) == ["city", "employer", "job", "walk"]


def test_a_replaced_value_is_back_on_the_day_what_took_its_place_is_over(mc, clock) -> None:
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Zanzibar")
    clock.advance(days=1)
    ana.memories.add("profile", "city", "Porto", expires_at=date(2026, 5, 3))
    mc.jobs.run()
    clock.advance(days=2)
    before = ana.search("Zanzibar").hits
    assert [h.memory.value for h in before] == ["Zanzibar"], "whether or not a sweep has run"
    mc.jobs.run()
    assert [h.text for h in ana.search("Zanzibar").hits] == [h.text for h in before]
