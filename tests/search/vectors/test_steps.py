"""After any steps the index, the keyword rows and the events agree with the rows."""

from __future__ import annotations

import json
import tempfile
from datetime import date, timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from sqlalchemy import delete, select

from memchat import MemChat
from memchat.config import Settings
from memchat.db import apps, schema
from memchat.db.database import Database
from memchat.errors import InputError
from memchat.facts import changes, memories
from memchat.facts.changes import Cause
from memchat.facts.memories import ValuesInForce
from memchat.providers.embedders import HashEmbedder
from memchat.testing import FakeClock
from memchat.types import Scope, Wanted
from tests.support import empty_store, private
from tests.support.store import NOON

CITIES = ["Lisbon", "Porto", "Faro"]
LIKES = ["tea", "jazz", "chess", "opera"]
APPS = ["home", "work"]


class InStep(RuleBasedStateMachine):
    """Two openings of one store, each with its index; after each step all of it agrees."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock(NOON)
        home = empty_store.place(Path(self.folder.name))
        self.stores = [
            MemChat(settings=Settings(home=home), embedder=HashEmbedder(), clock=self.clock)
            for _ in range(2)
        ]
        self.rows: Database = private.database(self.stores[0])

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.folder.cleanup()

    def any_memory(self, n: int, app: str) -> int | None:
        found = self.stores[0].user("ana", app=app).memories.list(status="all")
        return found[n % len(found)].id if found else None

    who = st.integers(0, 1)
    app = st.sampled_from(APPS)
    nth = st.integers(0, 30)

    @rule(who=who, app=app, city=st.sampled_from(CITIES), everywhere=st.booleans())
    def say_where(self, who: int, app: str, city: str, everywhere: bool) -> None:
        self.clock.advance(seconds=1)
        self.stores[who].user("ana", app=app).memories.add(
            "profile", "city", city, all_apps=everywhere
        )

    @rule(who=who, app=app, like=st.sampled_from(LIKES), days=st.none() | st.integers(0, 2))
    def say_like(self, who: int, app: str, like: str, days: int | None) -> None:
        self.clock.advance(seconds=1)
        until = None if days is None else self.clock().date() + timedelta(days=days)
        self.stores[who].user("ana", app=app).memories.add(
            "preference", "like", like, expires_at=until
        )

    @rule(who=who)
    def embed(self, who: int) -> None:
        self.stores[who].jobs.embed()

    @rule(who=who, days=st.integers(0, 3))
    def days_pass(self, who: int, days: int) -> None:
        self.clock.advance(days=days)
        self.stores[who].jobs.run(kinds=("expire",))

    @rule(app=app, n=nth)
    def merge(self, app: str, n: int) -> None:
        with self.rows.write() as tx:
            own = apps.find(tx, Scope("ana", app)).own
            if not own:
                return
            active = memories.listed(tx, [own], Wanted(), ValuesInForce(date.min))
            if len(active) > 1:
                loser, winner = active[n % len(active)], active[(n + 1) % len(active)]
                cause = Cause("model")
                changes.deactivate(tx, loser, "merged", cause, replaced_by=winner.id)

    @rule(
        who=who, app=app, n=nth, value=st.sampled_from(LIKES), everywhere=st.none() | st.booleans()
    )
    def edit(self, who: int, app: str, n: int, value: str, everywhere: bool | None) -> None:
        memory_id = self.any_memory(n, app)
        if memory_id is not None:
            try:
                self.stores[who].user("ana", app=app).memories.update(
                    memory_id, value=value, all_apps=everywhere
                )
            except InputError as error:
                assert "says the same" in str(error)

    @rule(who=who, app=app, n=nth)
    def restore(self, who: int, app: str, n: int) -> None:
        memory_id = self.any_memory(n, app)
        if memory_id is not None:
            try:
                self.stores[who].user("ana", app=app).memories.restore(memory_id)
            except InputError as error:
                assert "active already" in str(error)

    @rule(who=who, app=app, n=nth)
    def forget(self, who: int, app: str, n: int) -> None:
        memory_id = self.any_memory(n, app)
        if memory_id is not None:
            self.stores[who].user("ana", app=app).memories.delete(memory_id)

    @rule(who=who, app=app)
    def clear(self, who: int, app: str) -> None:
        self.stores[who].user("ana", app=app).memories.clear()

    @precondition(lambda self: len(self.rows_of("apps")) > 2)
    @rule(who=who, app=app)
    def drop_app(self, who: int, app: str) -> None:
        if any(a.name == app for a in self.stores[who].user("ana").apps.list()):
            self.stores[who].user("ana").apps.delete(app)

    @rule(who=who)
    def reopen(self, who: int) -> None:
        old = self.stores[who]
        old.close()
        self.stores[who] = MemChat(settings=old.settings, embedder=HashEmbedder(), clock=self.clock)
        self.rows = private.database(self.stores[0])

    def rows_of(self, table: str) -> list:
        with self.rows.read() as tx:
            return tx.execute(select(schema.metadata.tables[table])).all()

    @invariant()
    def the_index_and_the_keyword_rows_are_the_active_and_the_replaced_rows(self) -> None:
        every = self.rows_of("memories")
        embedded = {row.hash for row in self.rows_of("embeddings")}
        hashes = {row.owner_id: row.hash for row in self.rows_of("passages")}
        assert hashes.keys() == {row.id for row in every}
        searched = [row for row in every if row.active or row.inactive_reason == "superseded"]
        for store in self.stores:
            meaning, _ = private.meaning(store)
            for app in self.rows_of("apps"):
                with private.database(store).read() as tx:
                    held = meaning.index.ids(tx, app.id)
                assert held == {
                    r.id for r in searched if r.app_id == app.id and hashes[r.id] in embedded
                }
        assert embedded <= {*hashes.values()}
        with self.rows.read() as tx:
            words = dict(
                tx.connection.exec_driver_sql("SELECT rowid >> 2, text FROM passages_fts").all()
            )
        assert {i: words[i].partition("q")[0] for i in words} == {
            row.id: str(row.app_id) for row in searched
        }

    @invariant()
    def the_events_tell_what_the_rows_are(self) -> None:
        told = replay(self.rows_of("memory_events"))
        assert told == {
            row.id: {
                "app_id": row.app_id,
                "memory_type": row.memory_type,
                "key": row.key,
                "value": row.value,
                "expires_at": row.expires_at and row.expires_at.isoformat(),
                "many": bool(row.many),
                "active": bool(row.active),
                "inactive_reason": row.inactive_reason,
                "seen_count": row.seen_count,
                **({"sentence": row.sentence} if row.sentence else {}),
            }
            for row in self.rows_of("memories")
        }


REASONS = {"supersede": "superseded", "merge": "merged", "expire": "expired", "end": "ended"}


def replay(log) -> dict[int, dict]:
    """The memories as their events tell them, from nothing."""
    told: dict[int, dict] = {}
    for event in sorted(log, key=lambda e: e.id):
        new = json.loads(event.new) if event.new else {}
        if event.kind == "forget":
            told.pop(event.memory_id, None)
        elif event.kind == "add" and new:
            fresh = {"active": True, "inactive_reason": None, "seen_count": 1}
            told[event.memory_id] = {**fresh, **new, "app_id": event.app_id}
        elif event.memory_id in told:
            state = told[event.memory_id]
            if event.kind in REASONS:
                state |= {"active": False, "inactive_reason": REASONS[event.kind]}
            elif event.kind == "restore":
                state |= {"active": True, "inactive_reason": None, **new}
            elif event.kind == "edit":
                state |= new
            elif event.kind == "repeat":
                state["seen_count"] += 1
    return told


def test_after_any_steps_index_keyword_rows_and_events_agree_with_the_rows() -> None:
    run_machine(
        InStep,
        settings=settings(
            max_examples=8,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_history_of_a_restored_memory_says_that_its_day_was_lifted(open_store, clock) -> None:
    mc = open_store()
    ana = mc.user("ana")
    memory = ana.memories.add("fact", "trip", "Faro", expires_at=clock().date())
    clock.advance(days=2)
    mc.jobs.run(kinds=("expire",))
    assert ana.memories.restore(memory.id).expires_at is None
    told = ana.memories.history(memory.id)
    assert [e.new["expires_at"] for e in told if e.new] == ["2026-05-01", None, None]


def test_a_replayed_log_that_lost_an_event_would_be_noticed(open_store) -> None:
    mc = open_store()
    ana = mc.user("ana")
    ana.memories.add("profile", "city", "Lisbon")
    ana.memories.add("profile", "city", "Porto")
    with private.database(mc).write() as tx:
        log = tx.execute(select(schema.memory_events)).all()
        assert [m["active"] for m in replay(log).values()] == [False, True]
        tx.execute(delete(schema.memory_events).where(schema.memory_events.c.kind == "supersede"))
        log = tx.execute(select(schema.memory_events)).all()
        assert [m["active"] for m in replay(log).values()] == [True, True]
