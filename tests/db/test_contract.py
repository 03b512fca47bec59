"""The rows: one contract for every backend, and below it what is SQLite's own."""

from __future__ import annotations

import hashlib
import threading
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from memchat.db import apps, jobs, messages, records, schema, sessions, usage
from memchat.db.database import Database
from memchat.db.jobs import ClaimRequest
from memchat.errors import StoreError
from memchat.facts import changes, in_force, memories, proposals
from memchat.facts.memories import ValuesInForce
from memchat.forget import purge, tombstones
from memchat.providers.embedders import SERVICE
from memchat.search import embeddings, keywords, passages, receipts
from memchat.types import Hit, Memory, Proposal, Scope, Usage, Wanted
from tests.support.rows import ANA, BO, BY_HAND, TODAY, count, keep, new, talk
from tests.support.store import NOON

# Transactions


def test_a_transaction_that_fails_leaves_nothing(store: Database) -> None:
    with pytest.raises(ZeroDivisionError), store.write() as tx:
        keep(tx, ANA, "Lisbon")
        talk(tx, ANA, "I live in Lisbon")
        raise ZeroDivisionError
    with store.read() as tx:
        for table in schema.metadata.tables.values():
            assert tx.execute(select(table)).first() is None, table.name
        for table in ("passages", "passages_fts"):
            assert tx.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0


def test_what_was_committed_is_there_after_opening_again(store: Database) -> None:
    with store.write() as tx:
        memory_id = keep(tx, ANA, "Lisbon")
    store.close()
    again = type(store)(store.home)
    with again.read() as tx:
        found = memories.get(tx, apps.find(tx, ANA).ids, memory_id)
    again.close()
    assert found is not None and found.value == "Lisbon"


def test_a_reader_sees_one_moment_whatever_is_committed_meanwhile(store: Database) -> None:
    with store.write() as tx:
        keep(tx, ANA, "Lisbon")
    with store.read() as before:
        ids = apps.find(before, ANA).ids
        assert count(before, ids, Wanted(status="all"), ValuesInForce(TODAY)) == 1
        with store.write() as tx:
            keep(tx, ANA, "Porto")
        assert count(before, ids, Wanted(status="all"), ValuesInForce(TODAY)) == 1
    with store.read() as after:
        assert count(after, ids, Wanted(status="all"), ValuesInForce(TODAY)) == 2


def test_readers_do_not_wait_for_a_writer(store: Database) -> None:
    with store.write() as tx:
        keep(tx, ANA, "Lisbon")
    seen: list[int] = []

    def look() -> None:
        with store.read() as tx:
            ids = apps.find(tx, ANA).ids
            seen.append(count(tx, ids, Wanted(status="all"), ValuesInForce(TODAY)))

    with store.write() as tx:
        keep(tx, ANA, "Porto")
        reader = threading.Thread(target=look)
        reader.start()
        reader.join(timeout=10)
        assert seen == [1]


# Memories


@given(*[st.text(st.characters(exclude_categories=["Cs"]), max_size=60)] * 3)
def test_a_fact_s_sha1_is_that_of_type_key_and_value(kind: str, key: str, value: str) -> None:
    expected = hashlib.sha1(f"{kind}|{key}|{value}".encode()).hexdigest()
    assert memories.sha1_of(kind, key, value) == expected


def test_sha1_names_the_fact_and_sha256_the_embedded_text(tx) -> None:
    memory_id = keep(tx, ANA, "Lisbon", search_text="profile | city | Lisbon\nsaid in May")
    row = tx.execute(select(schema.memories).where(schema.memories.c.id == memory_id)).one()
    assert row.sha1 == hashlib.sha1(b"profile|city|Lisbon").hexdigest()
    embedded = hashlib.sha256(b"profile | city | Lisbon\nsaid in May").hexdigest()
    assert passages.hashes(tx, "fact", [memory_id]) == {memory_id: embedded}


def test_a_scope_holds_a_fact_once_active_or_not(store: Database) -> None:
    with store.write() as tx:
        memory_id = keep(tx, ANA, "Lisbon")
        own = apps.find(tx, ANA).own
        found = memories.get(tx, [own], memory_id)
        changes.deactivate(tx, found, "ended", BY_HAND)
    with pytest.raises(StoreError), store.write() as tx:
        keep(tx, ANA, "Lisbon")
    with store.write() as tx:
        keep(tx, Scope("ana", "work"), "Lisbon")
        keep(tx, BO, "Lisbon")
        assert memories.by_sha1(tx, [own], new("Lisbon").sha1).id == memory_id


