"""The rows: one contract for every backend, and below it what is SQLite's own."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, insert, select

from memchat.errors import InputError, StoreError
from memchat.providers.hashing import SERVICE
from memchat.store import (
    apps,
    embeddings,
    events,
    evidence,
    inbox,
    job_lists,
    jobs,
    keywords,
    memories,
    memory_changes,
    memory_lists,
    messages,
    meta,
    muted,
    new_memory,
    prompts,
    receipts,
    replacements,
    schema,
    services,
    sessions,
    tombstones,
    usage,
)
from memchat.store.database import FILE, Database
from memchat.store.events import Cause
from memchat.store.inbox import NewInboxItem
from memchat.store.jobs import ClaimRequest
from memchat.store.new_memory import NewMemory
from memchat.store.values_in_force import ValuesInForce
from memchat.types import Hit, Scope, Usage, Wanted

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
TODAY = NOON.date()
ANA, BO = Scope("ana", "home"), Scope("bo", "home")
BY_HAND = Cause(NOON, "user", "added by hand")

BACKENDS: dict[str, Callable[[Path], Database]] = {"sqlite": Database}


@pytest.fixture(params=sorted(BACKENDS))
def store(request, tmp_path: Path) -> Iterator[Database]:
    opened = BACKENDS[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=sorted(BACKENDS))
def shared_store(request, tmp_path_factory) -> Iterator[Database]:
    """One store for tests that only look, or undo what they write."""
    opened = BACKENDS[request.param](tmp_path_factory.mktemp("shared"))
    yield opened
    opened.close()


@pytest.fixture
def tx(shared_store: Database) -> Iterator:
    """A writer's transaction, undone at the end."""
    with shared_store.write() as connection:
        yield connection
        connection.get_transaction().rollback()


def new(value: str, key: str = "city", **more) -> NewMemory:
    fields = {
        "memory_type": "profile",
        "key": key,
        "value": value,
        "many": False,
        "search_text": f"profile | {key} | {value}",
        "said_at": NOON,
        "created_by": "manual",
    }
    return NewMemory(**{**fields, **more})


def keep(tx, scope: Scope, value: str, **more) -> int:
    own, _ = apps.ensure(tx, scope, NOON)
    return memory_changes.add(tx, own, new(value, **more), BY_HAND)


def talk(tx, scope: Scope, *said: str) -> tuple[int, list[int]]:
    """A session of the scope with these words; its id and theirs."""
    own, _ = apps.ensure(tx, scope, NOON)
    session_id = sessions.start(tx, own, "host:1:x", NOON + timedelta(minutes=1), NOON)
    return session_id, [messages.add(tx, session_id, "user", words, NOON) for words in said]


def raw(database: Database) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(database.path))


# Transactions


def test_a_transaction_that_fails_leaves_nothing(store: Database) -> None:
    with pytest.raises(ZeroDivisionError), store.write() as tx:
        keep(tx, ANA, "Lisbon")
        talk(tx, ANA, "I live in Lisbon")
        raise ZeroDivisionError
    with store.read() as tx:
        for table in schema.metadata.tables.values():
            assert tx.execute(select(table)).first() is None, table.name
        for table in ("memories_fts", "messages_fts"):
            assert tx.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0


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
        assert memory_lists.counted(before, ids, Wanted(status="all"), ValuesInForce(TODAY)) == 1
        with store.write() as tx:
            keep(tx, ANA, "Porto")
        assert memory_lists.counted(before, ids, Wanted(status="all"), ValuesInForce(TODAY)) == 1
    with store.read() as after:
        assert memory_lists.counted(after, ids, Wanted(status="all"), ValuesInForce(TODAY)) == 2


def test_readers_do_not_wait_for_a_writer(store: Database) -> None:
    with store.write() as tx:
        keep(tx, ANA, "Lisbon")
    seen: list[int] = []

    def look() -> None:
        with store.read() as tx:
            ids = apps.find(tx, ANA).ids
            seen.append(memory_lists.counted(tx, ids, Wanted(status="all"), ValuesInForce(TODAY)))

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
    assert new_memory.sha1_of(kind, key, value) == expected


