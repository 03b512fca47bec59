"""A look through the memories finds what should not be there, and mends it when told to."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Connection

from memchat import MemChat
from memchat.types import Finding, to_json
from tests.support import private
from tests.support.answers import answer, fact
from tests.support.conversation import talk
from tests.support.store import NOON

CLEAN = ("name", "Ana"), ("city", "Lisbon"), ("allergy", "hazelnuts"), ("allergy", "shellfish")


def found(mc: MemChat, kind: str | None = None) -> list[Finding]:
    return [f for f in mc.audit(user="ana").findings if kind in (None, f.kind)]


def direct(mc: MemChat, statement: str, *values: object) -> None:
    """As if an older version, or another program, had written to the file."""
    with private.database(mc).write() as tx:
        tx.exec_driver_sql(statement, values)


@pytest.fixture
def clean(mc) -> MemChat:
    for key, value in CLEAN:
        mc.add("profile", key, value, user="ana")
    mc.run_jobs()
    return mc


def active(mc: MemChat) -> set[str]:
    return {m.value for m in mc.memories(user="ana")}


def test_a_clean_store_has_no_findings(clean) -> None:
    seen = clean.audit(user="ana")
    assert seen.findings == () and (seen.active, seen.inactive) == (4, 0)


def test_looking_changes_nothing(clean) -> None:
    def dump(tx: Connection) -> list[str]:
        return list(tx.connection.driver_connection.iterdump())

    with private.database(clean).read() as tx:
        before = dump(tx)
    clean.audit(user="ana")
    with private.database(clean).read() as tx:
        assert dump(tx) == before


def test_two_values_of_a_key_that_holds_one_are_a_contradiction(clean, clock) -> None:
    clean.add("profile", "hometown", "Faro", user="ana")
    direct(clean, "UPDATE memories SET key = 'city' WHERE value = 'Faro'")
    clock.advance(days=1)
    (one,) = found(clean, "contradiction")
    assert "Lisbon" in one.what and "Faro" in one.what
    newest = clean.memory(one.memory_ids[0], user="ana").value
    assert clean.mend([one], user="ana") == 1
    assert active(clean) & {"Lisbon", "Faro"} == {newest}
    assert found(clean, "contradiction") == []


def test_a_value_beside_its_denial_is_a_contradiction(clean) -> None:
    clean.add("preference", "food_preference", "likes coriander", user="ana")
    clean.add("preference", "food_preference", "does not like coriander", user="ana")
    (one,) = found(clean, "contradiction")
    assert "deny each other" in one.what


def test_what_says_the_same_is_a_duplicate_and_is_merged_so_that_it_can_be_undone(clean) -> None:
    old = clean.add("fact", "pet", "a cat called Miso", user="ana")
    clean.add("fact", "household", "a cat called miso", user="ana")
    (one,) = found(clean, "duplicate")
    assert clean.mend([one], user="ana") == 1
    assert found(clean, "duplicate") == []
    assert clean.memory(old.id, user="ana").inactive_reason == "merged"
    assert clean.restore(old.id, user="ana").active


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
    clean.add("fact", "note", one, user="ana")
    clean.add("fact", "note", other, user="ana")
    assert found(clean, "duplicate") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("watches tennis", "watches football, not tennis"), ("has a dog Rex", "has a dog Bella")],
)
def test_what_may_both_hold_is_no_contradiction(clean, one, other) -> None:
    clean.add("fact", "note", one, user="ana")
    clean.add("fact", "note", other, user="ana")
    assert found(clean) == []


def test_what_is_over_and_what_was_a_plan_long_ago_are_stale(clean, clock) -> None:
    clean.add("fact", "plan", "paint the fence", user="ana")
    clean.add("fact", "trip", "a week in Rome", user="ana", expires_at=NOON.date())
    clock.advance(days=100)
    stale = found(clean, "stale")
    assert {clean.memory(f.memory_ids[0], user="ana").value for f in stale} == {
        "paint the fence",
        "a week in Rome",
    }
    assert clean.mend(stale, user="ana") == 2
    reasons = {m.value: m.inactive_reason for m in clean.memories(user="ana", status="inactive")}
    assert reasons == {"paint the fence": "ended", "a week in Rome": "expired"}


def test_what_no_message_found_is_told(clean, clock, chat_model, extract_model) -> None:
    clock.advance(days=40)
    extract_model.replies.append(answer())
    talk(clean, "Where do I live?")
    told = found(clean, "never recalled")
    assert all("city: Lisbon" not in one.what and one.fix is None for one in told)
    clean.add("fact", "bike", "a red unicycle", user="ana")
    clock.advance(days=40)
    new = {one.what for one in found(clean, "never recalled")} - {one.what for one in told}
    assert [("unicycle" in what, "was found for no message since" in what) for what in new] == [
        (True, True)
    ]


def test_what_ends_within_a_week_is_told(clean, clock) -> None:
    soon = clock.advance(days=0).date().replace(day=6)
    clean.add("fact", "trip", "Rome", user="ana", expires_at=soon)
    clean.add("fact", "trip", "Oslo", user="ana", expires_at=soon.replace(day=30))
    (one,) = found(clean, "expiring")
    assert "Rome" in one.what


@pytest.mark.parametrize("value", ["the", "city", "where is it?", "ha ha ha ha ha"])
def test_a_value_without_meaning_is_suspected_junk(clean, value) -> None:
    clean.add("other", "note", "to be replaced", user="ana")
    direct(clean, "UPDATE memories SET value = ? WHERE value = 'to be replaced'", value)
    key = "city" if value == "city" else "note"
    direct(clean, "UPDATE memories SET key = ? WHERE value = ?", key, value)
    assert len(found(clean, "suspected junk")) == 1


def test_a_secret_is_told_without_its_words_and_forgotten_for_good(clean) -> None:
    clean.add("fact", "note", "to be replaced", user="ana")
    direct(
        clean,
        "UPDATE memories SET value = 'the password is Tr0ub4dor' WHERE value = 'to be replaced'",
    )
    (one,) = found(clean, "secret")
    assert one.fix is None, "entered by hand: theirs to judge"
    direct(clean, "UPDATE memories SET created_by = 'auto'")
    (one,) = found(clean, "secret")
    assert "Tr0ub4dor" not in str(clean.audit(user="ana"))
    assert clean.mend([one], user="ana") == 1
    assert active(clean) == {value for _, value in CLEAN}
    with private.database(clean).read() as tx:
        assert not any("Tr0ub4dor" in x for x in tx.connection.driver_connection.iterdump())


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
    assert clean.recall("Lisbon", user="ana").hits
    direct(clean, "DELETE FROM memories_fts WHERE rowid = 2")
    direct(clean, "DELETE FROM embeddings")
    drift = found(clean, "index drift")
    assert any("keyword rows" in f.what for f in drift)
    assert any("have no vector" in f.what for f in drift)
    clean.mend(drift[:1], user="ana")
    clean.run_jobs()
    assert found(clean) == []
    assert clean.recall("Lisbon", user="ana").hits[0].channel == "both"


def test_what_changed_since_the_look_is_left_alone(clean) -> None:
    clean.add("fact", "pet", "a cat called Miso", user="ana")
    clean.add("fact", "household", "a cat called miso", user="ana")
    (one,) = found(clean, "duplicate")
    clean.delete(one.memory_ids[1], user="ana")
    assert clean.mend([one], user="ana") == 0
    assert clean.memory(one.memory_ids[0], user="ana").active


def test_another_user_s_findings_cannot_be_mended(clean) -> None:
    clean.add("fact", "pet", "a cat called Miso", user="ana")
    clean.add("fact", "household", "a cat called miso", user="ana")
    before = active(clean)
    assert clean.mend(found(clean, "duplicate"), user="bo") == 0
    assert active(clean) == before and clean.audit(user="bo").findings == ()


def test_a_finding_is_plain_json(clean) -> None:
    clean.add("fact", "pet", "a cat called Miso", user="ana")
    clean.add("fact", "household", "a cat called miso", user="ana")
    (one,) = json.loads(json.dumps(to_json(clean.audit(user="ana"))))["findings"]
    assert one["kind"] == "duplicate" and len(one["memory_ids"]) == 2