def test_retiring_and_reviving_keep_the_reason_the_link_and_the_words(tx) -> None:
    old, newer = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "Porto")
    own = apps.find(tx, ANA).own
    changes.deactivate(tx, memories.get(tx, [own], old), "superseded", BY_HAND, replaced_by=newer)
    retired = memories.get(tx, [own], old)
    assert (retired.active, retired.inactive_reason, retired.replaced_by) == (
        False,
        "superseded",
        newer,
    )
    assert [m.id for m in changes.replaced_memories(tx, newer)] == [old]
    found = keywords.matches(tx, "fact", [own], ["lisbon"]).best(5)
    assert [i for i, _ in found] == [old], "a replaced value can be searched for"
    changes.reactivate(tx, retired, BY_HAND)
    back = memories.get(tx, [own], old)
    assert (back.active, back.inactive_reason, back.replaced_by) == (True, None, None)
    assert [i for i, _ in keywords.matches(tx, "fact", [own], ["lisbon"]).best(5)] == [old]
    kinds = [e.kind for e in changes.events_of_memory(tx, old)]
    assert kinds == ["add", "supersede", "restore"]


def test_a_removed_row_lets_go_of_those_it_replaced(tx) -> None:
    old, newer = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "Porto")
    own = apps.find(tx, ANA).own
    changes.deactivate(tx, memories.get(tx, [own], old), "merged", BY_HAND, replaced_by=newer)
    changes.remove(tx, [newer])
    left = memories.get(tx, [own], old)
    assert left.replaced_by is None and left.inactive_reason == "merged"


def test_a_repeat_counts_and_an_older_one_moves_no_time_back(tx) -> None:
    memory_id = keep(tx, ANA, "Lisbon")
    own = apps.find(tx, ANA).own
    for said_at in (NOON + timedelta(days=2), NOON - timedelta(days=2)):
        changes.count_repeat(tx, memories.get(tx, [own], memory_id), said_at, BY_HAND)
    found = memories.get(tx, [own], memory_id)
    assert found.seen_count == 3
    assert found.last_seen_at == found.said_at == NOON + timedelta(days=2)


def test_a_memory_that_moves_takes_its_history_along(tx) -> None:
    memory_id = keep(tx, ANA, "Lisbon")
    own, shared = apps.ensure(tx, ANA).ids
    memory = memories.get(tx, [own], memory_id)
    changes.rewrite(tx, memory, shared, new("Lisbon"), BY_HAND)
    before = passages.latest_change(tx, own) - 1
    assert memory_id in passages.changed_since(tx, "fact", own, before), "the index it leaves reads"
    assert memory_id in passages.changed_since(tx, "fact", shared, 0)
    purge.forget_app(tx, own)
    assert [e.kind for e in changes.events_of_memory(tx, memory_id)] == ["add", "edit"]
    assert memories.get(tx, [own], memory_id) is None


def test_a_day_lasts_until_it_is_over_and_each_status_is_as_it_says(tx) -> None:
    own = apps.ensure(tx, ANA).own
    kept = {
        name: keep(tx, ANA, name, expires_at=until)
        for name, until in [
            ("always", None),
            ("today", TODAY),
            ("tomorrow", TODAY + timedelta(days=1)),
            ("over", TODAY - timedelta(days=1)),
        ]
    }
    gone = keep(tx, ANA, "ended")
    changes.deactivate(tx, memories.get(tx, [own], gone), "ended", BY_HAND)

    def listed(status: str) -> set[str]:
        found = memories.listed(tx, [own], Wanted(status=status), ValuesInForce(TODAY))
        assert count(tx, [own], Wanted(status=status), ValuesInForce(TODAY)) == len(found)
        return {m.value for m in found}

    assert listed("active") == {"always", "today", "tomorrow"}
    assert listed("expired") == {"over"}
    assert listed("inactive") == {"ended"}
    assert listed("all") == {*kept, "ended"}
    assert in_force.as_of(tx, [own]).over == {kept["over"]}
    shared = apps.find(tx, ANA).shared
    assert [{*ids} for ids in memories.scopes_with_due_dates(tx, TODAY, "ana")] == [{own, shared}]
    assert memories.scopes_with_due_dates(tx, TODAY, "bo") == []


