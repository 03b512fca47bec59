"""A look through the memories finds what should not be there, and mends it when told to."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from memchat import InputError, MemChat
from memchat.db import Tx
from memchat.types import Finding, to_json
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.store import NOON

CLEAN = ("name", "Ana"), ("city", "Lisbon"), ("allergy", "hazelnuts"), ("allergy", "shellfish")


def found(mc: MemChat, kind: str | None = None) -> list[Finding]:
    return [f for f in mc.user("ana").audit().findings if kind in (None, f.kind)]


def direct(mc: MemChat, statement: str, *values: object) -> None:
    """As if an older version, or another program, had written to the file."""
    with private.database(mc).write() as tx:
        tx.connection.exec_driver_sql(statement, values)


@pytest.fixture
def clean(mc) -> MemChat:
    for key, value in CLEAN:
        mc.user("ana").memories.add("profile", key, value)
    mc.jobs.run()
    return mc


def active(mc: MemChat) -> set[str]:
    return {m.value for m in mc.user("ana").memories.list()}


def test_a_clean_store_has_no_findings(clean) -> None:
    seen = clean.user("ana").audit()
    assert seen.findings == () and (seen.active, seen.inactive) == (4, 0)


def test_looking_changes_nothing(clean) -> None:
    def dump(tx: Tx) -> list[str]:
        return list(tx.driver.iterdump())

    with private.database(clean).read() as tx:
        before = dump(tx)
    clean.user("ana").audit()
    with private.database(clean).read() as tx:
        assert dump(tx) == before


def test_two_values_of_a_key_that_holds_one_are_a_contradiction(clean, clock) -> None:
    ana = clean.user("ana")
    ana.memories.add("profile", "hometown", "Faro")
    direct(clean, "UPDATE memories SET key = 'city' WHERE value = 'Faro'")
    clock.advance(days=1)
    (one,) = found(clean, "contradiction")
    assert "Lisbon" in one.what and "Faro" in one.what
    newest = ana.memories.get(one.memory_ids[0]).value
    assert ana.mend([one]).count == 1
    assert active(clean) & {"Lisbon", "Faro"} == {newest}
    assert found(clean, "contradiction") == []


def test_a_value_beside_its_denial_is_a_contradiction(clean) -> None:
    ana = clean.user("ana")
    ana.memories.add("preference", "food_preference", "likes coriander")
    ana.memories.add("preference", "food_preference", "does not like coriander")
    (one,) = found(clean, "contradiction")
    assert "deny each other" in one.what


def test_what_says_the_same_is_a_duplicate_and_is_merged_so_that_it_can_be_undone(clean) -> None:
    ana = clean.user("ana")
    old = ana.memories.add("fact", "pet", "a cat called Miso")
    ana.memories.add("fact", "pet", "the cat called Miso")
    (one,) = found(clean, "duplicate")
    assert ana.mend([one]).count == 1
    assert found(clean, "duplicate") == []
    assert ana.memories.get(old.id).inactive_reason == "merged"
    assert ana.memories.restore(old.id).active


def test_one_value_under_two_keys_is_two_facts(clean) -> None:
    clean.user("ana").memories.add("profile", "birthplace", "Lisbon")
    assert found(clean) == []


def test_what_was_mended_can_be_undone_at_once(clean, clock) -> None:
    ana = clean.user("ana")
    ana.memories.add("profile", "hometown", "Faro", tags=["moved"])
    direct(clean, "UPDATE memories SET key = 'city' WHERE value = 'Faro'")
    ana.memories.add("fact", "pet", "a cat called Miso")
    ana.memories.add("fact", "pet", "the cat called Miso")
    before = {m.id: (m.active, m.tags) for m in ana.memories.list(status="all")}
    clock.advance(days=1)
    mended = ana.mend(f for f in ana.audit().findings if f.fix)
    assert mended.count == 2 and len(ana.memories.list()) == len(before) - 2
    assert ana.unmend(mended).count == 2
    assert {m.id: (m.active, m.tags) for m in ana.memories.list(status="all")} == before
    assert {one.kind for one in found(clean)} == {"contradiction", "duplicate"}


def test_what_was_changed_since_it_was_mended_is_not_undone(clean) -> None:
    ana = clean.user("ana")
    ana.memories.add("fact", "pet", "a cat called Miso")
    kept = ana.memories.add("fact", "pet", "the cat called Miso")
    mended = ana.mend(found(clean, "duplicate"))
    (gone,) = ana.memories.list(status="inactive")
    ana.memories.restore(gone.id)
    with pytest.raises(InputError, match="changed"):
        ana.unmend(mended)
    assert ana.memories.get(kept.id).active


def test_a_secret_that_was_mended_does_not_come_back(clean) -> None:
    ana = clean.user("ana")
    ana.memories.add("fact", "note", "to be replaced")
    words = "the password is Tr0ub4dor"
    direct(clean, "UPDATE memories SET value = ?, created_by = 'auto' WHERE key = 'note'", words)
    mended = ana.mend(found(clean, "secret"))
    assert mended.count == 1 and ana.unmend(mended).count == 0
    assert active(clean) == {value for _, value in CLEAN}
    assert "Tr0ub4dor" not in repr(mended)


def test_what_holds_and_what_is_to_come_are_no_duplicates(clean, clock) -> None:
    ana = clean.user("ana")
    ana.memories.add("preference", "tea", "green tea")
    clock.advance(seconds=5)
    start = clock.now.date() + timedelta(days=9)
    ana.memories.add("preference", "tea", "the green tea", starts_at=start)
    assert found(clean, "duplicate") == []
    clock.advance(days=10)
    assert len(found(clean, "duplicate")) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("flat 15", "flat 51"),
        ("walks with Ana", "walks without Ana"),
        ("likes tea", "likes teal"),
        ("vitamin B", "vitamin C"),
        ("vitamin A", "vitamin"),
        ("writes C", "writes C++"),
        ("size S", "size M"),
        ("🐱", "🐶"),
        ("Dr. O", "Dr. A"),
    ],
)
def test_what_only_looks_alike_is_no_duplicate(clean, one, other) -> None:
    ana = clean.user("ana")
    ana.memories.add("fact", "note", one)
    ana.memories.add("fact", "note", other)
    assert found(clean, "duplicate") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("watches tennis", "watches football, not tennis"), ("has a dog Rex", "has a dog Bella")],
)
def test_what_may_both_hold_is_no_contradiction(clean, one, other) -> None:
    ana = clean.user("ana")
    ana.memories.add("fact", "note", one)
    ana.memories.add("fact", "note", other)
    assert found(clean) == []


def test_what_is_over_and_what_was_a_plan_long_ago_are_stale(clean, clock) -> None:
    ana = clean.user("ana")
    ana.memories.add("fact", "plan", "paint the fence")
    ana.memories.add("fact", "trip", "a week in Rome", expires_at=NOON.date())
    clock.advance(days=100)
    stale = found(clean, "stale")
    assert {ana.memories.get(f.memory_ids[0]).value for f in stale} == {
        "paint the fence",
        "a week in Rome",
    }
    assert ana.mend(stale).count == 2
    reasons = {m.value: m.inactive_reason for m in ana.memories.list(status="inactive")}
    assert reasons == {"paint the fence": "ended", "a week in Rome": "expired"}


def test_what_no_message_found_is_told(clean, clock, chat_model, extract_model) -> None:
    clock.advance(days=40)
    extract_model.replies.append(answer())
    talk(clean, "Which city is it?")
    told = found(clean, "never recalled")
    assert all("city: Lisbon" not in one.what and one.fix is None for one in told)
    clean.user("ana").memories.add("fact", "bike", "a red unicycle")
    clock.advance(days=40)
    new = {one.what for one in found(clean, "never recalled")} - {one.what for one in told}
    assert [("unicycle" in what, "was found for no message since" in what) for what in new] == [
        (True, True)
    ]


def test_what_ends_within_a_week_is_told(clean, clock) -> None:
    ana = clean.user("ana")
    soon = clock.advance(days=0).date().replace(day=6)
    ana.memories.add("fact", "trip", "Rome", expires_at=soon)
    ana.memories.add("fact", "trip", "Oslo", expires_at=soon.replace(day=30))
    (one,) = found(clean, "expiring")
    assert "Rome" in one.what


@pytest.mark.parametrize("value", ["the", "city", "where is it?", "ha ha ha ha ha"])
def test_a_value_without_meaning_is_suspected_junk(clean, value) -> None:
    clean.user("ana").memories.add("other", "note", "to be replaced")
    direct(clean, "UPDATE memories SET value = ? WHERE value = 'to be replaced'", value)
    key = "city" if value == "city" else "note"
    direct(clean, "UPDATE memories SET key = ? WHERE value = ?", key, value)
    assert len(found(clean, "suspected junk")) == 1


def test_a_secret_is_told_without_its_words_and_forgotten_for_good(clean) -> None:
    ana = clean.user("ana")
    ana.memories.add("fact", "note", "to be replaced")
    direct(
        clean,
        "UPDATE memories SET value = 'the password is Tr0ub4dor' WHERE value = 'to be replaced'",
    )
    (one,) = found(clean, "secret")
    assert one.fix is None, "entered by hand: theirs to judge"
    direct(clean, "UPDATE memories SET created_by = 'auto'")
    (one,) = found(clean, "secret")
    assert "Tr0ub4dor" not in str(ana.audit())
    assert ana.mend([one]).count == 1
    assert active(clean) == {value for _, value in CLEAN}
    with private.database(clean).read() as tx:
        assert not any("Tr0ub4dor" in x for x in tx.driver.iterdump())


def test_a_learnt_fact_without_its_words_lacks_evidence(clean, extract_model) -> None:
    extract_model.replies.append(answer(fact("I keep bees", "hobby", "keep bees")))
    talk(clean, "I keep bees")
    assert found(clean, "missing evidence") == []
    direct(clean, "UPDATE memory_sources SET start = start + 1")
    (one,) = found(clean, "missing evidence")
    assert "not where its message says" in one.what
    direct(clean, "DELETE FROM memory_sources")
    (one,) = found(clean, "missing evidence")
    assert "no words left" in one.what and one.fix is None


def test_an_index_that_differs_from_the_rows_is_mended(clean) -> None:
    ana = clean.user("ana")
    assert ana.search("Lisbon").hits
    direct(clean, "DELETE FROM passages_fts WHERE rowid = 8")
    direct(clean, "DELETE FROM embeddings")
    drift = found(clean, "index drift")
    assert any("keyword rows" in f.what for f in drift)
    assert any("have no vector" in f.what for f in drift)
    ana.mend(drift[:1])
    clean.jobs.run()
    assert found(clean) == []
    assert ana.search("Lisbon").hits[0].channel == "both"


def test_notes_without_vectors_that_nothing_is_queued_for_are_mended(clean) -> None:
    ana = clean.user("ana").notes
    note = ana.add("The kiln is hot.")
    ana.add("The herons are back.", wait=False)
    clean.user("bo").notes.add("The tide is high.")
    assert found(clean) == [], "one waits for its job"
    direct(clean, "DELETE FROM embeddings WHERE hash IN (SELECT hash FROM chunks)")
    (drift,) = found(clean, "index drift")
    assert drift.what == "passages of 1 note have no vector"
    assert clean.user("ana").mend([drift]).count == 1
    clean.jobs.run(user="ana")
    assert found(clean) == [] and note is not None
    assert ana.search("kiln").hits[0].cosine is not None


def test_what_changed_since_the_look_is_left_alone(clean) -> None:
    ana = clean.user("ana")
    ana.memories.add("fact", "pet", "a cat called Miso")
    ana.memories.add("fact", "pet", "the cat called Miso")
    (one,) = found(clean, "duplicate")
    ana.memories.delete(one.memory_ids[1])
    assert ana.mend([one]).count == 0
    assert ana.memories.get(one.memory_ids[0]).active


def test_another_user_s_findings_cannot_be_mended(clean) -> None:
    ana = clean.user("ana")
    bo = clean.user("bo")
    ana.memories.add("fact", "pet", "a cat called Miso")
    ana.memories.add("fact", "pet", "the cat called Miso")
    before = active(clean)
    assert bo.mend(found(clean, "duplicate")).count == 0
    assert active(clean) == before and bo.audit().findings == ()


def test_a_finding_is_plain_json(clean) -> None:
    ana = clean.user("ana")
    ana.memories.add("fact", "pet", "a cat called Miso")
    ana.memories.add("fact", "pet", "the cat called Miso")
    (one,) = json.loads(json.dumps(to_json(ana.audit())))["findings"]
    assert one["kind"] == "duplicate" and len(one["memory_ids"]) == 2