def test_sha1_names_the_fact_and_sha256_the_embedded_text(tx) -> None:
    memory_id = keep(tx, ANA, "Lisbon", search_text="profile | city | Lisbon\nsaid in May")
    row = tx.execute(select(schema.memories).where(schema.memories.c.id == memory_id)).one()
    assert row.sha1 == hashlib.sha1(b"profile|city|Lisbon").hexdigest()
    assert row.text_hash == hashlib.sha256(b"profile | city | Lisbon\nsaid in May").hexdigest()
    assert memories.hash_of(tx, memory_id) == row.text_hash


def test_a_scope_holds_a_fact_once_active_or_not(store: Database) -> None:
    with store.write() as tx:
        memory_id = keep(tx, ANA, "Lisbon")
        own = apps.find(tx, ANA).own
        found = memories.get(tx, [own], memory_id)
        memory_changes.deactivate(tx, found, own, "ended", BY_HAND)
    with pytest.raises(StoreError), store.write() as tx:
        keep(tx, ANA, "Lisbon")
    with store.write() as tx:
        keep(tx, Scope("ana", "work"), "Lisbon")
        keep(tx, BO, "Lisbon")
        assert memories.by_sha1(tx, [own], new("Lisbon").sha1).id == memory_id


def test_retiring_and_reviving_keep_the_reason_the_link_and_the_words(tx) -> None:
    old, newer = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "Porto")
    own = apps.find(tx, ANA).own
    memory_changes.deactivate(
        tx, memories.get(tx, [own], old), own, "superseded", BY_HAND, replaced_by=newer
    )
    retired = memories.get(tx, [own], old)
    assert (retired.active, retired.inactive_reason, retired.replaced_by) == (
        False,
        "superseded",
        newer,
    )
    assert [m.id for m in replacements.replaced_memories(tx, newer)] == [old]
    found = keywords.matches(tx, "memories", [own], ["lisbon"]).best(5)
    assert [i for i, _ in found] == [old], "a replaced value can be searched for"
    memory_changes.reactivate(tx, retired, own, BY_HAND)
    back = memories.get(tx, [own], old)
    assert (back.active, back.inactive_reason, back.replaced_by) == (True, None, None)
    assert [i for i, _ in keywords.matches(tx, "memories", [own], ["lisbon"]).best(5)] == [old]
    kinds = [e.kind for e in events.of_memory(tx, old)]
    assert kinds == ["add", "supersede", "restore"]


def test_a_removed_row_lets_go_of_those_it_replaced(tx) -> None:
    old, newer = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "Porto")
    own = apps.find(tx, ANA).own
    memory_changes.deactivate(
        tx, memories.get(tx, [own], old), own, "merged", BY_HAND, replaced_by=newer
    )
    memory_changes.remove(tx, [newer])
    left = memories.get(tx, [own], old)
    assert left.replaced_by is None and left.inactive_reason == "merged"


def test_a_repeat_counts_and_an_older_one_moves_no_time_back(tx) -> None:
    memory_id = keep(tx, ANA, "Lisbon")
    own = apps.find(tx, ANA).own
    for said_at in (NOON + timedelta(days=2), NOON - timedelta(days=2)):
        memory_changes.count_repeat(tx, memories.get(tx, [own], memory_id), own, said_at, BY_HAND)
    found = memories.get(tx, [own], memory_id)
    assert found.seen_count == 3
    assert found.last_seen_at == found.said_at == NOON + timedelta(days=2)


def test_a_memory_that_moves_takes_its_history_along(tx) -> None:
    memory_id = keep(tx, ANA, "Lisbon")
    own, shared = apps.ensure(tx, ANA, NOON)
    memory = memories.get(tx, [own], memory_id)
    memory_changes.rewrite(tx, memory, shared, new("Lisbon"), BY_HAND)
    assert memory_id in events.changed_since(tx, own, 0)  # the index it leaves is told
    assert memory_id in events.changed_since(tx, shared, 0)
    events.remove_app(tx, own)
    assert [e.kind for e in events.of_memory(tx, memory_id)] == ["add", "edit"]
    assert memories.get(tx, [own], memory_id) is None