def test_pages_follow_each_other_newest_said_first_without_gap_or_repeat(tx) -> None:
    own = apps.ensure(tx, ANA).own
    ids = [
        keep(tx, ANA, f"v{i}", said_at=NOON + timedelta(days=i // 2)) for i in range(7)
    ]  # pairs said at the same time

    def page(limit: int, after: memories.Position | None = None) -> list[Memory]:
        wanted, now = Wanted(status="all"), ValuesInForce(TODAY)
        return memories.listed(tx, [own], wanted, now, limit=limit, after=after)

    listed = page(3)
    while more := page(3, memories.Position(listed[-1].said_at, listed[-1].id)):
        listed += more
    assert [memory.id for memory in listed] == ids[::-1]
    assert page(0) == []


def test_pinned_are_profile_then_preference_the_most_confirmed_first(tx) -> None:
    own = apps.ensure(tx, ANA).own
    keep(tx, ANA, "fact", memory_type="fact")
    like = keep(tx, ANA, "tea", memory_type="preference")
    city, job = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "baker")
    changes.count_repeat(tx, memories.get(tx, [own], job), NOON, BY_HAND)
    assert [m.id for m in memories.pinned_first(tx, [own], ValuesInForce(TODAY), 9)] == [
        job,
        city,
        like,
    ]


def test_whether_a_key_holds_many_is_as_it_was_last(tx) -> None:
    own = apps.ensure(tx, ANA).own
    assert memories.holds_many(tx, [own], "book") is None
    keep(tx, ANA, "Emma", key="book", many=False)
    keep(tx, ANA, "Dune", key="book", many=True)
    assert memories.holds_many(tx, [own], "book") is True
    assert memories.keys_in_use(tx, [own]) == ["book"]


# Scopes


def test_making_a_scope_twice_makes_it_once_with_what_all_apps_share(tx) -> None:
    assert apps.find(tx, ANA).ids == ()
    own, shared = apps.ensure(tx, ANA).ids
    assert apps.ensure(tx, ANA).ids == (own, shared)
    assert apps.find(tx, ANA).ids == (own, shared)
    work, same = apps.ensure(tx, Scope("ana", "work")).ids
    assert same == shared and work != own
    assert apps.ensure_shared(tx, "ana") == shared
    assert set(apps.ensure(tx, BO).ids) & {own, shared, work} == set()
    assert [a.name for a in apps.of_user(tx, "ana")] == ["home", "work"]


@pytest.mark.parametrize(("user_on", "app_on"), [(True, False), (False, True), (False, False)])
def test_switches_are_kept_for_the_user_and_for_the_app(tx, user_on: bool, app_on: bool) -> None:
    work = Scope("ana", "work")
    assert apps.memory_switch(tx, ANA).on
    own, shared = apps.ensure(tx, ANA).ids
    apps.set_memory(tx, own, app_on)
    apps.set_memory(tx, shared, user_on)
    assert apps.memory_switch(tx, ANA).on is (user_on and app_on)
    assert apps.memory_switch(tx, work).on is user_on
    assert apps.memory_switch(tx, BO).on


USERS, APPS = ["ana", "bo", "../ana", "ana "], ["home", "work", "a1", "%"]
SCOPES = st.builds(Scope, st.sampled_from(USERS), st.sampled_from(APPS))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(SCOPES, min_size=2, max_size=8), st.data())
def test_no_verb_ever_shows_another_scope_s_rows(shared_store: Database, scopes, data) -> None:
    with shared_store.write() as tx:
        owner: dict[tuple[str, int], Scope] = {}
        for n, scope in enumerate(scopes):
            own = apps.ensure(tx, scope).own
            value = f"tea {n}"
            memory_id = keep(tx, scope, value)
            session_id, (message_id,) = talk(tx, scope, value)
            jobs.enqueue(tx, "forget", own, memory_id, NOON)
            usage.add(tx, own, session_id, Usage("chat", scope.user, 1, 1, None, 0.0))
            proposals.add(tx, own, Proposal("near", value=value))
            owner |= {("memory", memory_id): scope, ("session", session_id): scope}
            owner[("message", message_id)] = scope
        asked = data.draw(SCOPES)
        ids = apps.find(tx, asked).ids

        def mine(kind: str) -> set[int]:
            return {i for (k, i), scope in owner.items() if k == kind and scope == asked}

        def of_user(kind: str) -> set[int]:
            return {i for (k, i), s in owner.items() if k == kind and s.user == asked.user}

        every = [i for (k, i) in owner if k == "memory"]
        listed = memories.listed(tx, ids, Wanted(status="all"), ValuesInForce(TODAY))
        assert {m.id for m in listed} == mine("memory")
        assert set(memories.by_ids(tx, ids, every)) == mine("memory")
        assert {m.user for m in listed} <= {asked.user}
        for kind, table in (("memory", "fact"), ("message", "turn")):
            assert {i for i, _ in keywords.matches(tx, table, ids, ["tea"]).best(99)} == mine(kind)
            rows = [i for (k, i) in owner if k == kind]
            assert keywords.matches(tx, table, ids, ["tea"]).of(rows).keys() == mine(kind)
        assert {s.id for s in sessions.listed(tx, ids, 99)} == mine("session")
        assert all(
            (sessions.get(tx, ids, i) is None) == (scope != asked)
            for (kind, i), scope in owner.items()
            if kind == "session"
        )
        waiting = jobs.listed(tx, user=asked.user, status=None, now=NOON, limit=99)
        assert {j.target_id for j in waiting} == of_user("memory")
        claimed = jobs.claim(tx, ClaimRequest(["forget"], "w", 60, limit=99, user=asked.user), NOON)
        assert {c.target_id for c in claimed} == of_user("memory")
        assert {t.model for t in usage.totals(tx, asked.user)} <= {asked.user}
        assert sum(len(proposals.listed(tx, i, "pending")) for i in ids) == len(mine("memory"))
        tx.connection.get_transaction().rollback()


# Conversations, proof, receipts


def test_a_deleted_conversation_takes_its_turns_proofs_and_receipts(tx) -> None:
    session_id, (message_id,) = talk(tx, ANA, "I live in Lisbon")
    memory_id = keep(tx, ANA, "Lisbon")
    changes.add_evidence(tx, memory_id, [(message_id, 10, "Lisbon"), (message_id, 10, "Lisbon")])
    (proof,) = changes.evidence_of_memory(tx, memory_id)
    assert (proof.quote, proof.start, proof.session_id) == ("Lisbon", 10, session_id)
    assert changes.proved_memories(tx, [message_id]) == [memory_id]
    hit = Hit("memory", memory_id, "city: Lisbon", 0.5, 0.4, None, "both", 7)
    receipts.add(tx, message_id, [hit])
    assert receipts.of_reply(tx, message_id) == [hit]
    sessions.remove(tx, session_id)
    assert changes.evidence_of_memory(tx, memory_id) == []
    assert messages.by_ids(tx, [message_id]) == {} == dict(receipts.of_reply(tx, message_id))


def test_a_session_s_status_follows_its_life(tx) -> None:
    session_id, (message_id,) = talk(tx, ANA, "hello")
    own = apps.find(tx, ANA).own

    def status() -> str:
        return sessions.get(tx, [own], session_id).status

    assert status() == "open" and sessions.has_unread_messages(tx, session_id)
    assert sessions.end(tx, session_id) and not sessions.end(tx, session_id)
    assert status() == "off"
    jobs.enqueue(tx, "extract", own, session_id, NOON)
    assert status() == "pending"
    (claim,) = jobs.claim(tx, ClaimRequest(["extract"], "w", 60), NOON)
    sessions.mark_extracted(tx, session_id, message_id, "A title", None)
    sessions.mark_extracted(tx, session_id, message_id - 1, None, "A summary")
    assert jobs.finish(tx, [claim], NOON)
    assert status() == "extracted" and not sessions.has_unread_messages(tx, session_id)
    assert sessions.description(tx, session_id) == ("A title", "A summary")
    assert sessions.get(tx, [own], session_id).extracted_to == message_id


def test_a_lease_is_renewed_by_its_holder_alone(tx) -> None:
    session_id, _ = talk(tx, ANA, "hello")
    later = NOON + timedelta(minutes=2)
    assert sessions.renew(tx, session_id, "host:1:x", later)
    assert sessions.lease(tx, session_id) == ("host:1:x", later)
    assert not sessions.renew(tx, session_id, "host:2:y", later)
    sessions.reopen(tx, session_id, "host:2:y", later, NOON)
    assert not sessions.renew(tx, session_id, "host:1:x", later)
    sessions.end(tx, session_id)
    assert not sessions.renew(tx, session_id, "host:2:y", later)
    assert sessions.open_sessions(tx, "ana") == []


def test_what_a_call_took_is_summed_even_when_its_session_is_gone(tx) -> None:
    session_id, _ = talk(tx, ANA, "hello")
    own = apps.find(tx, ANA).own
    spent = Usage("chat", "m", 10, 5, 0.25, 1.0)
    usage.add(tx, own, session_id, spent)
    sessions.remove(tx, session_id)
    usage.add(tx, own, session_id, spent)
    usage.add(tx, own, None, Usage("embed", "free", 3, 0, None, 0.1))
    chat, embed = usage.totals(tx, "ana")
    assert (chat.calls, chat.prompt_tokens, chat.completion_tokens, chat.cost_usd) == (
        2,
        20,
        10,
        0.5,
    )
    assert embed.cost_usd is None
    assert usage.totals(tx, "ana", session_id) == []