def test_a_day_lasts_until_it_is_over_and_each_status_is_as_it_says(tx) -> None:
    own, _ = apps.ensure(tx, ANA, NOON)
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
    memory_changes.deactivate(tx, memories.get(tx, [own], gone), own, "ended", BY_HAND)

    def listed(status: str) -> set[str]:
        found = memory_lists.listed(tx, [own], Wanted(status=status), ValuesInForce(TODAY))
        assert memory_lists.counted(tx, [own], Wanted(status=status), ValuesInForce(TODAY)) == len(
            found
        )
        return {m.value for m in found}

    assert listed("active") == {"always", "today", "tomorrow"}
    assert listed("expired") == {"over"}
    assert listed("inactive") == {"ended"}
    assert listed("all") == {*kept, "ended"}
    assert memory_lists.expired_ids(tx, [own], TODAY) == [kept["over"]]
    shared = apps.find(tx, ANA).shared
    assert [{*ids} for ids in memory_lists.scopes_with_due_dates(tx, TODAY, "ana")] == [
        {own, shared}
    ]
    assert memory_lists.scopes_with_due_dates(tx, TODAY, "bo") == []


def test_pages_follow_each_other_newest_said_first_without_gap_or_repeat(tx) -> None:
    own, _ = apps.ensure(tx, ANA, NOON)
    ids = [
        keep(tx, ANA, f"v{i}", said_at=NOON + timedelta(days=i // 2)) for i in range(7)
    ]  # pairs said at the same time
    pages = [
        [
            m.id
            for m in memory_lists.listed(
                tx, [own], Wanted(status="all"), ValuesInForce(TODAY), limit=3, offset=o
            )
        ]
        for o in (0, 3, 6, 9)
    ]
    assert [i for page in pages for i in page] == ids[::-1]
    assert memory_lists.listed(tx, [own], Wanted(status="all"), ValuesInForce(TODAY), limit=0) == []


def test_pinned_are_profile_then_preference_the_most_confirmed_first(tx) -> None:
    own, _ = apps.ensure(tx, ANA, NOON)
    keep(tx, ANA, "fact", memory_type="fact")
    like = keep(tx, ANA, "tea", memory_type="preference")
    city, job = keep(tx, ANA, "Lisbon"), keep(tx, ANA, "baker")
    memory_changes.count_repeat(tx, memories.get(tx, [own], job), own, NOON, BY_HAND)
    assert [m.id for m in memory_lists.pinned_first(tx, [own], ValuesInForce(TODAY), 9)] == [
        job,
        city,
        like,
    ]


def test_whether_a_key_holds_many_is_as_it_was_last(tx) -> None:
    own, _ = apps.ensure(tx, ANA, NOON)
    assert memories.holds_many(tx, [own], "book") is None
    keep(tx, ANA, "Emma", key="book", many=False)
    keep(tx, ANA, "Dune", key="book", many=True)
    assert memories.holds_many(tx, [own], "book") is True
    assert memory_lists.keys_in_use(tx, [own]) == ["book"]


# Scopes


def test_making_a_scope_twice_makes_it_once_with_what_all_apps_share(tx) -> None:
    assert apps.find(tx, ANA).ids == ()
    own, shared = apps.ensure(tx, ANA, NOON)
    assert apps.ensure(tx, ANA, NOON) == (own, shared)
    assert apps.find(tx, ANA).ids == (own, shared)
    work, same = apps.ensure(tx, Scope("ana", "work"), NOON)
    assert same == shared and work != own
    assert apps.ensure_shared(tx, "ana", NOON) == shared
    assert set(apps.ensure(tx, BO, NOON)) & {own, shared, work} == set()
    assert [a.name for a in apps.of_user(tx, "ana")] == ["home", "work"]


@pytest.mark.parametrize(("user_on", "app_on"), [(True, False), (False, True), (False, False)])
def test_switches_are_kept_for_the_user_and_for_the_app(tx, user_on: bool, app_on: bool) -> None:
    work = Scope("ana", "work")
    assert apps.memory_switch(tx, ANA).on
    own, shared = apps.ensure(tx, ANA, NOON)
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
            own, _ = apps.ensure(tx, scope, NOON)
            value = f"tea {n}"
            memory_id = keep(tx, scope, value)
            session_id, (message_id,) = talk(tx, scope, value)
            jobs.enqueue(tx, "embed", own, memory_id, NOON)
            usage.add(tx, own, session_id, Usage("chat", scope.user, 1, 1, None, 0.0), NOON)
            inbox.add(tx, own, NewInboxItem("near", value=value), NOON)
            owner |= {("memory", memory_id): scope, ("session", session_id): scope}
            owner[("message", message_id)] = scope
        asked = data.draw(SCOPES)
        ids = apps.find(tx, asked).ids

        def mine(kind: str) -> set[int]:
            return {i for (k, i), scope in owner.items() if k == kind and scope == asked}

        def of_user(kind: str) -> set[int]:
            return {i for (k, i), s in owner.items() if k == kind and s.user == asked.user}

        every = [i for (k, i) in owner if k == "memory"]
        listed = memory_lists.listed(tx, ids, Wanted(status="all"), ValuesInForce(TODAY))
        assert {m.id for m in listed} == mine("memory")
        assert set(memories.by_ids(tx, ids, every)) == mine("memory")
        assert {m.user for m in listed} <= {asked.user}
        for kind, table in (("memory", "memories"), ("message", "messages")):
            assert {i for i, _ in keywords.matches(tx, table, ids, ["tea"]).best(99)} == mine(kind)
            rows = [i for (k, i) in owner if k == kind]
            assert keywords.matches(tx, table, ids, ["tea"]).of(rows).keys() == mine(kind)
        assert {s.id for s in sessions.listed(tx, ids, 99)} == mine("session")
        assert all(
            (sessions.get(tx, ids, i) is None) == (scope != asked)
            for (kind, i), scope in owner.items()
            if kind == "session"
        )
        waiting = job_lists.listed(tx, user=asked.user, status=None, now=NOON, limit=99)
        assert {j.target_id for j in waiting} == of_user("memory")
        claimed = jobs.claim(tx, ClaimRequest("embed", "w", 60, limit=99, user=asked.user), NOON)
        assert {c.target_id for c in claimed} == of_user("memory")
        assert {t.model for t in usage.totals(tx, asked.user)} <= {asked.user}
        assert sum(len(inbox.listed(tx, i, "pending")) for i in ids) == len(mine("memory"))
        tx.get_transaction().rollback()


# Conversations, proof, receipts


def test_a_deleted_conversation_takes_its_turns_proofs_and_receipts(tx) -> None:
    session_id, (message_id,) = talk(tx, ANA, "I live in Lisbon")
    memory_id = keep(tx, ANA, "Lisbon")
    evidence.add(tx, memory_id, [(message_id, 10, "Lisbon"), (message_id, 10, "Lisbon")])
    (proof,) = evidence.of_memory(tx, memory_id)
    assert (proof.quote, proof.start, proof.session_id) == ("Lisbon", 10, session_id)
    assert evidence.proved_memories(tx, [message_id]) == [memory_id]
    hit = Hit("memory", memory_id, "city: Lisbon", 0.5, 0.4, None, "both", 7)
    receipts.add(tx, message_id, [hit])
    assert receipts.of_reply(tx, message_id) == [hit]
    sessions.remove(tx, session_id)
    assert evidence.of_memory(tx, memory_id) == []
    assert messages.by_ids(tx, [message_id]) == {} == dict(receipts.of_reply(tx, message_id))


def test_a_session_s_status_follows_its_life(tx) -> None:
    session_id, (message_id,) = talk(tx, ANA, "hello")
    own = apps.find(tx, ANA).own

    def status() -> str:
        return sessions.get(tx, [own], session_id).status

    assert status() == "open" and sessions.has_unread_messages(tx, session_id)
    assert sessions.end(tx, session_id, NOON) and not sessions.end(tx, session_id, NOON)
    assert status() == "off"
    jobs.enqueue(tx, "extract", own, session_id, NOON)
    assert status() == "pending"
    (claim,) = jobs.claim(tx, ClaimRequest("extract", "w", 60), NOON)
    sessions.mark_extracted(tx, session_id, message_id, "A title", None)
    sessions.mark_extracted(tx, session_id, message_id - 1, None, "A summary")
    assert jobs.finish(tx, claim, NOON)
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
    sessions.end(tx, session_id, NOON)
    assert not sessions.renew(tx, session_id, "host:2:y", later)
    assert sessions.open_sessions(tx, "ana") == []


def test_what_a_call_took_is_summed_even_when_its_session_is_gone(tx) -> None:
    session_id, _ = talk(tx, ANA, "hello")
    own = apps.find(tx, ANA).own
    spent = Usage("chat", "m", 10, 5, 0.25, 1.0)
    usage.add(tx, own, session_id, spent, NOON)
    sessions.remove(tx, session_id)
    usage.add(tx, own, session_id, spent, NOON)
    usage.add(tx, own, None, Usage("embed", "free", 3, 0, None, 0.1), NOON)
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
    own, shared = apps.ensure(tx, ANA, NOON)
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
    own, _ = apps.ensure(tx, ANA, NOON)
    for _ in range(2):
        inbox.add(tx, own, NewInboxItem("unsure", key="city", value="Lisbon"), NOON)
        inbox.add(tx, own, NewInboxItem("near", key=None, value=None), NOON)
    assert len(inbox.listed(tx, own, "pending")) == 2
    tx.execute(schema.inbox.update().values(status="rejected"))
    inbox.add(tx, own, NewInboxItem("again", key="city", value="Lisbon"), NOON)
    assert inbox.listed(tx, own, "pending") == []


def test_a_small_fact_is_set_replaced_and_dropped(tx) -> None:
    meta.put(tx, "colour", "red")
    meta.put(tx, "colour", "'; --")
    assert meta.get(tx, "colour") == "'; --"
    meta.remove(tx, "colour")
    assert meta.get(tx, "colour") is None
    assert meta.store_id(tx) == meta.store_id(tx) and meta.hash_key(tx) == meta.hash_key(tx)


# Vectors as rows


def test_a_vector_is_kept_to_the_last_bit_for_its_service_alone(tx) -> None:
    service = services.register(tx, SERVICE, NOON)
    other = services.register(tx, type(SERVICE)("hash", "words", 65, 10), NOON)
    assert services.register(tx, SERVICE, NOON) == service != other
    vector = np.random.default_rng(1).normal(size=64).astype(np.float32)
    embeddings.put(tx, service, [("h", vector)], NOON)
    embeddings.put(tx, service, [("h", vector * 2)], NOON)  # the first stays
    assert embeddings.get(tx, service, ["h", "unknown"])["h"].tobytes() == vector.tobytes()
    assert embeddings.get(tx, other, ["h"]) == {}


def test_only_vectors_that_no_memory_has_any_more_are_dropped(tx) -> None:
    service = services.register(tx, SERVICE, NOON)
    memory_id = keep(tx, ANA, "Lisbon")
    used = memories.hash_of(tx, memory_id)
    unit = np.eye(1, 64, dtype=np.float32)[0]
    unused = [f"{i:064x}" for i in range(40_000)]  # more than one statement can name
    embeddings.put(tx, service, [(used, unit), (unused[0], unit), (unused[-1], unit)], NOON)
    embeddings.remove_unused(tx, [*unused, used])
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


# SQLite's own


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "store")
    yield opened
    opened.close()


def test_the_table_has_the_founding_columns_with_their_defaults(sqlite: Database) -> None:
    with sqlite.write() as tx:
        own, _ = apps.ensure(tx, ANA, NOON)
    with raw(sqlite) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(memories)")]
        assert columns[:10] == [
            "id",
            "created_at",
            "memory_type",
            "key",
            "value",
            "sha1",
            "expires_at",
            "seen_count",
            "last_seen_at",
            "active",
        ]
        connection.execute(
            "INSERT INTO memories (app_id, memory_type, key, value, sha1, search_text, text_hash)"
            " VALUES (?, 'fact', 'city', 'Lisbon', 'x', 't', 'h')",
            (own,),
        )
        row = connection.execute(
            "SELECT seen_count, active, expires_at, created_at, last_seen_at, content FROM memories"
        ).fetchone()
        assert row[:3] == (1, 1, None) and row[5] == "city: Lisbon"
        for written in row[3:5]:
            age = datetime.now(UTC) - datetime.fromisoformat(written)
            assert timedelta(0) <= age < timedelta(minutes=1) and len(written) == 27
        for bad in ("memory_type = 'secret'", "created_by = 'thief'", "active = 0"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(f"UPDATE memories SET {bad}")


def test_the_desktop_paper_s_table_is_a_view_with_unix_times(sqlite: Database) -> None:
    with sqlite.write() as tx:
        memory_id = keep(tx, ANA, "Lisbon")
        own = apps.find(tx, ANA).own
    with raw(sqlite) as connection:
        cursor = connection.execute("SELECT * FROM app_memories")
        assert [c[0] for c in cursor.description] == [
            "id",
            "app_id",
            "content",
            "created_at",
            "updated_at",
        ]
        noon = int(NOON.timestamp())
        assert cursor.fetchone() == (memory_id, own, "city: Lisbon", noon, noon)


def test_every_connection_is_durable_checked_and_scrubbing(sqlite: Database) -> None:
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1}
    seen: list[dict] = []

    def look() -> None:
        with sqlite.read() as tx:
            ready.wait(timeout=10)  # all at once, so that each has a connection of its own
            seen.append({name: tx.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted})

    ready = threading.Barrier(6)
    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [wanted] * 6


def test_deleting_an_app_s_row_empties_every_table_of_it(sqlite: Database) -> None:
    with sqlite.write() as tx:
        memory_id, other = keep(tx, ANA, "Lisbon"), keep(tx, BO, "Porto")
        own, _ = apps.ensure(tx, ANA, NOON)
        session_id, (message_id,) = talk(tx, ANA, "I live in Lisbon")
        evidence.add(tx, memory_id, [(message_id, 10, "Lisbon")])
        hit = Hit("memory", memory_id, "t", 1.0, None, None, "pinned", 1)
        receipts.add(tx, message_id, [hit])
        prompts.add(tx, message_id, prompts.SentPrompt("You are …", message_id))
        muted.mute(tx, session_id, memory_id, NOON)
        jobs.enqueue(tx, "extract", own, session_id, NOON)
        inbox.add(tx, own, NewInboxItem("near", message_id=message_id, memory_id=memory_id), NOON)
        tombstones.add(tx, own, 1, [("value", "x")], NOON)
        usage.add(tx, own, session_id, Usage("chat", "m", 1, 1, None, 0.0), NOON)
        source = insert(schema.sources).values(app_id=own, type="memo", external_id="1")
        source_id = tx.execute(source.returning(schema.sources.c.id)).scalar_one()
        tx.execute(
            insert(schema.chunks).values(
                hash="h", source_type="memo", source_id=source_id, offset=0, size=1
            )
        )
    with sqlite.write() as tx:
        apps.remove(tx, own)
    with raw(sqlite) as connection:
        kept = {"apps": 3, "memories": 1, "memory_events": 2, "alembic_version": 1}
        kept["meta"] = 1  # the key of the tombstones
        for table in schema.metadata.tables:
            (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert count == kept.get(table, 0), table
        assert connection.execute("SELECT id FROM memories").fetchone() == (other,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_looking_up_a_scope_s_rows_uses_an_index(sqlite: Database) -> None:
    queries = [
        "SELECT * FROM memories WHERE app_id IN (1, 2) AND active = 1",
        "SELECT * FROM memories WHERE app_id IN (1, 2) AND active = 1 AND key = 'city'",
        "SELECT * FROM memories WHERE app_id IN (1, 2) AND sha1 = 'x'",
        "SELECT id FROM memories WHERE app_id = 1 AND active = 1 AND expires_at < '2026-05-01'",
        "SELECT id FROM apps WHERE user = 'ana' AND name IN ('home', '')",
        "SELECT * FROM sessions WHERE app_id = 1 ORDER BY id",
        "SELECT * FROM messages WHERE session_id = 1 ORDER BY id",
        "SELECT memory_id FROM memory_events WHERE app_id = 1 AND id > 7",
        "SELECT max(id) FROM memory_events WHERE app_id = 1",
        "SELECT * FROM memory_events WHERE memory_id = 1 ORDER BY id",
        "SELECT * FROM jobs WHERE status = -1 AND kind = 'x' AND run_at <= '2026'"
        " ORDER BY run_at, id",
        "SELECT * FROM receipts WHERE kind = 'memory' AND item_id IN (1, 2)",
        "SELECT embedding FROM embeddings WHERE hash = 'h' AND service_id = 1",
    ]
    with raw(sqlite) as connection:
        for query in queries:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert all("INDEX" in step for step in plan if not step.startswith("USE TEMP")), plan
            assert not any(step.startswith("SCAN") for step in plan), plan


def test_every_foreign_key_begins_an_index_so_that_cascades_need_no_scan(sqlite: Database) -> None:
    missing = set()
    with raw(sqlite) as connection:
        for table in schema.metadata.tables:
            leading = {
                connection.execute(f"PRAGMA index_info({index[1]!r})").fetchone()[2]
                for index in connection.execute(f"PRAGMA index_list({table})").fetchall()
            }
            keys = [c for c in connection.execute(f"PRAGMA table_info({table})") if c[5]]
            if len(keys) == 1 and keys[0][2] == "INTEGER":
                leading.add(keys[0][1])  # the rowid itself
            for key in connection.execute(f"PRAGMA foreign_key_list({table})"):
                if key[3] not in leading:
                    missing.add(f"{table}.{key[3]}")
    # A service is seldom deleted, after its vectors; an index on it would cost every vector.
    assert missing == {"embeddings.service_id"}


@pytest.mark.parametrize(
    "name", ["what? 100% #1", "Ünï 日本 👩‍👩‍👧", "a&b=c;d", "file:x", "sp ace"]
)
def test_a_folder_of_any_name_holds_the_rows_itself(tmp_path: Path, name: str) -> None:
    with closing(Database(tmp_path / name)) as database, database.write() as tx:
        keep(tx, ANA, "Lisbon")
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert [p.name for p in (tmp_path / name).iterdir()] == [FILE]
    assert (tmp_path / name / FILE).stat().st_size > 10_000


def test_nobody_else_on_the_machine_may_read_the_words(sqlite: Database) -> None:
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
        for path in sqlite.home.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def one_line(error: pytest.ExceptionInfo[StoreError]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_that_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError) as error:
        Database(tmp_path / "file" / "store")
    assert "MEMCHAT_HOME" in one_line(error)


def test_a_folder_in_the_place_of_the_file_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(StoreError) as error:
        Database(tmp_path)
    assert "MEMCHAT_HOME" in one_line(error)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_said_in_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError) as error:
        Database(tmp_path)
    tmp_path.chmod(0o700)
    assert "make it writable" in one_line(error)


def test_a_file_that_turns_read_only_refuses_the_write_and_still_reads(sqlite: Database) -> None:
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
    sqlite.close()
    event.listen(sqlite._engine, "connect", lambda c, _: c.execute("PRAGMA query_only=ON"))
    with pytest.raises(StoreError) as error, sqlite.write() as tx:
        keep(tx, ANA, "Porto")
    assert "cannot be written" in one_line(error)
    with sqlite.read() as tx:
        assert (
            memory_lists.counted(
                tx, apps.find(tx, ANA).ids, Wanted(status="all"), ValuesInForce(TODAY)
            )
            == 1
        )


def test_a_full_disk_refuses_the_whole_write_and_keeps_what_was_there(sqlite: Database) -> None:
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
    sqlite.close()
    event.listen(
        sqlite._engine, "connect", lambda c, _: c.execute("PRAGMA max_page_count=1").fetchall()
    )  # SQLite raises the limit to what the file has; then there is no room for one page more
    with pytest.raises(StoreError) as error, sqlite.write() as tx:
        keep(tx, ANA, "Porto")
        talk(tx, ANA, *(f"{i} " + "long words " * 5_000 for i in range(20)))
    assert "full" in one_line(error)
    with sqlite.read() as tx:
        (memory,) = memory_lists.listed(
            tx, apps.find(tx, ANA).ids, Wanted(status="all"), ValuesInForce(TODAY)
        )
        assert memory.value == "Lisbon"
        assert tx.execute(select(schema.messages)).first() is None
        assert tx.exec_driver_sql("SELECT count(*) FROM messages_fts").scalar() == 0
        assert tx.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


@pytest.mark.parametrize("damage", ["garbage", "cut"])
def test_a_damaged_file_is_said_in_one_line_and_left_alone(sqlite: Database, damage: str) -> None:
    with sqlite.write() as tx:
        talk(tx, ANA, *(f"{i} " + "words " * 500 for i in range(100)))
    sqlite.close()
    whole = sqlite.path.read_bytes()
    broken = b"not a database at all" * 500 if damage == "garbage" else whole[: len(whole) // 3]
    sqlite.path.write_bytes(broken)
    with (
        pytest.raises(StoreError) as error,
        closing(Database(sqlite.home)) as database,
        database.write() as tx,
    ):
        talk(tx, ANA, "more")
        keep(tx, ANA, "Lisbon")
        tx.exec_driver_sql("SELECT count(*), max(content) FROM messages").all()
        tx.exec_driver_sql("SELECT * FROM messages_fts_data").all()
    assert "damaged" in one_line(error)
    assert sqlite.path.read_bytes() == broken


def test_a_writer_that_waits_too_long_is_told_who_is_in_the_way(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("memchat.store.database.BUSY_SECONDS", 0.05)
    with closing(Database(tmp_path)) as database, database.write():
        with pytest.raises(StoreError) as error, database.write():
            pass
        assert "another process" in one_line(error)


@pytest.mark.parametrize("wrong", [2**63, -(2**70), "half a \ud83d"])
def test_what_no_row_can_hold_is_refused_in_one_line(store: Database, wrong) -> None:
    with pytest.raises(InputError) as error, store.read() as tx:
        if isinstance(wrong, int):
            memories.by_ids(tx, [1], [wrong])
        else:
            job_lists.listed(tx, user=wrong, status=None, now=NOON, limit=1)
    assert "\n" not in str(error.value)


def test_every_commit_survives_a_copy_of_the_files_as_they_lie(sqlite: Database) -> None:
    """What a crash leaves: the file and its log, the process gone without closing."""
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
    crashed = sqlite.home.parent / "crashed"
    crashed.mkdir()
    for path in sqlite.home.iterdir():
        if not path.name.endswith("-shm"):
            (crashed / path.name).write_bytes(path.read_bytes())
    with closing(Database(crashed)) as database, database.read() as tx:
        assert (
            memory_lists.counted(
                tx, apps.find(tx, ANA).ids, Wanted(status="all"), ValuesInForce(date.max)
            )
            == 1
        )


def test_the_log_is_emptied_once_no_reader_holds_it(sqlite: Database) -> None:
    log = sqlite.path.with_name(FILE + "-wal")
    with sqlite.write() as tx:
        keep(tx, ANA, "Lisbon")
    assert log.stat().st_size > 0
    assert sqlite.truncate_wal() and log.stat().st_size == 0