# What was forgotten, what waits, small facts


def test_a_forgotten_text_is_recognised_but_cannot_be_read(tx) -> None:
    own, shared = apps.ensure(tx, ANA).ids
    mark = ("value", "city|lisbon")
    tombstones.add(tx, own, 1, [mark, mark], NOON)
    tombstones.add(tx, own, 1, [], NOON)
    assert tombstones.find(tx, [shared, own], [mark]) == {mark: NOON}
    assert tombstones.find(tx, [own], [("quote", "city|lisbon")]) == {}
    assert tombstones.find(tx, [shared], [mark]) == {}
    (row,) = tx.execute(select(schema.tombstones))
    assert row.hash != hashlib.sha256(b"city|lisbon").hexdigest() and "lisbon" not in row.hash
    tombstones.add(tx, own, 2, [mark], NOON + timedelta(days=1))
    assert tombstones.find(tx, [own], [mark]) == {mark: NOON + timedelta(days=1)}
    same_words = ("word", "city|lisbon")
    assert tombstones.find(tx, [own], [same_words, mark]).keys() == {mark}
    tombstones.remove_of_memory(tx, 2)
    assert tombstones.find(tx, [own], [mark]) == {mark: NOON}
    tombstones.remove(tx, [own], [mark])
    assert tombstones.find(tx, [own], [mark]) == {}


def test_the_same_item_waits_for_review_once_and_not_again_after_a_no(tx) -> None:
    own = apps.ensure(tx, ANA).own
    for _ in range(2):
        proposals.add(tx, own, Proposal("unsure", key="city", value="Lisbon"))
        proposals.add(tx, own, Proposal("near", key=None, value=None))
    assert len(proposals.listed(tx, own, "pending")) == 2
    tx.execute(schema.proposals.update().values(status="rejected"))
    proposals.add(tx, own, Proposal("again", key="city", value="Lisbon"))
    assert proposals.listed(tx, own, "pending") == []


def test_a_small_fact_is_set_replaced_and_dropped(tx) -> None:
    records.put(tx, "colour", "red")
    records.put(tx, "colour", "'; --")
    assert records.get(tx, "colour") == "'; --"
    records.remove(tx, "colour")
    assert records.get(tx, "colour") is None
    assert records.store_id(tx) == records.store_id(tx) and records.hash_key(
        tx
    ) == records.hash_key(tx)


# Vectors as rows


def test_a_vector_is_kept_to_the_last_bit_for_its_service_alone(tx) -> None:
    service = embeddings.register_service(tx, SERVICE)
    other = embeddings.register_service(tx, type(SERVICE)("hash", "words", 65, 10))
    assert embeddings.register_service(tx, SERVICE) == service != other
    vector = np.random.default_rng(1).normal(size=64).astype(np.float32)
    embeddings.put(tx, service, [("h", vector)])
    embeddings.put(tx, service, [("h", vector * 2)])  # the first stays
    assert embeddings.get(tx, service, ["h", "unknown"])["h"].tobytes() == vector.tobytes()
    assert embeddings.get(tx, other, ["h"]) == {}


def test_only_vectors_that_no_memory_has_any_more_are_dropped(tx) -> None:
    service = embeddings.register_service(tx, SERVICE)
    memory_id = keep(tx, ANA, "Lisbon")
    used = passages.hashes(tx, "fact", [memory_id])[memory_id]
    unit = np.eye(1, 64, dtype=np.float32)[0]
    unused = [f"{i:064x}" for i in range(40_000)]  # more than one statement can name
    embeddings.put(tx, service, [(used, unit), (unused[0], unit), (unused[-1], unit)])
    passages.remove_unused(tx, [*unused, used])
    assert set(embeddings.get(tx, service, [used, unused[0], unused[-1]])) == {used}


# Times


AWARE = st.datetimes(
    min_value=datetime(1971, 1, 1),
    max_value=datetime(9990, 1, 1),
    timezones=st.integers(-23, 23).map(lambda h: timezone(timedelta(hours=h))),
)


@given(AWARE, AWARE)
def test_stored_times_sort_as_time_does_and_lose_nothing(a: datetime, b: datetime) -> None:
    column = schema.UtcTime()
    texts = [column.process_bind_param(t, None) for t in (a, b)]
    assert all(len(t) == 27 for t in texts)
    assert (texts[0] < texts[1]) == (a < b) and (texts[0] == texts[1]) == (a == b)
    assert [column.process_result_value(t, None) for t in texts] == [a, b]
